//! What follows from the state: the calls that are due, and the steps from playing to the end.

use std::sync::Arc;

use tengen_proto::v1;
use tengen_service::backoff::Backoff;
use tokio::time::{Duration, Instant};

use super::{Actor, CLOSE_MAX, Done, FLUSH_MAX, Stage};
use crate::{link, work};

impl Actor {
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
        let request = self.work_request();
        let (channel, run) = (self.channel.clone(), self.run.id.clone());
        let (models, feeding) = (Arc::clone(&self.models), Arc::clone(&self.feeding));
        self.calls
            .spawn(async move { Done::Work(work::ask(channel, run, models, feeding, request).await) });
    }

    fn work_request(&self) -> v1::GetWorkRequest {
        v1::GetWorkRequest {
            actor_id: self.me.id.clone(),
            games_parallel: u32::try_from(self.feeding.division().games()).unwrap_or(u32::MAX),
            games_per_minute: self.rates.games_per_minute(),
            takes_players: true,
        }
    }

    /// Games in flight are given up.
    pub(super) fn close(&mut self, now: Instant) {
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
}
