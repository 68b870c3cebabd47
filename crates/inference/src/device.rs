//! Where a session computes, as configuration says it: `auto`, `cpu` or `cuda:N`.

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
    /// The GPU with this index, or an error.
    Cuda(i32),
}

/// A text that names no device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} names no device: `auto`, `cpu`, `cuda` or `cuda:N` is wanted")]
pub struct ParseDeviceError(pub String);

impl FromStr for Device {
    type Err = ParseDeviceError;

    fn from_str(text: &str) -> Result<Device, ParseDeviceError> {
        let unknown = || ParseDeviceError(text.to_owned());
        match text {
            "auto" => Ok(Device::Auto),
            "cpu" => Ok(Device::Cpu),
            "cuda" => Ok(Device::Cuda(0)),
            _ => {
                let index = text.strip_prefix("cuda:").ok_or_else(unknown)?;
                let index = index.parse::<u16>().map_err(|_| unknown())?;
                Ok(Device::Cuda(i32::from(index)))
            }
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Device::Auto => f.write_str("auto"),
            Device::Cpu => f.write_str("cpu"),
            Device::Cuda(index) => write!(f, "cuda:{index}"),
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
        for device in [Device::Auto, Device::Cpu, Device::Cuda(0), Device::Cuda(3)] {
            assert_eq!(device.to_string().parse(), Ok(device));
        }
        assert_eq!("cuda".parse(), Ok(Device::Cuda(0)));
    }

    #[test]
    fn other_texts_name_no_device() {
        for text in ["", "gpu", "cuda:", "cuda:-1", "cuda:x", "CPU"] {
            assert_eq!(text.parse::<Device>(), Err(ParseDeviceError(text.to_owned())));
        }
    }
}
