//! How long the threads of this process wait for a core while they have something to compute.
//!
//! Linux's scheduler counts that for each thread since it began. Elsewhere, and where a kernel does not count, nothing is told.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

/// Where Linux shows the threads of this process, a folder each.
const THREADS: &str = "/proc/self/task";

/// How long each thread has waited since it began, by its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Waits(HashMap<OsString, Duration>);

impl Waits {
    /// Those of all threads there are; `None` where the system does not tell.
    pub(crate) fn read() -> Option<Waits> {
        Waits::read_from(Path::new(THREADS))
    }

    fn read_from(threads: &Path) -> Option<Waits> {
        let waits = std::fs::read_dir(threads).ok()?.filter_map(|thread| {
            let thread = thread.ok()?;
            // One that has ended meanwhile is left out.
            let told = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
            Some((thread.file_name(), waited(&told)?))
        });
        let waits: HashMap<_, _> = waits.collect();
        (!waits.is_empty()).then_some(Waits(waits))
    }

    /// How long threads have waited since an `earlier` reading, all together. What a thread waited that has ended since is
    /// lost; one that has begun since waited within this time alone.
    pub(crate) fn since(&self, earlier: &Waits) -> Duration {
        let each = self.0.iter().map(|(thread, now)| {
            let before = earlier.0.get(thread).copied().unwrap_or_default();
            now.saturating_sub(before)
        });
        each.sum()
    }
}

/// The middle one of three numbers: nanoseconds computed, nanoseconds waited, times begun. All three are 0 for a thread that was
/// never due, and for every thread where the kernel does not count.
fn waited(told: &str) -> Option<Duration> {
    let numbers = told.split_whitespace().map(str::parse::<u64>);
    match numbers.collect::<Result<Vec<_>, _>>().ok()?[..] {
        [0, 0, 0] => None,
        [_, waited_ns, _] => Some(Duration::from_nanos(waited_ns)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::write_atomic;

    fn waits(of: &[(&str, u64)]) -> Waits {
        let each = of
            .iter()
            .map(|&(thread, seconds)| (OsString::from(thread), Duration::from_secs(seconds)));
        Waits(each.collect())
    }

    #[test]
    fn each_thread_tells_how_long_it_waited() {
        let folder = tempfile::tempdir().unwrap();
        for (thread, told) in [
            ("17", "1024493 7000000000 3\n"),
            ("18", "5 0 1\n"),
            // Never due, ended while we read, and of a kernel that tells something else.
            ("19", "0 0 0\n"),
            ("20", ""),
            ("21", "x y z\n"),
        ] {
            let path = folder.path().join(thread).join("schedstat");
            write_atomic(&path, told.as_bytes()).unwrap();
        }
        std::fs::create_dir(folder.path().join("22")).unwrap();
        let read = Waits::read_from(folder.path());
        assert_eq!(read, Some(waits(&[("17", 7), ("18", 0)])));
    }

    #[test]
    fn where_nothing_is_counted_nothing_is_told() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Waits::read_from(&folder.path().join("none")), None);
        write_atomic(&folder.path().join("17/schedstat"), b"0 0 0\n").unwrap();
        assert_eq!(Waits::read_from(folder.path()), None);
    }

    #[test]
    fn threads_come_and_go_between_two_readings() {
        let earlier = waits(&[("1", 10), ("2", 5), ("3", 40)]);
        let now = waits(&[("1", 13), ("2", 5), ("4", 2)]);
        assert_eq!(now.since(&earlier), Duration::from_secs(5));
        // Another thread of the same number has begun.
        let reused = waits(&[("1", 4)]);
        assert_eq!(reused.since(&earlier), Duration::ZERO);
        assert_eq!(earlier.since(&earlier), Duration::ZERO);
    }
}
