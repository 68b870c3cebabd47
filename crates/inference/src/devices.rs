//! Where an actor computes, as configuration says it: one device, or several GPUs.

use std::fmt;
use std::str::FromStr;

use crate::device::{Device, ParseDeviceError};
use crate::providers::CPU_PROVIDER;
use crate::session::{Session, SessionOptions};

/// `auto`, `cpu` or `openvino` alone, or one or more GPUs of one kind, each named once: `cuda:0,cuda:1`. Never empty.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Devices(Vec<Device>);

/// A text that names no devices.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseDevicesError {
    /// A part of the list names no device.
    #[error(transparent)]
    Device(#[from] ParseDeviceError),
    /// What is only wanted alone stands in a list.
    #[error("{text:?}: `{device}` stands alone; only GPUs may be several, for example `cuda:0,cuda:1`")]
    NotAlone {
        /// The list.
        text: String,
        /// What is in it.
        device: Device,
    },
    /// GPUs are named in two ways.
    #[error("{text:?} names {first} and {device}: the GPUs of one actor are all `cuda:N` or all `tensorrt:N`")]
    Mixed {
        /// The list.
        text: String,
        /// The first of them.
        first: Device,
        /// One of the other kind.
        device: Device,
    },
    /// A GPU is named twice. How many threads feed it is another question.
    #[error("{text:?} names {device} twice")]
    Twice {
        /// The list.
        text: String,
        /// The GPU.
        device: Device,
    },
}

impl Devices {
    /// The devices, in the order they were named.
    pub fn as_slice(&self) -> &[Device] {
        &self.0
    }

    /// What these are on this machine: `auto` becomes the first GPU if `model` can be loaded there, else the CPU. A device
    /// that is named is taken at its word: a network that does not load there says so.
    ///
    /// # Errors
    /// When `model` cannot be loaded anywhere.
    pub fn resolve(&self, model: &[u8]) -> crate::Result<Devices> {
        if self.as_slice() != [Device::Auto] {
            return Ok(self.clone());
        }
        let options = SessionOptions {
            device: Device::Auto,
            batch_max: 1,
            ..SessionOptions::default()
        };
        let session = Session::load(model, &options)?;
        Ok(match session.provider() == CPU_PROVIDER {
            true => Device::Cpu.into(),
            false => Device::Cuda(0).into(),
        })
    }
}

impl Default for Devices {
    fn default() -> Devices {
        Device::default().into()
    }
}

impl From<Device> for Devices {
    fn from(device: Device) -> Devices {
        Devices(vec![device])
    }
}

impl FromStr for Devices {
    type Err = ParseDevicesError;

    fn from_str(text: &str) -> Result<Devices, ParseDevicesError> {
        let devices: Vec<Device> = text
            .split(',')
            .map(|part| part.trim().parse())
            .collect::<Result<_, ParseDeviceError>>()?;
        let (first, several) = (devices[0], devices.len() > 1);
        for (at, &device) in devices.iter().enumerate() {
            let text = || text.to_owned();
            if several && !device.is_gpu() {
                return Err(ParseDevicesError::NotAlone { text: text(), device });
            }
            if std::mem::discriminant(&device) != std::mem::discriminant(&first) {
                let text = text();
                return Err(ParseDevicesError::Mixed { text, first, device });
            }
            if devices[..at].contains(&device) {
                return Err(ParseDevicesError::Twice { text: text(), device });
            }
        }
        Ok(Devices(devices))
    }
}

impl fmt::Display for Devices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, device) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(f, "{comma}{device}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Devices, ParseDevicesError> {
        text.parse()
    }

    #[test]
    fn one_device_or_several_gpus_read_back_as_they_are_shown() {
        for text in [
            "auto",
            "cpu",
            "openvino",
            "cuda:0",
            "cuda:3",
            "tensorrt:2",
            "cuda:0,cuda:1",
            "tensorrt:1,tensorrt:0",
            "cuda:7,cuda:2,cuda:0",
        ] {
            assert_eq!(parse(text).map(|devices| devices.to_string()), Ok(text.to_owned()));
        }
        assert_eq!(
            parse("cuda, cuda:1").map(|devices| devices.as_slice().to_vec()),
            Ok(vec![Device::Cuda(0), Device::Cuda(1)])
        );
        assert_eq!(parse("auto"), Ok(Devices::default()));
    }

    #[test]
    fn auto_and_the_cpu_stand_alone() {
        for (text, device) in [
            ("openvino,cuda:0", Device::OpenVino),
            ("cuda:0,openvino", Device::OpenVino),
            ("openvino,openvino", Device::OpenVino),
            ("auto,cpu", Device::Auto),
            ("cuda:0,cpu", Device::Cpu),
            ("cpu,cpu", Device::Cpu),
            ("cuda:1,auto", Device::Auto),
        ] {
            let text = text.to_owned();
            assert_eq!(parse(&text), Err(ParseDevicesError::NotAlone { text, device }));
        }
    }

    #[test]
    fn gpus_are_of_one_kind() {
        let error = parse("cuda:0,cuda:1,tensorrt:0").expect_err("two kinds");
        let (text, first, device) = (
            "cuda:0,cuda:1,tensorrt:0".to_owned(),
            Device::Cuda(0),
            Device::TensorRt(0),
        );
        assert_eq!(error, ParseDevicesError::Mixed { text, first, device });
    }

    #[test]
    fn a_gpu_is_named_once() {
        for text in [
            "cuda:1,cuda:1",
            "cuda:0,cuda:1,cuda:0",
            "cuda,cuda:0",
            "tensorrt:1,tensorrt:1",
        ] {
            let error = parse(text).expect_err("a GPU that is named twice").to_string();
            assert!(error.contains(text) && error.ends_with("twice"), "{error}");
        }
    }

    #[test]
    fn a_part_that_names_no_device_is_named() {
        for (text, part) in [
            ("", ""),
            ("cuda:0,", ""),
            ("cuda:0;cuda:1", "cuda:0;cuda:1"),
            ("cuda:0,gpu", "gpu"),
        ] {
            let fault = ParseDeviceError(part.to_owned());
            assert_eq!(parse(text), Err(ParseDevicesError::Device(fault)));
        }
    }

    #[test]
    fn a_device_that_is_named_is_taken_at_its_word() {
        for text in ["cpu", "openvino", "cuda:999", "cuda:0,cuda:1", "tensorrt:0"] {
            let devices = parse(text).expect("devices");
            assert_eq!(devices.resolve(b"no model at all"), Ok(devices));
        }
    }
}
