//! What each event does, and what follows from the state once it is done.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tengen_proto::v1::{ReportActorRequest, ReportActorResponse, SubmitGameResponse, Verdict};
use tengen_records::{LeaseId, RecordId};
use tengen_service::backoff::Backoff;
use tengen_service::host;
use tengen_service::reports::{LEASE_UNPLAYABLE, SPOOL_FULL};
use tokio::time::{Duration, Instant};
use tonic::{Code, Status};

use super::{
    Actor, Answer, CLOSE_MAX, Done, Event, FLUSH_MAX, HandshakeError, Level, Link, PROVIDER_UNKNOWN, Room, Run,
    SpoolEvent, Stage, Ticket, WorkError, report_interval, work_request,
};
use crate::handshake::CALL_TIMEOUT;
use crate::meters::Readings;
use crate::queue::Starting;
use crate::worker::{Gauges, Notice};
use crate::{link, work};

impl Actor {
    /// Takes one event in.
    pub(super) fn handle(&mut self, event: Event, now: Instant) {
        match event {
            Event::Look => {}
            Event::Shutdown => {
                tracing::info!(
                    leases = self.leases.ids().len(),
                    "draining: games in flight are finished"
                );
                self.queue.drain();
                self.spool.take_all();
                self.stage = Stage::Draining(now + self.options.drain());
            }
            Event::Spool(event) => self.handle_spool(event, now),
            Event::SpoolEnded => self.handle_spool_end(now),
            Event::Verdict(verdict) => self.handle_verdict(&verdict, now),
            Event::LinkLost(reason) => self.lose_link(&reason),
            Event::ReportDue => {
                self.show();
                self.report(now);
            }
            Event::Done(Done::Connected(outcome)) => self.handle_connected(*outcome, now),
            Event::Done(Done::Work(outcome)) => self.handle_work(outcome, now),
            Event::Done(Done::Report { returned, answer }) => self.handle_report(&returned, answer, now),
        }
    }

    /// Does everything that the state asks for now.
    pub(super) fn advance(&mut self, now: Instant) {
        self.outbox.wake(now);
        loop {
            let stage = self.stage;
            match stage {
                Stage::Playing if self.link.is_some() => self.ask_for_work(now),
                Stage::Playing => self.overrun(),
                Stage::Draining(until) if self.playing_threads == 0 || now >= until => self.close(now),
                Stage::Closing(until) if self.playing_threads == 0 || now >= until => self.flush(now),
                Stage::Flushing(until) if self.is_flushed() || now >= until => self.stage = Stage::Ended,
                Stage::Draining(_) | Stage::Closing(_) | Stage::Flushing(_) | Stage::Ended => {}
            }
            if self.stage == stage {
                break;
            }
        }
        if self.link.is_none() && !self.calling.connect && self.stage != Stage::Ended && self.failure.is_none() {
            self.connect();
        }
    }

    fn handle_spool(&mut self, event: SpoolEvent, now: Instant) {
        match event {
            SpoolEvent::Level(level) => self.note_level(level),
            SpoolEvent::Kept(games) => games.into_iter().for_each(|id| self.leases.played(id)),
            SpoolEvent::Unsent(game) => self.outbox.push(game),
            SpoolEvent::TooLarge { id, bytes } => {
                tracing::error!(game = %id, bytes, "a game is too large to be sent and was set aside");
                self.tally.rejected += 1;
                self.give_up_game(id);
            }
            SpoolEvent::Notice(Notice::Refused { id, reason }) => {
                tracing::error!(game = %id, reason, "a game cannot be started");
                self.give_up_game(id);
            }
            SpoolEvent::Notice(Notice::Ended { worker, result }) => {
                self.playing_threads -= 1;
                if let Err(error) = result {
                    let thread = format!("thread selfplay-{worker} failed");
                    self.fail(anyhow::Error::new(error).context(thread), now);
                }
            }
            SpoolEvent::Failed(error) => self.fail(anyhow::Error::new(error).context("the spool failed"), now),
        }
    }

    /// Without the spool no thread can hand over a game any more, and each ends by itself.
    fn handle_spool_end(&mut self, now: Instant) {
        self.events = None;
        self.playing_threads = 0;
        if self.failure.is_none() {
            self.fail(anyhow::anyhow!("the spool's thread has ended"), now);
        }
    }

    /// A game that will never be played or never be sent.
    fn give_up_game(&mut self, id: RecordId) {
        self.leases.played(id);
        self.leases.close_game(id);
    }

