//! Stochastic gradient descent with momentum, written out so that its whole state can be saved.
//!
//! The update is PyTorch's: `g += decay * w` (weights only), `v = momentum * v + g`, `w -= rate * v`, or with Nesterov
//! `w -= rate * (g + momentum * v)`. The L2 penalty in the loss that this stands for is `decay / 2 * |w|^2`. It is made on
//! flat buffers of all parameters: about eight operations a step, whatever the number of layers.

use tch::{TchError, Tensor};

use crate::parameters::Parameters;

/// The constants of an update.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sgd {
    /// Share of the last update's direction that is kept, in [0, 1). 0.9 is AlphaZero's.
    pub momentum: f64,
    /// L2 penalty on weights (never on biases or batch-norm parameters). 1e-4 is AlphaZero's.
    pub weight_decay: f64,
    /// Which form of momentum.
    pub form: MomentumForm,
    /// Greatest Euclidean norm of the whole gradient; a longer one is shortened to it. `None`: never looked at, since
    /// it makes the device wait for the host at every step.
    pub gradient_norm_max: Option<f64>,
}

/// Where the gradient is applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MomentumForm {
    /// Polyak's.
    #[default]
    Heavy,
    /// Nesterov's, as PyTorch writes it.
    Nesterov,
}

/// What updates need beside their constants: flat buffers that are laid out like the trained parameters.
#[derive(Debug)]
pub struct Optimiser {
    /// What the next update keeps a share of; a checkpoint holds it.
    momentum: Tensor,
    /// Filled anew by each step.
    gradient: Tensor,
    /// The part of `gradient` that belongs to weights.
    weight_gradient: Tensor,
}

impl Optimiser {
    /// The state before the first update of these parameters.
    pub fn new(parameters: &Parameters) -> Result<Optimiser, TchError> {
        let gradient = parameters.trained_values().f_zeros_like()?;
        let weights = parameters.weights().numel() as i64;
        Ok(Optimiser {
            momentum: gradient.f_zeros_like()?,
            weight_gradient: gradient.f_narrow(0, 0, weights)?,
            gradient,
        })
    }

    /// The momentum of every trained number.
    pub fn momentum(&self) -> &Tensor {
        &self.momentum
    }

    /// Differentiates the loss and updates the parameters, every one of which it depends on, with this learning rate.
    pub fn step(&mut self, sgd: &Sgd, parameters: &Parameters, loss: &Tensor, rate: f64) -> Result<(), TchError> {
        let values: Vec<&Tensor> = parameters.trained().iter().map(|parameter| &parameter.value).collect();
        let gradients = Tensor::f_run_backward(&[loss], &values, false, false)?;
        let _guard = tch::no_grad_guard();
        parameters.gather(&gradients, &self.gradient)?;
        drop(gradients);
        if let Some(scale) = self.gradient_scale(sgd)? {
            let _ = self.gradient.f_mul_scalar_(scale)?;
        }
        if sgd.weight_decay > 0.0 {
            let pull = parameters.weights().f_mul_scalar(sgd.weight_decay)?;
            let _ = self.weight_gradient.f_add_(&pull)?;
        }
        let _ = self.momentum.f_mul_scalar_(sgd.momentum)?.f_add_(&self.gradient)?;
        let change = match sgd.form {
            MomentumForm::Heavy => self.momentum.f_mul_scalar(rate)?,
            MomentumForm::Nesterov => {
                let ahead = self.momentum.f_mul_scalar(sgd.momentum)?;
                self.gradient.f_add(&ahead)?.f_mul_scalar(rate)?
            }
        };
        let _ = parameters.trained_values().shallow_clone().f_sub_(&change)?;
        Ok(())
    }

    /// Factor that brings the whole gradient down to the greatest norm, or `None` when it may stay as it is.
    fn gradient_scale(&self, sgd: &Sgd) -> Result<Option<f64>, TchError> {
        let Some(norm_max) = sgd.gradient_norm_max else {
            return Ok(None);
        };
        let norm = self.gradient.f_norm()?.f_double_value(&[])?;
        Ok((norm > norm_max).then(|| norm_max / norm))
    }
}

/// The learning rate by step: steps from `from_step` on use `rate`, until the next entry.
#[derive(Clone, Debug, PartialEq)]
pub struct RateSchedule(Vec<RateFrom>);

/// One entry of a [`RateSchedule`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateFrom {
    /// First step that uses the rate.
    pub from_step: u64,
    /// The learning rate.
    pub rate: f64,
}

