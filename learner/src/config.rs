//! What the learner is told by the run, checked: its `[learner]` and `[export]` sections.

use tengen_replay::{Split, SplitError, StepLimit};
use tengen_service::run_config::{ExportSection, LearnerSection};

use crate::device::{DeviceChoice, DeviceError};
use crate::optimiser::{MomentumForm, RateSchedule, ScheduleError, Sgd};

/// A key of `[learner]` makes no sense.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// The learning rate.
    #[error("learner.learning_rate: {0}")]
    Rate(#[from] ScheduleError),
    /// The validation share.
    #[error("learner.validation_share: {0}")]
    Split(#[from] SplitError),
    /// The device.
    #[error("learner.device: {0}")]
    Device(#[from] DeviceError),
}

/// How a step is made.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainingConfig {
    /// The optimiser.
    pub sgd: Sgd,
    /// The learning rate by step.
    pub rates: RateSchedule,
    /// Weight of the value loss beside the policy loss.
    pub value_loss_weight: f64,
    /// Share of the average of the weights that a step leaves, in (0, 1); `None`: no average is kept.
    pub ema_decay: Option<f64>,
}

/// Everything the learner is told by the run.
#[derive(Clone, Debug, PartialEq)]
pub struct LearnerConfig {
    /// How a step is made.
    pub training: TrainingConfig,
    /// How many steps the data allows, when training begins with these numbers.
    pub limit: StepLimit,
    /// No step before the window holds this many positions.
    pub window_min_positions: u64,
    /// Steps between checkpoints; at least 1.
    pub checkpoint_every_steps: u64,
    /// Which games are kept out of training.
    pub split: Split,
    /// Where to compute, unless the command line says otherwise.
    pub device: DeviceChoice,
    /// In which precisions networks are published.
    pub export: ExportSection,
}

impl LearnerConfig {
    /// The typed form of sections that were checked when they were read.
    pub fn from_sections(section: &LearnerSection, export: &ExportSection) -> Result<LearnerConfig, ConfigError> {
        Ok(LearnerConfig {
            training: TrainingConfig {
                sgd: Sgd {
                    momentum: section.momentum,
                    weight_decay: section.weight_decay,
                    form: MomentumForm::Heavy,
                    gradient_norm_max: None,
                },
                rates: RateSchedule::constant(section.learning_rate)?,
                value_loss_weight: section.value_loss_weight,
                ema_decay: Some(section.ema_decay).filter(|&decay| decay > 0.0),
            },
            limit: StepLimit::new(section.batch, section.samples_per_position),
            window_min_positions: section.window_min_positions,
            checkpoint_every_steps: section.checkpoint_every_steps,
            split: Split::new(section.validation_share)?,
            device: section.device.parse()?,
            export: export.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_a_learners_configuration() {
        let config = LearnerConfig::from_sections(&LearnerSection::default(), &ExportSection::default()).unwrap();
        assert_eq!(
            config.training.rates.at(1_000_000),
            LearnerSection::default().learning_rate
        );
        assert_eq!(config.device, DeviceChoice::Auto);
        assert_eq!(config.training.ema_decay, None, "weights are published as they are");
    }

    #[test]
    fn a_decay_asks_for_an_average() {
        let section = LearnerSection {
            ema_decay: 0.99,
            ..LearnerSection::default()
        };
        let config = LearnerConfig::from_sections(&section, &ExportSection::default()).unwrap();
        assert_eq!(config.training.ema_decay, Some(0.99));
    }

    #[test]
    fn a_bad_value_names_its_key() {
        let bad = LearnerSection {
            device: "tpu".to_owned(),
            ..LearnerSection::default()
        };
        let error = LearnerConfig::from_sections(&bad, &ExportSection::default())
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("learner.device") && error.contains("tpu"), "{error}");
    }
}
