//! The thread `spool`: takes what the playing threads finish, makes it durable together, and hands the oldest games to
//! the event loop as verdicts make room.
//!
//! Every wait is bounded by somebody else's progress: the playing threads wait while the spool has no room, this thread
//! waits for the event loop to take events, and the event loop never waits for this thread. On a full disk this thread
//! keeps in memory what it has taken, tells nobody of it, and tries again: after each segment that goes, and as time passes.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, at, bounded, never, select};
use tengen_records::{RECORD_BYTES_MAX, RecordId, peek_id};
use tengen_service::backoff::Backoff;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::SendError;

use super::batch::Batch;
use super::store::{Room, Store};
use super::{Read, SpoolError};
use crate::worker::{Notice, WorkerEvent};

/// Most games with the event loop: sent, or about to be.
const WINDOW_GAMES_MAX: usize = 512;
/// Most bytes of such games; one game is handed out whatever its size.
const WINDOW_BYTES_MAX: usize = 32 << 20;
/// A disk that fills up again and again as verdicts make a little room is mentioned once in this time.
const SAY_AGAIN_AFTER: Duration = Duration::from_secs(600);
/// Orders that may wait: one for each game handed out, and a few words.
const ORDERS_MAX: usize = WINDOW_GAMES_MAX + 8;

/// The event loop's name for a game it was handed: unique while this process lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Ticket(pub(crate) u64);

/// A durable game that is to be sent until it has a verdict.
#[derive(Debug)]
pub(crate) struct Unsent {
    pub(crate) ticket: Ticket,
    pub(crate) id: RecordId,
    /// The encoded record.
    pub(crate) game: Vec<u8>,
}

/// How full the spool is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Level {
    /// Games without a verdict.
    pub(crate) games: u64,
    /// Bytes on disk.
    pub(crate) bytes: u64,
    pub(crate) room: Room,
}

/// What the spool tells the event loop.
#[derive(Debug)]
pub(crate) enum SpoolEvent {
    /// How full it is now; comes before the games that made it so.
    Level(Level),
    /// These games are durable: they count as finished.
    Kept(Vec<RecordId>),
    /// A game that no coordinator would take was set aside.
    TooLarge { id: RecordId, bytes: usize },
    /// A game to send.
    Unsent(Unsent),
    /// A word of a playing thread; everything it finished before is durable.
    Notice(Notice),
    /// The spool has ended: it cannot keep what it is given.
    Failed(SpoolError),
}

enum Order {
    Settle(Ticket),
    SetAside {
        ticket: Ticket,
        game: Vec<u8>,
        reason: String,
    },
    TakeAll,
}

/// The event loop's end of it.
pub(crate) struct Spool {
    orders: Sender<Order>,
    thread: JoinHandle<Result<(), SpoolError>>,
}

impl Spool {
    /// Starts the thread. A finished game waits for others, `linger` at most, that are made durable with it: games of small
    /// boards end dozens of times a second, and each sync, here and at the coordinator, takes the playing threads' cores and
    /// caches for a moment.
    pub(crate) fn start(
        linger: Duration,
        store: Store,
        finished: Receiver<WorkerEvent>,
        events: mpsc::Sender<SpoolEvent>,
    ) -> io::Result<Spool> {
        let (orders, received) = bounded(ORDERS_MAX);
        let keeper = Keeper {
            linger,
            store,
            finished,
            orders: received,
            events,
            take_all: false,
            batch: Batch::default(),
            out: HashMap::new(),
            out_bytes: 0,
            holds_back: false,
            last_ticket: 0,
            told: None,
            aside: VecDeque::new(),
            full: None,
            said_at: None,
        };
        let thread = Builder::new().name("spool".to_owned()).spawn(|| keeper.run())?;
        Ok(Spool { orders, thread })
    }

    /// A game has a verdict that ends it.
    pub(crate) fn settle(&self, ticket: Ticket) {
        self.order(Order::Settle(ticket));
    }

    /// A game was refused for good: it is kept in `rejected/` with the reason, then forgotten.
    pub(crate) fn set_aside(&self, ticket: Ticket, game: Vec<u8>, reason: String) {
        self.order(Order::SetAside { ticket, game, reason });
    }

    /// No more games are started: the few that are still in hand are taken whatever the bound.
    pub(crate) fn take_all(&self) {
        self.order(Order::TakeAll);
    }

    /// Waits until everything is durable and the thread has ended. Its events must not be awaited any more.
    pub(crate) async fn close(self) -> Result<(), SpoolError> {
        let Spool { orders, thread } = self;
        drop(orders);
        // A panic of the thread was noticed when its events ended.
        match tokio::task::spawn_blocking(|| thread.join()).await {
            Ok(Ok(ended)) => ended,
            _ => Ok(()),
        }
    }

    /// There is room for one order about every game handed out: only a thread that has ended takes none.
    fn order(&self, order: Order) {
        if self.orders.try_send(order).is_err() {
            tracing::debug!("the spool has ended and takes no orders");
        }
    }
}

