//! Checkpoints: everything that training needs to go on exactly where it was, in one file that is whole or absent.
//!
//! It holds the tensors (weights, momentum, batch-norm statistics, and the average of weights and statistics where one is kept)
//! and the [`TrainingState`]. There is no generator state to save: the batch of a step is drawn from (seed, step) alone, so
//! the step **is** the sampler's cursor.
//!
//! Without an average a checkpoint is what builds that knew none wrote and read.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tch::{TchError, Tensor};
use tengen_records::ModelId;
use tengen_replay::StepLimit;
use tengen_service::files::{self, WriteError};

use crate::parameters::write_values;

mod format;

use format::{EncodeError, SavedTensor};

/// How many checkpoints stay: the newest, and one to fall back on.
const KEPT: usize = 2;
const PREFIX: &str = "checkpoint-";
const SUFFIX: &str = ".safetensors";

/// A checkpoint could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The file could not be written durably.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The disk is full: the same may pass later.
    #[error(
        "{path} needs {bytes} bytes, and there is no room for it on the disk of {folder}: make room; the checkpoints there \
         are as they were",
        path = path.display(), folder = folder.display()
    )]
    NoRoom {
        /// The file's name.
        path: PathBuf,
        /// Where it belongs.
        folder: PathBuf,
        /// What it needs.
        bytes: usize,
    },
    /// The folder or a file in it could not be read.
    #[error("failed to read {path}: {source}", path = path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The file is not a whole checkpoint that this build understands.
    #[error("{path} is not a usable checkpoint: {reason}", path = path.display())]
    Damaged {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// There are checkpoints but none can be used; beginning anew in silence would throw training away.
    #[error(
        "none of the {count} checkpoints in {folder} can be used (newest: {newest}); move them away to begin anew",
        folder = folder.display()
    )]
    AllDamaged {
        /// Where.
        folder: PathBuf,
        /// How many.
        count: usize,
        /// Why the newest cannot be used.
        newest: String,
    },
    /// A tensor holds a number that is not finite; such a checkpoint would only be resumed into the same failure.
    #[error("tensor {name} is not finite: training has diverged; lower learning_rate")]
    NotFinite {
        /// Which.
        name: String,
    },
    /// The tensors could not be copied.
    #[error("failed to copy tensor {name}: {source}")]
    Tensor {
        /// Which.
        name: String,
        /// What libtorch said.
        #[source]
        source: TchError,
    },
}

/// What is saved beside the tensors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainingState {
    /// The run it belongs to.
    pub run_id: String,
    /// Canonical game id.
    pub game: String,
    /// Rules fingerprint, hexadecimal.
    pub rules_fingerprint: String,
    /// Feature fingerprint, hexadecimal.
    pub feature_fingerprint: String,
    /// Steps done. Also the sampler's cursor.
    pub step: u64,
    /// Seed that the batches are drawn from, with the step.
    pub sampler_seed: u64,
    /// Trainable positions of the run that the mirror had seen.
    pub positions_total: u64,
    /// The samples-per-position limit in force; absent in files of builds that kept none.
    #[serde(default)]
    pub limit: Option<StepLimit>,
    /// Newest network of this line that the coordinator is known to have: the parent of the next one. Iteration 0 is the
    /// random network that training began from.
    pub published: LineModel,
    /// The network that was cut at this step and may have reached the coordinator or not.
    pub exported: Option<LineModel>,
    /// Smoothed policy loss.
    pub policy_loss: f32,
    /// Smoothed value loss.
    pub value_loss: f32,
    /// Steps that the average has taken in; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub averaged_steps: Option<u64>,
}

impl TrainingState {
    /// Whether the run's newest network is one that this line has published, or an earlier one: the line may be ahead of a
    /// coordinator that was restored from a backup, and waits for it then.
    pub fn is_of_the_line_of(&self, newest: ModelId, iteration: u32) -> bool {
        let id = newest.to_string();
        let lines = [Some(&self.published), self.exported.as_ref()];
        lines.into_iter().flatten().any(|model| model.model_id == id) || iteration < self.published.iteration
    }
}

/// A network of the line that is being trained.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LineModel {
    /// Its iteration.
    pub iteration: u32,
    /// Its id, hexadecimal.
    pub model_id: String,
}

