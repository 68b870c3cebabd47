//! One training run as a value: a network, its optimiser and its step, fed with batches.
//!
//! Knows no window, no coordinator and no thread. `train(2n)` is bit for bit `train(n)`, save, load, `train(n)`, given the
//! same batches, on the CPU with one thread.

use tch::{Device, Kind, TchError, Tensor};
use tengen_inference::Probe;
use tengen_network::{Shape, Weights};
use tengen_replay::Batch;

use crate::checkpoint::{Checkpoint, CheckpointError};
use crate::config::TrainingConfig;
use crate::loss::{Losses, Targets};
use crate::network::{Mode, Network, NetworkError};
use crate::parameters::{Parameters, read_values};

/// How much of the smoothed losses the newest reading is: the last ten readings or so count.
const LOSS_SHARE: f32 = 0.1;

/// Training failed.
#[derive(Debug, thiserror::Error)]
pub enum TrainerError {
    /// libtorch refused.
    #[error("libtorch: {0}")]
    Torch(#[from] TchError),
    /// The network could not be made or folded.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// The losses are no numbers any more; going on would only write useless checkpoints.
    #[error(
        "the loss is not finite (policy {policy}, value {value}) at step {step}: lower learner.learning_rate; training \
         goes on from the last checkpoint"
    )]
    NotFinite {
        /// Steps done.
        step: u64,
        /// Mean policy loss since the last reading.
        policy: f32,
        /// Mean value loss since the last reading.
        value: f32,
    },
}

/// The losses as people read them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SmoothedLosses {
    /// Cross-entropy of the policy, nats.
    pub policy: f32,
    /// Cross-entropy of win, draw, loss, nats.
    pub value: f32,
}

/// How a network answers positions that it is not trained on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Evaluation {
    /// Mean cross-entropy of the policy, nats.
    pub policy_loss: f64,
    /// Mean cross-entropy of win, draw, loss, nats.
    pub value_loss: f64,
    /// Positions whose likeliest action is that of the target.
    pub predicted: u64,
}

/// A network in training.
#[derive(Debug)]
pub struct Trainer {
    network: Network,
    config: TrainingConfig,
    step: u64,
    losses: Option<SmoothedLosses>,
    unread: Unread,
}

/// Sums of losses on the device that the host has not read yet.
#[derive(Debug)]
struct Unread {
    policy: Tensor,
    value: Tensor,
    steps: u32,
}

impl Unread {
    fn new(device: Device) -> Result<Unread, TchError> {
        let zero = || Tensor::f_zeros([0i64; 0], (Kind::Float, device));
        Ok(Unread {
            policy: zero()?,
            value: zero()?,
            steps: 0,
        })
    }
}

impl Trainer {
    /// Training from these weights, at step 0.
    pub fn new(
        shape: &Shape,
        weights: &Weights,
        config: TrainingConfig,
        device: Device,
    ) -> Result<Trainer, TrainerError> {
        let network = Network::new(shape, weights, device)?;
        Ok(Trainer {
            network,
            config,
            step: 0,
            losses: None,
            unread: Unread::new(device)?,
        })
    }

    /// Goes on from a checkpoint of the same shape.
    pub fn restore(&mut self, checkpoint: &Checkpoint) -> Result<(), CheckpointError> {
        checkpoint.restore(self.network.parameters())?;
        self.step = checkpoint.state.step;
        let losses = SmoothedLosses {
            policy: checkpoint.state.policy_loss,
            value: checkpoint.state.value_loss,
        };
        self.losses = (self.step > 0).then_some(losses);
        Ok(())
    }

    /// Counts steps from here on: those before were made by another learner, whose network this one began from.
    pub fn begin_at(&mut self, step: u64) {
        self.step = step;
    }

    /// Steps done.
    pub fn step(&self) -> u64 {
        self.step
    }

    /// The learning rate of the next step.
    pub fn rate(&self) -> f64 {
        self.config.rates.at(self.step)
    }

