//! The tower in floats, of 32 or of 16 bits.

use half::f16;

use super::SCALE_NAME;
use super::graph::{Attribute, Elements, GraphBuilder};
use super::proto::tensor_proto::DataType;
use super::tower::{Arithmetic, KERNEL, plane_scales, tensors};
use super::write::WriteError;
use crate::activation::Activation;
use crate::metadata::Precision;
use crate::shape::Shape;
use crate::weights::{Tensor, Weights};

/// The size of the tower's floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Floats {
    /// 32 bits.
    Single,
    /// 16 bits: planes, weights and everything between them.
    Half,
}

impl Floats {
    /// Adds a constant of the tower.
    fn constant(self, graph: &mut GraphBuilder, name: &str, tensor: &Tensor) -> Result<(), WriteError> {
        match self {
            Floats::Single => graph.floats(name, tensor),
            Floats::Half => graph.constant(name, tensor.shape(), &Elements::F16(&halves(name, tensor)?)),
        }
        Ok(())
    }
}

impl Arithmetic for Floats {
    type Value = String;

    fn precision(&self) -> Precision {
        match self {
            Floats::Single => Precision::Fp32,
            Floats::Half => Precision::Fp16,
        }
    }

    fn floats(&self) -> DataType {
        match self {
            Floats::Single => DataType::Float,
            Floats::Half => DataType::Float16,
        }
    }

    fn constants(&self, graph: &mut GraphBuilder, shape: &Shape, weights: &Weights) -> Result<(), WriteError> {
        let of_tower = tensors(shape);
        for (name, tensor) in weights.iter() {
            if of_tower.contains(name) {
                self.constant(graph, name, tensor)?;
            } else {
                graph.floats(name, tensor);
            }
        }
        self.constant(graph, SCALE_NAME, &plane_scales(shape)?)
    }

    fn conv(&self, graph: &mut GraphBuilder, layer: &str, input: &String) -> Result<String, WriteError> {
        let (weight, bias) = (format!("{layer}.weight"), format!("{layer}.bias"));
        Ok(graph.conv(layer, [input, &weight, &bias], KERNEL))
    }

    fn value(&self, _: &mut GraphBuilder, _: Activation, computed: String) -> Result<String, WriteError> {
        Ok(computed)
    }

    fn for_heads(&self, graph: &mut GraphBuilder, tower: String) -> String {
        match self {
            Floats::Single => tower,
            Floats::Half => {
                let single = Attribute::Int("to", DataType::Float as i64);
                graph.node("Cast", "tower", &[&tower], &[single])
            }
        }
    }
}

/// The elements rounded to the nearest 16-bit floats, halves to even.
fn halves(name: &str, tensor: &Tensor) -> Result<Vec<f16>, WriteError> {
    let half = |(index, &value): (usize, &f32)| {
        // Without the CPU's own instructions: the same bytes on every machine.
        let half = f16::from_f32_const(value);
        half.is_finite().then_some(half).ok_or_else(|| WriteError::TooLarge {
            name: name.to_owned(),
            index,
            value,
        })
    };
    tensor.data().iter().enumerate().map(half).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_rounded_to_the_nearest_half_and_ties_to_even() {
        let ulp = 2f32.powi(-10);
        let values = vec![
            1.0,
            1.0 + 0.4 * ulp,
            1.0 + 0.5 * ulp,
            1.0 + 1.5 * ulp,
            65_504.0,
            -1e-8,
            2f32.powi(-24),
        ];
        let tensor = Tensor::new(vec![7], values).expect("seven elements");
        let halves = halves("stem.weight", &tensor).expect("all of them fit");
        let bits: Vec<u16> = halves.into_iter().map(f16::to_bits).collect();
        assert_eq!(bits, [0x3c00, 0x3c00, 0x3c00, 0x3c02, 0x7bff, 0x8000, 0x0001]);
    }

    #[test]
    fn what_no_half_can_hold_is_refused_by_name() {
        let tensor = Tensor::new(vec![2], vec![1.0, -1e6]).expect("two elements");
        let error = halves("stem.weight", &tensor).expect_err("too large");
        assert_eq!(
            error.to_string(),
            "element 1 of tensor stem.weight is -1000000, which no 16-bit float can hold"
        );
    }
}
