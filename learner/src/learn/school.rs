//! The epochs: train, validate, keep the best network, write down what came of it.

use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tch::Device;
use tengen_network::random_weights;
use tengen_service::files::write_atomic;
use tokio_util::sync::CancellationToken;

use super::lessons::Lessons;
use super::report::{Epoch, Report};
use super::validation::{Scores, validate};
use super::{MODEL, Subject};
use crate::batches::{Batches, Positions};
use crate::checkpoint::{Checkpoint, CheckpointFolder, LineModel, TrainingState};
use crate::device::device_name;
use crate::export::{PARITY_POSITIONS, export};
use crate::setup::RunIdentity;
use crate::trainer::{SmoothedLosses, Trainer};
use crate::variants::positions_wanted;

/// Time between two lines about an epoch in progress.
const PROGRESS_EVERY: Duration = Duration::from_secs(10);

/// Everything that learning needs.
#[derive(Debug)]
pub(super) struct School {
    pub(super) subject: Subject,
    pub(super) lessons: Lessons,
    pub(super) out: PathBuf,
    pub(super) epochs: u32,
    pub(super) device: Device,
    pub(super) threads: u16,
}

/// The best network, whose file lies in the folder.
#[derive(Clone, Debug)]
pub(super) struct Graduate {
    /// Steps it was trained for.
    pub(super) step: u64,
    /// Smoothed losses of training then.
    pub(super) losses: SmoothedLosses,
    /// Real positions to check its files on, seen as they were played.
    pub(super) positions: Positions,
    /// What its metadata says of where it comes from.
    pub(super) extra: Vec<(&'static str, String)>,
    epoch: u32,
    validation: Option<Scores>,
}

impl fmt::Display for Graduate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the network of epoch {}", self.epoch)?;
        match self.validation {
            None => Ok(()),
            Some(found) => write!(
                f,
                ", which predicts {:.1} % of the moves it was validated with",
                100.0 * found.predicted
            ),
        }
    }
}

impl School {
    /// Goes on from what lies in the folder until all epochs are done. `None`: stopped before.
    pub(super) fn learn(self, stop: &CancellationToken) -> Result<Option<Graduate>> {
        tch::set_num_threads(i32::from(self.threads));
        let folder = CheckpointFolder::new(self.out.join("checkpoints"));
        let (mut trainer, mut report) = self.begin(&folder)?;
        println!(
            "{}: a network of {} on {}, from step {} of {}",
            self.subject.game.spec().id,
            self.subject.shape.describe(),
            device_name(self.device),
            trainer.step(),
            self.steps()
        );
        let mut batches = Batches::augmented(
            &self.subject.game,
            self.lessons.training.clone(),
            self.lessons.augmentation,
            self.batch() as usize,
            self.subject.seed,
            trainer.step(),
        )?;
        let (mut told, mut since) = (Instant::now(), trainer.step());
        while trainer.step() < self.steps() {
            if stop.is_cancelled() {
                self.checkpoint(&folder, &mut trainer)?;
                return Ok(None);
            }
            let batch = batches.next(self.steps())?;
            trainer.train(&batch)?;
            batches.give_back(batch);
            let step = trainer.step();
            if step.is_multiple_of(self.epoch_steps()) {
                self.end_epoch(&folder, &mut trainer, &mut batches, &mut report)?;
            }
            if told.elapsed() >= PROGRESS_EVERY {
                self.tell(&mut trainer, (step - since) as f64 / told.elapsed().as_secs_f64())?;
                (told, since) = (Instant::now(), step);
            }
        }
        self.graduate(&mut batches, &report).map(Some)
    }

    fn batch(&self) -> u32 {
        self.subject.config.limit.batch
    }

    /// Steps that draw as many positions as there are.
    fn epoch_steps(&self) -> u64 {
        self.lessons.positions.div_ceil(u64::from(self.batch()))
    }

    fn steps(&self) -> u64 {
        u64::from(self.epochs) * self.epoch_steps()
    }

    fn tell(&self, trainer: &mut Trainer, steps_per_second: f64) -> Result<()> {
        let losses = trainer.read_losses()?;
        let left = self.steps().saturating_sub(trainer.step()) as f64 / steps_per_second;
        println!(
            "step {} of {}: policy loss {:.3}, value loss {:.3}, {steps_per_second:.1} steps/s, about {} left",
            trainer.step(),
            self.steps(),
            losses.policy,
            losses.value,
            humantime::format_duration(Duration::from_secs(left as u64)),
        );
        Ok(())
    }

