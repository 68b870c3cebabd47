//! Self-play without a coordinator: a network, a seed, and the records that follow.

use std::sync::Arc;

use tengen_games::{AnyGame, Game, GameVisitor};
use tengen_inference::SessionOptions;
use tengen_records::{LeaseId, Record, RunId};
use tengen_search::{Settings, SettingsError};

use crate::driver::{Driver, DriverOptions, PlayError};
use crate::evaluator::SessionEvaluator;
use crate::model::ModelBytes;
use crate::order::{Lease, LeaseError, Order, Plan};

/// The run that offline records name.
pub const OFFLINE_RUN: &str = "offline";

/// What to play.
#[derive(Clone, Debug)]
pub struct OfflineOptions {
    /// Games.
    pub games: u32,
    /// How to search.
    pub settings: Settings,
    /// Each game begins with 0 to this many uniformly random plies.
    pub random_plies_max: u32,
    /// Seed that every game's own seed derives from.
    pub seed: u64,
    /// How the driver plays.
    pub driver: DriverOptions,
    /// How the network is run.
    pub sessions: SessionOptions,
}

/// Offline self-play failed.
#[derive(Debug, thiserror::Error)]
pub enum OfflineError {
    /// The settings are outside their ranges.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The run's name or the order is refused: a fault of ours.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// The run's name is refused: a fault of ours.
    #[error(transparent)]
    Run(#[from] tengen_records::ParseIdError),
    /// Play cannot go on.
    #[error(transparent)]
    Play(#[from] PlayError),
}

/// Plays `options.games` games of `game` with `model` on the calling thread; records come in the order of their ends.
pub fn selfplay_offline(
    game: &AnyGame,
    model: Arc<ModelBytes>,
    options: &OfflineOptions,
) -> Result<Vec<Record>, OfflineError> {
    struct Visitor<'a>(Arc<Lease>, &'a OfflineOptions);
    impl GameVisitor for Visitor<'_> {
        type Output = Result<Vec<Record>, PlayError>;

        fn visit<G: Game>(self, game: G) -> Self::Output {
            let evaluator = SessionEvaluator::new(self.1.sessions.clone());
            let mut records = Vec::new();
            Driver::new(game, evaluator, self.1.driver).play(&self.0, |record| records.push(record))?;
            Ok(records)
        }
    }
    options.settings.validate()?;
    let order = Order {
        lease: LeaseId(u128::from(options.seed)),
        models: vec![model.id()],
        settings: options.settings,
        settings_revision: 0,
        seed: options.seed,
        plan: Plan::SelfPlay {
            games: options.games,
            random_plies_max: options.random_plies_max,
        },
    };
    let lease = Lease::new(RunId::new(OFFLINE_RUN)?, order, vec![model])?;
    Ok(game.visit(Visitor(lease, options))?)
}
