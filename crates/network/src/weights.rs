//! Named tensors: the numbers of a network in inference form.
//!
//! Which names and shapes belong to which [`Shape`] is said by [`architecture`](crate::architecture).

use std::collections::BTreeMap;

use crate::shape::Shape;

/// A dense `f32` array in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    shape: Vec<usize>,
    data: Vec<f32>,
}

impl Tensor {
    /// The tensor of this shape with these elements.
    pub fn new(shape: Vec<usize>, data: Vec<f32>) -> Result<Tensor, WeightsError> {
        let len = shape.iter().try_fold(1usize, |len, dim| len.checked_mul(*dim));
        if len != Some(data.len()) {
            return Err(WeightsError::Length { shape, len: data.len() });
        }
        Ok(Tensor { shape, data })
    }

    /// The tensor of this shape with zeros.
    pub fn zeros(shape: Vec<usize>) -> Tensor {
        let len = shape.iter().product();
        Tensor {
            shape,
            data: vec![0.0; len],
        }
    }

    /// The dimensions, outermost first.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The elements in row-major order.
    pub fn data(&self) -> &[f32] {
        &self.data
    }

    /// The elements in row-major order, to change.
    pub fn data_mut(&mut self) -> &mut [f32] {
        &mut self.data
    }

    /// The elements in row-major order, as the owned vector.
    pub fn into_data(self) -> Vec<f32> {
        self.data
    }
}

/// Why weights are refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum WeightsError {
    /// A tensor whose elements do not fill its shape.
    #[error("a tensor of shape {shape:?} cannot have {len} elements")]
    Length {
        /// The shape.
        shape: Vec<usize>,
        /// Number of elements given.
        len: usize,
    },
    /// A tensor of the network's shape is not there.
    #[error("tensor {name} is missing")]
    Missing {
        /// Its name.
        name: String,
    },
    /// A tensor that the network's shape does not have.
    #[error("tensor {name} does not belong to this network")]
    Unknown {
        /// Its name.
        name: String,
    },
    /// A tensor of the wrong shape.
    #[error("tensor {name} has shape {actual:?} and must have {expected:?}")]
    Shape {
        /// Its name.
        name: String,
        /// The shape the network wants.
        expected: Vec<usize>,
        /// The shape it has.
        actual: Vec<usize>,
    },
    /// A tensor with an infinite element or one that is not a number.
    #[error("element {index} of tensor {name} is {value}")]
    NotFinite {
        /// Its name.
        name: String,
        /// Index in row-major order.
        index: usize,
        /// The element.
        value: f32,
    },
}

/// The tensors of a network by name, in inference form: batch norm folded, every layer with weight and bias.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Weights(BTreeMap<String, Tensor>);

impl Weights {
    /// No tensors yet.
    pub fn new() -> Weights {
        Weights::default()
    }

    /// Adds a tensor, or replaces the one of this name.
    pub fn insert(&mut self, name: impl Into<String>, tensor: Tensor) {
        self.0.insert(name.into(), tensor);
    }

    /// The tensor of this name.
    pub fn get(&self, name: &str) -> Option<&Tensor> {
        self.0.get(name)
    }

    /// The tensor of this name, to change its elements.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Tensor> {
        self.0.get_mut(name)
    }

    /// All tensors in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Tensor)> {
        self.0.iter().map(|(name, tensor)| (name.as_str(), tensor))
    }

    /// Checks that these are exactly the tensors of `shape`, each of its shape and finite.
    pub fn check(&self, shape: &Shape) -> Result<(), WeightsError> {
        let mut expected = BTreeMap::new();
        for layer in shape.layers() {
            expected.insert(layer.weight_name(), layer.weight_shape());
            expected.insert(layer.bias_name(), vec![layer.outputs]);
        }
        if let Some(name) = self.0.keys().find(|name| !expected.contains_key(*name)) {
            return Err(WeightsError::Unknown { name: name.clone() });
        }
        for (name, expected) in expected {
            let Some(tensor) = self.0.get(&name) else {
                return Err(WeightsError::Missing { name });
            };
            if tensor.shape != expected {
                return Err(WeightsError::Shape {
                    name,
                    expected,
                    actual: tensor.shape.clone(),
                });
            }
            if let Some(index) = tensor.data.iter().position(|value| !value.is_finite()) {
                return Err(WeightsError::NotFinite {
                    name,
                    index,
                    value: tensor.data[index],
                });
            }
        }
        Ok(())
    }
}