    fn begin(&self, folder: &CheckpointFolder) -> Result<(Trainer, Report)> {
        let subject = &self.subject;
        let weights = random_weights(&subject.shape, subject.seed);
        let mut trainer = Trainer::new(&subject.shape, &weights, subject.config.training.clone(), self.device)?;
        if let Some(checkpoint) = folder.newest()? {
            self.check(&checkpoint)?;
            trainer.restore(&checkpoint)?;
        }
        let mut report = Report::read(&self.out)?.unwrap_or_else(|| Report {
            game: subject.game.spec().id.clone(),
            sets: self.lessons.sets.clone(),
            positions: self.lessons.positions,
            validation_positions: self.lessons.validation.len() as u64,
            batch: self.batch(),
            epochs: Vec::new(),
            best_epoch: 0,
        });
        report.cut(trainer.step());
        Ok((trainer, report))
    }

    /// Training goes on only with the same games, network and batches: otherwise epochs would mean nothing.
    fn identity(&self) -> RunIdentity {
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.lessons.id.as_bytes());
        hasher.update(&self.subject.shape.fingerprint());
        hasher.update(&self.batch().to_le_bytes());
        hasher.update(&self.subject.seed.to_le_bytes());
        RunIdentity {
            run_id: format!("learn-{}", &hasher.finalize().to_hex()[..16]),
            game: self.subject.game.spec().id.clone(),
            rules_fingerprint: self.subject.game.rules_fingerprint(),
            feature_fingerprint: self.subject.game.feature_fingerprint(),
        }
    }

    fn check(&self, checkpoint: &Checkpoint) -> Result<()> {
        let checked = self.identity().check(&checkpoint.state);
        checked.map_err(|_| {
            anyhow::anyhow!(
                "{} holds training with other games, another network, batch size or seed: name another folder with --out, or \
                 remove it to begin anew",
                self.out.display()
            )
        })
    }

    fn end_epoch(
        &self,
        folder: &CheckpointFolder,
        trainer: &mut Trainer,
        batches: &mut Batches,
        report: &mut Report,
    ) -> Result<()> {
        let losses = trainer.read_losses()?;
        let epoch = Epoch {
            epoch: u32::try_from(trainer.step() / self.epoch_steps())?,
            step: trainer.step(),
            train_policy_loss: losses.policy,
            train_value_loss: losses.value,
            validation: validate(&self.subject.game, trainer, &self.lessons.validation)?,
        };
        println!("{epoch}");
        if report.add(epoch, self.subject.config.training.value_loss_weight) {
            let positions = batches.positions(PARITY_POSITIONS)?;
            let metadata = self.subject.metadata(&self.subject.name, self.extra(report));
            let export = export(trainer, losses, metadata, &positions, usize::from(self.threads))?;
            write_atomic(&self.out.join(MODEL), &export.file)?;
        }
        report.write(&self.out)?;
        // Last: what goes on from it finds the epoch's network and its line in the report.
        self.checkpoint(folder, trainer)
    }

    fn checkpoint(&self, folder: &CheckpointFolder, trainer: &mut Trainer) -> Result<()> {
        let losses = trainer.read_losses()?;
        let RunIdentity {
            run_id,
            game,
            rules_fingerprint,
            feature_fingerprint,
        } = self.identity();
        let state = TrainingState {
            run_id,
            game,
            rules_fingerprint: rules_fingerprint.to_string(),
            feature_fingerprint: feature_fingerprint.to_string(),
            step: trainer.step(),
            sampler_seed: self.subject.seed,
            positions_total: self.lessons.positions,
            limit: None,
            published: LineModel {
                iteration: 0,
                model_id: String::new(),
            },
            exported: None,
            policy_loss: losses.policy,
            value_loss: losses.value,
            averaged_steps: trainer.averaged_steps(),
        };
        folder.save(&trainer.tensors()?, &state)?;
        Ok(())
    }

    /// Where a network comes from, for its metadata.
    fn extra(&self, report: &Report) -> Vec<(&'static str, String)> {
        let mut extra = vec![
            ("train_sets", self.lessons.sets.join(" ")),
            ("train_batch", self.batch().to_string()),
            ("train_set_positions", self.lessons.positions.to_string()),
        ];
        if let Some(best) = report.best() {
            extra.push(("train_epochs", best.epoch.to_string()));
            extra.extend(best.validation.into_iter().flat_map(|found| {
                [
                    ("validation_policy_loss", found.policy_loss.to_string()),
                    ("validation_value_loss", found.value_loss.to_string()),
                    ("validation_predicted", found.predicted.to_string()),
                ]
            }));
        }
        extra
    }

    fn graduate(&self, batches: &mut Batches, report: &Report) -> Result<Graduate> {
        let best = report.best().context("no epoch was learned")?;
        Ok(Graduate {
            step: best.step,
            losses: SmoothedLosses {
                policy: best.train_policy_loss,
                value: best.train_value_loss,
            },
            positions: batches.positions(positions_wanted(&self.subject.config.export))?,
            extra: self.extra(report),
            epoch: best.epoch,
            validation: best.validation,
        })
    }
}
