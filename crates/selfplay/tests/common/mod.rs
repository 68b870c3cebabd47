//! What the tests of self-play share: leases, the coordinator's view of them, and networks.

#![allow(dead_code, reason = "each test binary uses its own part")]

use std::sync::Arc;

use tengen_games::{AnyGame, Game};
use tengen_network::{Config, Metadata, Shape, random_weights, write_onnx};
use tengen_records::{Endings, Expected, LeaseId, ModelIndex, Record, RunId, Work};
use tengen_search::Settings;
use tengen_selfplay::evaluator::HashEvaluator;
use tengen_selfplay::{Driver, DriverOptions, Evaluator, Lease, ModelBytes, Order, Plan};

/// A search of few visits with everything of self-play in it.
pub(crate) fn settings(simulations: u32) -> Settings {
    Settings {
        simulations,
        temperature_turns: 4,
        ..Settings::default()
    }
}

/// A lease with this seed whose models are `[1]`, `[2]`, ...
pub(crate) fn lease(plan: Plan, settings: Settings, seed: u64) -> Arc<Lease> {
    let models: Vec<_> = (1..=plan.models() as u8)
        .map(|byte| ModelBytes::new(vec![byte]))
        .collect();
    let order = Order {
        lease: LeaseId(u128::from(seed) << 64 | 5),
        models: models.iter().map(|model| model.id()).collect(),
        settings,
        settings_revision: 3,
        seed,
        plan,
    };
    Lease::new(RunId::new("test-run").unwrap(), order, models).unwrap()
}

/// What the coordinator would hold records of this lease against.
pub(crate) fn expected<G: Game>(game: &G, lease: &Lease) -> Expected {
    let order = lease.order();
    let work = match &order.plan {
        Plan::SelfPlay {
            games,
            random_plies_max,
        } => Work::SelfPlay {
            index_end: *games,
            random_plies_max: *random_plies_max,
        },
        Plan::Match { games } | Plan::Rating { games, .. } => Work::Match(
            games
                .iter()
                .map(|game| tengen_records::MatchGame {
                    pair: game.pair,
                    opening: game.opening.clone(),
                    seat0_model: ModelIndex(game.seat0_model as u8),
                })
                .collect(),
        ),
    };
    Expected {
        run_id: lease.run().clone(),
        game_id: game.spec().id.clone(),
        rules_fingerprint: tengen_games::rules_fingerprint(game),
        lease: lease.id(),
        models: order.models.clone(),
        players: order.plan.players().cloned(),
        settings_revision: order.settings_revision,
        lease_seed: order.seed,
        work,
        endings: Endings::default(),
    }
}

/// An evaluator with arbitrary, batch-invariant opinions.
pub(crate) fn opinions<G: Game>(game: &G) -> HashEvaluator {
    HashEvaluator {
        actions: game.spec().actions.len(),
    }
}

/// Plays a lease to its end and sorts the records by index. Time stands still.
pub(crate) fn play<G: Game>(
    game: &G,
    evaluator: impl Evaluator,
    options: DriverOptions,
    lease: &Arc<Lease>,
) -> Vec<Record> {
    let mut records = Vec::new();
    let options = DriverOptions {
        clock: || 1_000,
        ..options
    };
    Driver::new(game.clone(), evaluator, options)
        .play(lease, |record| records.push(record))
        .unwrap();
    records.sort_by_key(|record| record.id.index);
    records
}

/// A small random network for the game.
pub(crate) fn network(game: &AnyGame, seed: u64) -> Arc<ModelBytes> {
    let config = Config {
        blocks: 1,
        channels: 8,
        ..Config::default()
    };
    let shape = Shape::new(game.spec(), &config).unwrap();
    let metadata = Metadata {
        run: "test-run".to_owned(),
        game: game.spec().id.clone(),
        rules_fingerprint: game.rules_fingerprint(),
        feature_fingerprint: game.feature_fingerprint(),
        created: "2026-01-01T00:00:00Z".to_owned(),
        ..Metadata::of_shape(&shape)
    };
    ModelBytes::new(write_onnx(&shape, &random_weights(&shape, seed), &metadata).unwrap())
}
