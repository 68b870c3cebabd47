//! Watches the room on the disk from a thread of its own, so that whoever asks gets an answer without touching the disk.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use indicatif::HumanBytes;
use tengen_proto::v1;

use super::DiskConfig;
use super::forecast::{Growth, hours_left, room};
use crate::clock::Uptime;
use crate::store::FILE_NAME;

/// How often the free space and the database are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Looks between two walks through the whole data folder: ten seconds.
const WALK_EVERY: u32 = 40;
/// Folders within folders that a walk enters.
const DEPTH_MAX: u32 = 8;

/// Why nothing large is taken now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoRoom {
    /// The disk is nearly full.
    #[error(
        "the coordinator's disk is nearly full ({} free, disk.free_bytes_min is {}): new games and networks are refused until \
         there is room again", HumanBytes(*free), HumanBytes(*min)
    )]
    Disk {
        /// Free bytes.
        free: u64,
        /// What should stay free.
        min: u64,
    },
    /// The data folder is as large as it may be.
    #[error(
        "the coordinator's data folder is full ({}, disk.data_bytes_max is {}): new games and networks are refused until \
         there is room again", HumanBytes(*held), HumanBytes(*max)
    )]
    Budget {
        /// Bytes of the folder.
        held: u64,
        /// What it may hold.
        max: u64,
    },
    /// A write failed.
    #[error("the coordinator's disk is full: new games and networks are refused until there is room again")]
    Full,
}

#[derive(Debug, Default)]
struct Reading {
    free_bytes: u64,
    data_bytes: u64,
    growth: Growth,
    /// A write failed for lack of space and the disk was not looked at since.
    failed: bool,
}

#[derive(Debug)]
struct Watched {
    data: PathBuf,
    config: DiskConfig,
    uptime: Uptime,
    reading: Mutex<Reading>,
}

/// What is known about the disk; clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Gauge {
    watched: Arc<Watched>,
}

/// The thread that looks; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct GaugeThread {
    lifeline: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for GaugeThread {
    fn drop(&mut self) {
        drop(self.lifeline.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that watches the disk panicked");
        }
    }
}

impl Gauge {
    /// Looks once and starts the thread. Blocks for that first look.
    pub(crate) fn start(data: &Path, config: DiskConfig) -> io::Result<(Gauge, GaugeThread)> {
        let gauge = Gauge {
            watched: Arc::new(Watched {
                data: data.to_path_buf(),
                config,
                uptime: Uptime::start(),
                // Until the first look nothing is refused, so that the first refusal is news.
                reading: Mutex::new(Reading {
                    free_bytes: u64::MAX,
                    ..Reading::default()
                }),
            }),
        };
        let others = gauge.watched.other_bytes();
        gauge.watched.look(gauge.watched.uptime.ms(), others)?;
        let (lifeline, stopped) = sync_channel(1);
        let watched = Arc::clone(&gauge.watched);
        let thread = std::thread::Builder::new()
            .name("disk-gauge".to_owned())
            .spawn(move || watch(&watched, others, &stopped))?;
        let thread = GaugeThread {
            lifeline: Some(lifeline),
            thread: Some(thread),
        };
        Ok((gauge, thread))
    }

    /// Whether a game or a network may be taken.
    pub(crate) fn check(&self) -> Result<(), NoRoom> {
        self.watched.check(&self.watched.reading())
    }

    /// Says that a write failed for lack of space.
    pub(crate) fn note_full(&self) {
        self.watched.reading().failed = true;
    }

    /// The disk as people watch it.
    pub(crate) fn status(&self) -> v1::DiskStatus {
        let config = &self.watched.config;
        let reading = self.watched.reading();
        let rate = reading.growth.bytes_per_hour();
        let room = room(
            reading.free_bytes,
            config.free_bytes_min,
            reading.data_bytes,
            config.data_bytes_max,
        );
        v1::DiskStatus {
            data_bytes: reading.data_bytes,
            free_bytes: reading.free_bytes,
            free_bytes_min: config.free_bytes_min,
            data_bytes_max: config.data_bytes_max,
            bytes_per_hour: rate,
            hours_left: hours_left(room, rate),
            refusing: self
                .watched
                .check(&reading)
                .err()
                .map(|why| why.to_string())
                .unwrap_or_default(),
        }
    }
}

impl Watched {
    fn reading(&self) -> MutexGuard<'_, Reading> {
        self.reading.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check(&self, reading: &Reading) -> Result<(), NoRoom> {
        let (min, max) = (self.config.free_bytes_min, self.config.data_bytes_max);
        if reading.failed {
            return Err(NoRoom::Full);
        }
        if reading.free_bytes < min {
            let free = reading.free_bytes;
            return Err(NoRoom::Disk { free, min });
        }
        if max != 0 && reading.data_bytes >= max {
            let held = reading.data_bytes;
            return Err(NoRoom::Budget { held, max });
        }
        Ok(())
    }

    /// Takes a reading at a time; the files beside the database count as they were at the last walk.
    fn look(&self, now_ms: u64, other_bytes: u64) -> io::Result<()> {
        let stat = rustix::fs::statvfs(&self.data)?;
        let free_bytes = stat.f_bavail.saturating_mul(stat.f_frsize);
        let data_bytes = other_bytes + database_files(&self.data).iter().map(|path| len(path)).sum::<u64>();
        let mut reading = self.reading();
        let before = self.check(&reading);
        reading.free_bytes = free_bytes;
        reading.data_bytes = data_bytes;
        reading.growth.note(now_ms, data_bytes);
        reading.failed = false;
        match (before, self.check(&reading)) {
            (Ok(()), Err(why)) => tracing::error!(%why, "no room"),
            (Err(_), Ok(())) => tracing::info!(free_bytes, data_bytes, "there is room again"),
            _ => {}
        }
        Ok(())
    }

