//! `[actor]`: how an actor plays.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// Threads that feed one GPU unless somebody says otherwise: one walks its trees while the batch of the other is evaluated.
pub const THREADS_PER_DEVICE: u32 = 2;

/// `[actor]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ActorSection {
    /// Games at once in one actor (the environments of other systems); 0 follows from its devices: what two batches of
    /// each thread of a CPU want, or one of each thread of a GPU.
    pub games: u32,
    /// Most positions in one evaluation; 0 is measured when an actor has its first network: the smallest batch that is
    /// nearly as fast as the fastest, at most 16 on a CPU and 256 on a GPU.
    pub batch_max: u32,
    /// Threads that feed one GPU in turn; those of a CPU are in `[cpu]`.
    pub threads_per_device: u32,
    /// Memory of one actor for answers of networks that are asked for again, MiB; 0 keeps none. Left out, it follows from the
    /// devices: 64 on a CPU, 256 for each GPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_mib: Option<u32>,
    /// `auto`, `cpu`, `openvino`, `cuda:N`, `tensorrt:N`, or several GPUs of one kind: `cuda:0,cuda:1`.
    pub device: String,
    /// Which of a network's precisions is played.
    pub precision: WantedPrecision,
}

impl Default for ActorSection {
    fn default() -> Self {
        ActorSection {
            games: 0,
            batch_max: 0,
            threads_per_device: THREADS_PER_DEVICE,
            cache_mib: None,
            device: "auto".to_owned(),
            precision: WantedPrecision::Auto,
        }
    }
}

/// Which of a network's precisions an actor plays with. A reduced one is taken only where a comparison with fp32 on the
/// actor's own hardware finds it faithful.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum WantedPrecision {
    /// The reduced precision of the device (int8 on a CPU, fp16 on a GPU) where networks come in it and it is faster; else
    /// fp32
    #[default]
    Auto,
    /// 32-bit floats
    Fp32,
    /// 8-bit integers where networks come in them; else fp32
    Int8,
    /// 16-bit floats where networks come in them; else fp32
    Fp16,
}

impl WantedPrecision {
    /// The name on the command line and in files.
    pub const fn as_str(self) -> &'static str {
        match self {
            WantedPrecision::Auto => "auto",
            WantedPrecision::Fp32 => "fp32",
            WantedPrecision::Int8 => "int8",
            WantedPrecision::Fp16 => "fp16",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_precision_has_one_name_on_the_command_line_and_in_files() {
        for &wanted in WantedPrecision::value_variants() {
            let name = wanted.as_str();
            assert_eq!(WantedPrecision::from_str(name, false), Ok(wanted));
            let section: ActorSection = toml::from_str(&format!("precision = {name:?}")).expect("a section");
            assert_eq!(section.precision, wanted);
        }
        assert!(toml::from_str::<ActorSection>("precision = \"fp8\"").is_err());
    }
}