/// A checkpoint that was read whole.
#[derive(Debug)]
pub struct Checkpoint {
    /// Where it was read from.
    pub path: PathBuf,
    /// What was saved beside the tensors.
    pub state: TrainingState,
    tensors: HashMap<String, SavedTensor>,
}

impl Checkpoint {
    /// Whether every number in it is finite.
    pub fn is_finite(&self) -> bool {
        self.tensors
            .values()
            .all(|tensor| tensor.values.iter().all(|value| value.is_finite()))
    }
}

/// A checkpoint in memory, ready to be written.
#[derive(Debug)]
pub struct Encoded {
    name: String,
    bytes: Vec<u8>,
}

/// The folder that holds a run's checkpoints.
#[derive(Clone, Debug)]
pub struct CheckpointFolder(PathBuf);

impl CheckpointFolder {
    /// The folder at this path; it is created with the first checkpoint.
    pub fn new(path: impl Into<PathBuf>) -> CheckpointFolder {
        CheckpointFolder(path.into())
    }

    /// Writes a checkpoint of these tensors, by name; durable once this returns. Removes those older than the one before it.
    pub fn save(&self, tensors: &[(String, Tensor)], state: &TrainingState) -> Result<PathBuf, CheckpointError> {
        self.write(&self.encode(tensors, state)?)
    }

    /// The checkpoint as it will be written.
    pub fn encode(&self, tensors: &[(String, Tensor)], state: &TrainingState) -> Result<Encoded, CheckpointError> {
        let name = format!("{PREFIX}{:012}{SUFFIX}", state.step);
        let bytes = format::encode(tensors, state).map_err(|reason| match reason {
            EncodeError::Tensor { name, source } => CheckpointError::Tensor { name, source },
            EncodeError::NotFinite { name } => CheckpointError::NotFinite { name },
            EncodeError::Format(reason) => CheckpointError::Damaged {
                path: self.0.join(&name),
                reason,
            },
        })?;
        Ok(Encoded { name, bytes })
    }

    /// Writes it, durable once this returns, and then removes those older than the one before it.
    pub fn write(&self, Encoded { name, bytes }: &Encoded) -> Result<PathBuf, CheckpointError> {
        let path = self.0.join(name);
        files::write_atomic(&path, bytes).map_err(|error| {
            if error.is_out_of_room() {
                CheckpointError::NoRoom {
                    path: name.into(),
                    folder: self.0.clone(),
                    bytes: bytes.len(),
                }
            } else {
                error.into()
            }
        })?;
        self.prune()?;
        Ok(path)
    }

    /// The newest checkpoint that is whole, or `None` when there is none at all. A damaged one is passed over with a
    /// warning.
    pub fn newest(&self) -> Result<Option<Checkpoint>, CheckpointError> {
        let paths = self.list()?;
        let mut newest_fault = None;
        for path in paths.iter().rev() {
            match Checkpoint::read(path) {
                Ok(checkpoint) => return Ok(Some(checkpoint)),
                Err(error) => {
                    tracing::warn!(path = %path.display(), %error, "checkpoint passed over");
                    newest_fault.get_or_insert(error.to_string());
                }
            }
        }
        match newest_fault {
            None => Ok(None),
            Some(newest) => Err(CheckpointError::AllDamaged {
                folder: self.0.clone(),
                count: paths.len(),
                newest,
            }),
        }
    }

    /// Keeps the checkpoints of a line that is not gone on with in a folder beside this one, which is returned.
    pub fn set_aside(&self, reason: &str) -> Result<PathBuf, CheckpointError> {
        let mut name = self.0.file_name().unwrap_or_default().to_owned();
        name.push(format!("-before-{reason}"));
        let kept = self.0.with_file_name(name);
        let renamed = std::fs::rename(&self.0, &kept).and_then(|()| match self.0.parent() {
            Some(parent) => files::sync_folder(parent),
            None => Ok(()),
        });
        match renamed {
            Ok(()) => Ok(kept),
            Err(source) => Err(CheckpointError::Read { path: kept, source }),
        }
    }

