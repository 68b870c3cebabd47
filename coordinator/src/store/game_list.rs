//! The stored games as people look at them: a page of those that a filter lets through, and one of them.
//!
//! Reads only. What a game was played for, and with which models, is its lease's to say.

use std::collections::HashMap;

use prost::Message;
use rusqlite::{Connection, OptionalExtension, Row};
use tengen_games::Seat;
use tengen_proto::v1;
use tengen_records::{LeaseId, ModelId, RecordId};

use super::games::is_sound;
use super::{StoreError, array};

/// Games that one page looks at: a filter that lets few through ends its pages early instead of reading for long.
const LOOKS_MAX: usize = 20_000;
/// Bytes of records in one page; one larger game makes a page of its own.
const PAGE_BYTES_MAX: usize = 2 << 20;

/// What a game was played for, as people tell games apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Data for the window.
    SelfPlay,
    /// A gate's match.
    Gate,
    /// A rating match.
    Rating,
}

/// Who won.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Won {
    /// A seat.
    By(Seat),
    /// Nobody.
    Nobody,
}

/// What a listed game must be.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Stored while this iteration was played.
    pub iteration: Option<u32>,
    /// Played with this model.
    pub model: Option<ModelId>,
    /// Played for this.
    pub purpose: Option<Purpose>,
    /// Ended like this.
    pub won: Option<Won>,
    /// Sent by this actor.
    pub actor: Option<String>,
}

/// How much of each game is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// What is known of it.
    Heading,
    /// That, its record and its work order.
    Whole,
}

/// A stored game.
#[derive(Clone, Debug)]
pub struct GameRow {
    /// Place in the order of commits.
    pub sequence: u64,
    /// Its name.
    pub id: RecordId,
    /// What it was played for.
    pub purpose: Purpose,
    /// Who sent it.
    pub actor: String,
    /// The iteration that was played when it was stored.
    pub iteration: u32,
    /// Trainable positions.
    pub positions: u32,
    /// Plies, opening included.
    pub plies: u32,
    /// Who won.
    pub winner: Option<u32>,
    /// Why it ended.
    pub reason: String,
    /// Its way through the opening protocol.
    pub opening_path: Option<String>,
    /// When it ended, by the actor's clock.
    pub created_ms: i64,
    /// When it was stored.
    pub stored_ms: i64,
    /// Whether a purge took it out of the window.
    pub purged: bool,
    /// The order it was played under.
    pub order: v1::WorkOrder,
    /// Its bytes and whether they are those that were stored, where they were asked for.
    pub record: Option<(Vec<u8>, bool)>,
}

/// A page of games.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// Newest first.
    pub games: Vec<GameRow>,
    /// The next page holds games before this sequence; `None` at the end.
    pub next_before: Option<u64>,
}

const COLUMNS: &str = "sequence, games.lease, game_index, games.kind, leases.gate, games.actor, positions, plies, winner, \
                       reason, opening_path, created_ms, stored_ms, purged_ms, work_order \
                       FROM games LEFT JOIN leases ON leases.lease = games.lease";

/// The newest games before sequence `before` that `filter` lets through, at most `limit`.
pub fn page(
    connection: &Connection,
    filter: &Filter,
    before: u64,
    limit: usize,
    extent: Extent,
) -> Result<Page, StoreError> {
    let iterations = Iterations::read(connection)?;
    let Some(span) = iterations.span(filter.iteration) else {
        return Ok(Page::default());
    };
    let before = before.min(first_stored_after(connection, span.up_to_ms)?);
    let sql = format!("SELECT {COLUMNS} WHERE sequence < ?1 ORDER BY sequence DESC");
    let mut statement = connection.prepare_cached(&sql)?;
    // SQLite's integers are signed.
    let mut rows = statement.query([before.min(i64::MAX as u64)])?;
    let (mut page, mut orders) = (Page::default(), HashMap::new());
    let (mut looks, mut bytes) = (0, 0);
    while let Some(row) = rows.next()? {
        let mut game = parse(row, &iterations, &mut orders)?;
        if game.stored_ms <= span.after_ms {
            break;
        }
        looks += 1;
        if filter.lets_through(&game) {
            if extent == Extent::Whole {
                let record = record(connection, game.sequence)?;
                bytes += record.0.len();
                if bytes > PAGE_BYTES_MAX && !page.games.is_empty() {
                    page.next_before = Some(game.sequence + 1);
                    break;
                }
                game.record = Some(record);
            }
            page.games.push(game.clone());
        }
        if page.games.len() == limit || looks == LOOKS_MAX {
            page.next_before = Some(game.sequence);
            break;
        }
    }
    Ok(page)
}

/// One game, whole.
pub fn get(connection: &Connection, id: RecordId) -> Result<Option<GameRow>, StoreError> {
    let sql = "SELECT sequence FROM game_ids WHERE lease = ?1 AND game_index = ?2";
    let found = connection.query_row(sql, (id.lease.to_bytes(), id.index), |row| row.get::<_, u64>(0));
    let Some(sequence) = found.optional()? else {
        return Ok(None);
    };
    let iterations = Iterations::read(connection)?;
    let mut statement = connection.prepare_cached(&format!("SELECT {COLUMNS} WHERE sequence = ?1"))?;
    let mut rows = statement.query([sequence])?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    let mut game = parse(row, &iterations, &mut HashMap::new())?;
    game.record = Some(record(connection, sequence)?);
    Ok(Some(game))
}

