//! What every epoch came to: `report.json`, for people who plot it and for training that goes on.

use std::fmt;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use tengen_service::files::write_atomic;

use super::validation::Scores;

const FILE: &str = "report.json";

/// The whole of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Report {
    /// Canonical game id.
    pub(super) game: String,
    /// Names of the sets.
    pub(super) sets: Vec<String>,
    /// Positions to learn from.
    pub(super) positions: u64,
    /// Positions to validate with.
    pub(super) validation_positions: u64,
    /// Positions of a step.
    pub(super) batch: u32,
    /// Epochs in order.
    pub(super) epochs: Vec<Epoch>,
    /// The epoch whose network is kept: that of the least validation loss, without validation the last one.
    pub(super) best_epoch: u32,
}

/// One epoch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Epoch {
    /// Its number, from 1.
    pub(super) epoch: u32,
    /// Steps done at its end.
    pub(super) step: u64,
    /// Smoothed losses of training at its end, nats.
    pub(super) train_policy_loss: f32,
    /// See there.
    pub(super) train_value_loss: f32,
    /// What validation found.
    pub(super) validation: Option<Scores>,
}

impl Epoch {
    /// What is to be small: as training weighs the two losses.
    fn loss(&self, value_loss_weight: f64) -> Option<f64> {
        let found = self.validation?;
        Some(found.policy_loss + value_loss_weight * found.value_loss)
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "epoch {}, step {}: policy loss {:.3}, value loss {:.3}",
            self.epoch, self.step, self.train_policy_loss, self.train_value_loss
        )?;
        match self.validation {
            None => Ok(()),
            Some(found) => write!(
                f,
                "; validation {:.3} and {:.3}, {:.1} % of the moves predicted",
                found.policy_loss,
                found.value_loss,
                100.0 * found.predicted
            ),
        }
    }
}

impl Report {
    /// Adds an epoch; whether its network is the best one so far.
    pub(super) fn add(&mut self, epoch: Epoch, value_loss_weight: f64) -> bool {
        let best = self.best().and_then(|best| best.loss(value_loss_weight));
        let better = match (epoch.loss(value_loss_weight), best) {
            (Some(loss), Some(best)) => loss < best,
            _ => true,
        };
        if better {
            self.best_epoch = epoch.epoch;
        }
        self.epochs.push(epoch);
        better
    }

    /// Forgets the epochs that end after `step`: they are learned again.
    pub(super) fn cut(&mut self, step: u64) {
        self.epochs.retain(|epoch| epoch.step <= step);
    }

    /// The epoch whose network is kept.
    pub(super) fn best(&self) -> Option<&Epoch> {
        self.epochs.iter().find(|epoch| epoch.epoch == self.best_epoch)
    }

    /// The report of a folder, `None` where there is none yet.
    pub(super) fn read(folder: &Path) -> Result<Option<Report>> {
        let path = folder.join(FILE);
        match std::fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map(Some)
                .with_context(|| format!("{} is no report: name another folder with --out", path.display())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("failed to read {}", path.display())),
        }
    }

    /// Writes it, durable once this returns.
    pub(super) fn write(&self, folder: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        Ok(write_atomic(&folder.join(FILE), text.as_bytes())?)
    }
}
