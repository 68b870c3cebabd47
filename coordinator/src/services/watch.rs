//! Watching the status: the whole of it at once and then at intervals, with every event in between told once, also to a
//! watch that comes back later.
//!
//! An event is a row of the database, so the token of a message says how many there were when it was sent, and any process
//! that serves the run can go on from there.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use rusqlite::Connection;
use tengen_proto::v1;
use tengen_proto::v1::run_event::Event;
use tokio::sync::mpsc;
use tonic::Status;

use super::errors;
use super::run::status_now;
use crate::archive::Archive;
use crate::messages;
use crate::store::{StoreError, gates, models, progress};

/// Events of one message; of more the newest are told.
const EVENTS_MAX: u32 = 1_000;

/// How many events of each kind a run has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cursor {
    /// Tells two runs of one name apart.
    run_created_ms: i64,
    iterations_ended: u32,
    gates_decided: u32,
    generation: u32,
}

/// A text that no message held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoCursor;

impl Cursor {
    /// Where a status stands.
    pub(super) fn of(status: &v1::RunStatus) -> Cursor {
        Cursor {
            run_created_ms: status.created_unix_ms,
            iterations_ended: status.iteration,
            gates_decided: status.gates_decided,
            generation: status.generation,
        }
    }

    /// Reads a request's token; `None` begins now.
    pub(super) fn read(token: &str) -> Result<Option<Cursor>, Status> {
        if token.is_empty() {
            return Ok(None);
        }
        let parsed = token.parse();
        parsed
            .map(Some)
            .map_err(|NoCursor| errors::bad_field("resume_token", format!("{token:?} is not one of ours")))
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Cursor {
            run_created_ms,
            iterations_ended,
            gates_decided,
            generation,
        } = self;
        write!(f, "1.{run_created_ms}.{iterations_ended}.{gates_decided}.{generation}")
    }
}

impl FromStr for Cursor {
    type Err = NoCursor;

    fn from_str(text: &str) -> Result<Cursor, NoCursor> {
        let parts: Vec<&str> = text.split('.').collect();
        let &["1", run, iterations, gates, generation] = &parts[..] else {
            return Err(NoCursor);
        };
        let number = |text: &str| text.parse().map_err(|_| NoCursor);
        Ok(Cursor {
            run_created_ms: run.parse().map_err(|_| NoCursor)?,
            iterations_ended: number(iterations)?,
            gates_decided: number(gates)?,
            generation: number(generation)?,
        })
    }
}

/// Sends the status and what happened until nobody listens or the process drains.
pub(super) async fn watch(
    archive: Archive,
    interval: Duration,
    seen: Option<Cursor>,
    statuses: mpsc::Sender<Result<v1::RunStatus, Status>>,
) {
    let mut ticks = tokio::time::interval(interval);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut seen = seen;
    loop {
        tokio::select! {
            _ = ticks.tick() => {
                let message = next(&archive, &mut seen).await;
                let failed = message.is_err();
                if statuses.send(message).await.is_err() || failed {
                    return;
                }
            }
            () = archive.stop.cancelled() => {
                let _gone = statuses.send(Err(errors::draining())).await;
                return;
            }
            () = statuses.closed() => return,
        }
    }
}

/// The status now, with the events since `seen`, which moves on.
async fn next(archive: &Archive, seen: &mut Option<Cursor>) -> Result<v1::RunStatus, Status> {
    let mut status = status_now(archive);
    let now = Cursor::of(&status);
    if let Some(before) = *seen
        && before != now
        && before.run_created_ms == now.run_created_ms
    {
        status.events = archive.read(move |connection| events(connection, before, now)).await?;
    }
    *seen = Some(now);
    Ok(status)
}

/// What happened between two cursors, oldest first.
fn events(connection: &Connection, before: Cursor, now: Cursor) -> Result<Vec<v1::RunEvent>, StoreError> {
    let mut events = Vec::new();
    for row in progress::iterations_between(connection, before.iterations_ended, now.iterations_ended, EVENTS_MAX)? {
        let ended = v1::IterationEnded {
            iteration: row.iteration,
            games: row.games,
            positions: row.positions,
        };
        events.push(event(row.ended_ms, Event::IterationEnded(ended)));
    }
    for row in gates::decided_between(connection, before.gates_decided, now.gates_decided, EVENTS_MAX)? {
        let at_ms = row.decided_ms.unwrap_or(row.opened_ms);
        let gate = messages::stored_gate(&row, &[]);
        events.push(event(at_ms, Event::GateDecided(gate)));
    }
    for row in models::promotions_between(connection, before.generation, now.generation, EVENTS_MAX)? {
        let promotion = v1::Promotion {
            generation: row.generation,
            model_id: row.model.0.to_vec(),
            previous_id: row.previous.0.to_vec(),
            reason: row.reason,
        };
        events.push(event(row.at_ms, Event::Promoted(promotion)));
    }
    // Stable: what happened in one transaction stays in the order above.
    events.sort_by_key(|event| event.at_unix_ms);
    let surplus = events.len().saturating_sub(EVENTS_MAX as usize);
    Ok(events.split_off(surplus))
}

fn event(at_unix_ms: i64, event: Event) -> v1::RunEvent {
    v1::RunEvent {
        at_unix_ms,
        event: Some(event),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_back_and_nothing_else_is_one() {
        let cursor = Cursor {
            run_created_ms: 1_700_000_000_000,
            iterations_ended: 3,
            gates_decided: 2,
            generation: 1,
        };
        assert_eq!(cursor.to_string(), "1.1700000000000.3.2.1");
        assert_eq!(Cursor::read(&cursor.to_string()).unwrap(), Some(cursor));
        assert_eq!(Cursor::read("").unwrap(), None);
        for text in ["1", "2.1.1.1.1", "1.1.1.1", "1.1.1.1.1.1", "1.x.1.1.1", "1.1.-1.1.1"] {
            assert!(Cursor::read(text).is_err(), "{text}");
        }
    }
}
