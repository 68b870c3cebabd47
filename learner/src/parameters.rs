//! The named tensors of a network: trained parameters and batch-norm statistics, all of them views into one flat buffer.
//!
//! So an update or an average of all of them is one operation on the buffer, however many layers there are. It holds first
//! the parameters that the L2 penalty pulls, then the other trained ones, then the statistics. Each begins at a multiple of
//! 16 numbers, with zeros before it where the last one ends earlier. Buffers of one number for each trained one, such as
//! momentum, are laid out like the trained part.
//!
//! Everything that a checkpoint must hold has a stable name, so that saving and loading are exact. `tch`'s own optimisers
//! cannot save their state, and its variable store forgets the order of its variables.

use tch::{Device, Kind, TchError, Tensor};

/// Numbers, 64 bytes: where the tensor library begins tensors of its own on a CPU, and more than a GPU's quickest
/// convolutions ask for.
const ALIGNMENT: usize = 16;

/// How the L2 penalty treats a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decay {
    /// A convolution's or linear layer's weight: the penalty pulls it towards zero.
    Weight,
    /// A bias or a batch-norm scale or shift: left alone, since shrinking them does not make the function simpler.
    Exempt,
}

/// One named tensor.
#[derive(Debug)]
pub struct Parameter {
    /// Stable name, for example `blocks.0.conv1.weight`.
    pub name: String,
    /// The value, a view into the flat buffer; it requires gradients when it is trained.
    pub value: Tensor,
    place: Place,
}

/// Where a tensor lies in a flat buffer, and how.
#[derive(Clone, Debug)]
struct Place {
    offset: i64,
    size: Vec<i64>,
    stride: Vec<i64>,
    /// Zeros between its end and the next tensor.
    gap: i64,
    /// Where the next tensor begins.
    end: i64,
}

impl Place {
    /// The place from `offset` on of a tensor like this one, which has no holes.
    fn of(tensor: &Tensor, offset: i64) -> Place {
        let numel = tensor.numel();
        let room = numel.next_multiple_of(ALIGNMENT);
        Place {
            offset,
            size: tensor.size(),
            stride: tensor.stride(),
            gap: (room - numel) as i64,
            end: offset + room as i64,
        }
    }

    fn view(&self, buffer: &Tensor) -> Result<Tensor, TchError> {
        buffer.f_as_strided(&self.size, &self.stride, self.offset)
    }
}

impl Parameter {
    /// Its part of another buffer that is laid out like the one its value lies in.
    pub fn within(&self, buffer: &Tensor) -> Result<Tensor, TchError> {
        self.place.view(buffer)
    }
}

/// Tensors of a network that is being made, each with storage of its own until all are there: see [`Draft::pack`].
#[derive(Debug)]
pub struct Draft {
    device: Device,
    weights: Vec<(String, Tensor)>,
    exempt: Vec<(String, Tensor)>,
    statistics: Vec<(String, Tensor)>,
}

impl Draft {
    /// No tensors yet.
    pub fn new(device: Device) -> Draft {
        Draft {
            device,
            weights: Vec::new(),
            exempt: Vec::new(),
            statistics: Vec::new(),
        }
    }

    /// Where the tensors live.
    pub fn device(&self) -> Device {
        self.device
    }

    /// Adds a trained tensor of this shape and returns it: the same one that the optimiser will change.
    pub fn train(&mut self, name: &str, shape: &[i64], values: &[f32], decay: Decay) -> Result<Tensor, TchError> {
        let value = self.tensor(shape, values)?.f_set_requires_grad(true)?;
        let shared = value.shallow_clone();
        match decay {
            Decay::Weight => self.weights.push((name.to_owned(), value)),
            Decay::Exempt => self.exempt.push((name.to_owned(), value)),
        }
        Ok(shared)
    }

    /// Adds a statistic of this shape, which the forward pass updates and not the optimiser, and returns it.
    pub fn statistic(&mut self, name: &str, shape: &[i64], values: &[f32]) -> Result<Tensor, TchError> {
        let value = self.tensor(shape, values)?;
        let shared = value.shallow_clone();
        self.statistics.push((name.to_owned(), value));
        Ok(shared)
    }

