//! What a game of a gate costs the state machine: its entry in the log, the pairs counted again, the rule asked, and the
//! evidence put into figures, for each kind of rule. One core.
//!
//! `make bench BENCH=gate`, or `cargo bench --profile dev --workspace --bench gate`. It prints figures and judges none.

use std::error::Error;
use std::io;
use std::time::{Duration, Instant};

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tengen_control::{
    ActorId, Candidate, FixedRule, GameScore, Gate, GateId, LeaseId, Leg, LogEntry, MatchPlan, MatchRule, ModelId,
    Needed, Openings, SprtRule, Unit,
};
use tengen_faults::bench::measure::{Measures, in_lumps};

/// Games of a match, unless it is decided before.
const GAMES: u32 = 400;
/// How long each rule is measured.
const MEASURED: Duration = Duration::from_secs(1);

fn main() -> Result<(), Box<dyn Error>> {
    let mut measures = Measures::from_args(MEASURED);
    let fixed = FixedRule::new(GAMES, Needed::AtLeast(0.55))?;
    measure(&mut measures, "fixed", fixed.into())?;
    for unit in [Unit::Elo, Unit::NormalizedElo] {
        let rule = SprtRule::new(GAMES, unit, [0.0, 10.0], [0.05, 0.05])?;
        measure(&mut measures, &format!("sprt of {}", unit.as_str()), rule.into())?;
    }
    Ok(())
}

/// Plays match after match between equals and prints what a game costs.
fn measure(measures: &mut Measures, name: &str, rule: MatchRule) -> io::Result<()> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut one_match = || {
        let scores: Vec<GameScore> = (0..GAMES).map(|_| score(&mut rng)).collect();
        let begun = Instant::now();
        let games = play(rule, &scores);
        (u64::from(games), begun.elapsed())
    };
    let median = measures.median_ns("gate", name, |bencher| {
        bencher.iter_custom(|wanted| in_lumps(wanted, &mut one_match));
    })?;
    if let Some(ns) = median {
        println!("gate, {name}: {:.2} microseconds a game", ns / 1e3);
    }
    Ok(())
}

/// One match to its decision or its end, with its evidence after every game as the status shows it; how many games it had.
fn play(rule: MatchRule, scores: &[GameScore]) -> u32 {
    let lease = LeaseId([1; 16]);
    let candidate = Candidate {
        model: ModelId([1; 32]),
        iteration: 1,
    };
    let plan = MatchPlan {
        opponent: ModelId([0; 32]),
        rule,
        openings: Openings::distinct(rule.pairs()),
    };
    let mut gate = Gate::new(GateId(1), candidate, plan);
    let pairs: Vec<u32> = gate.unassigned().collect();
    gate.assign(&pairs, lease, ActorId(1));
    let mut games = 0;
    for (number, &score) in (0..).zip(scores) {
        let pair = number / 2;
        let standing = gate.standing(lease, pair);
        gate.append(LogEntry {
            lease,
            pair,
            leg: Leg::BOTH[(number % 2) as usize],
            score,
            standing,
        });
        games += 1;
        std::hint::black_box(gate.evidence());
        if gate.decision().is_some() {
            break;
        }
    }
    games
}

fn score(rng: &mut Xoshiro256PlusPlus) -> GameScore {
    [GameScore::Win, GameScore::Draw, GameScore::Loss][rng.random_range(0..3usize)]
}
