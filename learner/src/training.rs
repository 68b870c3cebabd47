//! The training loop: asks the [`Planner`] what is next and does it, on one thread, until told to stop.

use std::path::PathBuf;
use std::sync::Arc;

use tengen_network::Metadata;
use tengen_records::ModelId;
use tengen_service::backoff::Backoff;
use tengen_service::run_config::ExportSection;
use tokio::sync::mpsc;

use crate::batches::{BatchError, Batches};
use crate::checkpoint::{CheckpointError, CheckpointFolder, Encoded, LineModel, TrainingState};
use crate::config::LearnerConfig;
use crate::export::{Export, ExportError, TRAIN_POSITIONS, export};
use crate::pace::Pace;
use crate::plan::{Candidate, Inputs, Next, Planner, Waiting};
use crate::publish::Publication;
use crate::setup::RunIdentity;
use crate::signals::{Seen, Signals};
use crate::trainer::{Trainer, TrainerError};
use crate::variants::{Variant, positions_wanted, variants};

/// Steps between two readings of the losses: often enough for people, seldom enough that a GPU rarely waits.
const READ_LOSSES_EVERY: u32 = 20;

/// Training ended early.
#[derive(Debug, thiserror::Error)]
pub enum TrainingError {
    /// A step failed.
    #[error(transparent)]
    Trainer(#[from] TrainerError),
    /// No batch came.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// No checkpoint could be written.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
}

/// What the loop is made of.
#[derive(Debug)]
pub struct Training {
    /// The network and its optimiser.
    pub trainer: Trainer,
    /// What is next.
    pub planner: Planner,
    /// The run.
    pub identity: RunIdentity,
    /// Its newest networks.
    pub line: Line,
    /// Where batches come from.
    pub batches: Batches,
    /// Seed of the batches.
    pub sampler_seed: u64,
    /// How it is kept.
    pub checkpoints: Checkpoints,
    /// How candidates are made and handed over.
    pub exports: Exports,
    /// The outside.
    pub signals: Arc<Signals>,
}

/// The newest networks of the line that is being trained.
#[derive(Debug)]
pub struct Line {
    /// The newest that the coordinator is known to have.
    pub published: LineModel,
    /// The one that was handed to the publisher last, until the coordinator is known to have it.
    pub exported: Option<LineModel>,
}

/// What is left of training after a crash.
#[derive(Debug)]
pub struct Checkpoints {
    /// Where checkpoints go.
    pub folder: CheckpointFolder,
    /// Steps from one to the next.
    pub every_steps: u64,
}

/// What a network needs to become a candidate.
#[derive(Debug)]
pub struct Exports {
    /// In which precisions networks are published.
    pub precisions: ExportSection,
    /// Threads of the checks of exported files.
    pub threads: usize,
    /// Where finished networks go.
    pub publications: mpsc::Sender<Publication>,
}

/// A candidate's file and its variants, or why there is no candidate.
type Exported = Result<(Export, Vec<Variant>), ExportError>;

impl Line {
    /// Once the coordinator has the exported network, that is the parent of the next one.
    fn note_published(&mut self, inputs: &Inputs) {
        // While the publisher is at work only its own answer counts.
        if inputs.publishing {
            return;
        }
        self.exported
            .take_if(|exported| exported.iteration <= inputs.given_up_iteration);
        if let Some(exported) = self
            .exported
            .take_if(|exported| exported.iteration <= inputs.published_iteration)
        {
            self.published = exported;
        }
    }
}

impl Training {
    /// Trains until told to stop, then writes a last checkpoint.
    pub fn run(mut self) -> Result<(), TrainingError> {
        let mut pace = Pace::begin(self.batches.waited());
        let mut seen = self.signals.inputs();
        self.show("starting");
        loop {
            self.line.note_published(&seen.inputs);
            if let Some(config) = self.signals.take_settings() {
                self.follow(config)?;
            }
            match self.planner.next(&seen.inputs, self.trainer.step()) {
                Next::Stop => {
                    self.show("stopping");
                    return self.checkpoint(&seen.inputs);
                }
                Next::Train => {
                    let done = self.step(&seen.inputs, &mut pace);
                    seen = self.go_on(done, &seen)?;
                }
                Next::Publish(candidate) => {
                    let done = self.publish(candidate, &seen.inputs);
                    seen = self.go_on(done, &seen)?;
                }
                Next::Wait(waiting) => {
                    self.wait(waiting, &seen.inputs)?;
                    seen = self.signals.wait_after(&seen);
                    pace = Pace::begin(self.batches.waited());
                }
            }
        }
    }

