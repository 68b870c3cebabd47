//! A gate's decision in a sentence, for people who read it months later.

use std::fmt::Write;

use crate::gate::{Gate, Match, Outcome};
use crate::log::{Decision, Tally};
use crate::match_rule::MatchRule;
use crate::sprt::SprtRule;

/// What was decided, and why.
pub(crate) fn reason(gate: &Gate, outcome: Outcome) -> String {
    let in_a_row = gate.in_a_row();
    let mut text = match outcome {
        Outcome::Promoted { streak } if in_a_row > 1 => format!("promoted as number {streak} of {in_a_row} in a row: "),
        Outcome::Promoted { .. } => "promoted: ".to_owned(),
        Outcome::Passed { streak } => format!("passed as number {streak} of {in_a_row} in a row: "),
        Outcome::Rejected => "rejected: ".to_owned(),
    };
    text.push_str(&of_match(gate.champion_match()));
    if let Some(elo) = gate.evidence().elo {
        let _ = write!(text, "; Elo {:+.0} ± {:.0}", elo.difference, elo.error());
    }
    text.push_str(&openings(gate.champion_match()));
    if gate.champion_match().decision() == Some(Decision::Promote) && !gate.pool().is_empty() {
        text.push_str(&of_pool(gate));
    }
    text
}

/// The match with the champion.
fn of_match(played: &Match) -> String {
    let tally = played.tally();
    if tally.pairs == 0 {
        return format!("no pair of {} was counted", played.plan().rule.pairs());
    }
    let Tally {
        pairs,
        wins,
        draws,
        losses,
        ..
    } = tally;
    let of = played.rule().pairs();
    let counted = format!("{wins} wins, {draws} draws and {losses} losses in {pairs} of {of} pairs");
    match played.rule() {
        MatchRule::Fixed(rule) => {
            let least = if rule.strict { "more than" } else { "at least" };
            let early = if played.decision().is_some() && pairs < of {
                "; the pairs still to come could not have changed it"
            } else {
                ""
            };
            format!(
                "{counted} score {:.1} % where {least} {:.1} % was needed{early}",
                tally.score() * 100.0,
                rule.threshold() * 100.0
            )
        }
        MatchRule::Sprt(rule) => format!(
            "{counted} score {:.1} %; {}",
            tally.score() * 100.0,
            of_sprt(&rule, &tally)
        ),
    }
}

fn of_sprt(rule: &SprtRule, tally: &Tally) -> String {
    let (lower, upper) = rule.bounds();
    let llr = rule.llr(tally);
    let ended = if llr >= upper {
        format!("reached {upper:.2}")
    } else if llr <= lower {
        format!("reached {lower:.2}")
    } else {
        format!("is still between {lower:.2} and {upper:.2}, and a match undecided at its end keeps the champion")
    };
    format!(
        "the log-likelihood ratio {llr:.2} of {} to {} {} {ended}",
        rule.upper,
        rule.lower,
        rule.unit.as_str()
    )
}

/// What the reader must know of the openings.
fn openings(played: &Match) -> String {
    let plan = played.plan();
    let (wanted, drawn) = (plan.rule.pairs(), plan.openings);
    let mut text = String::new();
    if drawn.pairs < wanted {
        let _ = write!(
            text,
            "; shortened from {wanted} pairs: the game has no more distinct openings"
        );
    }
    if drawn.repeated > 0 {
        let _ = write!(
            text,
            "; the game has only {} distinct openings: the other pairs repeat them with their first moves sampled",
            drawn.pairs - drawn.repeated
        );
    }
    text
}

fn of_pool(gate: &Gate) -> String {
    let mut text = format!("; against {} earlier champions", gate.pool().len());
    if gate.pool().len() == 1 {
        text.pop();
    }
    for (number, played) in gate.pool().iter().enumerate() {
        let tally = played.tally();
        let id = played.plan().opponent.0;
        let says = match played.decision() {
            Some(Decision::Promote) => "not lost",
            Some(Decision::Reject) => "lost",
            None => "not finished",
        };
        let _ = write!(
            text,
            "{} {:02x}{:02x}{:02x}{:02x} {says} with {:.1} % of {} pairs",
            if number == 0 { ":" } else { "," },
            id[0],
            id[1],
            id[2],
            id[3],
            tally.score() * 100.0,
            tally.pairs
        );
    }
    text
}
