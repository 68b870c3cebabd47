//! What administrators change: tokens, actors that are served, games that count; how the run is steered is in `steer`.
//!
//! Every change is one transaction with its row in the audit. What must follow it in memory (a token that ends, a window
//! that begins anew) follows the commit.

use std::sync::Arc;

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::orders::{SteerRefused, Steered, Wish};
use super::owner::{Now, Outbox};
use super::settings::{Applied, SettingsRefused, SettingsWish};
use super::state::State;
use crate::access::{Access, TokenId};
use crate::store::actors::ActorRow;
use crate::store::tokens::{self, TOKENS_MAX, TokenRow};
use crate::store::trail::{self, Entry};
use crate::store::{StoreError, actors, games};

/// A change by somebody.
#[derive(Debug)]
pub(crate) struct AdminRequest {
    /// Who asks, for the audit.
    pub(crate) by: String,
    /// What for.
    pub(crate) change: Change,
}

/// What is to be changed.
#[derive(Debug)]
pub(crate) enum Change {
    /// Store a token, then let it in.
    CreateToken {
        row: TokenRow,
        access: Arc<Access>,
        reply: oneshot::Sender<Result<TokenRow, TooManyTokens>>,
    },
    /// Revoke a token, then cut what goes on with it.
    RevokeToken {
        id: TokenId,
        access: Arc<Access>,
        reply: oneshot::Sender<Result<TokenRow, NoSuchToken>>,
    },
    /// Serve an actor no more.
    SuspendActor {
        actor: String,
        reason: String,
        reply: oneshot::Sender<Result<ActorRow, NoSuchActor>>,
    },
    /// Serve an actor again.
    ResumeActor {
        actor: String,
        reply: oneshot::Sender<Result<ActorRow, NoSuchActor>>,
    },
    /// Steer the run.
    Steer {
        wish: Wish,
        reason: String,
        reply: oneshot::Sender<Result<Steered, SteerRefused>>,
    },
    /// Change settings.
    Settings {
        wish: SettingsWish,
        reply: oneshot::Sender<Result<Applied, SettingsRefused>>,
    },
    /// Take an actor's self-play games out of the window.
    PurgeActor {
        actor: String,
        since_ms: i64,
        reply: oneshot::Sender<Result<Purged, NoSuchActor>>,
    },
}

/// The run keeps as many tokens as it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the run has {TOKENS_MAX} tokens, the most it keeps")]
pub(crate) struct TooManyTokens;

/// There is no such token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no token {0}: `tengen token list` shows those there are")]
pub(crate) struct NoSuchToken(pub(crate) TokenId);

/// There is no such actor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no actor {0:?} ever registered: `tengen actors list` shows those that did")]
pub(crate) struct NoSuchActor(pub(crate) String);

/// What a purge took out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Purged {
    pub(crate) games: u64,
    pub(crate) positions: u64,
    pub(crate) match_games: u64,
    pub(crate) window_epoch: u64,
}

impl State {
    /// Carries out a change.
    pub(super) fn administer(
        &mut self,
        connection: &Connection,
        request: AdminRequest,
        now: Now,
        out: &mut Outbox,
    ) -> Result<(), StoreError> {
        let by = request.by;
        match request.change {
            Change::CreateToken { row, access, reply } => {
                let stored = create_token(connection, &row, &by, now)?.map(|()| row.clone());
                if stored.is_ok() {
                    out.after(move || access.add(row));
                }
                out.reply(reply, stored);
            }
            Change::RevokeToken { id, access, reply } => {
                let revoked = revoke_token(connection, &id, &by, now)?;
                if revoked.is_ok() {
                    out.after(move || access.revoke(&id));
                }
                out.reply(reply, revoked);
            }
            Change::SuspendActor { actor, reason, reply } => {
                let suspended = self.suspend_actor(connection, &actor, &reason, &by, now)?;
                out.reply(reply, suspended);
            }
            Change::ResumeActor { actor, reply } => {
                let resumed = self.resume_actor(connection, &actor, &by, now)?;
                out.reply(reply, resumed);
            }
            Change::Steer { wish, reason, reply } => {
                let steered = self.steer(connection, (wish, &reason), &by, now, out)?;
                out.reply(reply, steered);
            }
            Change::Settings { wish, reply } => {
                let applied = self.change_settings(connection, &wish, &by, now, out)?;
                out.reply(reply, applied);
            }
            Change::PurgeActor { actor, since_ms, reply } => {
                let purged = self.purge_actor(connection, &actor, since_ms, &by, now, out)?;
                out.reply(reply, purged);
            }
        }
        Ok(())
    }

