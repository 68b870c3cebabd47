//! The run's game behind one trait object: the generic rules are chosen once, here.

use std::fmt;
use std::sync::Arc;

use tengen_games::{AnyGame, Game, GameVisitor, Opening, Spec, draw_openings};
use tengen_records::{Checked, Expected, Record, Rejection, check};
use tengen_selfplay::audit::{AuditError, Difference, audit};
use tengen_selfplay::{Evaluator, ModelBytes};

/// What the coordinator needs of a game.
pub(crate) trait Referee: fmt::Debug + Send + Sync {
    /// Sizes and names.
    fn spec(&self) -> &Spec;

    /// Checks a record against the rules and its lease.
    fn check(&self, record: &Record, expected: &Expected) -> Result<Checked, Rejection>;

    /// Evaluates some plies of a checked record again and compares.
    fn audit(
        &self,
        record: &Record,
        plies: &[usize],
        models: &[Arc<ModelBytes>],
        evaluator: &mut dyn Evaluator,
    ) -> Result<Vec<Difference>, AuditError>;

    /// Draws up to `pairs` match openings.
    fn openings(&self, pairs: usize, seed: u64) -> Vec<Opening>;
}

#[derive(Debug)]
struct Of<G>(G);

impl<G: Game> Referee for Of<G> {
    fn spec(&self) -> &Spec {
        self.0.spec()
    }

    fn check(&self, record: &Record, expected: &Expected) -> Result<Checked, Rejection> {
        check(&self.0, record, expected)
    }

    fn audit(
        &self,
        record: &Record,
        plies: &[usize],
        models: &[Arc<ModelBytes>],
        evaluator: &mut dyn Evaluator,
    ) -> Result<Vec<Difference>, AuditError> {
        audit(&self.0, record, plies, models, evaluator)
    }

    fn openings(&self, pairs: usize, seed: u64) -> Vec<Opening> {
        draw_openings(&self.0, pairs, seed)
    }
}

/// The referee of a game.
pub(crate) fn referee(game: &AnyGame) -> Arc<dyn Referee> {
    struct Wrap;
    impl GameVisitor for Wrap {
        type Output = Arc<dyn Referee>;
        fn visit<G: Game>(self, game: G) -> Self::Output {
            Arc::new(Of(game))
        }
    }
    game.visit(Wrap)
}