    /// Moves all of them into one flat buffer. Those that were handed out are views into it from then on, with the strides
    /// they had.
    pub fn pack(self) -> Result<Parameters, TchError> {
        let _guard = tch::no_grad_guard();
        let decayed = self.weights.len();
        let (mut trained, weights_end) = lay_out(self.weights, 0);
        let (exempt, trained_end) = lay_out(self.exempt, weights_end);
        trained.extend(exempt);
        let (mut statistics, end) = lay_out(self.statistics, trained_end);
        let zeros = |len: i64| Tensor::f_zeros([len], (Kind::Float, self.device));
        let values = zeros(end)?;
        for parameter in trained.iter_mut().chain(&mut statistics) {
            let mut view = parameter.place.view(&values)?;
            view.f_copy_(&parameter.value)?;
            // Every handle to the tensor is one to the same object, which is given other storage here.
            parameter.value.f_set_data(&view)?;
        }
        Ok(Parameters {
            device: self.device,
            weights: values.f_narrow(0, 0, weights_end)?,
            trained_values: values.f_narrow(0, 0, trained_end)?,
            values,
            gap: zeros(ALIGNMENT as i64)?,
            trained,
            decayed,
            statistics,
        })
    }

    fn tensor(&self, shape: &[i64], values: &[f32]) -> Result<Tensor, TchError> {
        // A slice of another length than the shape says is an error of `view`, with both numbers in it.
        let mut tensor = Tensor::f_from_slice(values)?.f_view(shape)?.f_to_device(self.device)?;
        if shape.len() == 4 {
            tensor = channels_last(&tensor)?;
        }
        // One that is no view of another: a view would keep what it was made from for as long as it lives.
        let mut own = tensor.f_zeros_like()?;
        own.f_copy_(&tensor)?;
        Ok(own)
    }
}

/// The tensors one after the other from `end` on, and where the last one ends.
fn lay_out(tensors: Vec<(String, Tensor)>, mut end: i64) -> (Vec<Parameter>, i64) {
    let mut placed = Vec::with_capacity(tensors.len());
    for (name, value) in tensors {
        let place = Place::of(&value, end);
        end = place.end;
        placed.push(Parameter { name, value, place });
    }
    (placed, end)
}

/// All of a network's tensors on one device.
#[derive(Debug)]
pub struct Parameters {
    device: Device,
    /// Every number; the next two are views of its beginning.
    values: Tensor,
    trained_values: Tensor,
    weights: Tensor,
    /// What fills gaps.
    gap: Tensor,
    /// Those that the L2 penalty pulls, `decayed` in number, then the others.
    trained: Vec<Parameter>,
    decayed: usize,
    statistics: Vec<Parameter>,
}

impl Parameters {
    /// Where the tensors live.
    pub fn device(&self) -> Device {
        self.device
    }

    /// Every tensor: trained ones, then statistics.
    pub fn all(&self) -> impl Iterator<Item = &Parameter> {
        self.trained.iter().chain(&self.statistics)
    }

    /// The trained tensors.
    pub fn trained(&self) -> &[Parameter] {
        &self.trained
    }

    /// The trained tensors that are treated so by the L2 penalty.
    pub fn trained_with(&self, decay: Decay) -> &[Parameter] {
        let (weights, exempt) = self.trained.split_at(self.decayed);
        match decay {
            Decay::Weight => weights,
            Decay::Exempt => exempt,
        }
    }

    /// All trained numbers, flat, the decayed ones first.
    pub fn trained_values(&self) -> &Tensor {
        &self.trained_values
    }

    /// The numbers that the L2 penalty pulls, flat: the beginning of the trained ones.
    pub fn weights(&self) -> &Tensor {
        &self.weights
    }

    /// Writes one tensor for each trained one, in their order and of their shapes, into a buffer that is laid out like the
    /// trained numbers: a single operation, however many they are.
    pub fn gather(&self, tensors: &[Tensor], buffer: &Tensor) -> Result<(), TchError> {
        let mut parts = Vec::with_capacity(2 * tensors.len());
        for (parameter, tensor) in self.trained.iter().zip(tensors) {
            parts.push(in_memory_order(tensor)?);
            let gap = parameter.place.gap;
            if gap > 0 {
                parts.push(self.gap.f_narrow(0, 0, gap)?);
            }
        }
        let _ = Tensor::f_cat_out(buffer, &parts, 0)?;
        Ok(())
    }

    /// Takes over all numbers of the same network's other tensors, wherever they live.
    pub fn copy_from(&self, other: &Parameters) -> Result<(), TchError> {
        self.values.shallow_clone().f_copy_(&other.values)
    }

    /// Moves every number towards those of the same network's other tensors on the same device, by this share of the way.
    pub fn approach(&self, other: &Parameters, share: f64) -> Result<(), TchError> {
        let _ = self.values.shallow_clone().f_lerp_(&other.values, share)?;
        Ok(())
    }
}