/// A game that belongs in `rejected/`, and the one that it was among those handed out.
struct Aside {
    ticket: Option<Ticket>,
    id: RecordId,
    game: Vec<u8>,
    reason: String,
}

/// The disk is full.
#[derive(Default)]
struct Full {
    backoff: Backoff,
    /// When writing is tried again; `None` at once.
    retry_at: Option<Instant>,
    /// Whether the log has it.
    said: bool,
}

/// The event loop is gone.
struct Deaf;

struct Keeper {
    linger: Duration,
    store: Store,
    finished: Receiver<WorkerEvent>,
    orders: Receiver<Order>,
    events: mpsc::Sender<SpoolEvent>,
    take_all: bool,
    batch: Batch,
    /// Games with the event loop: their segment and length.
    out: HashMap<Ticket, (u64, usize)>,
    out_bytes: usize,
    /// Whether more durable games wait until some of these have verdicts.
    holds_back: bool,
    last_ticket: u64,
    /// The level last told.
    told: Option<Level>,
    /// Games on their way into `rejected/`; they wait there only while the disk is full.
    aside: VecDeque<Aside>,
    full: Option<Full>,
    /// When the log was told last that the disk is full.
    said_at: Option<Instant>,
}

impl Keeper {
    /// Keeps games to the end; an error that nobody listens to any more is returned.
    fn run(mut self) -> Result<(), SpoolError> {
        let Err(error) = self.keep() else {
            return Ok(());
        };
        match self.events.blocking_send(SpoolEvent::Failed(error)) {
            Err(SendError(SpoolEvent::Failed(error))) => Err(error),
            _ => Ok(()),
        }
    }

    /// Keeps games until the event loop is gone.
    fn keep(&mut self) -> Result<(), SpoolError> {
        let mut heard = self.tell()?;
        while heard.is_ok() && self.gather_or_write()? {
            self.make_durable()?;
            heard = self.tell()?;
        }
        // What the playing threads handed over before they ended is durable too, told or not.
        while let Ok(event) = self.finished.try_recv() {
            self.take(event);
        }
        self.write().map_err(|source| match self.store.waiting() {
            (0, _) => source,
            (games, _) => SpoolError::Unkept {
                games,
                path: self.store.folder().to_path_buf(),
                source: Box::new(source),
            },
        })?;
        self.store.close()
    }

    /// As [`Keeper::gather`]; an error costs none of the games that lingered.
    fn gather_or_write(&mut self) -> Result<bool, SpoolError> {
        self.gather().inspect_err(|_| {
            if let Err(error) = self.store.sync() {
                tracing::error!(%error, "the games that were finished last are not kept");
            }
        })
    }

    /// Waits for something to do and takes in what else is there, and what comes while games linger; false when the event
    /// loop is gone.
    fn gather(&mut self) -> Result<bool, SpoolError> {
        loop {
            if !self.gather_what_is_there()? {
                return Ok(false);
            }
            if !self.lingers() {
                return Ok(true);
            }
        }
    }

    fn gather_what_is_there(&mut self) -> Result<bool, SpoolError> {
        let nothing = never();
        let finished = if self.takes() { &self.finished } else { &nothing };
        let retry = self.full.as_ref().and_then(|full| full.retry_at).map_or_else(never, at);
        let due = self.batch.due().filter(|_| self.full.is_none()).map_or_else(never, at);
        select! {
            recv(self.orders) -> order => match order {
                Ok(order) => self.obey(order)?,
                Err(_) => return Ok(false),
            },
            recv(finished) -> event => match event {
                Ok(event) => self.take(event),
                // Every playing thread has ended.
                Err(_) => {
                    self.finished = never();
                    self.batch.hurry();
                }
            },
            recv(retry) -> _ => {}
            recv(due) -> _ => {}
        }
        while let Ok(order) = self.orders.try_recv() {
            self.obey(order)?;
        }
        while self.takes() && !self.batch.is_full() {
            match self.finished.try_recv() {
                Ok(event) => self.take(event),
                Err(_) => break,
            }
        }
        Ok(true)
    }

    /// Whether games that are taken in wait for more. Not when the spool takes none, when nobody plays any more or somebody
    /// waits, when the event loop is to know of another room, or when it runs out of games although there are more.
    fn lingers(&self) -> bool {
        let room_is_told = self.told.is_some_and(|told| told.room == self.room());
        let has_enough = !self.holds_back || self.out.len() > WINDOW_GAMES_MAX / 2;
        self.batch.lingers() && room_is_told && has_enough && !self.take_all && self.takes()
    }

    fn takes(&self) -> bool {
        self.take_all || !matches!(self.room(), Room::Nothing | Room::DiskFull)
    }

    fn room(&self) -> Room {
        match &self.full {
            Some(_) => Room::DiskFull,
            None => self.store.room(),
        }
    }