/// A schedule makes no sense.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ScheduleError {
    /// It does not say what the first step uses.
    #[error("the learning-rate schedule must begin at step 0")]
    NoStart,
    /// Its steps do not ascend.
    #[error("the learning-rate schedule must ascend, but step {0} comes after a later one")]
    Order(u64),
    /// A rate is not a positive number.
    #[error("learning rate {0} is not a positive number")]
    Rate(f64),
}

impl RateSchedule {
    /// The same rate for ever.
    pub fn constant(rate: f64) -> Result<RateSchedule, ScheduleError> {
        RateSchedule::new(vec![RateFrom { from_step: 0, rate }])
    }

    /// A schedule from its entries, ascending and beginning at step 0.
    pub fn new(entries: Vec<RateFrom>) -> Result<RateSchedule, ScheduleError> {
        if entries.first().is_none_or(|first| first.from_step != 0) {
            return Err(ScheduleError::NoStart);
        }
        if let Some(pair) = entries.windows(2).find(|pair| pair[0].from_step >= pair[1].from_step) {
            return Err(ScheduleError::Order(pair[1].from_step));
        }
        match entries
            .iter()
            .find(|entry| !(entry.rate.is_finite() && entry.rate > 0.0))
        {
            Some(bad) => Err(ScheduleError::Rate(bad.rate)),
            None => Ok(RateSchedule(entries)),
        }
    }

    /// The rate that step number `step` (counted from 0) uses.
    pub fn at(&self, step: u64) -> f64 {
        let begun = self.0.iter().rev().find(|entry| entry.from_step <= step);
        begun.expect("a schedule begins at step 0").rate
    }
}

#[cfg(test)]
mod tests {
    use tch::{Device, Kind};

    use super::*;
    use crate::parameters::{Decay, Draft, channels_last, read_values};

    const PLAIN: Sgd = Sgd {
        momentum: 0.9,
        weight_decay: 0.0,
        form: MomentumForm::Heavy,
        gradient_norm_max: None,
    };

    /// Two updates of `w` and `b`, both from 1, under the loss `3 w + 4 b` with rate 0.1.
    fn after_two_updates(sgd: Sgd) -> (f32, f32) {
        let mut draft = Draft::new(Device::Cpu);
        let w = draft.train("w", &[1], &[1.0], Decay::Weight).unwrap();
        let b = draft.train("b", &[1], &[1.0], Decay::Exempt).unwrap();
        let parameters = draft.pack().unwrap();
        let mut optimiser = Optimiser::new(&parameters).unwrap();
        for _ in 0..2 {
            let loss = (&w * 3.0 + &b * 4.0).sum(Kind::Float);
            optimiser.step(&sgd, &parameters, &loss, 0.1).unwrap();
        }
        (read_values(&w).unwrap()[0], read_values(&b).unwrap()[0])
    }

    fn close(got: (f32, f32), expected: (f32, f32)) {
        assert!(
            (got.0 - expected.0).abs() < 1e-6 && (got.1 - expected.1).abs() < 1e-6,
            "{got:?} {expected:?}"
        );
    }

    #[test]
    fn momentum_adds_up_over_steps() {
        // w: 1 - 0.1 * 3 - 0.1 * (0.9 * 3 + 3); b the same with 4.
        close(after_two_updates(PLAIN), (0.13, -0.16));
    }

    #[test]
    fn decay_pulls_weights_and_leaves_biases() {
        // g = 3 + 0.5 w: 3.5, then with w = 0.65: 3.325 + 0.9 * 3.5.
        close(
            after_two_updates(Sgd {
                weight_decay: 0.5,
                ..PLAIN
            }),
            (0.0025, -0.16),
        );
    }

    #[test]
    fn nesterov_looks_ahead() {
        // w: first direction 3 + 0.9 * 3 = 5.7, second 3 + 0.9 * 5.7 = 8.13.
        close(
            after_two_updates(Sgd {
                form: MomentumForm::Nesterov,
                ..PLAIN
            }),
            (-0.383, -0.844),
        );
    }

    #[test]
    fn a_long_gradient_is_shortened_and_a_short_one_is_not() {
        // The gradient (3, 4) has norm 5; shortened to 1 it is (0.6, 0.8).
        let clipped = Sgd {
            momentum: 0.0,
            gradient_norm_max: Some(1.0),
            ..PLAIN
        };
        close(after_two_updates(clipped), (0.88, 0.84));
        let roomy = Sgd {
            gradient_norm_max: Some(6.0),
            ..PLAIN
        };
        assert_eq!(after_two_updates(roomy), after_two_updates(PLAIN));
    }