    /// Goes by other constants from the next step on.
    pub fn follow(&mut self, config: TrainingConfig) {
        self.config = config;
    }

    /// The constants of training.
    pub fn config(&self) -> &TrainingConfig {
        &self.config
    }

    /// The network.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Every tensor that a checkpoint holds.
    pub fn parameters(&self) -> &Parameters {
        self.network.parameters()
    }

    /// One step on this batch. The losses stay on the device until [`Trainer::read_losses`].
    pub fn train(&mut self, batch: &Batch) -> Result<(), TrainerError> {
        let losses = {
            let logits = self
                .network
                .forward(&self.network.planes(&batch.planes)?, Mode::Train)?;
            Losses::of(&logits, &self.targets(batch)?)?
        };
        let rate = self.rate();
        let parameters = self.network.parameters_mut();
        self.config.sgd.zero_gradients(parameters);
        losses.total(self.config.value_loss_weight)?.f_backward()?;
        self.config.sgd.update(parameters, rate)?;
        self.step += 1;
        let _guard = tch::no_grad_guard();
        let _ = self.unread.policy.f_add_(&losses.policy)?;
        let _ = self.unread.value.f_add_(&losses.value)?;
        self.unread.steps += 1;
        Ok(())
    }

    /// Steps whose losses the host has not read.
    pub fn unread_steps(&self) -> u32 {
        self.unread.steps
    }

    /// Reads the losses of the steps since the last reading into the smoothed ones; on a GPU this waits for it.
    pub fn read_losses(&mut self) -> Result<SmoothedLosses, TrainerError> {
        if self.unread.steps > 0 {
            let steps = f64::from(self.unread.steps);
            let policy = (self.unread.policy.f_double_value(&[])? / steps) as f32;
            let value = (self.unread.value.f_double_value(&[])? / steps) as f32;
            if !(policy.is_finite() && value.is_finite()) {
                return Err(TrainerError::NotFinite {
                    step: self.step,
                    policy,
                    value,
                });
            }
            self.unread = Unread::new(self.network.parameters().device())?;
            let smooth = |old: f32, new: f32| old + LOSS_SHARE * (new - old);
            let before = self.losses.unwrap_or(SmoothedLosses { policy, value });
            self.losses = Some(SmoothedLosses {
                policy: smooth(before.policy, policy),
                value: smooth(before.value, value),
            });
        }
        Ok(self.losses.unwrap_or_default())
    }

    /// Compares what the network answers now with the targets of `batch`; changes nothing.
    pub fn evaluate(&self, batch: &Batch) -> Result<Evaluation, TrainerError> {
        let _guard = tch::no_grad_guard();
        let planes = self.network.planes(&batch.planes)?;
        let (logits, targets) = (self.network.forward(&planes, Mode::Evaluate)?, self.targets(batch)?);
        let losses = Losses::of(&logits, &targets)?;
        let likeliest = |rows: &Tensor| rows.f_argmax(-1, false);
        let predicted = likeliest(&logits.policy)?.f_eq_tensor(&likeliest(&targets.policy)?)?;
        Ok(Evaluation {
            policy_loss: losses.policy.f_double_value(&[])?,
            value_loss: losses.value.f_double_value(&[])?,
            predicted: predicted.f_sum(Kind::Int64)?.f_int64_value(&[])? as u64,
        })
    }

