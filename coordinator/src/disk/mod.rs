//! The disk under the data folder: whether its file system may hold a database, and how much room it has left.
//!
//! **Nothing here deletes anything**: what goes to make room is for retention and for people to say.

pub(crate) mod file_system;
mod forecast;
mod gauge;

use serde::{Deserialize, Serialize};

pub(crate) use gauge::{Gauge, GaugeThread, NoRoom, folder_bytes};

/// Section `[disk]` of the process's configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DiskConfig {
    /// Free space on the disk below which new games and networks are refused, bytes. 0 never refuses before the disk is
    /// full. The default leaves room for the write-ahead log and for what a drain still writes.
    pub free_bytes_min: u64,
    /// Most bytes that all files of the data folder may take before new games and networks are refused; 0 is no limit.
    pub data_bytes_max: u64,
    /// Takes a data folder on a network file system. SQLite's log needs shared memory and locks that such systems do not
    /// keep reliably: **the database can be damaged**, and an acknowledged game can be lost.
    pub allow_network_file_system: bool,
}

impl Default for DiskConfig {
    fn default() -> Self {
        DiskConfig {
            free_bytes_min: 512 << 20,
            data_bytes_max: 0,
            allow_network_file_system: false,
        }
    }
}

/// Smallest limit of the data folder that a run could begin under, bytes.
const DATA_BYTES_MAX_MIN: u64 = 16 << 20;

impl DiskConfig {
    /// What is wrong with it, in a sentence each.
    pub(crate) fn faults(&self) -> Vec<String> {
        let limit = self.data_bytes_max;
        if limit != 0 && limit < DATA_BYTES_MAX_MIN {
            return vec![format!(
                "disk.data_bytes_max = {limit}: give 0 for no limit, or at least {DATA_BYTES_MAX_MIN}"
            )];
        }
        Vec::new()
    }
}
