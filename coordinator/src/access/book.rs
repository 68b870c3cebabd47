//! The tokens that are good now, who calls with them, and which actor belongs to which.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use http::HeaderMap;
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status};

use super::bucket::Bucket;
use super::config::Limits;
use super::role::{Needs, Role};
use super::throttle::Throttle;
use super::token::{self, TokenHash, TokenId};
use super::unfinished::Unfinished;
use crate::clock::{Uptime, unix_ms};
use crate::config::Config;
use crate::services::errors;
use crate::store::tokens::TokenRow;

/// Actors whose token is remembered; as many as a run takes in.
const ACTORS_MAX: usize = 10_000;

/// Whether callers are let in without a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Door {
    /// They are: there was no token when the process began.
    Open,
    /// Every call but the open ones needs one.
    Locked,
}

/// Whom this process serves.
#[derive(Debug)]
pub(crate) struct Access {
    door: Door,
    /// How people are let in, in words.
    words: String,
    limits: Limits,
    uptime: Uptime,
    tokens: RwLock<HashMap<TokenId, Arc<Entry>>>,
    actors: Mutex<HashMap<String, TokenId>>,
    /// Paces the log of refused calls.
    refusals: Throttle,
    /// Calls that were refused, by reason.
    refused: Mutex<BTreeMap<String, Refused>>,
    /// What callers without a token have under way.
    anybodys: Arc<Unfinished>,
}

/// Calls refused for one reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Refused {
    /// How many.
    pub(crate) count: u64,
    /// When the last one was.
    pub(crate) last_unix_ms: i64,
    /// What it was told.
    pub(crate) message: String,
}

/// A token, live or not any more.
#[derive(Debug)]
pub(crate) struct Entry {
    id: TokenId,
    role: Role,
    name: String,
    hash: TokenHash,
    expires_ms: Option<i64>,
    revoked: CancellationToken,
    requests: Mutex<Bucket>,
    games: Mutex<Bucket>,
    unfinished: Arc<Unfinished>,
    uptime: Uptime,
}

/// Who makes a call; every served request carries one.
#[derive(Clone, Debug)]
pub(crate) enum Caller {
    /// Somebody without a token, where none is needed.
    Anybody,
    /// The bearer of a token.
    Token(Arc<Entry>),
}

/// An actor's id is another token's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "actor {actor:?} belongs to token {token}: show that token, or give this actor an identity of its own (another --data \
     folder); once that token is revoked or has expired, the actor may come with another"
)]
pub(crate) struct OtherToken {
    pub(crate) actor: String,
    pub(crate) token: TokenId,
}

/// Why nobody is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Denied {
    /// No token came.
    Missing,
    /// What came is no token of this run.
    Unknown,
    /// It was revoked.
    Revoked(TokenId),
    /// Its time is over.
    Expired(TokenId),
}

impl Access {
    /// The tokens of a run and the actors that came with them.
    pub(crate) fn new(rows: Vec<TokenRow>, actors: Vec<(String, TokenId)>, config: &Config) -> Access {
        let door = if rows.is_empty() { Door::Open } else { Door::Locked };
        let access = Access {
            door,
            words: in_words(door, config),
            limits: config.limits.clone(),
            uptime: Uptime::start(),
            tokens: RwLock::default(),
            actors: Mutex::new(actors.into_iter().collect()),
            refusals: Throttle::default(),
            refused: Mutex::default(),
            anybodys: Arc::default(),
        };
        rows.into_iter().for_each(|row| access.add(row));
        access
    }

    /// Whether calls need a token.
    pub(crate) fn is_locked(&self) -> bool {
        self.door == Door::Locked
    }

    /// How people are let in, for the status.
    pub(crate) fn in_words(&self) -> &str {
        &self.words
    }

    /// What one peer may take.
    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Counts the refusal that an answer's headers or trailers may tell of.
    pub(super) fn note_answer(&self, headers: &HeaderMap) {
        if let Some(status) = Status::from_header_map(headers)
            && status.code() != Code::Ok
        {
            self.note_refused(&status);
        }
    }

