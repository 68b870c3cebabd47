//! The thread `spool`: takes what the playing threads finish, makes it durable together, and hands the oldest games to
//! the event loop as verdicts make room.
//!
//! Every wait is bounded by somebody else's progress: the playing threads wait while the spool has no room, this thread
//! waits for the event loop to take events, and the event loop never waits for this thread.

use std::collections::HashMap;
use std::io;
use std::thread::{Builder, JoinHandle};

use crossbeam_channel::{Receiver, Sender, bounded, never, select};
use tengen_records::{RECORD_BYTES_MAX, RecordId};
use tokio::sync::mpsc;

use super::store::{Room, Store};
use super::{Read, SpoolError};
use crate::worker::{Notice, WorkerEvent};

/// Most games with the event loop: sent, or about to be.
const WINDOW_GAMES_MAX: usize = 512;
/// Most bytes of such games; one game is handed out whatever its size.
const WINDOW_BYTES_MAX: usize = 32 << 20;
/// Games that are made durable together at most.
const BATCH_GAMES_MAX: usize = 256;
/// Bytes that are made durable together at most, but for the last game.
const BATCH_BYTES_MAX: usize = 8 << 20;
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
    thread: JoinHandle<()>,
}

impl Spool {
    /// Starts the thread.
    pub(crate) fn start(
        store: Store,
        finished: Receiver<WorkerEvent>,
        events: mpsc::Sender<SpoolEvent>,
    ) -> io::Result<Spool> {
        let (orders, received) = bounded(ORDERS_MAX);
        let keeper = Keeper {
            store,
            finished,
            orders: received,
            events,
            take_all: false,
            batch: Batch::default(),
            out: HashMap::new(),
            out_bytes: 0,
            last_ticket: 0,
            told: None,
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
    pub(crate) async fn close(self) {
        let Spool { orders, thread } = self;
        drop(orders);
        // A panic of the thread was noticed when its events ended.
        let _ended = tokio::task::spawn_blocking(|| thread.join()).await;
    }

    /// There is room for one order about every game handed out: only a thread that has ended takes none.
    fn order(&self, order: Order) {
        if self.orders.try_send(order).is_err() {
            tracing::debug!("the spool has ended and takes no orders");
        }
    }
}

/// What is to be told once everything appended is durable.
#[derive(Default)]
struct Batch {
    events: Vec<SpoolEvent>,
    games: usize,
    bytes: usize,
}

/// The event loop is gone.
struct Deaf;

struct Keeper {
    store: Store,
    finished: Receiver<WorkerEvent>,
    orders: Receiver<Order>,
    events: mpsc::Sender<SpoolEvent>,
    take_all: bool,
    batch: Batch,
    /// Games with the event loop: their segment and length.
    out: HashMap<Ticket, (u64, usize)>,
    out_bytes: usize,
    last_ticket: u64,
    /// The level last told.
    told: Option<Level>,
}

impl Keeper {
    fn run(mut self) {
        if let Err(error) = self.keep() {
            // Nobody listens only when the process is ending anyway.
            let _ = self.events.blocking_send(SpoolEvent::Failed(error));
        }
    }

    /// Keeps games until the event loop is gone.
    fn keep(&mut self) -> Result<(), SpoolError> {
        let mut heard = self.tell()?;
        while heard.is_ok() && self.gather()? {
            self.store.sync()?;
            heard = self.tell()?;
        }
        // What the playing threads handed over before they ended is durable too, told or not.
        while let Ok(event) = self.finished.try_recv() {
            self.take(event)?;
        }
        self.store.close()
    }

    /// Waits for something to do and takes in what else is there; false when the event loop is gone.
    fn gather(&mut self) -> Result<bool, SpoolError> {
        let nothing = never();
        let finished = if self.takes() { &self.finished } else { &nothing };
        select! {
            recv(self.orders) -> order => match order {
                Ok(order) => self.obey(order)?,
                Err(_) => return Ok(false),
            },
            recv(finished) -> event => match event {
                Ok(event) => self.take(event)?,
                // Every playing thread has ended.
                Err(_) => self.finished = never(),
            },
        }
        while let Ok(order) = self.orders.try_recv() {
            self.obey(order)?;
        }
        while self.takes() && self.batch.games < BATCH_GAMES_MAX && self.batch.bytes < BATCH_BYTES_MAX {
            match self.finished.try_recv() {
                Ok(event) => self.take(event)?,
                Err(_) => break,
            }
        }
        Ok(true)
    }

    fn takes(&self) -> bool {
        self.take_all || self.store.room() != Room::Nothing
    }

    fn take(&mut self, event: WorkerEvent) -> Result<(), SpoolError> {
        let batch = &mut self.batch;
        match event {
            WorkerEvent::Notice(notice) => batch.events.push(SpoolEvent::Notice(notice)),
            WorkerEvent::Finished { id, game } if game.len() > RECORD_BYTES_MAX => {
                let bytes = game.len();
                let reason =
                    format!("not sent: {bytes} bytes, and no coordinator takes more than {RECORD_BYTES_MAX}\n");
                self.store.rejected().keep_game(id, &game, &reason)?;
                batch.events.push(SpoolEvent::TooLarge { id, bytes });
            }
            WorkerEvent::Finished { id, game } => {
                self.store.append(&game)?;
                batch.games += 1;
                batch.bytes += game.len();
                match batch.events.last_mut() {
                    Some(SpoolEvent::Kept(ids)) => ids.push(id),
                    _ => batch.events.push(SpoolEvent::Kept(vec![id])),
                }
            }
        }
        Ok(())
    }

    fn obey(&mut self, order: Order) -> Result<(), SpoolError> {
        let ticket = match order {
            Order::TakeAll => {
                self.take_all = true;
                return Ok(());
            }
            Order::Settle(ticket) => ticket,
            Order::SetAside { ticket, game, reason } => {
                if let Some(id) = tengen_records::peek_id(&game) {
                    self.store.rejected().keep_game(id, &game, &reason)?;
                }
                ticket
            }
        };
        let Some((segment, len)) = self.out.remove(&ticket) else {
            return Ok(());
        };
        self.out_bytes -= len;
        self.store.settle(segment)
    }

    /// Tells what has become durable, and hands out games while there is room for them.
    fn tell(&mut self) -> Result<Result<(), Deaf>, SpoolError> {
        let level = Level {
            games: self.store.games(),
            bytes: self.store.bytes(),
            room: self.store.room(),
        };
        let batch = std::mem::take(&mut self.batch);
        let news = (self.told != Some(level)).then_some(SpoolEvent::Level(level));
        self.told = Some(level);
        for event in news.into_iter().chain(batch.events) {
            if self.events.blocking_send(event).is_err() {
                return Ok(Err(Deaf));
            }
        }
        while self.out.len() < WINDOW_GAMES_MAX && self.out_bytes < WINDOW_BYTES_MAX {
            let Some(Read { segment, id, game }) = self.store.read()? else {
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
        Ok(Ok(()))
    }
}

#[cfg(test)]
mod tests;
