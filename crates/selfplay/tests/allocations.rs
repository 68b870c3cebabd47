//! A round of play in which no search ends takes no memory; one in which some do takes what goes into the records.

#![allow(clippy::unwrap_used, reason = "a test that meets an error has failed")]

mod common;

use std::sync::Arc;

use allocation_counter::measure;
use common::{lease, settings};
use tengen_games::{AnyGame, Game, GameVisitor};
use tengen_selfplay::evaluator::UniformEvaluator;
use tengen_selfplay::{Driver, DriverOptions, GameOrder, Plan};

const GAMES: usize = 8;
const SIMULATIONS: u32 = 32;
/// What a finished search may take: the list of the root's children, what the record keeps of it (visits, target and the
/// network's largest priors), and room for the ply.
const ALLOCATIONS_OF_A_SEARCH: u64 = 5;

struct Rounds;

impl GameVisitor for Rounds {
    type Output = ();

    fn visit<G: Game>(self, game: G) {
        let plan = Plan::SelfPlay {
            games: GAMES as u32,
            random_plies_max: 0,
        };
        let lease = lease(plan, settings(SIMULATIONS), 82);
        let evaluator = UniformEvaluator {
            actions: game.spec().actions.len(),
        };
        let mut driver = Driver::new(game.clone(), evaluator, DriverOptions::default());
        for index in 0..GAMES as u32 {
            let lease = Arc::clone(&lease);
            driver.start(GameOrder { lease, index }).unwrap();
        }
        let mut records = Vec::new();
        // A search is over after so many rounds at the latest. After three of them both halves of each tree's memory have
        // held a whole one.
        for _ in 0..3 * SIMULATIONS {
            driver.tick(&mut records).unwrap();
        }
        let (mut quiet, mut searches) = (0, 0);
        loop {
            let before = driver.counters();
            let taken = measure(|| driver.tick(&mut records).unwrap()).count_total;
            let after = driver.counters();
            if after.games > 0 {
                break;
            }
            let ended = after.plies - before.plies;
            assert!(
                taken <= ended * ALLOCATIONS_OF_A_SEARCH,
                "{taken} allocations in a round that ended {ended} searches"
            );
            searches += ended;
            quiet += u64::from(ended == 0);
        }
        assert!(quiet > 10 && searches > 10, "{quiet} rounds, {searches} searches");
    }
}

#[test]
fn a_round_takes_memory_for_records_alone() {
    AnyGame::parse("connect-four").unwrap().visit(Rounds);
}
