//! What is told of the actor: to the coordinator in reports, to whoever scrapes its metrics.

use std::sync::atomic::{AtomicU64, Ordering};

use tengen_proto::v1::ReportActorRequest;
use tengen_records::LeaseId;
use tengen_service::host;
use tengen_service::reports::SPOOL_FULL;
use tokio::time::Instant;

use super::{Actor, Done, PROVIDER_UNKNOWN, Room};
use crate::handshake::CALL_TIMEOUT;
use crate::link;
use crate::meters::Readings;
use crate::worker::Gauges;

impl Actor {
    /// Sends a report unless one is on its way.
    pub(super) fn report(&mut self, now: Instant) {
        if self.calling.report || self.link.is_none() {
            return;
        }
        self.calling.report = true;
        let (evaluations, games) = self.note_rates(now);
        let plies = self.sum(|gauges| &gauges.plies_in_flight);
        let returned = self.leases.returned().to_vec();
        let wire = |ids: &[LeaseId]| ids.iter().map(|id| id.to_bytes().to_vec()).collect::<Vec<_>>();
        let mut request = tonic::Request::new(ReportActorRequest {
            actor_id: self.me.id.clone(),
            evaluations,
            evaluations_per_second: self.rates.evaluations_per_second(),
            games,
            plies_in_flight: u32::try_from(plies).unwrap_or(u32::MAX),
            cache_hits: self.sum(|gauges| &gauges.cache_hits),
            terminal_visits: self.sum(|gauges| &gauges.terminal_visits),
            reused_visits: self.sum(|gauges| &gauges.reused_visits),
            queue: u32::try_from(self.level.games).unwrap_or(u32::MAX),
            lease_ids: wire(&self.leases.ids()),
            returned_lease_ids: wire(&returned),
            provider: self.provider(),
            device: self.options.device.to_string(),
            precision: self
                .models
                .precision()
                .map(|precision| precision.to_string())
                .unwrap_or_default(),
            precision_fell_back: self.models.fell_back(),
            games_per_minute: self.rates.games_per_minute(),
            spool_bytes: self.level.bytes,
            model_id: self
                .newest_model
                .map(|model| model.to_bytes().to_vec())
                .unwrap_or_default(),
            clock_unix_ms: host::unix_ms(),
            waiting: self.why_idle(),
            gives_up: self.failure.is_some(),
            usage: Some(self.usage.usage()),
        });
        request.set_timeout(CALL_TIMEOUT);
        let mut client = link::client(self.channel.clone());
        self.calls.spawn(async move {
            let answer = client.report(request).await.map(tonic::Response::into_inner);
            Done::Report { returned, answer }
        });
    }

    /// Why nothing is played, for people; empty while games are.
    fn why_idle(&self) -> String {
        if let Some(failure) = &self.failure {
            return format!("{failure:#}");
        }
        match self.level.room {
            Room::DiskFull => "the disk that its spool is on is full".to_owned(),
            Room::Nothing => SPOOL_FULL.to_owned(),
            Room::Matches => format!("{SPOOL_FULL} up to its reserve: self-play pauses"),
            Room::Everything => self.waiting.clone(),
        }
    }

    /// Notes the counters, evaluations and games so far.
    pub(super) fn note_rates(&mut self, now: Instant) -> (u64, u64) {
        let evaluations = self.sum(|gauges| &gauges.evaluations);
        let games = self.sum(|gauges| &gauges.games);
        self.rates.note(now, evaluations, games);
        (evaluations, games)
    }

    /// A number over all playing threads.
    fn sum(&self, number: impl Fn(&Gauges) -> &AtomicU64) -> u64 {
        self.gauges
            .iter()
            .map(|gauges| number(gauges).load(Ordering::Relaxed))
            .sum()
    }

    /// Shows the numbers to whoever scrapes them.
    pub(super) fn show(&self) {
        self.meters.show(&Readings {
            evaluations: self.sum(|gauges| &gauges.evaluations),
            cache_hits: self.sum(|gauges| &gauges.cache_hits),
            terminal_visits: self.sum(|gauges| &gauges.terminal_visits),
            reused_visits: self.sum(|gauges| &gauges.reused_visits),
            games: self.sum(|gauges| &gauges.games),
            stored: self.tally.stored,
            duplicate: self.tally.duplicate,
            conflict: self.tally.conflict,
            rejected: self.tally.rejected,
            plies_in_flight: self.sum(|gauges| &gauges.plies_in_flight),
            spool_games: self.level.games,
            spool_bytes: self.level.bytes,
            leases: self.leases.ids().len() as u64,
            playing_threads: self.playing_threads as u64,
            links: u64::from(self.link.is_some()),
        });
        self.usage.show_gpu();
    }

    pub(super) fn provider(&self) -> String {
        self.models.provider().unwrap_or_else(|| PROVIDER_UNKNOWN.to_owned())
    }
}
