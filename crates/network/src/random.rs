//! The seeded random network: generation 0 of every run.
//!
//! Its policy is near uniform and its value near a third each for win, draw and loss, so a search with it sees little
//! more than the rules; its tower is scaled so that training can begin from it.

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::architecture::{Layer, Role};
use crate::shape::Shape;
use crate::weights::{Tensor, Weights};

/// Gain of the layers that give logits. Tower outputs are of order 1, so logits are of order 0.05: every action keeps
/// about its share, and no two seeds play alike.
const OUTPUT_GAIN: f64 = 0.03;

/// The weights that `seed` stands for: the same on every machine, each tensor independent of all other tensors.
///
/// Weights are uniform with He's variance (He et al. 2015: `2 / fan_in`) times a gain; biases are zero. A uniform
/// distribution rather than a normal one, because it needs only the exactly rounded operations of IEEE 754. The second
/// convolution of a block is scaled by `1 / sqrt(blocks)`, so the tower's variance at most grows by a factor of e
/// whatever its depth (after Fixup, Zhang et al. 2019).
pub fn random_weights(shape: &Shape, seed: u64) -> Weights {
    let mut weights = Weights::new();
    for layer in shape.layers() {
        let gain = match layer.role {
            Role::Stem | Role::BlockFirst | Role::ValueConv | Role::ValueHidden => 1.0,
            Role::BlockSecond => 1.0 / (shape.blocks as f64).sqrt(),
            Role::Policy | Role::ValueOut => OUTPUT_GAIN,
        };
        let mut weight = Tensor::zeros(layer.weight_shape());
        fill_uniform(weight.data_mut(), bound(&layer, gain), &mut generator(seed, &layer));
        weights.insert(layer.weight_name(), weight);
        weights.insert(layer.bias_name(), Tensor::zeros(vec![layer.outputs]));
    }
    weights
}

/// Half the width of the uniform distribution with the standard deviation `gain * sqrt(2 / fan_in)`.
fn bound(layer: &Layer, gain: f64) -> f32 {
    (gain * (6.0 / layer.fan_in() as f64).sqrt()) as f32
}

/// A generator of the layer's own: adding a layer changes no other.
fn generator(seed: u64, layer: &Layer) -> Xoshiro256PlusPlus {
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"tengen random network 1\n");
    hasher.update(&seed.to_le_bytes());
    hasher.update(layer.name.as_bytes());
    Xoshiro256PlusPlus::from_seed(*hasher.finalize().as_bytes())
}

/// Fills with values uniform in `-bound..bound`, from the upper 24 bits of each draw.
fn fill_uniform(values: &mut [f32], bound: f32, rng: &mut Xoshiro256PlusPlus) {
    const STEP: f32 = 1.0 / (1 << 23) as f32;
    for value in values {
        let step = (rng.next_u64() >> 40) as f32 * STEP;
        *value = (step - 1.0) * bound;
    }
}