    /// Tensors of every layout that a network has.
    const SHAPES: [(&[i64], Decay); 4] = [
        (&[4, 3, 3, 3], Decay::Weight),
        (&[5], Decay::Exempt),
        (&[2, 7], Decay::Weight),
        (&[4, 2, 1, 1], Decay::Weight),
    ];
    const RATE: f64 = 0.01;

    fn numbers(shape: &[i64]) -> Vec<f32> {
        let len = shape.iter().product::<i64>();
        (0..len).map(|index| (index * 37 % 101 - 50) as f32 / 17.0).collect()
    }

    /// A loss whose gradient differs for each number and changes with it.
    fn cubes(tensors: &[Tensor]) -> Tensor {
        let sums: Vec<Tensor> = tensors
            .iter()
            .map(|tensor| (tensor * tensor * tensor).sum(Kind::Float))
            .collect();
        Tensor::stack(&sums, 0).sum(Kind::Float)
    }

    fn bits(tensors: &[Tensor]) -> Vec<Vec<u32>> {
        let values = tensors.iter().map(|tensor| read_values(tensor).unwrap());
        values
            .map(|values| values.into_iter().map(f32::to_bits).collect())
            .collect()
    }

    fn together(sgd: Sgd) -> Vec<Vec<u32>> {
        let mut draft = Draft::new(Device::Cpu);
        let tensors = SHAPES.map(|(shape, decay)| draft.train("", shape, &numbers(shape), decay).unwrap());
        let parameters = draft.pack().unwrap();
        let mut optimiser = Optimiser::new(&parameters).unwrap();
        for _ in 0..3 {
            optimiser.step(&sgd, &parameters, &cubes(&tensors), RATE).unwrap();
        }
        bits(&tensors)
    }

    /// The same, each tensor by itself.
    fn alone(sgd: Sgd) -> Vec<Vec<u32>> {
        let tensors = SHAPES.map(|(shape, _)| {
            let tensor = Tensor::from_slice(&numbers(shape)).view(shape);
            let tensor = if shape.len() == 4 {
                channels_last(&tensor).unwrap()
            } else {
                tensor
            };
            tensor.copy().set_requires_grad(true)
        });
        let mut momenta = SHAPES.map(|(shape, _)| Tensor::zeros(shape, (Kind::Float, Device::Cpu)));
        for _ in 0..3 {
            let gradients = Tensor::run_backward(&[cubes(&tensors)], &tensors, false, false);
            let _guard = tch::no_grad_guard();
            for (index, (_, decay)) in SHAPES.iter().enumerate() {
                let (value, momentum) = (&tensors[index], &mut momenta[index]);
                let gradient = match decay {
                    Decay::Weight => &gradients[index] + value * sgd.weight_decay,
                    Decay::Exempt => gradients[index].shallow_clone(),
                };
                *momentum = &*momentum * sgd.momentum + &gradient;
                let direction = match sgd.form {
                    MomentumForm::Heavy => momentum.shallow_clone(),
                    MomentumForm::Nesterov => gradient + &*momentum * sgd.momentum,
                };
                let _ = value.shallow_clone().f_sub_(&(direction * RATE)).unwrap();
            }
        }
        bits(&tensors)
    }

    #[test]
    fn an_update_of_all_is_that_of_each_bit_for_bit() {
        for form in [MomentumForm::Heavy, MomentumForm::Nesterov] {
            let sgd = Sgd {
                weight_decay: 0.02,
                form,
                ..PLAIN
            };
            assert_eq!(together(sgd), alone(sgd), "{form:?}");
        }
    }

    #[test]
    fn the_rate_changes_at_its_step() {
        let schedule = |entries: &[(u64, f64)]| {
            RateSchedule::new(
                entries
                    .iter()
                    .map(|&(from_step, rate)| RateFrom { from_step, rate })
                    .collect(),
            )
        };
        let dropping = schedule(&[(0, 0.2), (100, 0.02)]).unwrap();
        assert_eq!(
            [0, 99, 100, 5_000].map(|step| dropping.at(step)),
            [0.2, 0.2, 0.02, 0.02]
        );
        assert_eq!(schedule(&[]), Err(ScheduleError::NoStart));
        assert_eq!(schedule(&[(1, 0.2)]), Err(ScheduleError::NoStart));
        assert_eq!(schedule(&[(0, 0.2), (5, 0.1), (5, 0.05)]), Err(ScheduleError::Order(5)));
        assert_eq!(schedule(&[(0, 0.2), (5, -0.1)]), Err(ScheduleError::Rate(-0.1)));
    }
}
