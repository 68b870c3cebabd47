//! What each event does.

use std::sync::Arc;

use tengen_proto::v1::{ReportActorResponse, SubmitGameResponse, Verdict};
use tengen_records::{LeaseId, RecordId};
use tengen_service::backoff::Backoff;
use tengen_service::reports::LEASE_UNPLAYABLE;
use tokio::time::Instant;
use tonic::{Code, Status};

use super::{Actor, Answer, Done, Event, HandshakeError, Level, Link, Room, Run, SpoolEvent, Stage, Ticket, WorkError};
use crate::queue::Starting;
use crate::worker::Notice;

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
                self.players.queue.drain();
                self.spool.thread.take_all();
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
                self.players.threads -= 1;
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
        self.spool.events = None;
        self.players.threads = 0;
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
        let before = std::mem::replace(&mut self.spool.level, level);
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
        self.players.queue.set_starting(match room {
            Room::Everything => Starting::Everything,
            Room::Matches | Room::Nothing | Room::DiskFull => Starting::Matches,
        });
    }

    fn handle_verdict(&mut self, answer: &SubmitGameResponse, now: Instant) {
        self.connection.is_proven = true;
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
                self.spool.thread.set_aside(ticket, game, why);
            }
            _ => self.spool.thread.settle(ticket),
        }
    }

    fn handle_connected(&mut self, outcome: Result<(Run, Link), HandshakeError>, now: Instant) {
        self.calls.connect = false;
        match outcome {
            Ok((run, link)) => {
                tracing::info!(undecided = self.spool.level.games, "joined again");
                self.reports.follow(&run);
                self.run = run;
                self.outbox.resend();
                self.connection.link = Some(link);
                self.asking.after = now;
            }
            Err(error) => self.fail(
                anyhow::Error::new(error).context("the coordinator cannot be joined again"),
                now,
            ),
        }
    }

    fn handle_work(&mut self, outcome: Result<Answer, WorkError>, now: Instant) {
        self.calls.work = false;
        match outcome {
            // Play is over: it came too late to be played by anybody here.
            Ok(Answer::Lease(lease)) if matches!(self.stage, Stage::Closing(_) | Stage::Flushing(_)) => {
                self.leases.hand_back(lease.id());
                self.report(now);
            }
            Ok(Answer::Lease(lease)) => {
                self.asking.backoff = Backoff::default();
                self.asking.waiting.clear();
                // The last one: what self-play uses, and the champion of a match.
                self.asking.newest_model = lease.order().models.last().copied();
                let games = lease.order().plan.games();
                tracing::debug!(lease = %lease.id(), games, kind = lease.order().plan.kind().as_str(), "lease taken");
                self.leases.take(Arc::clone(&lease));
                self.players.queue.push(lease, 0..games);
            }
            Ok(Answer::Wait { reason, pause }) => {
                self.asking.backoff = Backoff::default();
                self.asking.after = now + pause;
                if self.asking.waiting != reason {
                    tracing::info!(reason, "no work now");
                    self.asking.waiting = reason;
                }
            }
            Err(error) => {
                self.asking.after = now + self.asking.backoff.next_delay();
                match error {
                    WorkError::Call(status) if breaks_link(&status) => self.lose_link(status.message()),
                    WorkError::Lease { lease, reason } => {
                        self.asking.waiting = format!("{LEASE_UNPLAYABLE}: {reason}");
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
        self.calls.report = false;
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
        self.players.queue.drop_cancelled();
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
        let games = self.players.queue.take_back(lease);
        if games > 0 {
            tracing::info!(%lease, games, "games that were not started go back: match work waits");
            self.leases.hand_back_unstarted(lease);
            self.asking.after = now;
        }
    }

    /// The link is gone: everything without a verdict is sent again over the next one.
    fn lose_link(&mut self, reason: &str) {
        if self.connection.link.take().is_some() {
            tracing::warn!(
                reason,
                undecided = self.spool.level.games,
                "the coordinator is lost, joining again"
            );
            self.outbox.resend();
        }
    }

    /// Ends play because of `error`; the first one is what the process ends with.
    fn fail(&mut self, error: anyhow::Error, now: Instant) {
        tracing::error!(error = format!("{error:#}"), "play ends");
        self.failure.get_or_insert(error);
        if matches!(self.stage, Stage::Playing | Stage::Draining(_)) {
            self.close(now);
        }
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