/// The tensor's numbers, flat, in the order in which a parameter of its shape has them in memory. Nothing is copied when it
/// is laid out like the parameter.
fn in_memory_order(tensor: &Tensor) -> Result<Tensor, TchError> {
    if tensor.dim() == 4 {
        tensor.f_permute([0i64, 2, 3, 1])?.f_reshape([-1i64])
    } else {
        tensor.f_reshape([-1i64])
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

    fn counting(len: usize) -> Vec<f32> {
        (0..len).map(|value| value as f32).collect()
    }

    #[test]
    fn the_tensors_handed_out_are_the_flat_buffer() {
        let mut draft = Draft::new(Device::Cpu);
        let bias = draft.train("b", &[3], &[1.0, 2.0, 3.0], Decay::Exempt).unwrap();
        let mean = draft.statistic("mean", &[2], &[8.0, 9.0]).unwrap();
        let weight = draft.train("w", &[2, 2], &[4.0, 5.0, 6.0, 7.0], Decay::Weight).unwrap();
        let parameters = draft.pack().unwrap();
        let names: Vec<&str> = parameters.all().map(|parameter| parameter.name.as_str()).collect();
        assert_eq!(names, ["w", "b", "mean"]);
        assert!(weight.requires_grad() && bias.requires_grad() && !mean.requires_grad());
        let flat = read_values(&parameters.values).unwrap();
        assert_eq!(
            (&flat[..4], &flat[16..19], &flat[32..34]),
            (&[4.0, 5.0, 6.0, 7.0][..], &[1.0, 2.0, 3.0][..], &[8.0, 9.0][..])
        );
        assert_eq!(
            (parameters.weights().numel(), parameters.trained_values().numel()),
            (16, 32)
        );

        let _ = parameters.values.shallow_clone().f_add_scalar_(10.0).unwrap();
        assert_eq!(read_values(&weight).unwrap(), [14.0, 15.0, 16.0, 17.0]);
        assert_eq!(read_values(&mean).unwrap(), [18.0, 19.0]);
        write_values(&bias, &[0.0, 0.5, 0.0]).unwrap();
        assert_eq!(read_values(&parameters.trained()[1].value).unwrap(), [0.0, 0.5, 0.0]);
    }

    #[test]
    fn values_are_row_major_whatever_the_layout() {
        let mut draft = Draft::new(Device::Cpu);
        let tensor = draft.train("w", &[2, 3, 2, 2], &counting(24), Decay::Weight).unwrap();
        let other = draft.train("v", &[2, 3, 2, 2], &counting(24), Decay::Weight).unwrap();
        let parameters = draft.pack().unwrap();
        assert_eq!(
            (tensor.stride(), other.stride()),
            (vec![12, 1, 6, 3], vec![12, 1, 6, 3])
        );
        let momentum = parameters.trained_values().zeros_like();
        assert_eq!(
            parameters.trained()[1].within(&momentum).unwrap().stride(),
            tensor.stride()
        );
        assert_eq!(read_values(&other).unwrap(), counting(24));
        let doubled: Vec<f32> = counting(24).iter().map(|value| value * 2.0).collect();
        write_values(&tensor, &doubled).unwrap();
        assert_eq!(tensor.stride(), [12, 1, 6, 3]);
        assert_eq!(
            (read_values(&tensor).unwrap(), read_values(&other).unwrap()),
            (doubled, counting(24))
        );
    }

    #[test]
    fn what_is_gathered_lies_where_its_parameter_does_whatever_its_layout() {
        let mut draft = Draft::new(Device::Cpu);
        let zeros = |len| vec![0.0; len];
        let _ = draft.train("b", &[3], &zeros(3), Decay::Exempt).unwrap();
        let _ = draft.train("w", &[2, 3, 2, 2], &zeros(24), Decay::Weight).unwrap();
        let _ = draft.train("v", &[2, 3, 2, 2], &zeros(24), Decay::Weight).unwrap();
        let parameters = draft.pack().unwrap();
        let row_major = Tensor::from_slice(&counting(24)).view([2, 3, 2, 2]);
        let shifted = channels_last(&(&row_major + 100.0)).unwrap();
        let short = Tensor::from_slice(&[1.0f32, 2.0, 3.0]);
        // What a buffer held before does not matter.
        let buffer = parameters.trained_values().zeros_like() + 7.0;
        parameters
            .gather(&[row_major, shifted.shallow_clone(), short], &buffer)
            .unwrap();
        let found: Vec<Vec<f32>> = parameters
            .trained()
            .iter()
            .map(|parameter| read_values(&parameter.within(&buffer).unwrap()).unwrap())
            .collect();
        assert_eq!(
            found,
            [counting(24), read_values(&shifted).unwrap(), vec![1.0, 2.0, 3.0]]
        );
        let sum = 24.0 * 23.0 + 24.0 * 100.0 + 6.0;
        assert_eq!(buffer.sum(Kind::Float).double_value(&[]), sum, "gaps hold zeros");
    }

    #[test]
    fn a_wrong_number_of_values_is_an_error() {
        let mut draft = Draft::new(Device::Cpu);
        assert!(draft.train("w", &[3], &[1.0, 2.0], Decay::Weight).is_err());
    }
}