    fn note_level(&mut self, level: Level) {
        let before = std::mem::replace(&mut self.level, level);
        if before.room == level.room {
            return;
        }
        let Level { games, bytes, room } = level;
        match room {
            // The spool itself says what becomes of a full disk.
            Room::DiskFull => {}
            Room::Everything if before.room == Room::DiskFull => {}
            Room::Everything => tracing::info!(games, bytes, "the spool has room again: self-play goes on"),
            Room::Matches => tracing::warn!(games, bytes, "the spool is full up to its reserve: self-play pauses"),
            Room::Nothing => tracing::warn!(games, bytes, "the spool is full: play stops until games are taken"),
        }
        self.queue.set_starting(match room {
            Room::Everything => Starting::Everything,
            Room::Matches | Room::Nothing | Room::DiskFull => Starting::Matches,
        });
    }

    fn handle_verdict(&mut self, answer: &SubmitGameResponse, now: Instant) {
        self.link_proven = true;
        let ticket = Ticket(answer.ticket);
        let verdict = answer.verdict();
        if matches!(verdict, Verdict::Retry | Verdict::Unspecified) {
            return self.outbox.retry(ticket, now);
        }
        let Some((id, game)) = self.outbox.settle(ticket) else {
            return tracing::warn!(ticket = answer.ticket, "a verdict names no game that was sent");
        };
        self.leases.close_game(id);
        let (reason, detail) = (&answer.reason_code, &answer.detail);
        match verdict {
            Verdict::Conflict => {
                self.tally.conflict += 1;
                tracing::warn!(game = %id, detail, "the coordinator holds another game of this id");
            }
            Verdict::Rejected => {
                self.tally.rejected += 1;
                tracing::warn!(game = %id, reason, detail, rejected = self.tally.rejected, "a game was rejected");
            }
            Verdict::Stored => self.tally.stored += 1,
            _ => self.tally.duplicate += 1,
        }
        match verdict {
            Verdict::Conflict | Verdict::Rejected => {
                let (run, name) = (&self.run.id, verdict.as_str_name());
                let why = format!("{name} by the coordinator of run {run}\nreason: {reason}\ndetail: {detail}\n");
                self.spool.set_aside(ticket, game, why);
            }
            _ => self.spool.settle(ticket),
        }
    }

    fn handle_connected(&mut self, outcome: Result<(Run, Link), HandshakeError>, now: Instant) {
        self.calling.connect = false;
        match outcome {
            Ok((run, link)) => {
                tracing::info!(undecided = self.level.games, "joined again");
                self.reports = report_interval(&run);
                self.run = run;
                self.outbox.resend();
                self.link = Some(link);
                self.ask_after = now;
            }
            Err(error) => self.fail(
                anyhow::Error::new(error).context("the coordinator cannot be joined again"),
                now,
            ),
        }
    }

    fn handle_work(&mut self, outcome: Result<Answer, WorkError>, now: Instant) {
        self.calling.work = false;
        match outcome {
            Ok(Answer::Lease(lease)) => {
                self.ask_backoff = Backoff::default();
                self.waiting.clear();
                // The last one: what self-play uses, and the champion of a match.
                self.newest_model = lease.order().models.last().copied();
                let games = lease.order().plan.games();
                tracing::debug!(lease = %lease.id(), games, kind = lease.order().plan.kind().as_str(), "lease taken");
                self.leases.take(Arc::clone(&lease));
                self.queue.push(lease, 0..games);
            }
            Ok(Answer::Wait { reason, pause }) => {
                self.ask_backoff = Backoff::default();
                self.ask_after = now + pause;
                if self.waiting != reason {
                    tracing::info!(reason, "no work now");
                    self.waiting = reason;
                }
            }
            Err(error) => {
                self.ask_after = now + self.ask_backoff.next_delay();
                match error {
                    WorkError::Call(status) if breaks_link(&status) => self.lose_link(status.message()),
                    WorkError::Lease { lease, reason } => {
                        self.waiting = format!("{LEASE_UNPLAYABLE}: {reason}");
                        tracing::error!(lease = %lease, %reason, "a lease cannot be played and goes back");
                        self.leases.hand_back(lease);
                        if reason.is_fatal() {
                            self.fail(anyhow::Error::new(reason), now);
                        }
                    }
                    error => tracing::warn!(%error, "no work was had"),
                }
            }
        }
    }

