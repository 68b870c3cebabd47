//! What each event does, and what follows from the state once it is done.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tengen_proto::v1::{ReportActorRequest, ReportActorResponse, SubmitGameResponse, Verdict};
use tengen_records::{LeaseId, RecordId};
use tengen_service::backoff::Backoff;
use tokio::time::Instant;
use tonic::{Code, Status};

use super::{
    Actor, Answer, CLOSE_MAX, Done, Event, FLUSH_MAX, HandshakeError, Link, PROVIDER_UNKNOWN, Run, Stage, WorkError,
    WorkerEvent, report_interval, work_request,
};
use crate::handshake::CALL_TIMEOUT;
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
                self.stage = Stage::Draining(now + self.options.drain());
            }
            Event::Worker(event) => self.handle_worker(event, now),
            Event::Verdict(verdict) => self.handle_verdict(&verdict, now),
            Event::LinkLost(reason) => self.lose_link(&reason),
            Event::ReportDue => self.report(now),
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

    fn handle_worker(&mut self, event: WorkerEvent, now: Instant) {
        match event {
            WorkerEvent::Finished { id, bytes } => self.outbox.push(id, bytes),
            WorkerEvent::Refused { id, reason } => {
                tracing::error!(game = %id, reason, "a game cannot be started");
                self.leases.close_game(id);
            }
            WorkerEvent::Ended { worker, result } => {
                self.playing_threads -= 1;
                if let Err(error) = result {
                    self.fail(
                        anyhow::Error::new(error).context(format!("thread selfplay-{worker} failed")),
                        now,
                    );
                }
            }
        }
    }

    fn handle_verdict(&mut self, answer: &SubmitGameResponse, now: Instant) {
        let Ok(lease) = LeaseId::from_bytes(&answer.lease_id) else {
            tracing::warn!(lease_bytes = answer.lease_id.len(), "a verdict names no lease");
            return;
        };
        let id = RecordId {
            lease,
            index: answer.game_index,
        };
        let tally = &mut self.tally;
        match answer.verdict() {
            Verdict::Stored => tally.stored += 1,
            Verdict::Duplicate => tally.duplicate += 1,
            Verdict::Conflict => {
                tally.conflict += 1;
                tracing::warn!(game = %id, detail = answer.detail, "the coordinator holds another game of this id");
            }
            Verdict::Rejected => {
                tally.rejected += 1;
                let (reason, detail) = (&answer.reason_code, &answer.detail);
                tracing::warn!(game = %id, reason, detail, rejected = tally.rejected, "a game was rejected");
            }
            Verdict::Retry | Verdict::Unspecified => return self.outbox.retry(id, now),
        }
        if self.outbox.settle(id) {
            self.leases.close_game(id);
        }
    }

    fn handle_connected(&mut self, outcome: Result<(Run, Link), HandshakeError>, now: Instant) {
        self.calling.connect = false;
        match outcome {
            Ok((run, link)) => {
                tracing::info!(undecided = self.outbox.len(), "joined again");
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
                        tracing::error!(lease = %lease, %reason, "a lease cannot be played and goes back");
                        self.leases.hand_back(lease);
                    }
                    error => tracing::warn!(%error, "no work was had"),
                }
            }
        }
    }

    fn handle_report(&mut self, returned: &[LeaseId], answer: Result<ReportActorResponse, Status>, now: Instant) {
        self.calling.report = false;
        let cancelled = match answer {
            Ok(answer) => answer.cancelled_lease_ids,
            Err(status) if breaks_link(&status) => return self.lose_link(status.message()),
            Err(status) => return tracing::warn!(error = status.message(), "a report was not heard"),
        };
        self.leases.handed_back(returned);
        for lease in cancelled.iter().filter_map(|id| LeaseId::from_bytes(id).ok()) {
            if self.leases.cancel(lease) {
                tracing::info!(%lease, "lease cancelled: its match is decided");
            }
        }
        self.queue.drop_cancelled();
        // Leases given up while that report was on its way should not wait for the next interval.
        if matches!(self.stage, Stage::Flushing(_)) && !self.leases.returned().is_empty() {
            self.report(now);
        }
    }

    /// The link is gone: everything without a verdict is sent again over the next one.
    fn lose_link(&mut self, reason: &str) {
        if self.link.take().is_some() {
            tracing::warn!(
                reason,
                undecided = self.outbox.len(),
                "the coordinator is lost, joining again"
            );
            self.outbox.resend();
        }
    }

    fn connect(&mut self) {
        self.calling.connect = true;
        let (channel, me, run) = (self.channel.clone(), self.me.clone(), self.run.clone());
        let provider = self.provider();
        self.calls
            .spawn(async move { Done::Connected(Box::new(link::connect(channel, me, provider, Some(run)).await)) });
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
        let (channel, run, models) = (self.channel.clone(), self.run.id.clone(), Arc::clone(&self.models));
        self.calls
            .spawn(async move { Done::Work(work::ask(channel, run, models, request).await) });
    }

    /// Sends a report unless one is on its way.
    fn report(&mut self, now: Instant) {
        if self.calling.report || self.link.is_none() {
            return;
        }
        self.calling.report = true;
        let (evaluations, games) = self.note_rates(now);
        let plies = self
            .gauges
            .iter()
            .map(|gauges| gauges.plies_in_flight.load(Ordering::Relaxed))
            .sum::<u64>();
        let returned = self.leases.returned().to_vec();
        let wire = |ids: &[LeaseId]| ids.iter().map(|id| id.to_bytes().to_vec()).collect::<Vec<_>>();
        let mut request = tonic::Request::new(ReportActorRequest {
            actor_id: self.me.id.clone(),
            evaluations,
            evaluations_per_second: self.rates.evaluations_per_second(),
            games,
            plies_in_flight: u32::try_from(plies).unwrap_or(u32::MAX),
            queue: u32::try_from(self.outbox.len()).unwrap_or(u32::MAX),
            lease_ids: wire(&self.leases.ids()),
            returned_lease_ids: wire(&returned),
            provider: self.provider(),
        });
        request.set_timeout(CALL_TIMEOUT);
        let mut client = link::client(self.channel.clone());
        self.calls.spawn(async move {
            let answer = client.report(request).await.map(tonic::Response::into_inner);
            Done::Report { returned, answer }
        });
    }

    /// Games in flight are given up.
    fn close(&mut self, now: Instant) {
        self.queue.close();
        self.stage = Stage::Closing(now + CLOSE_MAX);
    }

    /// What was not played goes back; what was is waited for.
    fn flush(&mut self, now: Instant) {
        let outbox = &self.outbox;
        self.leases
            .hand_back_unplayed(|lease| outbox.count(|id| id.lease == lease));
        tracing::info!(
            undecided = outbox.len(),
            handed_back = self.leases.returned().len(),
            "play has ended"
        );
        self.stage = Stage::Flushing(now + FLUSH_MAX);
        self.report(now);
    }

    fn is_flushed(&self) -> bool {
        self.outbox.len() == 0 && self.leases.returned().is_empty() && !self.calling.report
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
        let evaluations = self
            .gauges
            .iter()
            .map(|gauges| gauges.evaluations.load(Ordering::Relaxed))
            .sum();
        let games = self
            .gauges
            .iter()
            .map(|gauges| gauges.games.load(Ordering::Relaxed))
            .sum();
        self.rates.note(now, evaluations, games);
        (evaluations, games)
    }

    fn provider(&self) -> String {
        self.models.provider().unwrap_or_else(|| PROVIDER_UNKNOWN.to_owned())
    }
}

/// Whether a failed call says that the coordinator is gone or does not know us, rather than that it is busy.
fn breaks_link(status: &Status) -> bool {
    !matches!(
        status.code(),
        Code::Cancelled | Code::DeadlineExceeded | Code::ResourceExhausted
    )
}