    /// Suspends an actor; one that is suspended already keeps the time of the first.
    pub(super) fn suspend_actor(
        &mut self,
        connection: &Connection,
        actor: &str,
        reason: &str,
        by: &str,
        now: Now,
    ) -> Result<Result<ActorRow, NoSuchActor>, StoreError> {
        let Some(row) = self.actors.get_mut(actor) else {
            return Ok(Err(NoSuchActor(actor.to_owned())));
        };
        let old = standing(row);
        row.suspended_ms.get_or_insert(now.unix_ms);
        actors::set_strikes(connection, actor, row.strikes, row.suspended_ms)?;
        let entry = Entry {
            who: by,
            action: "suspend-actor",
            detail: &format!("{actor}: {reason}"),
            old,
            new: "suspended",
        };
        trail::append(connection, &entry, now.unix_ms)?;
        tracing::warn!(%actor, by, reason, "actor suspended");
        Ok(Ok(row.clone()))
    }

    fn resume_actor(
        &mut self,
        connection: &Connection,
        actor: &str,
        by: &str,
        now: Now,
    ) -> Result<Result<ActorRow, NoSuchActor>, StoreError> {
        let Some(row) = self.actors.get_mut(actor) else {
            return Ok(Err(NoSuchActor(actor.to_owned())));
        };
        let (detail, old) = (format!("{actor}: {} strikes forgiven", row.strikes), standing(row));
        (row.strikes, row.suspended_ms) = (0, None);
        actors::set_strikes(connection, actor, 0, None)?;
        let entry = Entry {
            who: by,
            action: "resume-actor",
            detail: &detail,
            old,
            new: "served",
        };
        trail::append(connection, &entry, now.unix_ms)?;
        tracing::info!(%actor, by, "actor resumed");
        let resumed = row.clone();
        self.forgive_audits(connection, actor)?;
        Ok(Ok(resumed))
    }

    /// Flags an actor's self-play games and has the window begin anew without them. The count of positions committed, which
    /// bounds the learner's steps, does not go back: steps that were allowed stay allowed, and the totals that a mirror
    /// sees never fall.
    fn purge_actor(
        &mut self,
        connection: &Connection,
        actor: &str,
        since_ms: i64,
        by: &str,
        now: Now,
        out: &mut Outbox,
    ) -> Result<Result<Purged, NoSuchActor>, StoreError> {
        if !self.actors.contains_key(actor) {
            return Ok(Err(NoSuchActor(actor.to_owned())));
        }
        let (flagged, positions) = games::purge(connection, actor, since_ms, now.unix_ms)?;
        if flagged > 0 {
            self.progress_mut().window_epoch += 1;
            out.window_anew = true;
        }
        let purged = Purged {
            games: flagged,
            positions,
            match_games: games::match_games_since(connection, actor, since_ms)?,
            window_epoch: self.progress().window_epoch,
        };
        let detail = format!(
            "{actor}: {flagged} self-play games with {positions} positions stored since {since_ms} ms; window epoch {}",
            purged.window_epoch
        );
        let entry = Entry {
            who: by,
            action: "purge-actor",
            detail: &detail,
            ..Entry::default()
        };
        trail::append(connection, &entry, now.unix_ms)?;
        tracing::warn!(%actor, by, games = flagged, positions, "games taken out of the window");
        Ok(Ok(purged))
    }
}

fn create_token(
    connection: &Connection,
    row: &TokenRow,
    by: &str,
    now: Now,
) -> Result<Result<(), TooManyTokens>, StoreError> {
    if tokens::count(connection)? >= TOKENS_MAX {
        return Ok(Err(TooManyTokens));
    }
    tokens::insert(connection, row)?;
    let entry = Entry {
        who: by,
        action: "create-token",
        detail: &describe(row),
        new: "good",
        ..Entry::default()
    };
    trail::append(connection, &entry, now.unix_ms)?;
    tracing::info!(token = %row.id, role = %row.role, by, "token made");
    Ok(Ok(()))
}

fn revoke_token(
    connection: &Connection,
    id: &TokenId,
    by: &str,
    now: Now,
) -> Result<Result<TokenRow, NoSuchToken>, StoreError> {
    let Some(row) = tokens::revoke(connection, id, now.unix_ms)? else {
        return Ok(Err(NoSuchToken(id.clone())));
    };
    // A token that was revoked before keeps the time of the first.
    let first = row.revoked_ms == Some(now.unix_ms);
    let entry = Entry {
        who: by,
        action: "revoke-token",
        detail: &describe(&row),
        old: if first { "good" } else { "revoked" },
        new: "revoked",
    };
    trail::append(connection, &entry, now.unix_ms)?;
    tracing::info!(token = %row.id, role = %row.role, by, "token revoked");
    Ok(Ok(row))
}

/// Whether an actor is served, in the words of the audit.
fn standing(actor: &ActorRow) -> &'static str {
    match actor.suspended_ms {
        None => "served",
        Some(_) => "suspended",
    }
}

/// A token in the words of the audit.
pub(crate) fn describe(row: &TokenRow) -> String {
    format!("{} {} {:?}", row.id, row.role, row.name)
}
