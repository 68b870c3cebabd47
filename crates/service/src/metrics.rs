//! The numbers a process shows to Prometheus: one recorder a process, served as `/metrics` where that is asked for.
//!
//! What there is to measure each process says in a table of its own ([`Metric`]); `docs/metrics.md` repeats the tables, and
//! tests hold the two together. A process that serves none measures nothing: without a recorder the handles do nothing.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use clap::Args;
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use tokio_util::sync::CancellationToken;

use crate::files::{WriteError, write_atomic};
use crate::gpu::GpuUse;
use crate::usage;

/// Bounds of the buckets of every histogram, seconds.
const BUCKETS: [f64; 14] = [
    0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 2.5, 10.0,
];
/// How often histograms fold in what was recorded, whether anybody looks or not.
const UPKEEP_EVERY: Duration = Duration::from_secs(5);

/// Where a process shows its metrics.
#[derive(Args, Clone, Debug, Default)]
pub struct MetricsArgs {
    /// Serve metrics for Prometheus at /metrics: a port of this machine, or an address with its port for others too; port 0
    /// takes any [default: none are served]
    #[arg(long, value_name = "PORT|ADDR:PORT")]
    pub metrics: Option<MetricsAddr>,
    /// Write the address of the metrics to this file once they are served
    #[arg(long, value_name = "FILE", requires = "metrics")]
    pub metrics_addr_file: Option<PathBuf>,
}

/// An address of which a port alone means this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricsAddr(pub SocketAddr);

/// A text that is no address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is neither a port such as 9100 nor an address such as 0.0.0.0:9100")]
pub struct ParseMetricsAddrError(String);

impl FromStr for MetricsAddr {
    type Err = ParseMetricsAddrError;

    fn from_str(text: &str) -> Result<MetricsAddr, ParseMetricsAddrError> {
        if let Ok(port) = text.parse() {
            return Ok(MetricsAddr(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)));
        }
        text.parse()
            .map(MetricsAddr)
            .map_err(|_| ParseMetricsAddrError(text.to_owned()))
    }
}

/// How a metric behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It only grows; its name ends in `_total`.
    Counter,
    /// It goes up and down.
    Gauge,
    /// How long something took, in buckets.
    Histogram,
}

/// One metric of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Its name, which ends in its unit.
    pub name: &'static str,
    /// How it behaves.
    pub kind: Kind,
    /// Names of its labels.
    pub labels: &'static [&'static str],
    /// What it says, in a sentence.
    pub help: &'static str,
}

impl Metric {
    /// One row of a table.
    pub const fn new(name: &'static str, kind: Kind, labels: &'static [&'static str], help: &'static str) -> Metric {
        Metric {
            name,
            kind,
            labels,
            help,
        }
    }
}

/// What every process shows; the cores it lacks where the system tells, and what is of a GPU, once it computes on one.
#[rustfmt::skip] // one row a metric
pub const COMMON: &[Metric] = &[
    Metric::new("tengen_build_info", Kind::Gauge, &["part", "version"], "1; its labels say which process this is and of which build."),
    Metric::new("process_cpu_seconds_total", Kind::Counter, &[], "Time that all threads of the process have computed, whole seconds."),
    Metric::new("process_resident_memory_bytes", Kind::Gauge, &[], "Memory that the process holds."),
    Metric::new("process_start_time_seconds", Kind::Gauge, &[], "When the process began, since the Unix epoch."),
    Metric::new("tengen_cpu_lacking_cores", Kind::Gauge, &[], "Cores that the process had work for and did not get, over the last seconds: threads that waited for one, on average."),
    Metric::new("tengen_gpu_busy_ratio", Kind::Gauge, &[], "Share of the time that the GPU which the process computes on was busy, 0 to 1, whoever used it."),
    Metric::new("tengen_gpu_memory_bytes", Kind::Gauge, &[], "Memory of that GPU in use, whoever holds it."),
];

/// The metrics cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum MetricsError {
    /// The recorder could not be made, or there is one already.
    #[error("failed to measure: {0}")]
    Recorder(#[from] BuildError),
    /// The address is taken or not ours.
    #[error("failed to serve metrics on {addr}: {source}")]
    Listen {
        /// The address.
        addr: SocketAddr,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The address file could not be written.
    #[error(transparent)]
    AddrFile(#[from] WriteError),
}

/// Begins to measure and to serve, where `args` ask for it, until `stop`. `table` is what this process measures beside
/// [`COMMON`]; `refresh` is called before every answer.
pub async fn serve(
    args: &MetricsArgs,
    part: &'static str,
    table: &[Metric],
    refresh: impl Fn() + Send + Sync + 'static,
    stop: CancellationToken,
) -> Result<(), MetricsError> {
    let Some(MetricsAddr(addr)) = args.metrics else {
        return Ok(());
    };
    let recorder = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &BUCKETS)?
        .install_recorder()?;
    describe(COMMON.iter().chain(table));
    begin(part);
    let refused = |source| MetricsError::Listen { addr, source };
    let listener = tokio::net::TcpListener::bind(addr).await.map_err(refused)?;
    let bound = listener.local_addr().map_err(refused)?;
    if let Some(path) = args.metrics_addr_file.clone() {
        tell(&path, bound).await?;
    }
    if !bound.ip().is_loopback() {
        tracing::warn!(addr = %bound, "metrics are shown to whoever reaches this address");
    }
    tracing::info!(addr = %bound, "metrics are served at /metrics");
    tokio::spawn(keep_up(recorder.clone(), stop.clone()));
    let page = Arc::new(move || {
        refresh();
        process();
        recorder.render()
    });
    let router = Router::new().route(
        "/metrics",
        get(move || {
            let page = Arc::clone(&page);
            async move { ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], page()).into_response() }
        }),
    );
    tokio::spawn(async move {
        let served = axum::serve(listener, router).with_graceful_shutdown(stop.cancelled_owned());
        if let Err(error) = served.await {
            tracing::error!(%error, "metrics are served no more");
        }
    });
    Ok(())
}

