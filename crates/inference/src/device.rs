//! Where a session computes, as configuration says it: `auto`, `cpu`, `openvino`, `cuda:N` or `tensorrt:N`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Where a session computes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Device {
    /// The first GPU if there is one that works, else the CPU. [`Session::provider`](crate::Session::provider) says
    /// which it became.
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// The CPU through OpenVINO, in an ONNX Runtime of its own ([`init_for`](crate::init_for)), or an error.
    OpenVino,
    /// The GPU with this index, or an error.
    Cuda(i32),
    /// The GPU with this index through TensorRT, or an error. **Never run on a GPU.**
    TensorRt(i32),
}

impl Device {
    /// Whether it is a GPU. `auto` is none before it is found out what it is.
    pub fn is_gpu(self) -> bool {
        matches!(self, Device::Cuda(_) | Device::TensorRt(_))
    }
}

/// A text that names no device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} names no device: `auto`, `cpu`, `openvino`, `cuda:N` or `tensorrt:N` is wanted")]
pub struct ParseDeviceError(pub String);

impl FromStr for Device {
    type Err = ParseDeviceError;

    fn from_str(text: &str) -> Result<Device, ParseDeviceError> {
        // The first GPU has a name without a number, too.
        let gpu = |kind: &str| match text.strip_prefix(kind)? {
            "" => Some(0),
            index => index.strip_prefix(':')?.parse::<u16>().ok().map(i32::from),
        };
        match text {
            "auto" => Ok(Device::Auto),
            "cpu" => Ok(Device::Cpu),
            "openvino" => Ok(Device::OpenVino),
            _ => gpu("cuda")
                .map(Device::Cuda)
                .or_else(|| gpu("tensorrt").map(Device::TensorRt))
                .ok_or_else(|| ParseDeviceError(text.to_owned())),
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Device::Auto => f.write_str("auto"),
            Device::Cpu => f.write_str("cpu"),
            Device::OpenVino => f.write_str("openvino"),
            Device::Cuda(index) => write!(f, "cuda:{index}"),
            Device::TensorRt(index) => write!(f, "tensorrt:{index}"),
        }
    }
}

impl TryFrom<String> for Device {
    type Error = ParseDeviceError;

    fn try_from(text: String) -> Result<Device, ParseDeviceError> {
        text.parse()
    }
}

impl From<Device> for String {
    fn from(device: Device) -> String {
        device.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_read_back_as_they_are_shown() {
        for (device, is_gpu) in [
            (Device::Auto, false),
            (Device::Cpu, false),
            (Device::OpenVino, false),
            (Device::Cuda(0), true),
            (Device::Cuda(3), true),
            (Device::TensorRt(0), true),
            (Device::TensorRt(3), true),
        ] {
            assert_eq!(device.to_string().parse(), Ok(device));
            assert_eq!(device.is_gpu(), is_gpu, "{device}");
        }
        assert_eq!("cuda".parse(), Ok(Device::Cuda(0)));
        assert_eq!("tensorrt".parse(), Ok(Device::TensorRt(0)));
    }

    #[test]
    fn other_texts_name_no_device() {
        for text in [
            "",
            "gpu",
            "cuda:",
            "cuda:-1",
            "cuda:x",
            "cuda0",
            "CPU",
            "openvino:0",
            "tensorrt:",
            "tensorrt:x",
        ] {
            assert_eq!(text.parse::<Device>(), Err(ParseDeviceError(text.to_owned())));
        }
    }
}
