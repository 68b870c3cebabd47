//! The named tensors of a network in training: trained parameters, each with its momentum, and batch-norm statistics.
//!
//! Everything that a checkpoint must hold lives here under a stable name, so that saving and loading are exact. `tch`'s
//! own optimisers cannot save their state, and its variable store forgets the order of its variables.

use tch::{Device, Kind, TchError, Tensor};

/// How the L2 penalty treats a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decay {
    /// A convolution's or linear layer's weight: the penalty pulls it towards zero.
    Weight,
    /// A bias or a batch-norm scale or shift: left alone, since shrinking them does not make the function simpler.
    Exempt,
}

/// One trained tensor.
#[derive(Debug)]
pub struct Parameter {
    /// Stable name, for example `blocks.0.conv1.weight`.
    pub name: String,
    /// The value; requires gradients.
    pub value: Tensor,
    /// The optimiser's momentum buffer, of the same shape; no gradients.
    pub momentum: Tensor,
    /// Whether the L2 penalty applies.
    pub decay: Decay,
}

/// One tensor that is updated by the forward pass, not by the optimiser.
#[derive(Debug)]
pub struct Statistic {
    /// Stable name, for example `stem.bn.mean`.
    pub name: String,
    /// The value; no gradients.
    pub value: Tensor,
}

/// All of a network's tensors on one device, in the order of their creation.
#[derive(Debug)]
pub struct Parameters {
    device: Device,
    trained: Vec<Parameter>,
    statistics: Vec<Statistic>,
}

impl Parameters {
    /// No tensors yet.
    pub fn new(device: Device) -> Parameters {
        Parameters {
            device,
            trained: Vec::new(),
            statistics: Vec::new(),
        }
    }

    /// Where the tensors live.
    pub fn device(&self) -> Device {
        self.device
    }

    /// Adds a trained tensor of this shape and returns it; the network and the optimiser share its storage.
    pub fn train(&mut self, name: &str, shape: &[i64], values: &[f32], decay: Decay) -> Result<Tensor, TchError> {
        let value = self.tensor(shape, values)?.f_set_requires_grad(true)?;
        // Laid out like the value, so that updates run straight through memory.
        let momentum = value.f_detach()?.f_zeros_like()?;
        let shared = value.shallow_clone();
        self.trained.push(Parameter {
            name: name.to_owned(),
            value,
            momentum,
            decay,
        });
        Ok(shared)
    }

    /// Adds a statistic of this shape and returns it, sharing its storage.
    pub fn statistic(&mut self, name: &str, shape: &[i64], values: &[f32]) -> Result<Tensor, TchError> {
        let value = self.tensor(shape, values)?;
        let shared = value.shallow_clone();
        self.statistics.push(Statistic {
            name: name.to_owned(),
            value,
        });
        Ok(shared)
    }

    /// The trained tensors.
    pub fn trained(&self) -> &[Parameter] {
        &self.trained
    }

    /// The trained tensors, for the optimiser.
    pub fn trained_mut(&mut self) -> &mut [Parameter] {
        &mut self.trained
    }

    /// Every tensor that a checkpoint holds, by name: parameters, `NAME.momentum` for their momentum, statistics.
    pub fn named(&self) -> impl Iterator<Item = (String, &Tensor)> {
        let trained = self.trained.iter().flat_map(|parameter| {
            [
                (parameter.name.clone(), &parameter.value),
                (format!("{}.momentum", parameter.name), &parameter.momentum),
            ]
        });
        trained.chain(
            self.statistics
                .iter()
                .map(|statistic| (statistic.name.clone(), &statistic.value)),
        )
    }

    /// The values of the tensor called `name`, or `None` if there is none.
    pub fn values(&self, name: &str) -> Option<Result<Vec<f32>, TchError>> {
        self.named()
            .find(|(known, _)| known == name)
            .map(|(_, tensor)| read_values(tensor))
    }

    fn tensor(&self, shape: &[i64], values: &[f32]) -> Result<Tensor, TchError> {
        // A slice of another length than the shape says is an error of `view`, with both numbers in it.
        let tensor = Tensor::f_from_slice(values)?.f_view(shape)?.f_to_device(self.device)?;
        if shape.len() == 4 {
            channels_last(&tensor)
        } else {
            Ok(tensor)
        }
    }
}

/// The same `[N, C, H, W]` tensor with channels innermost in memory. On a CPU it saves a quarter of the time of convolution
/// and half of that of batch norm (measured: docs/benchmarks.md). `tch` knows it only as permuted strides.
pub fn channels_last(tensor: &Tensor) -> Result<Tensor, TchError> {
    tensor
        .f_permute([0i64, 2, 3, 1])?
        .f_contiguous()?
        .f_permute([0i64, 3, 1, 2])
}

/// The tensor's values on the host, in row-major order whatever its layout.
pub fn read_values(tensor: &Tensor) -> Result<Vec<f32>, TchError> {
    let flat = tensor
        .f_detach()?
        .f_to_device(Device::Cpu)?
        .f_to_kind(Kind::Float)?
        .f_contiguous()?;
    let mut values = vec![0.0; flat.numel()];
    flat.f_copy_data(&mut values, flat.numel())?;
    Ok(values)
}

/// Overwrites the tensor's values, given in row-major order.
pub fn write_values(tensor: &Tensor, values: &[f32]) -> Result<(), TchError> {
    let _guard = tch::no_grad_guard();
    let source = Tensor::f_from_slice(values)?.f_view(tensor.size().as_slice())?;
    tensor.shallow_clone().f_copy_(&source)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_written_are_shared_with_the_tensor_handed_out() {
        let mut parameters = Parameters::new(Device::Cpu);
        let handed_out = parameters
            .train("w", &[2, 2], &[1.0, 2.0, 3.0, 4.0], Decay::Weight)
            .unwrap();
        write_values(&parameters.trained()[0].value, &[5.0, 6.0, 7.0, 8.0]).unwrap();
        assert_eq!(read_values(&handed_out).unwrap(), [5.0, 6.0, 7.0, 8.0]);
        assert!(handed_out.requires_grad());
        assert_eq!(
            parameters.named().map(|(name, _)| name).collect::<Vec<_>>(),
            ["w", "w.momentum"]
        );
    }

    #[test]
    fn values_are_row_major_whatever_the_layout() {
        let mut parameters = Parameters::new(Device::Cpu);
        let values: Vec<f32> = (0..24).map(|value| value as f32).collect();
        let tensor = parameters.train("w", &[2, 3, 2, 2], &values, Decay::Weight).unwrap();
        assert_eq!(tensor.stride(), [12, 1, 6, 3]);
        assert_eq!(parameters.trained()[0].momentum.stride(), tensor.stride());
        assert_eq!(read_values(&tensor).unwrap(), values);
        let doubled: Vec<f32> = values.iter().map(|value| value * 2.0).collect();
        write_values(&tensor, &doubled).unwrap();
        assert_eq!(tensor.stride(), [12, 1, 6, 3]);
        assert_eq!(read_values(&tensor).unwrap(), doubled);
    }

    #[test]
    fn a_wrong_number_of_values_is_an_error() {
        let mut parameters = Parameters::new(Device::Cpu);
        assert!(parameters.train("w", &[3], &[1.0, 2.0], Decay::Weight).is_err());
    }
}
