//! Host values on their way to the device.

use tch::kind::Element;
use tch::{Device, TchError, Tensor};

/// Sends values to a device.
///
/// To a CUDA device they go from pinned memory, so that the host issues the copy and goes on at once; pageable memory would
/// make it wait for everything that the device still has to do. Pinned memory that is let go of is not used for anything else
/// before the copies from it are done: the tensor library sees to that. This has never run on a machine with a GPU.
#[derive(Debug)]
pub struct Transfer {
    device: Device,
    /// What the device may not have read yet.
    pinned: Vec<Tensor>,
}

impl Transfer {
    /// Nothing sent yet.
    pub fn to(device: Device) -> Transfer {
        Transfer {
            device,
            pinned: Vec::new(),
        }
    }

    /// The values as a tensor of this shape on the device. On a CUDA device it may be used at once, by what is issued after
    /// it; whoever sends batch after batch keeps the transfer until the next batch's step has been issued.
    pub fn send<T: Element>(&mut self, values: &[T], shape: &[i64]) -> Result<Tensor, TchError> {
        let host = Tensor::f_from_slice(values)?.f_view(shape)?;
        if !matches!(self.device, Device::Cuda(_)) {
            return host.f_to_device(self.device);
        }
        // `pin_memory` itself warns at every call that it is given a device, which `tch` always does.
        let pinned = host.f_internal_pin_memory(self.device)?;
        let sent = pinned.f_to_device_(self.device, T::KIND, true, false)?;
        self.pinned.push(pinned);
        Ok(sent)
    }
}