    /// Goes by settings that were changed meanwhile. What was trained under the old ones stays as it is.
    fn follow(&mut self, config: LearnerConfig) -> Result<(), TrainingError> {
        let LearnerConfig {
            training,
            limit,
            window_min_positions,
            checkpoint_every_steps,
            export,
            // Both are read at a start: a window is split when it is read, and a network lies where it was made.
            split: _,
            device: _,
        } = config;
        let step = self.trainer.step();
        let old = *self.planner.limit();
        let limit = old.continued(limit.batch, limit.samples_per_position, step);
        if limit.batch != old.batch {
            self.batches.resize(limit.batch as usize)?;
        }
        self.planner.follow(limit, window_min_positions);
        self.trainer.follow(training)?;
        self.checkpoints.every_steps = checkpoint_every_steps;
        self.exports.precisions = export;
        let rate = self.trainer.rate();
        self.signals.set_status(|status| {
            status.limit_from_step = limit.from_step;
            status.limit_from_positions = limit.from_positions;
        });
        self.show_constants();
        tracing::info!(
            step,
            rate,
            batch = limit.batch,
            limit.samples_per_position,
            "settings followed"
        );
        Ok(())
    }

    /// The newest inputs after something was done, or after the next change when the window turned out to be empty: it was
    /// replaced after the inputs were read, and the mirror is about to say so.
    fn go_on(&mut self, done: Result<(), TrainingError>, seen: &Seen) -> Result<Seen, TrainingError> {
        match done {
            Err(TrainingError::Batch(error)) if error.is_empty_window() => {
                self.wait(Waiting::Mirror, &seen.inputs)?;
                Ok(self.signals.wait_after(seen))
            }
            done => done.map(|()| self.signals.inputs()),
        }
    }

    fn step(&mut self, inputs: &Inputs, pace: &mut Pace) -> Result<(), TrainingError> {
        let allowed = self.planner.limit().steps(inputs.window.positions_total);
        let batch = self.batches.next(allowed)?;
        self.trainer.train(&batch)?;
        self.batches.give_back(batch);
        pace.note_step();
        if self.trainer.unread_steps() >= READ_LOSSES_EVERY {
            self.report_losses()?;
            let waited = self.batches.waited();
            let figures = pace.figures(waited);
            self.signals.set_status(|status| {
                status.steps_per_second = figures.steps_per_second;
                status.waited_for_batches = figures.waited_for_batches;
            });
            *pace = Pace::begin(waited);
        }
        let step = self.trainer.step();
        self.signals.set_status(|status| {
            status.step = step;
            status.step_limit = allowed;
        });
        self.show("training");
        if step.is_multiple_of(self.checkpoints.every_steps) {
            self.checkpoint(inputs)
        } else {
            Ok(())
        }
    }

    fn wait(&mut self, waiting: Waiting, inputs: &Inputs) -> Result<(), TrainingError> {
        self.report_losses()?;
        let limit = self.planner.limit().steps(inputs.window.positions_total);
        self.signals.set_status(|status| {
            status.step_limit = limit;
            status.steps_per_second = 0.0;
            status.waited_for_batches = 0.0;
        });
        self.show(&waiting.to_string());
        Ok(())
    }

    /// Exports and checks the network, writes a checkpoint that knows the file, and hands it to the publisher.
    fn publish(&mut self, candidate: Candidate, inputs: &Inputs) -> Result<(), TrainingError> {
        let iteration = candidate.iteration;
        self.show(&format!("exporting the candidate of iteration {iteration}"));
        let (export, variants) = match self.export(candidate, inputs)? {
            Ok(exported) => exported,
            // Training goes on, and the next candidate is another chance.
            Err(error) => {
                tracing::error!(iteration, %error, "no candidate");
                self.signals.update(|inputs| inputs.given_up_iteration = iteration);
                let difference = error.difference();
                self.signals.set_status(|status| {
                    status.candidates_given_up += 1;
                    status.parity = difference.unwrap_or(status.parity);
                });
                return Ok(());
            }
        };
        let (step, model) = (self.trainer.step(), export.model_id.short());
        let (parity, illegal_mass) = (export.parity, export.illegal_mass);
        tracing::info!(iteration, step, model, parity, illegal_mass, "network exported");
        self.line.exported = Some(LineModel {
            iteration,
            model_id: export.model_id.to_string(),
        });
        self.checkpoint(inputs)?;
        self.signals.set_status(|status| {
            status.parity = parity;
            status.illegal_mass = Some(illegal_mass);
        });
        self.signals.update(|inputs| inputs.publishing = true);
        let publication = Publication::new(candidate, &self.identity.run_id, step, export, variants);
        // The publisher ends only when the learner does; the next start publishes what the checkpoint knows.
        let _ = self.exports.publications.blocking_send(publication);
        Ok(())
    }

