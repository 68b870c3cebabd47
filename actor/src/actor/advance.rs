//! What follows from the state: the calls that are due, and the steps from playing to the end.

use std::sync::Arc;

use tengen_proto::v1;
use tengen_service::backoff::Backoff;
use tokio::time::{Duration, Instant};

use super::{Actor, CLOSE_MAX, Done, FLUSH_MAX, Stage};
use crate::work::Coming;
use crate::{link, work};

impl Actor {
    /// Does everything that the state asks for now.
    pub(super) fn advance(&mut self, now: Instant) {
        self.outbox.wake(now);
        loop {
            let stage = self.stage;
            match stage {
                Stage::Playing if self.connection.link.is_some() => self.ask_for_work(now),
                Stage::Playing => self.overrun(),
                Stage::Draining(until) if self.players.threads == 0 || now >= until => self.close(now),
                Stage::Closing(until) if self.players.threads == 0 || now >= until => self.flush(now),
                Stage::Flushing(until) if self.is_flushed() || now >= until => self.stage = Stage::Ended,
                Stage::Draining(_) | Stage::Closing(_) | Stage::Flushing(_) | Stage::Ended => {}
            }
            if self.stage == stage {
                break;
            }
        }
        let is_needed = self.stage != Stage::Ended && self.failure.is_none();
        if is_needed && self.connection.link.is_none() && !self.calls.connect {
            self.connect();
        }
    }

    fn connect(&mut self) {
        self.calls.connect = true;
        let (channel, me, run) = (self.channel.clone(), self.me.clone(), self.run.clone());
        let provider = self.provider();
        // A stream that breaks before it has brought one verdict is not opened again in a tight loop.
        let pause = if std::mem::take(&mut self.connection.is_proven) {
            self.connection.backoff = Backoff::default();
            Duration::ZERO
        } else {
            self.connection.backoff.next_delay()
        };
        self.calls.tasks.spawn(async move {
            let connected = link::connect(channel, me, provider, Some(run), pause).await;
            Done::Connected(Box::new(connected))
        });
    }

    /// Plays on under the newest self-play lease while the coordinator cannot be asked for another.
    fn overrun(&mut self) {
        let queue = &self.players.queue;
        if queue.is_low()
            && let Some((lease, games)) = self.leases.overrun(u32::try_from(queue.low_mark()).unwrap_or(1))
        {
            queue.push(lease, games);
        }
    }

    fn ask_for_work(&mut self, now: Instant) {
        if self.calls.work || now < self.asking.after || !self.players.queue.is_low() {
            return;
        }
        self.calls.work = true;
        self.note_rates(now);
        let request = self.work_request();
        let (channel, run) = (self.channel.clone(), self.run.id.clone());
        let (models, feeding) = (Arc::clone(&self.models), Arc::clone(&self.players.feeding));
        let coming = Coming::default();
        self.calls.coming = coming.clone();
        self.calls
            .tasks
            .spawn(async move { Done::Work(work::ask(channel, run, models, feeding, coming, request).await) });
    }

    fn work_request(&self) -> v1::GetWorkRequest {
        v1::GetWorkRequest {
            actor_id: self.me.id.clone(),
            games_parallel: u32::try_from(self.players.feeding.division().games()).unwrap_or(u32::MAX),
            games_per_minute: self.reports.rates.games_per_minute(),
            takes_players: true,
        }
    }

    /// Games in flight are given up.
    pub(super) fn close(&mut self, now: Instant) {
        self.players.queue.close();
        self.calls.coming.give_up();
        self.spool.thread.take_all();
        self.stage = Stage::Closing(now + CLOSE_MAX);
    }

    /// What was not played goes back; verdicts on what was are awaited for a while, and by the next start after that.
    fn flush(&mut self, now: Instant) {
        self.leases.hand_back_unplayed();
        tracing::info!(
            undecided = self.spool.level.games,
            handed_back = self.leases.returned().len(),
            "play has ended"
        );
        self.stage = Stage::Flushing(now + FLUSH_MAX);
        self.report(now);
    }

    fn is_flushed(&self) -> bool {
        let nothing_comes = !self.calls.report && !self.calls.work;
        self.spool.level.games == 0 && self.leases.returned().is_empty() && nothing_comes
    }
}
