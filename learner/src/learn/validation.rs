//! How well a network knows positions that it did not learn from.

use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};
use tengen_games::{AnyGame, Game, GameVisitor};
use tengen_replay::{Augmentation, Batch, Draw, SampleError, Sampler};

use crate::trainer::{Trainer, TrainerError};

/// Positions of one forward pass.
const BATCH: usize = 256;

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Scores {
    /// Mean cross-entropy of the policy, nats.
    pub(super) policy_loss: f64,
    /// Mean cross-entropy of win, draw, loss, nats.
    pub(super) value_loss: f64,
    /// Share of the positions whose move is the network's first choice, legal or not.
    pub(super) predicted: f64,
}

/// Validation failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum ValidationError {
    /// A game does not replay.
    #[error("failed to read the games to validate with: {0}")]
    Sample(#[from] SampleError),
    /// The network failed.
    #[error(transparent)]
    Trainer(#[from] TrainerError),
}

/// Compares the network with every position as it was played. `None` where there is none.
pub(super) fn validate(game: &AnyGame, trainer: &Trainer, draws: &[Draw]) -> Result<Option<Scores>, ValidationError> {
    struct Validate<'a>(&'a Trainer, &'a [Draw]);
    impl GameVisitor for Validate<'_> {
        type Output = Result<Scores, ValidationError>;
        fn visit<G: Game>(self, game: G) -> Self::Output {
            let Validate(trainer, draws) = self;
            let sampler = Sampler::new(game, Augmentation::None);
            // Nothing is drawn: positions come in their order, seen as they were played.
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(0);
            let mut batch = Batch::default();
            let (mut policy, mut value, mut predicted) = (0.0, 0.0, 0);
            for draws in draws.chunks(BATCH) {
                sampler.fill(draws, &mut batch, &mut rng)?;
                let found = trainer.evaluate(&batch)?;
                policy += found.policy_loss * draws.len() as f64;
                value += found.value_loss * draws.len() as f64;
                predicted += found.predicted;
            }
            let positions = draws.len() as f64;
            Ok(Scores {
                policy_loss: policy / positions,
                value_loss: value / positions,
                predicted: predicted as f64 / positions,
            })
        }
    }
    if draws.is_empty() {
        return Ok(None);
    }
    game.visit(Validate(trainer, draws)).map(Some)
}