    fn take(&mut self, event: WorkerEvent) {
        match event {
            WorkerEvent::Notice(notice) => self.batch.add_word(SpoolEvent::Notice(notice)),
            WorkerEvent::Finished { id, game } if game.len() > RECORD_BYTES_MAX => {
                let bytes = game.len();
                self.batch.add_word(SpoolEvent::TooLarge { id, bytes });
                self.aside.push_back(Aside {
                    ticket: None,
                    id,
                    game,
                    reason: format!("not sent: {bytes} bytes, and no coordinator takes more than {RECORD_BYTES_MAX}\n"),
                });
            }
            WorkerEvent::Finished { id, game } => {
                self.store.append(&game);
                self.batch.add(id, game.len(), self.linger);
            }
        }
    }

    fn obey(&mut self, order: Order) -> Result<(), SpoolError> {
        match order {
            Order::TakeAll => self.take_all = true,
            Order::Settle(ticket) => self.settle(ticket)?,
            Order::SetAside { ticket, game, reason } => match peek_id(&game) {
                Some(id) => self.aside.push_back(Aside {
                    ticket: Some(ticket),
                    id,
                    game,
                    reason,
                }),
                None => self.settle(ticket)?,
            },
        }
        Ok(())
    }

    fn settle(&mut self, ticket: Ticket) -> Result<(), SpoolError> {
        let Some((segment, len)) = self.out.remove(&ticket) else {
            return Ok(());
        };
        self.out_bytes -= len;
        let before = self.store.bytes();
        self.store.settle(segment)?;
        if let Some(full) = self.full.as_mut().filter(|_| self.store.bytes() < before) {
            full.retry_at = None;
        }
        Ok(())
    }

    /// Makes everything taken in durable, unless the disk is full and it is not yet time to try again.
    fn make_durable(&mut self) -> Result<(), SpoolError> {
        let retry_at = self.full.as_ref().and_then(|full| full.retry_at);
        if retry_at.is_some_and(|at| Instant::now() < at) {
            return Ok(());
        }
        match self.write() {
            Ok(()) => {
                if self.full.take().is_some_and(|full| full.said) {
                    tracing::info!("there is room on the disk again: play goes on");
                }
                Ok(())
            }
            Err(error) => self.note_full(error),
        }
    }

    fn write(&mut self) -> Result<(), SpoolError> {
        self.store.sync()?;
        while let Some(Aside {
            ticket,
            id,
            game,
            reason,
        }) = self.aside.front()
        {
            self.store.rejected().keep_game(*id, game, reason)?;
            let ticket = *ticket;
            self.aside.pop_front();
            ticket.map_or(Ok(()), |ticket| self.settle(ticket))?;
        }
        Ok(())
    }

    /// A full disk is waited for, anything else ends the spool.
    fn note_full(&mut self, error: SpoolError) -> Result<(), SpoolError> {
        if !error.is_out_of_room() {
            return Err(error);
        }
        let now = Instant::now();
        let full = self.full.get_or_insert_default();
        if self.said_at.is_none_or(|at| now - at >= SAY_AGAIN_AFTER) {
            self.said_at = Some(now);
            full.said = true;
            let (waiting, bytes) = self.store.waiting();
            tracing::error!(%error, waiting, bytes, "the disk is full: play stops until there is room for what is finished");
        }
        full.retry_at = Some(now + full.backoff.next_delay());
        Ok(())
    }

    /// Tells what has become durable, and hands out games while there is room for them.
    fn tell(&mut self) -> Result<Result<(), Deaf>, SpoolError> {
        let level = Level {
            games: self.store.games(),
            bytes: self.store.bytes(),
            room: self.room(),
        };
        // On a full disk only a part of it may be durable: all of it waits.
        let batch = match self.full {
            Some(_) => Batch::default(),
            None => std::mem::take(&mut self.batch),
        };
        let news = (self.told != Some(level)).then_some(SpoolEvent::Level(level));
        self.told = Some(level);
        for event in news.into_iter().chain(batch.into_events()) {
            if self.events.blocking_send(event).is_err() {
                return Ok(Err(Deaf));
            }
        }
        self.holds_back = true;
        while self.out.len() < WINDOW_GAMES_MAX && self.out_bytes < WINDOW_BYTES_MAX {
            let Some(Read { segment, id, game }) = self.store.read()? else {
                self.holds_back = false;
                break;
            };
            self.last_ticket += 1;
            let ticket = Ticket(self.last_ticket);
            self.out.insert(ticket, (segment, game.len()));
            self.out_bytes += game.len();
            let unsent = SpoolEvent::Unsent(Unsent { ticket, id, game });
            if self.events.blocking_send(unsent).is_err() {
                return Ok(Err(Deaf));
            }
        }
        if self.store.has_damaged() && self.full.is_none() {
            self.make_durable()?;
            return self.tell();
        }
        Ok(Ok(()))
    }
}

#[cfg(test)]
mod tests;
