//! What is told of the actor: to the coordinator in reports, to whoever scrapes its metrics.

use std::sync::Arc;

use tengen_proto::v1::ReportActorRequest;
use tengen_records::LeaseId;
use tengen_service::host;
use tengen_service::reports::SPOOL_FULL;
use tengen_service::usage::UsageMeter;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval};

use super::{Actor, Done, PROVIDER_UNKNOWN, Room};
use crate::handshake::{CALL_TIMEOUT, Run};
use crate::link;
use crate::meters::{Meters, Readings};
use crate::rates::Rates;

/// When a report is due, and what it tells beside the state.
pub(super) struct Reports {
    pub(super) due: Interval,
    pub(super) rates: Rates,
    usage: Arc<UsageMeter>,
    meters: Meters,
}

impl Reports {
    /// To be called once metrics are served.
    pub(super) fn new(run: &Run, usage: Arc<UsageMeter>, now: Instant) -> Reports {
        Reports {
            due: report_interval(run),
            rates: Rates::new(now),
            usage,
            meters: Meters::new(),
        }
    }

    /// Reports as often as the coordinator wants it now.
    pub(super) fn follow(&mut self, run: &Run) {
        self.due = report_interval(run);
    }
}

fn report_interval(run: &Run) -> Interval {
    let mut reports = interval(run.report_interval);
    reports.set_missed_tick_behavior(MissedTickBehavior::Delay);
    reports
}

impl Actor {
    /// Sends a report unless one is on its way.
    pub(super) fn report(&mut self, now: Instant) {
        if self.calls.report || self.connection.link.is_none() {
            return;
        }
        self.calls.report = true;
        let (evaluations, games) = self.note_rates(now);
        let plies = self.players.sum(|gauges| &gauges.plies_in_flight);
        let returned = self.leases.returned().to_vec();
        let wire = |ids: &[LeaseId]| ids.iter().map(|id| id.to_bytes().to_vec()).collect::<Vec<_>>();
        let mut request = tonic::Request::new(ReportActorRequest {
            actor_id: self.me.id.clone(),
            evaluations,
            evaluations_per_second: self.reports.rates.evaluations_per_second(),
            games,
            plies_in_flight: u32::try_from(plies).unwrap_or(u32::MAX),
            cache_hits: self.players.sum(|gauges| &gauges.cache_hits),
            terminal_visits: self.players.sum(|gauges| &gauges.terminal_visits),
            reused_visits: self.players.sum(|gauges| &gauges.reused_visits),
            queue: u32::try_from(self.spool.level.games).unwrap_or(u32::MAX),
            lease_ids: wire(&self.open_leases()),
            returned_lease_ids: wire(&returned),
            provider: self.provider(),
            device: self.options.device.to_string(),
            precision: self
                .models
                .precision()
                .map(|precision| precision.to_string())
                .unwrap_or_default(),
            precision_fell_back: self.models.fell_back(),
            games_per_minute: self.reports.rates.games_per_minute(),
            spool_bytes: self.spool.level.bytes,
            model_id: self
                .asking
                .newest_model
                .map(|model| model.to_bytes().to_vec())
                .unwrap_or_default(),
            clock_unix_ms: host::unix_ms(),
            waiting: self.why_idle(),
            gives_up: self.failure.is_some(),
            usage: Some(self.reports.usage.usage()),
        });
        request.set_timeout(CALL_TIMEOUT);
        let mut client = link::client(self.channel.clone());
        self.calls.tasks.spawn(async move {
            let answer = client.report(request).await.map(tonic::Response::into_inner);
            Done::Report { returned, answer }
        });
    }

    /// The leases that are played, and the one whose networks are being fetched.
    fn open_leases(&self) -> Vec<LeaseId> {
        let coming = self.calls.coming.lease().filter(|_| self.calls.work);
        self.leases.ids().into_iter().chain(coming).collect()
    }

    /// Why nothing is played, for people; empty while games are.
    fn why_idle(&self) -> String {
        if let Some(failure) = &self.failure {
            return format!("{failure:#}");
        }
        match self.spool.level.room {
            Room::DiskFull => "the disk that its spool is on is full".to_owned(),
            Room::Nothing => SPOOL_FULL.to_owned(),
            Room::Matches => format!("{SPOOL_FULL} up to its reserve: self-play pauses"),
            Room::Everything => self.asking.waiting.clone(),
        }
    }

    /// Notes the counters, evaluations and games so far.
    pub(super) fn note_rates(&mut self, now: Instant) -> (u64, u64) {
        let evaluations = self.players.sum(|gauges| &gauges.evaluations);
        let games = self.players.sum(|gauges| &gauges.games);
        self.reports.rates.note(now, evaluations, games);
        (evaluations, games)
    }

    /// Shows the numbers to whoever scrapes them.
    pub(super) fn show(&self) {
        self.reports.meters.show(&Readings {
            evaluations: self.players.sum(|gauges| &gauges.evaluations),
            batches: self.players.sum(|gauges| &gauges.batches),
            cache_hits: self.players.sum(|gauges| &gauges.cache_hits),
            terminal_visits: self.players.sum(|gauges| &gauges.terminal_visits),
            reused_visits: self.players.sum(|gauges| &gauges.reused_visits),
            games: self.players.sum(|gauges| &gauges.games),
            stored: self.tally.stored,
            duplicate: self.tally.duplicate,
            conflict: self.tally.conflict,
            rejected: self.tally.rejected,
            plies_in_flight: self.players.sum(|gauges| &gauges.plies_in_flight),
            spool_games: self.spool.level.games,
            spool_bytes: self.spool.level.bytes,
            leases: self.leases.ids().len() as u64,
            playing_threads: self.players.threads as u64,
            links: u64::from(self.connection.link.is_some()),
        });
        self.reports.usage.show();
    }

    pub(super) fn provider(&self) -> String {
        self.models.provider().unwrap_or_else(|| PROVIDER_UNKNOWN.to_owned())
    }
}
