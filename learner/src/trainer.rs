//! One training run as a value: a network, its optimiser and its step, fed with batches.
//!
//! Knows no window, no coordinator and no thread. `train(2n)` is bit for bit `train(n)`, save, load, `train(n)`, given the
//! same batches, on the CPU with one thread.

use tch::{Device, Kind, TchError, Tensor};
use tengen_inference::Probe;
use tengen_network::{Shape, Weights};
use tengen_replay::Batch;

use crate::average::Average;
use crate::checkpoint::{Checkpoint, CheckpointError};
use crate::config::TrainingConfig;
use crate::loss::{Losses, Targets};
use crate::network::{Mode, Network, NetworkError};
use crate::optimiser::Optimiser;
use crate::parameters::read_values;
use crate::transfer::Transfer;

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
    /// The checkpoint to go on from does not fit.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
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
    optimiser: Optimiser,
    /// Kept as long as the settings say so.
    average: Option<Average>,
    config: TrainingConfig,
    step: u64,
    losses: Option<SmoothedLosses>,
    unread: Unread,
    /// The newest step's batch on its way to the device.
    sent: Transfer,
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
        let mut trainer = Trainer {
            optimiser: Optimiser::new(network.parameters())?,
            network,
            average: None,
            config,
            step: 0,
            losses: None,
            unread: Unread::new(device)?,
            sent: Transfer::to(device),
        };
        trainer.settle_average()?;
        Ok(trainer)
    }

    /// Goes on from a checkpoint of the same shape. Where it holds no average and there is to be one, that begins with its
    /// weights.
    pub fn restore(&mut self, checkpoint: &Checkpoint) -> Result<(), TrainerError> {
        let begun = checkpoint.state.averaged_steps;
        self.average = begun.map(|steps| Average::begin(&self.network, steps)).transpose()?;
        checkpoint.restore(&self.tensors()?)?;
        self.settle_average()?;
        self.step = checkpoint.state.step;
        let losses = SmoothedLosses {
            policy: checkpoint.state.policy_loss,
            value: checkpoint.state.value_loss,
        };
        self.losses = (self.step > 0).then_some(losses);
        Ok(())
    }

    /// Begins or gives up the average as the settings say; one that is kept goes on.
    fn settle_average(&mut self) -> Result<(), NetworkError> {
        if self.config.ema_decay.is_none() {
            self.average = None;
        } else if self.average.is_none() {
            self.average = Some(Average::begin(&self.network, 0)?);
        }
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
    pub fn follow(&mut self, config: TrainingConfig) -> Result<(), TrainerError> {
        self.config = config;
        Ok(self.settle_average()?)
    }

    /// The constants of training.
    pub fn config(&self) -> &TrainingConfig {
        &self.config
    }

    /// The network in training, as the last step left it.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// The network that others are to see: the average where one is kept, otherwise the one in training.
    pub fn published(&self) -> &Network {
        self.average.as_ref().map_or(&self.network, Average::network)
    }

    /// Steps that the average has taken in; `None` where none is kept.
    pub fn averaged_steps(&self) -> Option<u64> {
        self.average.as_ref().map(Average::steps)
    }

    /// Every tensor that a checkpoint holds, by name: parameters and statistics, `NAME.momentum` for the momentum of trained
    /// ones, and `NAME.average` for the average of each where one is kept.
    pub fn tensors(&self) -> Result<Vec<(String, Tensor)>, TrainerError> {
        let parameters = self.network.parameters();
        let mut tensors: Vec<(String, Tensor)> = parameters
            .all()
            .map(|parameter| (parameter.name.clone(), parameter.value.shallow_clone()))
            .collect();
        for parameter in parameters.trained() {
            let momentum = parameter.within(self.optimiser.momentum())?;
            tensors.push((format!("{}.momentum", parameter.name), momentum));
        }
        let averages = self
            .average
            .iter()
            .flat_map(|average| average.network().parameters().all());
        tensors.extend(averages.map(|average| (format!("{}.average", average.name), average.value.shallow_clone())));
        Ok(tensors)
    }

    /// One step on this batch. The losses stay on the device until [`Trainer::read_losses`].
    pub fn train(&mut self, batch: &Batch) -> Result<(), TrainerError> {
        let mut sending = Transfer::to(self.network.parameters().device());
        let losses = {
            let planes = self.network.planes_by(&mut sending, &batch.planes)?;
            let logits = self.network.forward(&planes, Mode::Train)?;
            Losses::of(&logits, &self.targets(&mut sending, batch)?)?
        };
        let total = losses.total(self.config.value_loss_weight)?;
        let rate = self.rate();
        self.optimiser
            .step(&self.config.sgd, self.network.parameters(), &total, rate)?;
        if let (Some(average), Some(decay)) = (&mut self.average, self.config.ema_decay) {
            average.follow(&self.network, decay)?;
        }
        self.step += 1;
        let _guard = tch::no_grad_guard();
        let _ = self.unread.policy.f_add_(&losses.policy)?;
        let _ = self.unread.value.f_add_(&losses.value)?;
        self.unread.steps += 1;
        // Only now, when this step has been issued, what the one before sent is let go of.
        drop(std::mem::replace(&mut self.sent, sending));
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

    /// Compares what the network that others see answers now with the targets of `batch`; changes nothing.
    pub fn evaluate(&self, batch: &Batch) -> Result<Evaluation, TrainerError> {
        let _guard = tch::no_grad_guard();
        let network = self.published();
        let mut sending = Transfer::to(network.parameters().device());
        let planes = network.planes_by(&mut sending, &batch.planes)?;
        let logits = network.forward(&planes, Mode::Evaluate)?;
        let targets = self.targets(&mut sending, batch)?;
        let losses = Losses::of(&logits, &targets)?;
        let likeliest = |rows: &Tensor| rows.f_argmax(-1, false);
        let predicted = likeliest(&logits.policy)?.f_eq_tensor(&likeliest(&targets.policy)?)?;
        Ok(Evaluation {
            policy_loss: losses.policy.f_double_value(&[])?,
            value_loss: losses.value.f_double_value(&[])?,
            predicted: predicted.f_sum(Kind::Int64)?.f_int64_value(&[])? as u64,
        })
    }

    /// Positions, u8 `[B, C, H, W]`, with what the network that others see answers for them now, as probes of an exported
    /// file.
    ///
    /// The answers are computed on the CPU whatever the device, since a GPU may round more coarsely than the tolerance.
    pub fn probes(&self, planes: &[u8]) -> Result<Vec<Probe>, TrainerError> {
        let _guard = tch::no_grad_guard();
        let on_cpu;
        let published = self.published();
        let network = if published.parameters().device() == Device::Cpu {
            published
        } else {
            on_cpu = published.copy_to(Device::Cpu)?;
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

    fn targets(&self, transfer: &mut Transfer, batch: &Batch) -> Result<Targets, TchError> {
        let actions = self.network.shape().actions() as i64;
        Ok(Targets {
            policy: transfer.send(&batch.policy, &[-1, actions])?,
            wdl: transfer.send(&batch.wdl, &[-1, 3])?,
            weight: transfer.send(&batch.weight, &[-1])?,
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
            ema_decay: None,
        }
    }

    fn averaging(decay: f64) -> TrainingConfig {
        TrainingConfig {
            ema_decay: Some(decay),
            ..config(0.05)
        }
    }

    fn trainer(game: &AnyGame, rate: f64) -> Trainer {
        trainer_with(game, config(rate))
    }

    fn trainer_with(game: &AnyGame, config: TrainingConfig) -> Trainer {
        // Tests run side by side; more threads each would only get in each other's way.
        tch::set_num_threads(1);
        let shape = Config {
            blocks: 2,
            channels: 16,
            value_channels: 8,
            value_hidden: 16,
        };
        let shape = Shape::new(game.spec(), &shape).unwrap();
        Trainer::new(&shape, &random_weights(&shape, 1), config, Device::Cpu).unwrap()
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

    /// What a checkpoint of this trainer says when it is read again.
    fn saved(trainer: &mut Trainer) -> Checkpoint {
        let losses = trainer.read_losses().unwrap();
        let state = TrainingState {
            run_id: "test".to_owned(),
            game: "tic-tac-toe".to_owned(),
            rules_fingerprint: String::new(),
            feature_fingerprint: String::new(),
            step: trainer.step(),
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
            averaged_steps: trainer.averaged_steps(),
        };
        let root = tempfile::tempdir().unwrap();
        let folder = CheckpointFolder::new(root.path());
        folder.save(&trainer.tensors().unwrap(), &state).unwrap();
        folder.newest().unwrap().unwrap()
    }

    /// Every number of it that a checkpoint holds.
    fn bits(trainer: &Trainer) -> Vec<(String, Vec<u32>)> {
        let tensors = trainer.tensors().unwrap().into_iter();
        tensors
            .map(|(name, tensor)| {
                (
                    name,
                    read_values(&tensor).unwrap().iter().map(|v| v.to_bits()).collect(),
                )
            })
            .collect()
    }

    fn goes_on_bit_for_bit(config: &TrainingConfig) {
        let game = game();
        let mut straight = trainer_with(&game, config.clone());
        train(&mut straight, &mut batches(&game, 0), 24);

        let mut first = trainer_with(&game, config.clone());
        train(&mut first, &mut batches(&game, 0), 12);
        let mut resumed = trainer_with(&game, config.clone());
        resumed.restore(&saved(&mut first)).unwrap();
        assert_eq!(resumed.step(), 12);
        assert_eq!(bits(&resumed), bits(&first));
        train(&mut resumed, &mut batches(&game, 12), 12);

        assert_eq!(bits(&resumed), bits(&straight));
        assert_ne!(bits(&resumed), bits(&first));
        assert_eq!(resumed.averaged_steps(), config.ema_decay.map(|_| 24));
    }

    #[test]
    fn training_goes_on_bit_for_bit_from_a_checkpoint() {
        goes_on_bit_for_bit(&config(0.05));
    }

    #[test]
    fn training_and_its_average_go_on_bit_for_bit_from_a_checkpoint() {
        goes_on_bit_for_bit(&averaging(0.9));
    }

    #[test]
    fn an_average_that_no_checkpoint_holds_begins_with_its_weights() {
        let game = game();
        let mut plain = trainer(&game, 0.05);
        train(&mut plain, &mut batches(&game, 0), 3);
        let mut averaging = trainer_with(&game, averaging(0.9));
        averaging.restore(&saved(&mut plain)).unwrap();
        assert_eq!(averaging.averaged_steps(), Some(0));
        assert_eq!(averaging.published().fold().unwrap(), plain.network().fold().unwrap());
        // And one that nobody wants any more is left behind.
        train(&mut averaging, &mut batches(&game, 3), 3);
        plain.restore(&saved(&mut averaging)).unwrap();
        assert_eq!(plain.averaged_steps(), None);
        assert_eq!(plain.published().fold().unwrap(), averaging.network().fold().unwrap());
    }

    #[test]
    fn averaging_changes_what_others_see_and_not_the_training() {
        let game = game();
        let (mut plain, mut averaging) = (trainer(&game, 0.05), trainer_with(&game, averaging(0.9)));
        for trainer in [&mut plain, &mut averaging] {
            train(trainer, &mut batches(&game, 0), 6);
        }
        let weights = plain.network().fold().unwrap();
        assert_eq!(averaging.network().fold().unwrap(), weights);
        assert_ne!(averaging.published().fold().unwrap(), weights);

        let batch = batches(&game, 6).next(7).unwrap();
        assert_ne!(averaging.evaluate(&batch).unwrap(), plain.evaluate(&batch).unwrap());
        let probe = |trainer: &Trainer| trainer.probes(&batch.planes).unwrap()[0].wdl;
        assert_ne!(probe(&averaging), probe(&plain));
        averaging.follow(config(0.05)).unwrap();
        assert_eq!(averaging.evaluate(&batch).unwrap(), plain.evaluate(&batch).unwrap());
        assert_eq!(probe(&averaging), probe(&plain));
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