    /// Positions, u8 `[B, C, H, W]`, with what the network answers for them now, as probes of an exported file.
    ///
    /// The answers are computed on the CPU whatever the device, since a GPU may round more coarsely than the tolerance.
    pub fn probes(&self, planes: &[u8]) -> Result<Vec<Probe>, TrainerError> {
        let _guard = tch::no_grad_guard();
        let on_cpu;
        let network = if self.network.parameters().device() == Device::Cpu {
            &self.network
        } else {
            on_cpu = self.network.copy_to(Device::Cpu)?;
            &on_cpu
        };
        let logits = network.forward(&network.planes(planes)?, Mode::Evaluate)?;
        let policy = read_values(&logits.policy.f_softmax(-1, Kind::Float)?)?;
        let wdl = read_values(&logits.wdl.f_softmax(-1, Kind::Float)?)?;
        let shape = network.shape();
        let (wdl, _) = wdl.as_chunks::<3>();
        let rows = planes
            .chunks_exact(shape.planes_len())
            .zip(policy.chunks_exact(shape.actions()))
            .zip(wdl);
        Ok(rows
            .map(|((planes, policy), &wdl)| Probe {
                planes: planes.to_vec(),
                policy: policy.to_vec(),
                wdl,
            })
            .collect())
    }

    fn targets(&self, batch: &Batch) -> Result<Targets, TchError> {
        let device = self.network.parameters().device();
        let tensor =
            |values: &[f32], width: i64| Tensor::f_from_slice(values)?.f_view([-1, width])?.f_to_device(device);
        Ok(Targets {
            policy: tensor(&batch.policy, self.network.shape().actions() as i64)?,
            wdl: tensor(&batch.wdl, 3)?,
            weight: Tensor::f_from_slice(&batch.weight)?.f_to_device(device)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use tengen_games::AnyGame;
    use tengen_network::{Config, random_weights};

    use super::*;
    use crate::batches::Batches;
    use crate::checkpoint::{CheckpointFolder, LineModel, TrainingState};
    use crate::fixture;
    use crate::optimiser::{MomentumForm, RateSchedule, Sgd};

    fn config(rate: f64) -> TrainingConfig {
        TrainingConfig {
            sgd: Sgd {
                momentum: 0.9,
                weight_decay: 1e-4,
                form: MomentumForm::Heavy,
                gradient_norm_max: None,
            },
            rates: RateSchedule::constant(rate).unwrap(),
            value_loss_weight: 1.0,
        }
    }

    fn trainer(game: &AnyGame, rate: f64) -> Trainer {
        // Tests run side by side; more threads each would only get in each other's way.
        tch::set_num_threads(1);
        let shape = Config {
            blocks: 2,
            channels: 16,
            value_channels: 8,
            value_hidden: 16,
        };
        let shape = Shape::new(game.spec(), &shape).unwrap();
        Trainer::new(&shape, &random_weights(&shape, 1), config(rate), Device::Cpu).unwrap()
    }

    fn batches(game: &AnyGame, step: u64) -> Batches {
        Batches::start(game, fixture::window(game, 60, 5), 64, 9, step).unwrap()
    }

    fn game() -> AnyGame {
        AnyGame::parse("tic-tac-toe").unwrap()
    }

    fn train(trainer: &mut Trainer, batches: &mut Batches, steps: u64) {
        for _ in 0..steps {
            trainer.train(&batches.next(u64::MAX).unwrap()).unwrap();
        }
    }

    /// Some positions of the window, each only once: equal positions with unequal targets cannot be fitted.
    fn distinct_positions(game: &AnyGame, count: usize) -> Batch {
        let all = batches(game, 0).positions(10 * count).unwrap().batch;
        let (planes_len, actions) = (game.spec().planes_len(), game.spec().actions.len());
        let mut seen = HashSet::new();
        let mut chosen = Batch::default();
        for row in 0..all.len {
            let planes = &all.planes[row * planes_len..][..planes_len];
            if chosen.len < count && seen.insert(planes) {
                chosen.len += 1;
                chosen.planes.extend_from_slice(planes);
                chosen.policy.extend_from_slice(&all.policy[row * actions..][..actions]);
                chosen.wdl.extend_from_slice(&all.wdl[row * 3..][..3]);
                chosen.weight.push(1.0);
            }
        }
        assert_eq!(chosen.len, count);
        chosen
    }

    fn mean_entropy(batch: &Batch) -> f32 {
        let terms = batch.policy.iter().filter(|&&p| p > 0.0).map(|p| -p * p.ln());
        terms.sum::<f32>() / batch.len as f32
    }

    #[test]
    fn a_small_fixed_set_is_fitted_to_its_entropy() {
        let game = game();
        let batch = distinct_positions(&game, 24);
        let mut trainer = trainer(&game, 0.05);
        for _ in 0..400 {
            trainer.train(&batch).unwrap();
        }
        trainer.read_losses().unwrap();
        trainer.train(&batch).unwrap();
        trainer.losses = None;
        let losses = trainer.read_losses().unwrap();
        let floor = mean_entropy(&batch);
        assert!(losses.value < 0.05, "{losses:?}");
        assert!(losses.policy < floor + 0.05, "{losses:?}, entropy {floor}");
    }

    #[test]
    fn losses_fall_on_a_window() {
        let game = game();
        let (mut trainer, mut batches) = (trainer(&game, 0.05), batches(&game, 0));
        train(&mut trainer, &mut batches, 5);
        let before = trainer.read_losses().unwrap();
        train(&mut trainer, &mut batches, 200);
        trainer.read_losses().unwrap();
        train(&mut trainer, &mut batches, 5);
        trainer.losses = None;
        let after = trainer.read_losses().unwrap();
        // The untrained policy is even over all nine cells; the trained one knows at least which are taken.
        assert!((before.policy - 9.0_f32.ln()).abs() < 0.3, "{before:?}");
        assert!(
            after.policy < before.policy - 0.3 && after.value < before.value,
            "{before:?} {after:?}"
        );
    }

    #[test]
    fn training_goes_on_bit_for_bit_from_a_checkpoint() {
        let game = game();
        let mut straight = trainer(&game, 0.05);
        train(&mut straight, &mut batches(&game, 0), 24);

        let mut first = trainer(&game, 0.05);
        train(&mut first, &mut batches(&game, 0), 12);
        let root = tempfile::tempdir().unwrap();
        let folder = CheckpointFolder::new(root.path());
        let losses = first.read_losses().unwrap();
        let state = TrainingState {
            run_id: "test".to_owned(),
            game: game.spec().id.clone(),
            rules_fingerprint: String::new(),
            feature_fingerprint: String::new(),
            step: first.step(),
            sampler_seed: 9,
            positions_total: 0,
            limit: None,
            published: LineModel {
                iteration: 0,
                model_id: String::new(),
            },
            exported: None,
            policy_loss: losses.policy,
            value_loss: losses.value,
        };
        folder.save(first.parameters(), &state).unwrap();
        let mut resumed = trainer(&game, 0.05);
        resumed.restore(&folder.newest().unwrap().unwrap()).unwrap();
        assert_eq!(resumed.step(), 12);
        train(&mut resumed, &mut batches(&game, 12), 12);

        let bits = |trainer: &Trainer| -> Vec<(String, Vec<u32>)> {
            let named = trainer.parameters().named();
            named
                .map(|(name, tensor)| (name, read_values(tensor).unwrap().iter().map(|v| v.to_bits()).collect()))
                .collect()
        };
        assert_eq!(bits(&resumed), bits(&straight));
        assert_ne!(bits(&resumed), bits(&first));
    }

    #[test]
    fn a_ruined_network_is_an_error_that_names_the_step() {
        let game = game();
        let mut trainer = trainer(&game, 1e30);
        train(&mut trainer, &mut batches(&game, 0), 6);
        let error = trainer.read_losses().unwrap_err();
        assert!(matches!(error, TrainerError::NotFinite { step: 6, .. }), "{error}");
    }

    #[test]
    fn reading_losses_twice_changes_nothing() {
        let game = game();
        let mut trainer = trainer(&game, 0.05);
        assert_eq!(trainer.read_losses().unwrap(), SmoothedLosses::default());
        train(&mut trainer, &mut batches(&game, 0), 3);
        let losses = trainer.read_losses().unwrap();
        assert_eq!(trainer.unread_steps(), 0);
        assert_eq!(trainer.read_losses().unwrap(), losses);
    }
}