    /// Checkpoint files by ascending step.
    fn list(&self) -> Result<Vec<PathBuf>, CheckpointError> {
        let unreadable = |source| CheckpointError::Read {
            path: self.0.clone(),
            source,
        };
        let entries = match std::fs::read_dir(&self.0) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(unreadable(error)),
        };
        let mut paths = Vec::new();
        for entry in entries {
            let path = entry.map_err(unreadable)?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if name.starts_with(PREFIX) && name.ends_with(SUFFIX) {
                paths.push(path);
            }
        }
        // Steps are padded with zeros, so the order of names is the order of steps.
        paths.sort();
        Ok(paths)
    }

    fn prune(&self) -> Result<(), CheckpointError> {
        let paths = self.list()?;
        let surplus = paths.len().saturating_sub(KEPT);
        for path in &paths[..surplus] {
            std::fs::remove_file(path).map_err(|source| CheckpointError::Read {
                path: path.clone(),
                source,
            })?;
        }
        Ok(())
    }
}

impl Checkpoint {
    /// Reads and checks one file.
    pub fn read(path: &Path) -> Result<Checkpoint, CheckpointError> {
        let bytes = std::fs::read(path).map_err(|source| CheckpointError::Read {
            path: path.to_owned(),
            source,
        })?;
        let (state, tensors) = format::decode(&bytes).map_err(|reason| CheckpointError::Damaged {
            path: path.to_owned(),
            reason,
        })?;
        Ok(Checkpoint {
            path: path.to_owned(),
            state,
            tensors,
        })
    }

