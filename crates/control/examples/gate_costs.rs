//! How often gates of each kind promote, and how many games they take, by simulation: the tables of `docs/gates.md`.
//!
//! Games are drawn, won and lost with fixed chances; nothing is played. It says what a rule does, not what a network does.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tengen_control::{
    Candidate, Decision, FixedRule, GameScore, Gate, GateId, LeaseId, Leg, LogEntry, MatchPlan, MatchRule, ModelId,
    Needed, Openings, RuleError, SprtRule, Standing, Unit,
};

/// Gates of each cell.
const GATES: u32 = 4_000;

/// Elo differences of the candidate.
const STRENGTHS: [f64; 6] = [-50.0, 0.0, 17.0, 35.0, 70.0, 150.0];

fn main() -> Result<(), RuleError> {
    let sprt = |games, unit, upper| SprtRule::new(games, unit, [0.0, upper], [0.05, 0.05]).map(MatchRule::from);
    let rules = [
        FixedRule::new(200, Needed::AtLeast(0.55))?.into(),
        FixedRule::new(400, Needed::AtLeast(0.55))?.into(),
        FixedRule::new(200, Needed::MoreThan(0.60))?.into(),
        sprt(400, Unit::Elo, 35.0)?,
        sprt(800, Unit::Elo, 35.0)?,
        sprt(2_000, Unit::Elo, 35.0)?,
        sprt(2_000, Unit::Elo, 20.0)?,
        sprt(800, Unit::NormalizedElo, 35.0)?,
    ];
    for draws in [0.0, 0.5] {
        println!("draws: {:.0} %; promoted, and games on average", draws * 100.0);
        let head: Vec<String> = STRENGTHS.iter().map(|elo| format!("{elo:+.0} Elo")).collect();
        println!("| rule | {} |", head.join(" | "));
        println!("|---{}|", "|---".repeat(STRENGTHS.len()));
        for rule in rules {
            let cell = |&elo: &f64| {
                let (promoted, games) = simulate(rule, elo, draws);
                format!("{:.1} %, {games:.0}", promoted * 100.0)
            };
            let cells: Vec<String> = STRENGTHS.iter().map(cell).collect();
            println!("| {rule} | {} |", cells.join(" | "));
        }
    }
    Ok(())
}

/// Share of the gates that promote, and their games on average.
fn simulate(rule: MatchRule, elo: f64, draws: f64) -> (f64, f64) {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let (mut promoted, mut games) = (0, 0);
    for _ in 0..GATES {
        let gate = play(rule, elo, draws, &mut rng);
        promoted += u32::from(gate.decision() == Some(Decision::Promote));
        games += u64::from(gate.tally().games());
    }
    (f64::from(promoted) / f64::from(GATES), games as f64 / f64::from(GATES))
}

fn play(rule: MatchRule, elo: f64, draws: f64, rng: &mut Xoshiro256PlusPlus) -> Gate {
    let candidate = Candidate {
        model: ModelId([1; 32]),
        iteration: 1,
    };
    let champion = MatchPlan {
        opponent: ModelId([0; 32]),
        rule,
        openings: Openings::distinct(rule.pairs()),
    };
    let mut gate = Gate::new(GateId(1), candidate, champion);
    // Fewer draws where one side wins nearly always: there is no room for them.
    let score = 1.0 / (1.0 + 10f64.powf(-elo / 400.0));
    let draws = draws.min(2.0 * score.min(1.0 - score));
    let win = score - draws / 2.0;
    for pair in 0..rule.pairs() {
        for leg in Leg::BOTH {
            let dice: f64 = rng.random();
            let score = if dice < win {
                GameScore::Win
            } else if dice < win + draws {
                GameScore::Draw
            } else {
                GameScore::Loss
            };
            gate.append(LogEntry {
                lease: LeaseId([0; 16]),
                pair,
                leg,
                score,
                standing: Standing::Counts,
            });
        }
        if gate.decision().is_some() {
            break;
        }
    }
    gate
}