    fn handle_report(&mut self, returned: &[LeaseId], answer: Result<ReportActorResponse, Status>, now: Instant) {
        self.calling.report = false;
        let answer = match answer {
            Ok(answer) => answer,
            Err(status) if breaks_link(&status) => return self.lose_link(status.message()),
            Err(status) => return tracing::warn!(error = status.message(), "a report was not heard"),
        };
        self.leases.handed_back(returned);
        for lease in read_leases(&answer.cancelled_lease_ids) {
            if self.leases.cancel(lease) {
                tracing::info!(%lease, "lease cancelled: its match is decided");
            }
        }
        self.queue.drop_cancelled();
        for lease in read_leases(&answer.wanted_back_lease_ids) {
            self.give_back(lease, now);
        }
        // Leases that go back should not wait for the next interval: match work may wait for them, or our end.
        if !self.leases.returned().is_empty() {
            self.report(now);
        }
    }

    /// Match work waits: the lease's games that were not started are left to whoever asks next.
    fn give_back(&mut self, lease: LeaseId, now: Instant) {
        let games = self.queue.take_back(lease);
        if games > 0 {
            tracing::info!(%lease, games, "games that were not started go back: match work waits");
            self.leases.hand_back_unstarted(lease);
            self.ask_after = now;
        }
    }

    /// The link is gone: everything without a verdict is sent again over the next one.
    fn lose_link(&mut self, reason: &str) {
        if self.link.take().is_some() {
            tracing::warn!(
                reason,
                undecided = self.level.games,
                "the coordinator is lost, joining again"
            );
            self.outbox.resend();
        }
    }

    fn connect(&mut self) {
        self.calling.connect = true;
        let (channel, me, run) = (self.channel.clone(), self.me.clone(), self.run.clone());
        let provider = self.provider();
        // A stream that breaks before it has brought one verdict is not opened again in a tight loop.
        let pause = if std::mem::take(&mut self.link_proven) {
            self.link_backoff = Backoff::default();
            Duration::ZERO
        } else {
            self.link_backoff.next_delay()
        };
        self.calls.spawn(async move {
            let connected = link::connect(channel, me, provider, Some(run), pause).await;
            Done::Connected(Box::new(connected))
        });
    }

    /// Plays on under the newest self-play lease while the coordinator cannot be asked for another.
    fn overrun(&mut self) {
        if self.queue.is_low()
            && let Some((lease, games)) = self.leases.overrun(u32::try_from(self.queue.low_mark()).unwrap_or(1))
        {
            self.queue.push(lease, games);
        }
    }

    fn ask_for_work(&mut self, now: Instant) {
        if self.calling.work || now < self.ask_after || !self.queue.is_low() {
            return;
        }
        self.calling.work = true;
        self.note_rates(now);
        let request = work_request(self);
        let (channel, run) = (self.channel.clone(), self.run.id.clone());
        let (models, feeding) = (Arc::clone(&self.models), Arc::clone(&self.feeding));
        self.calls
            .spawn(async move { Done::Work(work::ask(channel, run, models, feeding, request).await) });
    }

    /// Sends a report unless one is on its way.
    fn report(&mut self, now: Instant) {
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

    /// Games in flight are given up.
    fn close(&mut self, now: Instant) {
        self.queue.close();
        self.spool.take_all();
        self.stage = Stage::Closing(now + CLOSE_MAX);
    }

    /// What was not played goes back; verdicts on what was are awaited for a while, and by the next start after that.
    fn flush(&mut self, now: Instant) {
        self.leases.hand_back_unplayed();
        tracing::info!(
            undecided = self.level.games,
            handed_back = self.leases.returned().len(),
            "play has ended"
        );
        self.stage = Stage::Flushing(now + FLUSH_MAX);
        self.report(now);
    }

    fn is_flushed(&self) -> bool {
        self.level.games == 0 && self.leases.returned().is_empty() && !self.calling.report
    }

    /// Ends play because of `error`; the first one is what the process ends with.
    fn fail(&mut self, error: anyhow::Error, now: Instant) {
        tracing::error!(error = format!("{error:#}"), "play ends");
        self.failure.get_or_insert(error);
        if matches!(self.stage, Stage::Playing | Stage::Draining(_)) {
            self.close(now);
        }
    }

    /// Notes the counters, evaluations and games so far.
    fn note_rates(&mut self, now: Instant) -> (u64, u64) {
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
    fn show(&self) {
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

    fn provider(&self) -> String {
        self.models.provider().unwrap_or_else(|| PROVIDER_UNKNOWN.to_owned())
    }
}

fn read_leases(ids: &[Vec<u8>]) -> impl Iterator<Item = LeaseId> + '_ {
    ids.iter().filter_map(|id| LeaseId::from_bytes(id).ok())
}

/// Whether a failed call says that the coordinator is gone or does not know us, rather than that it is busy.
fn breaks_link(status: &Status) -> bool {
    !matches!(
        status.code(),
        Code::Cancelled | Code::DeadlineExceeded | Code::ResourceExhausted
    )
}