    /// Counts a refused call by its reason. Reasons are ours, and few.
    pub(super) fn note_refused(&self, status: &Status) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = refused.entry(errors::reason(status)).or_default();
        entry.count += 1;
        entry.last_unix_ms = unix_ms();
        status.message().clone_into(&mut entry.message);
    }

    /// Calls that were refused since the process began, by reason.
    pub(crate) fn refused(&self) -> BTreeMap<String, Refused> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes in a token that is stored.
    pub(crate) fn add(&self, row: TokenRow) {
        let entry = Entry {
            id: row.id.clone(),
            role: row.role,
            name: row.name,
            hash: row.hash,
            expires_ms: row.expires_ms,
            revoked: CancellationToken::new(),
            requests: Mutex::new(Bucket::new(self.limits.requests_per_second, Duration::from_secs(1))),
            games: Mutex::new(Bucket::new(self.limits.games_per_minute, Duration::from_secs(60))),
            unfinished: Arc::default(),
            uptime: self.uptime,
        };
        if row.revoked_ms.is_some() {
            entry.revoked.cancel();
        }
        let mut tokens = self.tokens.write().unwrap_or_else(PoisonError::into_inner);
        tokens.insert(row.id, Arc::new(entry));
    }

    /// Ends a token and everything that goes on with it.
    pub(crate) fn revoke(&self, id: &TokenId) {
        if let Some(entry) = self.entry(id) {
            entry.revoked.cancel();
        }
    }

    fn entry(&self, id: &TokenId) -> Option<Arc<Entry>> {
        let tokens = self.tokens.read().unwrap_or_else(PoisonError::into_inner);
        tokens.get(id).cloned()
    }

    /// Who calls, if that caller may make this call now.
    pub(crate) fn admit(&self, authorization: Option<&str>, needs: Needs) -> Result<Caller, Status> {
        if self.door == Door::Open || needs == Needs::Nothing {
            return Ok(Caller::Anybody);
        }
        let entry = self.authenticate(authorization).map_err(|denied| {
            if let Some(left_out) = self.refusals.pass(self.uptime.ms()) {
                tracing::warn!(reason = denied.in_words(), left_out, "a call without a good token");
            }
            errors::unauthenticated(denied.reason(), format!("{}; {}", denied.in_words(), how_to_get(needs)))
        })?;
        if !needs.allows(entry.role) {
            let message = format!(
                "token {} has the role {}, this call needs {}; {}",
                entry.id,
                entry.role,
                needs.in_words(),
                how_to_get(needs)
            );
            return Err(errors::refusal(Code::PermissionDenied, "ROLE", message));
        }
        let taken = entry.take(&entry.requests);
        taken.map_err(|wait| {
            let message = format!(
                "token {} makes more than {} requests a second",
                entry.id, self.limits.requests_per_second
            );
            errors::exhausted("REQUEST_RATE", message, wait)
        })?;
        Ok(Caller::Token(entry))
    }

    fn authenticate(&self, authorization: Option<&str>) -> Result<Arc<Entry>, Denied> {
        let shown = token::read(authorization.ok_or(Denied::Missing)?).ok_or(Denied::Unknown)?;
        let entry = self.entry(&shown.id).ok_or(Denied::Unknown)?;
        // Only who knows the secret hears more about the token.
        if entry.hash != shown.hash {
            return Err(Denied::Unknown);
        }
        match entry.standing(unix_ms()) {
            Some(denied) => Err(denied),
            None => Ok(entry),
        }
    }

    /// What this caller has under way.
    pub(super) fn unfinished(&self, caller: &Caller) -> Arc<Unfinished> {
        Arc::clone(match caller {
            Caller::Anybody => &self.anybodys,
            Caller::Token(entry) => &entry.unfinished,
        })
    }

    /// Notes that an actor comes with this caller's token. Refused when it is another live token's. Tells whether this is
    /// new.
    pub(crate) fn claim(&self, caller: &Caller, actor: &str) -> Result<bool, OtherToken> {
        let Caller::Token(entry) = caller else { return Ok(false) };
        let mut actors = self.actors.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(owner) = actors.get(actor) {
            if *owner == entry.id {
                return Ok(false);
            }
            self.refuse_if_live(actor, owner)?;
        }
        // Beyond this the run refuses the registration anyway.
        if actors.len() < ACTORS_MAX {
            actors.insert(actor.to_owned(), entry.id.clone());
        }
        Ok(true)
    }

    /// Forgets a claim whose registration was refused.
    pub(crate) fn unclaim(&self, actor: &str) {
        self.actors.lock().unwrap_or_else(PoisonError::into_inner).remove(actor);
    }

    /// Refuses a caller who speaks for another token's actor.
    pub(crate) fn speaks_for(&self, caller: &Caller, actor: &str) -> Result<(), OtherToken> {
        let Caller::Token(entry) = caller else { return Ok(()) };
        let actors = self.actors.lock().unwrap_or_else(PoisonError::into_inner);
        match actors.get(actor) {
            Some(owner) if *owner != entry.id => Err(OtherToken {
                actor: actor.to_owned(),
                token: owner.clone(),
            }),
            _ => Ok(()),
        }
    }

    fn refuse_if_live(&self, actor: &str, owner: &TokenId) -> Result<(), OtherToken> {
        match self.entry(owner) {
            Some(entry) if entry.standing(unix_ms()).is_none() => Err(OtherToken {
                actor: actor.to_owned(),
                token: owner.clone(),
            }),
            _ => Ok(()),
        }
    }
}

