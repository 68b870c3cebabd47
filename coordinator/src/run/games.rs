//! Records: stored once, or set aside.

use rusqlite::Connection;
use tengen_control::{Effect, Event, LogEntry};
use tengen_records::{Kind, Rejection};

use super::owner::{Now, Outbox};
use super::request::{ActorRefused, GatePlace, MatchPlace, StoreVerdict, SubmittedGame};
use super::state::{State, control_id};
use crate::store::games::{NewGame, insert, insert_conflict, quarantine, stored_hash};
use crate::store::ratings::MatchKind;
use crate::store::{StoreError, actors, gates, leases};
use crate::window::CommittedGame;

impl State {
    /// Stores a checked record, unless its id is taken.
    pub(super) fn store(
        &mut self,
        connection: &Connection,
        mut game: SubmittedGame,
        now: Now,
        out: &mut Outbox,
    ) -> Result<Result<StoreVerdict, ActorRefused>, StoreError> {
        if let Err(refused) = self.serves(&game.actor) {
            return Ok(Err(refused));
        }
        if let Some(hash) = stored_hash(connection, game.id)? {
            if hash == game.hash {
                return Ok(Ok(StoreVerdict::Duplicate));
            }
            insert_conflict(connection, game.id, &game.actor, &game.record, now.unix_ms)?;
            tracing::warn!(game = %game.id, actor = %game.actor, "the same game came with other bytes; kept aside");
            return Ok(Ok(StoreVerdict::Conflict));
        }
        let positions = if game.kind == Kind::SelfPlay {
            game.checked.positions
        } else {
            0
        };
        let sequence = insert(
            connection,
            &NewGame {
                id: game.id,
                kind: game.kind,
                actor: &game.actor,
                positions,
                positions_total: self.control.positions() + u64::from(positions),
                plies: game.checked.plies + game.checked.opening_plies,
                outcome: game.checked.outcome,
                opening_path: game.checked.opening_path.as_deref(),
                created_ms: game.created_ms,
                stored_ms: now.unix_ms,
                hash: game.hash,
                record: &game.record,
            },
        )?;
        leases::count_stored(connection, game.id.lease)?;
        match game.match_game.take() {
            None => self.count_self_play(connection, game, positions, sequence, now, out)?,
            Some(place) => self.count_match_game(connection, &game, place, sequence, now, out)?,
        }
        Ok(Ok(StoreVerdict::Stored))
    }

    fn count_self_play(
        &mut self,
        connection: &Connection,
        game: SubmittedGame,
        positions: u32,
        sequence: u64,
        now: Now,
        out: &mut Outbox,
    ) -> Result<(), StoreError> {
        self.progress_mut().self_play_games += 1;
        self.rate.note(now.ms, positions);
        if let Some(path) = game.checked.opening_path {
            *self.opening_paths.entry(path).or_default() += 1;
        }
        out.window.push(CommittedGame {
            sequence,
            positions,
            record: game.record,
        });
        self.step(
            connection,
            Event::SelfPlayStored {
                lease: control_id(game.id.lease),
                positions,
            },
            now,
            out,
        )
    }

    fn count_match_game(
        &mut self,
        connection: &Connection,
        game: &SubmittedGame,
        place: MatchPlace,
        sequence: u64,
        now: Now,
        out: &mut Outbox,
    ) -> Result<(), StoreError> {
        self.progress_mut().match_games += 1;
        self.match_rate.note(now.ms, 0);
        let MatchPlace { players, score, gate } = place;
        let Some(GatePlace { gate, pair, leg }) = gate else {
            self.rate(connection, &players, score, MatchKind::Rating, now)?;
            return self.count_rating_game(connection, game.id.lease, now, out);
        };
        self.rate(connection, &players, score, MatchKind::Gate, now)?;
        let lease = control_id(game.id.lease);
        let effects = self.control.step(
            Event::MatchStored {
                lease,
                gate,
                pair,
                leg,
                score,
            },
            now.ms,
        );
        for effect in &effects {
            if let Effect::MatchLogged(standing) = *effect {
                gates::append_log(
                    connection,
                    gate,
                    sequence,
                    &LogEntry {
                        lease,
                        pair,
                        leg,
                        score,
                        standing,
                    },
                )?;
            }
        }
        self.carry_out(connection, effects, now, out)
    }

    /// Sets a refused record aside and counts it against its actor.
    pub(super) fn refuse(
        &mut self,
        connection: &Connection,
        actor: &str,
        rejection: &Rejection,
        record: &[u8],
        strikes_max: u32,
        now: Now,
    ) -> Result<Result<(), ActorRefused>, StoreError> {
        if let Err(refused) = self.serves(actor) {
            return Ok(Err(refused));
        }
        let code = rejection.code.as_str();
        quarantine(connection, actor, code, &rejection.detail, record, now.unix_ms)?;
        *self.rejected.entry(code.to_owned()).or_default() += 1;
        tracing::warn!(%actor, code, detail = %rejection.detail, "record rejected");
        if let Some(row) = self.actors.get_mut(actor) {
            row.strikes += 1;
            let strikes = row.strikes;
            actors::set_strikes(connection, actor, strikes, row.suspended_ms)?;
            if strikes >= strikes_max {
                let reason = format!("{strikes} records refused, the last one as {code}");
                let _known = self.suspend_actor(connection, actor, &reason, "coordinator", now)?;
            }
        }
        Ok(Ok(()))
    }

    /// Whether this actor is served.
    pub(super) fn serves(&self, actor: &str) -> Result<(), ActorRefused> {
        match self.actors.get(actor) {
            None => Err(ActorRefused::Unknown(actor.to_owned())),
            Some(row) if row.suspended_ms.is_some() => Err(ActorRefused::Suspended {
                actor: actor.to_owned(),
                strikes: row.strikes,
            }),
            Some(_) => Ok(()),
        }
    }
}