async fn tell(path: &Path, bound: SocketAddr) -> Result<(), MetricsError> {
    let (path, text) = (path.to_path_buf(), format!("{bound}\n"));
    let written = tokio::task::spawn_blocking(move || write_atomic(&path, text.as_bytes())).await;
    // Writing does not panic; a runtime that is shutting down needs no address.
    Ok(written.unwrap_or(Ok(()))?)
}

/// Folds in what histograms recorded, so that a process nobody scrapes does not gather it for ever.
async fn keep_up(recorder: PrometheusHandle, stop: CancellationToken) {
    let mut ticks = tokio::time::interval(UPKEEP_EVERY);
    loop {
        tokio::select! {
            _ = ticks.tick() => recorder.run_upkeep(),
            () = stop.cancelled() => return,
        }
    }
}

fn describe<'a>(table: impl Iterator<Item = &'a Metric>) {
    for metric in table {
        match metric.kind {
            Kind::Counter => metrics::describe_counter!(metric.name, metric.help),
            Kind::Gauge => metrics::describe_gauge!(metric.name, metric.help),
            Kind::Histogram => metrics::describe_histogram!(metric.name, metric.help),
        }
    }
}

/// What is said once.
fn begin(part: &'static str) {
    metrics::gauge!("tengen_build_info", "part" => part, "version" => crate::BUILD).set(1.0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    metrics::gauge!("process_start_time_seconds").set(now.as_secs_f64());
}

/// What this process takes of its machine.
fn process() {
    // Whole seconds: a counter of this library counts whole numbers.
    metrics::counter!("process_cpu_seconds_total").absolute(usage::busy().as_secs());
    if let Some(bytes) = usage::resident_bytes() {
        metrics::gauge!("process_resident_memory_bytes").set(bytes as f64);
    }
}

/// Cores that this process had work for and did not get.
pub fn show_lacking_cores(lacking: f32) {
    metrics::gauge!("tengen_cpu_lacking_cores").set(f64::from(lacking));
}

/// What the GPU told that this process computes on; what it did not tell is no number.
pub(crate) fn show_gpu(told: GpuUse) {
    metrics::gauge!("tengen_gpu_busy_ratio").set(told.busy.map_or(f64::NAN, f64::from));
    metrics::gauge!("tengen_gpu_memory_bytes").set(told.memory_bytes.map_or(f64::NAN, |bytes| bytes as f64));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_of_this_machine() {
        let read = |text: &str| text.parse::<MetricsAddr>().map(|addr| addr.0.to_string());
        assert_eq!(read("9100").as_deref(), Ok("127.0.0.1:9100"));
        assert_eq!(read("0.0.0.0:9100").as_deref(), Ok("0.0.0.0:9100"));
        assert_eq!(read("[::1]:0").as_deref(), Ok("[::1]:0"));
        for text in ["", "x", "70000", "localhost:1"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