impl Filter {
    /// Whether everything but the time fits.
    fn lets_through(&self, game: &GameRow) -> bool {
        let won = |won| match won {
            Won::By(seat) => game.winner == Some(seat.index() as u32),
            Won::Nobody => game.winner.is_none(),
        };
        self.purpose.is_none_or(|purpose| purpose == game.purpose)
            && self.won.is_none_or(won)
            && self.actor.as_ref().is_none_or(|actor| *actor == game.actor)
            && self
                .model
                .is_none_or(|model| game.order.model_ids.iter().any(|id| id[..] == model.0))
    }
}

/// When iterations ended, in their order.
struct Iterations {
    ended_ms: Vec<i64>,
}

/// Games stored after one moment and up to another.
struct Span {
    after_ms: i64,
    up_to_ms: i64,
}

impl Iterations {
    fn read(connection: &Connection) -> Result<Iterations, StoreError> {
        let mut statement = connection.prepare_cached("SELECT ended_ms FROM iterations ORDER BY iteration")?;
        let ended = statement.query_map([], |row| row.get(0))?;
        Ok(Iterations {
            ended_ms: ended.collect::<Result<_, _>>()?,
        })
    }

    /// The iteration that was played at a moment.
    fn at(&self, ms: i64) -> u32 {
        self.ended_ms.partition_point(|&ended| ended < ms) as u32
    }

    /// When an iteration was played; `None` when it has not begun.
    fn span(&self, iteration: Option<u32>) -> Option<Span> {
        let Some(iteration) = iteration.map(|iteration| iteration as usize) else {
            return Some(Span {
                after_ms: i64::MIN,
                up_to_ms: i64::MAX,
            });
        };
        (iteration <= self.ended_ms.len()).then(|| Span {
            after_ms: iteration
                .checked_sub(1)
                .map_or(i64::MIN, |before| self.ended_ms[before]),
            up_to_ms: self.ended_ms.get(iteration).copied().unwrap_or(i64::MAX),
        })
    }
}

/// Sequence of the first game that was stored after a moment, or one behind the newest. Games are stored in the order of
/// their sequences, so halving finds it.
fn first_stored_after(connection: &Connection, ms: i64) -> Result<u64, StoreError> {
    let newest: u64 = connection.query_row("SELECT coalesce(max(sequence), 0) FROM games", [], |row| row.get(0))?;
    if ms == i64::MAX {
        return Ok(newest + 1);
    }
    let sql = "SELECT stored_ms FROM games WHERE sequence >= ?1 ORDER BY sequence LIMIT 1";
    let mut statement = connection.prepare_cached(sql)?;
    let (mut low, mut high) = (1, newest + 1);
    while low < high {
        let middle = low + (high - low) / 2;
        let stored_ms: Option<i64> = statement.query_row([middle], |row| row.get(0)).optional()?;
        if stored_ms.is_none_or(|stored_ms| stored_ms > ms) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Ok(low)
}

fn record(connection: &Connection, sequence: u64) -> Result<(Vec<u8>, bool), StoreError> {
    let sql = "SELECT record, hash FROM games LEFT JOIN game_ids USING (lease, game_index) WHERE games.sequence = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let (record, hash): (Vec<u8>, Option<Vec<u8>>) =
        statement.query_row([sequence], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let sound = is_sound(&record, hash.as_deref());
    Ok((record, sound))
}

fn parse(
    row: &Row<'_>,
    iterations: &Iterations,
    orders: &mut HashMap<LeaseId, v1::WorkOrder>,
) -> Result<GameRow, StoreError> {
    let lease = LeaseId(u128::from_be_bytes(array("lease", row.get_ref(1)?.as_bytes()?)?));
    let kind: String = row.get(3)?;
    let gate: Option<u32> = row.get(4)?;
    let order = match orders.get(&lease) {
        Some(order) => order.clone(),
        None => {
            let bytes: Option<Vec<u8>> = row.get(14)?;
            let order = v1::WorkOrder::decode(&bytes.unwrap_or_default()[..])
                .map_err(|error| StoreError::corrupt("work order", error))?;
            orders.insert(lease, order.clone());
            order
        }
    };
    let stored_ms = row.get(12)?;
    Ok(GameRow {
        sequence: row.get(0)?,
        id: RecordId {
            lease,
            index: row.get(2)?,
        },
        purpose: match (&kind[..], gate) {
            ("self-play", _) => Purpose::SelfPlay,
            (_, Some(_)) => Purpose::Gate,
            (_, None) => Purpose::Rating,
        },
        actor: row.get(5)?,
        iteration: iterations.at(stored_ms),
        positions: row.get(6)?,
        plies: row.get(7)?,
        winner: row.get(8)?,
        reason: row.get(9)?,
        opening_path: row.get(10)?,
        created_ms: row.get(11)?,
        stored_ms,
        purged: row.get::<_, Option<i64>>(13)?.is_some(),
        order,
        record: None,
    })
}
