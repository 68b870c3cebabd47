//! Which device the tensor library computes on: what was asked for, and what is really there.

use std::fmt;
use std::str::FromStr;

use tch::Device;

/// A device could not be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// The text names no kind of device.
    #[error("{0:?} is not a device; use auto, cpu or cuda:N")]
    Unknown(String),
    /// The device was named but is not there.
    #[error("device cuda:{wanted} is not available: {reason}; use auto or cpu")]
    Unavailable {
        /// Index that was asked for.
        wanted: usize,
        /// What is missing.
        reason: String,
    },
}

/// What was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeviceChoice {
    /// The first CUDA device if there is one, else the CPU.
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// The CUDA device with this index, or an error.
    Cuda(usize),
}

impl FromStr for DeviceChoice {
    type Err = DeviceError;

    fn from_str(text: &str) -> Result<DeviceChoice, DeviceError> {
        match text {
            "auto" => Ok(DeviceChoice::Auto),
            "cpu" => Ok(DeviceChoice::Cpu),
            "cuda" => Ok(DeviceChoice::Cuda(0)),
            _ => text
                .strip_prefix("cuda:")
                .and_then(|index| index.parse().ok())
                .map(DeviceChoice::Cuda)
                .ok_or_else(|| DeviceError::Unknown(text.to_owned())),
        }
    }
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceChoice::Auto => f.write_str("auto"),
            DeviceChoice::Cpu => f.write_str("cpu"),
            DeviceChoice::Cuda(index) => write!(f, "cuda:{index}"),
        }
    }
}

impl DeviceChoice {
    /// The device that will really be used.
    pub fn resolve(self) -> Result<Device, DeviceError> {
        match self {
            DeviceChoice::Cpu => Ok(Device::Cpu),
            DeviceChoice::Auto => Ok(Device::cuda_if_available()),
            DeviceChoice::Cuda(wanted) => {
                if !tch::utils::has_cuda() {
                    let reason = "this build of libtorch has no CUDA, or no driver was found".to_owned();
                    return Err(DeviceError::Unavailable { wanted, reason });
                }
                let count = tch::Cuda::device_count();
                if i64::try_from(wanted).is_ok_and(|index| index < count) {
                    Ok(Device::Cuda(wanted))
                } else {
                    Err(DeviceError::Unavailable {
                        wanted,
                        reason: format!("{count} CUDA devices were found"),
                    })
                }
            }
        }
    }
}

/// The device's name as it is reported: `cpu`, `cuda:0`.
pub fn device_name(device: Device) -> String {
    match device {
        Device::Cpu => "cpu".to_owned(),
        Device::Cuda(index) => format!("cuda:{index}"),
        other => format!("{other:?}").to_lowercase(),
    }
}

/// The device's number among the GPUs that CUDA shows to this process; `None` on the CPU.
pub fn cuda_number(device: Device) -> Option<u32> {
    match device {
        Device::Cuda(index) => u32::try_from(index).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_and_print() {
        for text in ["auto", "cpu", "cuda:0", "cuda:3"] {
            assert_eq!(text.parse::<DeviceChoice>().unwrap().to_string(), text);
        }
        assert_eq!("cuda".parse(), Ok(DeviceChoice::Cuda(0)));
        for text in ["gpu", "cuda:", "cuda:x", "", "CPU"] {
            assert_eq!(text.parse::<DeviceChoice>(), Err(DeviceError::Unknown(text.to_owned())));
        }
    }

    #[test]
    fn only_gpus_have_a_number_of_cuda() {
        assert_eq!(cuda_number(Device::Cuda(3)), Some(3));
        assert_eq!(cuda_number(Device::Cpu), None);
    }

    #[test]
    fn a_named_device_that_is_not_there_is_an_error_and_auto_is_not() {
        let wanted = 4_000;
        let refused = DeviceChoice::Cuda(wanted).resolve().unwrap_err();
        assert!(refused.to_string().contains("cuda:4000 is not available"), "{refused}");
        assert_eq!(DeviceChoice::Cpu.resolve(), Ok(Device::Cpu));
        assert!(DeviceChoice::Auto.resolve().is_ok());
    }
}