    /// Copies the saved tensors into these, which must have exactly the same names and shapes.
    pub fn restore(&self, tensors: &[(String, Tensor)]) -> Result<(), CheckpointError> {
        let damaged = |reason: String| CheckpointError::Damaged {
            path: self.path.clone(),
            reason,
        };
        for (name, tensor) in tensors {
            let saved = self
                .tensors
                .get(name)
                .ok_or_else(|| damaged(format!("tensor {name} is missing")))?;
            if saved.shape != tensor.size() {
                return Err(damaged(format!(
                    "tensor {name} has shape {:?}, this run's network wants {:?}",
                    saved.shape,
                    tensor.size()
                )));
            }
            write_values(tensor, &saved.values).map_err(|source| CheckpointError::Tensor {
                name: name.clone(),
                source,
            })?;
        }
        if tensors.len() == self.tensors.len() {
            Ok(())
        } else {
            Err(damaged(format!(
                "it holds {} tensors, this run's network has {}",
                self.tensors.len(),
                tensors.len()
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::read_values;

    #[test]
    fn only_another_learners_later_network_is_of_another_line() {
        let id = |byte| ModelId([byte; 32]);
        let of = |published: u8, iteration, exported: Option<u8>| TrainingState {
            published: LineModel {
                iteration,
                model_id: id(published).to_string(),
            },
            exported: exported.map(|exported| LineModel {
                iteration: 9,
                model_id: id(exported).to_string(),
            }),
            ..state(10)
        };
        assert!(of(1, 5, None).is_of_the_line_of(id(1), 5));
        assert!(
            of(1, 5, Some(2)).is_of_the_line_of(id(2), 9),
            "it reached the coordinator"
        );
        assert!(
            of(1, 5, None).is_of_the_line_of(id(3), 4),
            "the coordinator starts from a backup"
        );
        assert!(!of(1, 5, Some(2)).is_of_the_line_of(id(3), 7));
        assert!(!of(1, 5, None).is_of_the_line_of(id(3), 5));
    }

    #[test]
    fn a_line_that_is_not_gone_on_with_is_kept_beside_the_next_one() {
        let (folder, tensors) = (tempfile::tempdir().unwrap(), tensors(0.5));
        let checkpoints = CheckpointFolder::new(folder.path().join("checkpoints"));
        checkpoints.save(&tensors, &state(2_000)).unwrap();
        let kept = checkpoints.set_aside("12ab").unwrap();
        assert_eq!(kept, folder.path().join("checkpoints-before-12ab"));
        checkpoints.save(&tensors, &state(10)).unwrap();
        assert_eq!(checkpoints.newest().unwrap().unwrap().state.step, 10);
        assert_eq!(CheckpointFolder::new(kept).newest().unwrap().unwrap().state.step, 2_000);
    }

    fn state(step: u64) -> TrainingState {
        TrainingState {
            run_id: "test".to_owned(),
            game: "tic-tac-toe".to_owned(),
            rules_fingerprint: "aa".to_owned(),
            feature_fingerprint: "bb".to_owned(),
            step,
            sampler_seed: 5,
            positions_total: 1_000,
            limit: Some(StepLimit::new(64, 4.0)),
            published: LineModel {
                iteration: 2,
                model_id: "cc".to_owned(),
            },
            exported: None,
            policy_loss: 1.5,
            value_loss: 0.5,
            averaged_steps: None,
        }
    }

    fn tensors(value: f32) -> Vec<(String, Tensor)> {
        let weight = Tensor::from_slice(&[value, -value]).view([2, 1]);
        let momentum = Tensor::from_slice(&[value * 3.0, 0.1]).view([2, 1]);
        let mean = Tensor::from_slice(&[value * 2.0]);
        [("w", weight), ("w.momentum", momentum), ("mean", mean)]
            .map(|(name, tensor)| (name.to_owned(), tensor))
            .into()
    }

    fn all_values(tensors: &[(String, Tensor)]) -> Vec<(&str, Vec<f32>)> {
        tensors
            .iter()
            .map(|(name, tensor)| (name.as_str(), read_values(tensor).unwrap()))
            .collect()
    }

    #[test]
    fn what_is_saved_is_restored_exactly() {
        let root = tempfile::tempdir().unwrap();
        let folder = CheckpointFolder::new(root.path().join("checkpoints"));
        assert!(folder.newest().unwrap().is_none());
        folder.save(&tensors(0.1), &state(7)).unwrap();
        let checkpoint = folder.newest().unwrap().unwrap();
        assert_eq!(checkpoint.state, state(7));
        let fresh = tensors(9.0);
        checkpoint.restore(&fresh).unwrap();
        assert_eq!(all_values(&fresh), all_values(&tensors(0.1)));
    }

    #[test]
    fn the_two_newest_are_kept() {
        let root = tempfile::tempdir().unwrap();
        let folder = CheckpointFolder::new(root.path());
        for step in [9, 10, 200] {
            folder.save(&tensors(step as f32), &state(step)).unwrap();
        }
        assert_eq!(folder.list().unwrap().len(), 2);
        assert_eq!(folder.newest().unwrap().unwrap().state.step, 200);
    }

    #[test]
    fn a_damaged_newest_falls_back_to_the_one_before() {
        let root = tempfile::tempdir().unwrap();
        let folder = CheckpointFolder::new(root.path());
        folder.save(&tensors(1.0), &state(1)).unwrap();
        let newest = folder.save(&tensors(2.0), &state(2)).unwrap();
        let whole = std::fs::read(&newest).unwrap();
        let mut flipped = whole.clone();
        *flipped.last_mut().unwrap() ^= 1;
        for bytes in [&whole[..whole.len() - 1], &flipped[..], &[]] {
            files::write_atomic(&newest, bytes).unwrap();
            assert_eq!(folder.newest().unwrap().unwrap().state.step, 1);
        }
    }

    #[test]
    fn when_all_are_damaged_nothing_begins_anew_in_silence() {
        let root = tempfile::tempdir().unwrap();
        let folder = CheckpointFolder::new(root.path());
        let path = folder.save(&tensors(1.0), &state(1)).unwrap();
        files::write_atomic(&path, b"gone").unwrap();
        let error = folder.newest().unwrap_err();
        assert!(matches!(error, CheckpointError::AllDamaged { count: 1, .. }), "{error}");
    }

    #[test]
    fn another_shape_or_another_set_of_tensors_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let folder = CheckpointFolder::new(root.path());
        folder.save(&tensors(1.0), &state(1)).unwrap();
        let checkpoint = folder.newest().unwrap().unwrap();
        let fewer = &tensors(0.0)[..2];
        assert!(checkpoint.restore(fewer).unwrap_err().to_string().contains("3 tensors"));
        let mut other = tensors(0.0);
        other[0].1 = other[0].1.view([1, 2]);
        assert!(checkpoint.restore(&other).unwrap_err().to_string().contains("[2, 1]"));
    }

    /// Builds that knew no average refuse a state with a key that they do not know.
    #[test]
    fn a_state_without_an_average_is_that_of_older_builds() {
        let text = serde_json::to_string(&state(3)).unwrap();
        assert!(!text.contains("averaged"), "{text}");
        assert_eq!(serde_json::from_str::<TrainingState>(&text).unwrap(), state(3));
        let averaging = TrainingState {
            averaged_steps: Some(7),
            ..state(3)
        };
        let text = serde_json::to_string(&averaging).unwrap();
        assert_eq!(serde_json::from_str::<TrainingState>(&text).unwrap(), averaging);
    }
}