    /// Bytes of everything in the data folder but the database.
    fn other_bytes(&self) -> u64 {
        let database: u64 = database_files(&self.data).iter().map(|path| len(path)).sum();
        folder_bytes(&self.data, 0).saturating_sub(database)
    }
}

fn watch(watched: &Watched, mut other_bytes: u64, stopped: &Receiver<()>) {
    let mut looks: u32 = 0;
    while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(LOOK_EVERY) {
        looks = looks.wrapping_add(1);
        if looks.is_multiple_of(WALK_EVERY) {
            other_bytes = watched.other_bytes();
        }
        if let Err(error) = watched.look(watched.uptime.ms(), other_bytes) {
            tracing::warn!(%error, "the disk could not be looked at");
        }
    }
}

fn database_files(data: &Path) -> [PathBuf; 2] {
    [data.join(FILE_NAME), data.join(format!("{FILE_NAME}-wal"))]
}

fn len(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// Bytes of the files in a folder. What vanishes meanwhile, and what cannot be read, counts nothing; links are not
/// followed.
pub(crate) fn folder_bytes(folder: &Path, depth: u32) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return 0;
    };
    entries
        .flatten()
        .filter_map(|entry| Some((entry.path(), entry.metadata().ok()?)))
        .map(|(path, metadata)| match metadata.is_dir() {
            true if depth < DEPTH_MAX => folder_bytes(&path, depth + 1),
            true => 0,
            false => metadata.len(),
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use tengen_service::files::write_atomic;

    use super::*;
    use crate::diagnose::{Snapshot, diagnose};

    fn gauge(data: &Path, config: DiskConfig) -> (Gauge, GaugeThread) {
        Gauge::start(data, config).unwrap()
    }

    #[test]
    fn a_disk_below_its_low_water_mark_has_no_room_and_the_status_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let config = DiskConfig {
            free_bytes_min: u64::MAX,
            ..DiskConfig::default()
        };
        let (gauge, _thread) = gauge(folder.path(), config);
        assert!(matches!(gauge.check(), Err(NoRoom::Disk { free, .. }) if free > 0));
        let status = gauge.status();
        assert!(status.refusing.contains("disk.free_bytes_min"), "{}", status.refusing);
        assert_eq!(status.hours_left, None);
    }

    #[test]
    fn a_folder_above_its_budget_has_no_room_and_every_file_counts() {
        let folder = tempfile::tempdir().unwrap();
        write_atomic(&folder.path().join("models/one"), &[0; 1_000]).unwrap();
        write_atomic(&folder.path().join(FILE_NAME), &[0; 500]).unwrap();
        let config = |max| DiskConfig {
            free_bytes_min: 0,
            data_bytes_max: max,
            ..DiskConfig::default()
        };
        let (full, _thread) = gauge(folder.path(), config(1_500));
        assert_eq!(
            full.check(),
            Err(NoRoom::Budget {
                held: 1_500,
                max: 1_500
            })
        );
        let (roomy, _thread) = gauge(folder.path(), config(1_501));
        assert_eq!(roomy.check(), Ok(()));
        assert_eq!(roomy.status().data_bytes, 1_500);
    }

    #[test]
    fn a_failed_write_stops_the_intake_until_the_disk_is_looked_at_again() {
        let folder = tempfile::tempdir().unwrap();
        let config = DiskConfig {
            free_bytes_min: 0,
            ..DiskConfig::default()
        };
        let (gauge, thread) = gauge(folder.path(), config);
        drop(thread);
        gauge.note_full();
        assert_eq!(gauge.check(), Err(NoRoom::Full));
        gauge.watched.look(1_000, 0).unwrap();
        assert_eq!(gauge.check(), Ok(()));
    }

    #[test]
    fn data_that_grows_towards_its_limit_is_forecast_and_the_doctor_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let config = DiskConfig {
            free_bytes_min: 0,
            data_bytes_max: 16 << 20,
            ..DiskConfig::default()
        };
        let (gauge, thread) = gauge(folder.path(), config);
        drop(thread);
        let disk_low = || {
            let status = v1::RunStatus {
                disk: Some(gauge.status()),
                ..v1::RunStatus::default()
            };
            let snapshot = Snapshot {
                status,
                ..Snapshot::default()
            };
            let causes = diagnose(&snapshot).into_iter();
            causes
                .map(|cause| cause.finding())
                .find(|finding| finding.cause == "disk-low")
        };
        assert_eq!(disk_low(), None, "nothing is known of its growth yet");

        // A mebibyte within an hour, of which fifteen are left.
        write_atomic(&folder.path().join(FILE_NAME), &[0; 1 << 20]).unwrap();
        gauge.watched.look(3_600_000, 0).unwrap();
        let hours_left = gauge.status().hours_left.unwrap();
        assert!(0.0 < hours_left && hours_left < 15.1, "{hours_left}");
        let low = disk_low().expect("fewer hours than a day has");
        assert!(low.evidence[0].contains("grows by 1.0"), "{low:?}");
        assert!(low.sentence.contains("hours"), "{low:?}");
    }
}
