//! What the coordinator says is to be trained, checked against this build's rules.

use tengen_games::{AnyGame, Fingerprint, ParseGameError};
use tengen_network::{Shape, ShapeError};
use tengen_proto::v1::RegisterLearnerResponse;
use tengen_service::run_config::{ConfigError as RunConfigError, RunConfig};

use crate::checkpoint::TrainingState;
use crate::config::{ConfigError, LearnerConfig};

/// The run cannot be trained by this build.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// No such game here.
    #[error("the run's game is unknown to this build: {0}")]
    Game(#[from] ParseGameError),
    /// The configuration that came with the registration.
    #[error(transparent)]
    Run(#[from] RunConfigError),
    /// `[learner]`.
    #[error("the run's configuration: {0}")]
    Learner(#[from] ConfigError),
    /// `[network]`.
    #[error("the run's configuration: network: {0}")]
    Shape(#[from] ShapeError),
    /// The coordinator's rules or planes are not this build's.
    #[error(
        "{what} of {game} differ: the coordinator has fingerprint {theirs}, this build has {ours}; run the learner and the \
         coordinator from the same build"
    )]
    Fingerprint {
        /// Rules or feature planes.
        what: &'static str,
        /// The game.
        game: String,
        /// The coordinator's, hexadecimal.
        theirs: String,
        /// This build's, hexadecimal.
        ours: String,
    },
    /// A checkpoint of something else.
    #[error(
        "the checkpoint's {what} is {old}, this run's is {new}: name another folder with --data, or move the checkpoints \
         away to begin anew"
    )]
    Checkpoint {
        /// What differs.
        what: &'static str,
        /// The checkpoint's.
        old: String,
        /// The run's.
        new: String,
    },
}

/// What makes two pieces of training the same run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunIdentity {
    /// The run.
    pub run_id: String,
    /// Canonical game id.
    pub game: String,
    /// Rules fingerprint.
    pub rules_fingerprint: Fingerprint,
    /// Feature fingerprint.
    pub feature_fingerprint: Fingerprint,
}

impl RunIdentity {
    /// Refuses a checkpoint of another run, other rules or other planes.
    pub fn check(&self, state: &TrainingState) -> Result<(), SetupError> {
        let pairs = [
            ("run", &state.run_id, self.run_id.clone()),
            ("game", &state.game, self.game.clone()),
            (
                "rules fingerprint",
                &state.rules_fingerprint,
                self.rules_fingerprint.to_string(),
            ),
            (
                "feature fingerprint",
                &state.feature_fingerprint,
                self.feature_fingerprint.to_string(),
            ),
        ];
        for (what, old, new) in pairs {
            if *old != new {
                return Err(SetupError::Checkpoint {
                    what,
                    old: old.clone(),
                    new,
                });
            }
        }
        Ok(())
    }
}

/// Everything that follows from a registration.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The run.
    pub identity: RunIdentity,
    /// Its game.
    pub game: AnyGame,
    /// Its network.
    pub shape: Shape,
    /// How to train.
    pub config: LearnerConfig,
    /// Positions the window holds at most.
    pub capacity_positions: u64,
    /// The run's seed.
    pub seed: u64,
}

impl Setup {
    /// Reads and checks the coordinator's answer.
    pub fn from_registration(registration: &RegisterLearnerResponse) -> Result<Setup, SetupError> {
        let run = RunConfig::from_toml(&registration.run_toml)?;
        let game = AnyGame::parse(&registration.game)?;
        let identity = RunIdentity {
            run_id: registration.run_id.clone(),
            game: game.spec().id.clone(),
            rules_fingerprint: game.rules_fingerprint(),
            feature_fingerprint: game.feature_fingerprint(),
        };
        let pairs = [
            ("the rules", &registration.rules_fingerprint, identity.rules_fingerprint),
            (
                "the feature planes",
                &registration.feature_fingerprint,
                identity.feature_fingerprint,
            ),
        ];
        for (what, theirs, ours) in pairs {
            if theirs.as_slice() != ours.0.as_slice() {
                let (theirs, ours) = (hex::encode(theirs), ours.to_string());
                return Err(SetupError::Fingerprint {
                    what,
                    game: identity.game,
                    theirs,
                    ours,
                });
            }
        }
        Ok(Setup {
            shape: Shape::new(game.spec(), &run.network)?,
            config: LearnerConfig::from_sections(&run.learner, &run.export)?,
            capacity_positions: run.replay.capacity_positions,
            seed: registration.seed,
            identity,
            game,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::LineModel;

    fn registration() -> RegisterLearnerResponse {
        let game = AnyGame::parse("tic-tac-toe").unwrap();
        RegisterLearnerResponse {
            run_id: "small-1".to_owned(),
            game: "tic-tac-toe".to_owned(),
            rules_fingerprint: game.rules_fingerprint().0.to_vec(),
            feature_fingerprint: game.feature_fingerprint().0.to_vec(),
            fence: 1,
            run_toml: r#"
                [run]
                name = "small"
                game = "tic-tac-toe"
                [network]
                blocks = 1
                channels = 8
                [[schedule]]
                from_iteration = 0
                games = 10
                simulations = 16
                [learner]
                batch = 32
            "#
            .to_owned(),
            seed: 7,
            window_store: String::new(),
            settings_revision: 1,
            training_paused: false,
        }
    }

    #[test]
    fn a_registration_becomes_a_setup() {
        let setup = Setup::from_registration(&registration()).unwrap();
        assert_eq!(
            (setup.shape.blocks, setup.shape.channels, setup.config.limit.batch),
            (1, 8, 32)
        );
        assert_eq!((setup.seed, setup.identity.run_id.as_str()), (7, "small-1"));
    }

    #[test]
    fn other_rules_or_planes_are_refused_with_both_fingerprints() {
        for other in [
            RegisterLearnerResponse {
                rules_fingerprint: vec![1; 32],
                ..registration()
            },
            RegisterLearnerResponse {
                feature_fingerprint: vec![1; 32],
                ..registration()
            },
        ] {
            let error = Setup::from_registration(&other).unwrap_err().to_string();
            assert!(
                error.contains(&"01".repeat(32)) && error.contains("same build"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_checkpoint_of_another_run_is_refused() {
        let identity = Setup::from_registration(&registration()).unwrap().identity;
        let state = TrainingState {
            run_id: "other".to_owned(),
            game: identity.game.clone(),
            rules_fingerprint: identity.rules_fingerprint.to_string(),
            feature_fingerprint: identity.feature_fingerprint.to_string(),
            step: 1,
            sampler_seed: 7,
            positions_total: 0,
            limit: None,
            published: LineModel {
                iteration: 0,
                model_id: String::new(),
            },
            exported: None,
            policy_loss: 0.0,
            value_loss: 0.0,
            averaged_steps: None,
        };
        let error = identity.check(&state).unwrap_err().to_string();
        assert!(error.contains("other") && error.contains("small-1"), "{error}");
        identity
            .check(&TrainingState {
                run_id: "small-1".to_owned(),
                ..state
            })
            .unwrap();
    }
}