    /// The network's file and its variants. The checkpoint keeps neither: a candidate that did not arrive before the learner
    /// ended is cut again, with variants of its own.
    fn export(&mut self, candidate: Candidate, inputs: &Inputs) -> Result<Exported, TrainingError> {
        let positions = self.batches.positions(positions_wanted(&self.exports.precisions))?;
        let losses = self.report_losses()?;
        let metadata = Metadata {
            run: self.identity.run_id.clone(),
            game: self.identity.game.clone(),
            rules_fingerprint: self.identity.rules_fingerprint,
            feature_fingerprint: self.identity.feature_fingerprint,
            iteration: candidate.iteration,
            generation: inputs.champion_generation,
            parent: self.line.published.model_id.parse().ok().map(ModelId::to_bytes),
            extra: [
                ("train_batch", self.planner.limit().batch.to_string()),
                (
                    "train_samples_per_position",
                    self.planner.limit().samples_per_position.to_string(),
                ),
                (TRAIN_POSITIONS, inputs.window.positions_total.to_string()),
            ]
            .map(|(key, value)| (key.to_owned(), value))
            .into(),
            ..Metadata::of_shape(self.trainer.network().shape())
        };
        let exported = export(&self.trainer, losses, metadata, &positions, self.exports.threads);
        Ok(exported.map(|export| {
            let (shape, planes) = (self.trainer.network().shape(), &positions.batch.planes);
            let variants = variants(shape, &export, planes, &self.exports.precisions, self.exports.threads);
            (export, variants)
        }))
    }

    fn checkpoint(&mut self, inputs: &Inputs) -> Result<(), TrainingError> {
        // Losses belong to the weights before the last update; the checkpoint itself refuses weights that are not finite.
        let losses = self.report_losses()?;
        let state = TrainingState {
            run_id: self.identity.run_id.clone(),
            game: self.identity.game.clone(),
            rules_fingerprint: self.identity.rules_fingerprint.to_string(),
            feature_fingerprint: self.identity.feature_fingerprint.to_string(),
            step: self.trainer.step(),
            sampler_seed: self.sampler_seed,
            positions_total: inputs.window.positions_total,
            limit: Some(*self.planner.limit()),
            published: self.line.published.clone(),
            exported: self.line.exported.clone(),
            policy_loss: losses.policy,
            value_loss: losses.value,
            averaged_steps: self.trainer.averaged_steps(),
        };
        let checkpoint = self.checkpoints.folder.encode(&self.trainer.tensors()?, &state)?;
        let path = self.write(&checkpoint)?;
        tracing::debug!(step = state.step, path = %path.display(), "checkpoint written");
        Ok(())
    }

    /// Writes a checkpoint as soon as there is room for it. Until then training stands still, for what it did further
    /// could be lost; whoever is asked to stop meanwhile tries once more and ends with the error.
    fn write(&self, checkpoint: &Encoded) -> Result<PathBuf, CheckpointError> {
        let mut backoff = Backoff::default();
        let mut stopping = self.signals.inputs().inputs.stop;
        let mut told = false;
        loop {
            match self.checkpoints.folder.write(checkpoint) {
                Err(error @ CheckpointError::NoRoom { .. }) if !stopping => {
                    if !told {
                        tracing::error!(%error, "the disk is full: training waits");
                        self.signals.set_status(|status| {
                            status.steps_per_second = 0.0;
                            status.waited_for_batches = 0.0;
                        });
                        self.show(&format!("waiting for room on the disk: {error}"));
                        told = true;
                    }
                }
                written => {
                    if told && written.is_ok() {
                        tracing::info!("there is room on the disk again: training goes on");
                    }
                    return written;
                }
            }
            stopping = self.signals.stopped_within(backoff.next_delay());
        }
    }

    fn report_losses(&mut self) -> Result<crate::trainer::SmoothedLosses, TrainerError> {
        let losses = self.trainer.read_losses()?;
        let step = self.trainer.step();
        self.signals.set_status(|status| {
            status.step = step;
            status.policy_loss = losses.policy;
            status.value_loss = losses.value;
        });
        self.show_constants();
        Ok(losses)
    }

    /// Shows what the next step and the next network go by.
    fn show_constants(&self) {
        let rate = self.trainer.rate();
        let decay = self.trainer.config().ema_decay.unwrap_or(0.0);
        self.signals.set_status(|status| {
            status.learning_rate = rate as f32;
            status.ema_decay = decay as f32;
        });
    }

    fn show(&self, activity: &str) {
        self.signals.set_status(|status| {
            if status.activity != activity {
                status.activity = activity.to_owned();
            }
        });
    }
}
