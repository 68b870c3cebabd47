//! Small benches: how long a function takes, measured by criterion, which only this file names.
//!
//! Criterion prints its estimates, keeps them in `target/criterion`, says how they differ from the last run's, and takes
//! options behind `cargo bench ... --`: a filter, `--save-baseline NAME`, `--baseline NAME`. Here is what the benches need
//! beside that: one set of options, the median as a number, and time for work that comes in lumps.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use criterion::Bencher;
use criterion::Criterion;
use serde_json::Value;

/// Time before a function is measured.
const WARM_UP: Duration = Duration::from_millis(300);
/// Parts that the time of measuring is divided into; what counts is their median.
const SAMPLES: usize = 20;
/// How often the samples are drawn from for the bounds that criterion prints.
const RESAMPLES: usize = 10_000;

/// Measures one function after the other.
pub struct Measures {
    criterion: Criterion,
    folder: PathBuf,
}

impl Measures {
    /// Measures each function for about so long, unless the command line says otherwise.
    pub fn from_args(time: Duration) -> Measures {
        let folder = std::env::var_os("CRITERION_HOME");
        let folder = folder.map_or_else(|| super::target().join("criterion"), PathBuf::from);
        Measures::in_folder(options(time).configure_from_args(), &folder)
    }

    fn in_folder(criterion: Criterion, folder: &Path) -> Measures {
        Measures {
            criterion: criterion.output_directory(folder),
            folder: folder.to_path_buf(),
        }
    }

    /// Measures a function and gives its median, nanoseconds an iteration; `None` where the command line leaves it out, or
    /// wants something else than estimates of it.
    ///
    /// # Errors
    /// When the estimates cannot be read.
    pub fn median_ns(
        &mut self,
        group: &str,
        name: &str,
        function: impl FnMut(&mut Bencher<'_>),
    ) -> io::Result<Option<f64>> {
        let folder = self.folder.join(folder_name(group)).join(folder_name(name));
        let path = folder.join("new").join("estimates.json");
        // The last run's stay in `base`, to be compared with; what is found here is this run's.
        unless_missing(fs::remove_file(&path))?;
        let mut measured = self.criterion.benchmark_group(group);
        measured.bench_function(name, function);
        measured.finish();
        unless_missing(fs::read(&path))?.map(|text| median(&text)).transpose()
    }
}

fn options(time: Duration) -> Criterion {
    Criterion::default()
        .without_plots()
        .warm_up_time(WARM_UP)
        .measurement_time(time)
        .sample_size(SAMPLES)
        .nresamples(RESAMPLES)
}

/// Time for `wanted` pieces of work that comes in lumps of several, such as the simulations of a move: whole lumps are done,
/// each of which says how many pieces it had and how long it took, and their time is scaled to what was wanted.
pub fn in_lumps(wanted: u64, mut lump: impl FnMut() -> (u64, Duration)) -> Duration {
    let (mut done, mut taken) = (0, Duration::ZERO);
    while done < wanted {
        let (pieces, time) = lump();
        done += pieces;
        taken += time;
    }
    taken.mul_f64(wanted as f64 / done.max(1) as f64)
}

/// The folder that criterion makes for a name.
fn folder_name(name: &str) -> String {
    name.replace(['?', '"', '/', '\\', '*', '<', '>', ':', '|', '^'], "_")
}

fn median(estimates: &[u8]) -> io::Result<f64> {
    let estimates: Value = serde_json::from_slice(estimates)?;
    let median = estimates["median"]["point_estimate"].as_f64();
    median.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the estimates name no median"))
}

fn unless_missing<T>(done: io::Result<T>) -> io::Result<Option<T>> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        done => done.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    const SPUN: Duration = Duration::from_micros(20);

    fn spin() {
        let begun = Instant::now();
        while begun.elapsed() < SPUN {}
    }

    #[test]
    fn lumps_count_by_their_pieces_and_time_is_scaled_to_what_was_wanted() {
        let lump = || (40, Duration::from_millis(80));
        assert_eq!(in_lumps(100, lump), Duration::from_millis(200));
        assert_eq!(in_lumps(1, lump), Duration::from_millis(2));
        assert_eq!(in_lumps(80, lump), Duration::from_millis(160));
    }

    #[test]
    fn the_median_is_that_of_this_run_and_what_is_filtered_out_has_none() {
        let folder = tempfile::tempdir().unwrap();
        let quick = |criterion: Criterion| criterion.warm_up_time(Duration::from_millis(1));
        let mut measures = Measures::in_folder(quick(options(Duration::from_millis(2))), folder.path());
        // A name as games have.
        let name = "caro5?size=9";
        let ns = measures
            .median_ns("planes", name, |bencher| bencher.iter(spin))
            .unwrap();
        assert!(ns.is_some_and(|ns| ns >= SPUN.as_nanos() as f64), "{ns:?}");
        let criterion = quick(options(Duration::from_millis(2))).with_filter("perft");
        let mut filtered = Measures::in_folder(criterion, folder.path());
        let ns = filtered.median_ns("planes", name, |_| unreachable!("it is filtered out"));
        assert_eq!(ns.unwrap(), None);
    }
}