fn in_words(door: Door, config: &Config) -> String {
    let tls = config.tls.cert.is_some();
    let wide = !config.listen.ip().is_loopback();
    match (door, tls) {
        (Door::Locked, true) if config.tls.client_ca.is_some() => "tokens, TLS with client certificates".to_owned(),
        (Door::Locked, true) => "tokens, TLS".to_owned(),
        (Door::Locked, false) if wide => "tokens WITHOUT TLS: whoever is on the way reads them".to_owned(),
        (Door::Locked, false) => "tokens, on this machine only".to_owned(),
        (Door::Open, _) if wide => format!("OPEN: whoever reaches {} may do everything", config.listen),
        (Door::Open, _) => "this machine only, without tokens".to_owned(),
    }
}

/// What to do about a call that was refused.
fn how_to_get(needs: Needs) -> String {
    format!(
        "an admin makes a token for it with `tengen token create --role {}`; give it with --token-file FILE or in \
         TENGEN_TOKEN",
        needs.least()
    )
}

impl Entry {
    /// Why this token is not good, if it is not.
    fn standing(&self, now_ms: i64) -> Option<Denied> {
        if self.revoked.is_cancelled() {
            return Some(Denied::Revoked(self.id.clone()));
        }
        self.expires_ms
            .filter(|&expires| expires <= now_ms)
            .map(|_| Denied::Expired(self.id.clone()))
    }

    /// Returns, with what to say, when the token is revoked or expires.
    async fn ended(&self) -> Status {
        let denied = tokio::select! {
            () = self.revoked.cancelled() => Denied::Revoked(self.id.clone()),
            () = self.expiry() => Denied::Expired(self.id.clone()),
        };
        errors::unauthenticated(denied.reason(), denied.in_words())
    }

    async fn expiry(&self) {
        let Some(expires) = self.expires_ms else {
            return std::future::pending().await;
        };
        // Looked at again and again: the clock of the day may be set meanwhile.
        loop {
            let left_ms = u64::try_from(expires.saturating_sub(unix_ms())).unwrap_or(0);
            if left_ms == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(left_ms.min(60_000))).await;
        }
    }

    fn take(&self, bucket: &Mutex<Bucket>) -> Result<(), Duration> {
        let mut bucket = bucket.lock().unwrap_or_else(PoisonError::into_inner);
        bucket.take(self.uptime.ms())
    }
}

impl Denied {
    fn reason(&self) -> &'static str {
        match self {
            Denied::Missing => "TOKEN_MISSING",
            Denied::Unknown => "TOKEN_UNKNOWN",
            Denied::Revoked(_) => "TOKEN_REVOKED",
            Denied::Expired(_) => "TOKEN_EXPIRED",
        }
    }

    fn in_words(&self) -> String {
        match self {
            Denied::Missing => "this coordinator serves nobody without a token".to_owned(),
            Denied::Unknown => "the token is none of this run's".to_owned(),
            Denied::Revoked(id) => format!("token {id} was revoked"),
            Denied::Expired(id) => format!("token {id} has expired"),
        }
    }
}

impl Caller {
    /// The name of the caller in the audit.
    pub(crate) fn who(&self) -> String {
        match self {
            Caller::Anybody => "local".to_owned(),
            Caller::Token(entry) if entry.name.is_empty() => format!("token {} ({})", entry.id, entry.role),
            Caller::Token(entry) => format!("token {} ({}, {})", entry.id, entry.name, entry.role),
        }
    }

    /// The caller's token.
    pub(crate) fn token(&self) -> Option<&TokenId> {
        match self {
            Caller::Anybody => None,
            Caller::Token(entry) => Some(&entry.id),
        }
    }

    /// Counts one game against the caller's quota.
    pub(crate) fn take_game(&self) -> Result<(), Status> {
        let Caller::Token(entry) = self else { return Ok(()) };
        entry.take(&entry.games).map_err(|wait| {
            let message = format!("the actors of token {} send more games than it may", entry.id);
            errors::exhausted("GAME_QUOTA", message, wait)
        })
    }

    /// Returns, with what to say, when the caller may go on no longer.
    pub(crate) async fn ended(self) -> Status {
        match self {
            Caller::Anybody => std::future::pending().await,
            Caller::Token(entry) => entry.ended().await,
        }
    }
}

/// Who makes this call.
pub(crate) fn caller<T>(request: &tonic::Request<T>) -> Result<Caller, Status> {
    let caller = request.extensions().get::<Caller>().cloned();
    caller.ok_or_else(|| errors::internal(&"a call came past the check of its caller"))
}
