//! What the actor shows to Prometheus.

use ::metrics::{Counter, Gauge, counter, gauge};
use tengen_service::metrics::{self, Kind, Metric, MetricsArgs, MetricsError};
use tokio_util::sync::CancellationToken;

/// Every metric of the actor.
#[rustfmt::skip] // one row a metric
pub const METRICS: &[Metric] = &[
    Metric::new("tengen_actor_evaluations_total", Kind::Counter, &[], "Network evaluations since the actor began."),
    Metric::new("tengen_actor_batches_total", Kind::Counter, &[], "Batches that these evaluations came in since the actor began."),
    Metric::new("tengen_actor_cache_hits_total", Kind::Counter, &[], "Positions answered from the actor's cache since it began, not evaluated."),
    Metric::new("tengen_actor_terminal_visits_total", Kind::Counter, &[], "Simulations that ended in a finished game since the actor began, not evaluated."),
    Metric::new("tengen_actor_reused_visits_total", Kind::Counter, &[], "Root visits that searches took over from the ply before since the actor began, not made again."),
    Metric::new("tengen_actor_games_total", Kind::Counter, &[], "Games finished since the actor began."),
    Metric::new("tengen_actor_verdicts_total", Kind::Counter, &["verdict"], "Verdicts on its games since the actor began; verdict is stored, duplicate, conflict or rejected."),
    Metric::new("tengen_actor_plies_in_flight", Kind::Gauge, &[], "Plies played in games that are not finished."),
    Metric::new("tengen_actor_spool_games", Kind::Gauge, &[], "Finished games that wait for a verdict."),
    Metric::new("tengen_actor_spool_bytes", Kind::Gauge, &[], "Bytes of these games on disk."),
    Metric::new("tengen_actor_leases", Kind::Gauge, &[], "Leases that the actor holds."),
    Metric::new("tengen_actor_playing_threads", Kind::Gauge, &[], "Threads that play."),
    Metric::new("tengen_actor_connected", Kind::Gauge, &[], "1 while the actor has its stream to the coordinator."),
];

/// Shows them where `args` say so; to be called before the actor runs.
pub async fn serve_metrics(args: &MetricsArgs, stop: CancellationToken) -> Result<(), MetricsError> {
    // The event loop writes the numbers as it goes.
    metrics::serve(args, "actor", METRICS, || {}, stop).await
}

/// The numbers at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Readings {
    pub(crate) evaluations: u64,
    pub(crate) batches: u64,
    pub(crate) cache_hits: u64,
    pub(crate) terminal_visits: u64,
    pub(crate) reused_visits: u64,
    pub(crate) games: u64,
    pub(crate) stored: u64,
    pub(crate) duplicate: u64,
    pub(crate) conflict: u64,
    pub(crate) rejected: u64,
    pub(crate) plies_in_flight: u64,
    pub(crate) spool_games: u64,
    pub(crate) spool_bytes: u64,
    pub(crate) leases: u64,
    pub(crate) playing_threads: u64,
    pub(crate) links: u64,
}

/// Handles of the metrics; they do nothing where none are served.
pub(crate) struct Meters {
    visits: [Counter; 4],
    batches: Counter,
    games: Counter,
    verdicts: [Counter; 4],
    gauges: [Gauge; 6],
}

impl Meters {
    /// To be called once metrics are served.
    pub(crate) fn new() -> Meters {
        let verdict = |verdict: &'static str| counter!("tengen_actor_verdicts_total", "verdict" => verdict);
        Meters {
            visits: [
                counter!("tengen_actor_evaluations_total"),
                counter!("tengen_actor_cache_hits_total"),
                counter!("tengen_actor_terminal_visits_total"),
                counter!("tengen_actor_reused_visits_total"),
            ],
            batches: counter!("tengen_actor_batches_total"),
            games: counter!("tengen_actor_games_total"),
            verdicts: ["stored", "duplicate", "conflict", "rejected"].map(verdict),
            gauges: [
                gauge!("tengen_actor_plies_in_flight"),
                gauge!("tengen_actor_spool_games"),
                gauge!("tengen_actor_spool_bytes"),
                gauge!("tengen_actor_leases"),
                gauge!("tengen_actor_playing_threads"),
                gauge!("tengen_actor_connected"),
            ],
        }
    }

    /// Shows the numbers.
    pub(crate) fn show(&self, now: &Readings) {
        let visits = [now.evaluations, now.cache_hits, now.terminal_visits, now.reused_visits];
        self.visits
            .iter()
            .zip(visits)
            .for_each(|(counter, count)| counter.absolute(count));
        self.batches.absolute(now.batches);
        self.games.absolute(now.games);
        let verdicts = [now.stored, now.duplicate, now.conflict, now.rejected];
        self.verdicts
            .iter()
            .zip(verdicts)
            .for_each(|(counter, count)| counter.absolute(count));
        let gauges = [
            now.plies_in_flight,
            now.spool_games,
            now.spool_bytes,
            now.leases,
            now.playing_threads,
            now.links,
        ];
        self.gauges
            .iter()
            .zip(gauges)
            .for_each(|(gauge, value)| gauge.set(value as f64));
    }
}
