//! `AdminService`: tokens, actors, the audit, and how the run goes on. Who may call it is decided before a call comes
//! here.

use std::sync::Arc;

use tengen_control::Then;
use tengen_proto::v1;
use tengen_proto::v1::admin_service_server::AdminService;
use tokio::sync::oneshot;
use tonic::{Code, Request, Response, Status};

use super::{Shared, errors, page_size, page_start, steer};
use crate::access::{Caller, NewToken, Role, TokenId, caller, reveal};
use crate::clock::unix_ms;
use crate::messages;
use crate::run::admin::{AdminRequest, Change, NoSuchActor, NoSuchToken, TooManyTokens};
use crate::run::orders::{Steered, Wish};
use crate::run::request;
use crate::run::settings::{Mode, SettingsWish};
use crate::store::tokens::{self, TokenRow};
use crate::store::{StoreError, trail};

/// Longest name of a token, bytes.
const NAME_LEN_MAX: usize = 100;
/// Longest reason of a change, bytes.
const REASON_LEN_MAX: usize = 200;
/// Longest time a token may be good for, seconds: a century.
const VALID_SECONDS_MAX: u64 = 100 * 365 * 86_400;

/// The service.
#[derive(Debug)]
pub(crate) struct AdminApi(pub(crate) Shared);

impl AdminApi {
    /// Has the run's owner make a change.
    async fn change<T>(&self, caller: &Caller, change: impl FnOnce(oneshot::Sender<T>) -> Change) -> Result<T, Status> {
        let by = caller.who();
        let request = |reply| {
            let change = change(reply);
            request::Request::Admin(Box::new(AdminRequest { by, change }))
        };
        Ok(self.0.run.ask(request).await?)
    }

    /// Has the run's owner carry out an order.
    async fn steer(&self, caller: &Caller, wish: Wish, reason: String) -> Result<Steered, Status> {
        let reason = plain("reason", reason, REASON_LEN_MAX)?;
        let steered = self.change(caller, |reply| Change::Steer { wish, reason, reply });
        Ok(steered.await??)
    }

    /// The same about a network, which is the answer.
    async fn steer_model(&self, caller: &Caller, wish: Wish, reason: String) -> Result<Response<v1::Model>, Status> {
        let model = self.steer(caller, wish, reason).await?.model;
        let row = model.ok_or_else(|| errors::internal(&"an order about a network names none"))?;
        Ok(Response::new(messages::bare_model(&self.0.archive.run_id, &row)))
    }
}

#[tonic::async_trait]
impl AdminService for AdminApi {
    async fn create_token(
        &self,
        request: Request<v1::CreateTokenRequest>,
    ) -> Result<Response<v1::CreateTokenResponse>, Status> {
        let caller = caller(&request)?;
        if !self.0.archive.access.is_locked() {
            // Locking the door now would lock out everybody who is inside.
            let message = "this coordinator runs without tokens: stop it, make the first ones with `tengen-coordinator init \
                           --data DIR --tokens DIR`, and start it again";
            return Err(errors::precondition("NO_TOKENS", "tokens", message));
        }
        let v1::CreateTokenRequest {
            role,
            name,
            valid_seconds,
        } = request.into_inner();
        let role: Role = role.parse().map_err(|error| errors::bad_field("role", error))?;
        let name = plain("name", name, NAME_LEN_MAX)?;
        if valid_seconds > VALID_SECONDS_MAX {
            let fault = format!("{valid_seconds}, at most {VALID_SECONDS_MAX} are allowed");
            return Err(errors::bad_field("valid_seconds", fault));
        }
        let token = NewToken::draw().map_err(|error| errors::internal(&error))?;
        let created_ms = unix_ms();
        let row = TokenRow {
            id: token.id.clone(),
            role,
            name,
            hash: token.hash,
            created_ms,
            created_by: caller.who(),
            expires_ms: (valid_seconds > 0).then(|| created_ms + valid_seconds as i64 * 1_000),
            revoked_ms: None,
        };
        let access = Arc::clone(&self.0.archive.access);
        let stored = self.change(&caller, |reply| Change::CreateToken { row, access, reply });
        let stored = stored.await??;
        Ok(Response::new(v1::CreateTokenResponse {
            token: Some(message(stored)),
            secret: reveal(&token),
        }))
    }

    async fn list_tokens(
        &self,
        request: Request<v1::ListTokensRequest>,
    ) -> Result<Response<v1::ListTokensResponse>, Status> {
        let v1::ListTokensRequest {
            page_size: asked,
            page_token,
        } = request.into_inner();
        let (limit, after) = (page_size(asked) as usize, page_start(&page_token, 0_usize)?);
        // A run has few of them.
        let rows = self.0.archive.read(tokens::all).await?;
        let end = rows.len().min(after.saturating_add(limit));
        let next_page_token = if end < rows.len() {
            end.to_string()
        } else {
            String::new()
        };
        let page = rows.into_iter().take(end).skip(after);
        Ok(Response::new(v1::ListTokensResponse {
            tokens: page.map(message).collect(),
            next_page_token,
        }))
    }

    async fn revoke_token(&self, request: Request<v1::RevokeTokenRequest>) -> Result<Response<v1::Token>, Status> {
        let caller = caller(&request)?;
        let id =
            TokenId::parse(&request.into_inner().token_id).map_err(|error| errors::bad_field("token_id", error))?;
        let access = Arc::clone(&self.0.archive.access);
        let revoked = self.change(&caller, |reply| Change::RevokeToken { id, access, reply });
        Ok(Response::new(message(revoked.await??)))
    }

    async fn suspend_actor(&self, request: Request<v1::SuspendActorRequest>) -> Result<Response<v1::Actor>, Status> {
        let caller = caller(&request)?;
        let v1::SuspendActorRequest {
            actor_id: actor,
            reason,
        } = request.into_inner();
        let reason = plain("reason", reason, REASON_LEN_MAX)?;
        let suspended = self.change(&caller, |reply| Change::SuspendActor { actor, reason, reply });
        Ok(Response::new(messages::actor(suspended.await??)))
    }

    async fn resume_actor(&self, request: Request<v1::ResumeActorRequest>) -> Result<Response<v1::Actor>, Status> {
        let caller = caller(&request)?;
        let actor = request.into_inner().actor_id;
        let resumed = self.change(&caller, |reply| Change::ResumeActor { actor, reply });
        Ok(Response::new(messages::actor(resumed.await??)))
    }

    async fn purge_actor(
        &self,
        request: Request<v1::PurgeActorRequest>,
    ) -> Result<Response<v1::PurgeActorResponse>, Status> {
        let caller = caller(&request)?;
        let v1::PurgeActorRequest {
            actor_id: actor,
            since_unix_ms: since_ms,
        } = request.into_inner();
        let purged = self.change(&caller, |reply| Change::PurgeActor { actor, since_ms, reply });
        let purged = purged.await??;
        Ok(Response::new(v1::PurgeActorResponse {
            games: purged.games,
            positions: purged.positions,
            match_games: purged.match_games,
            window_epoch: purged.window_epoch,
        }))
    }

    async fn pause(&self, request: Request<v1::PauseRequest>) -> Result<Response<v1::Steering>, Status> {
        let caller = caller(&request)?;
        let v1::PauseRequest { activity, reason } = request.into_inner();
        let steered = self.steer(&caller, Wish::Pause(steer::activity(activity)?), reason);
        Ok(Response::new(steered.await?.steering))
    }

    async fn resume(&self, request: Request<v1::ResumeRequest>) -> Result<Response<v1::Steering>, Status> {
        let caller = caller(&request)?;
        let v1::ResumeRequest { activity, reason } = request.into_inner();
        let steered = self.steer(&caller, Wish::Resume(steer::activity(activity)?), reason);
        Ok(Response::new(steered.await?.steering))
    }

    async fn promote_model(&self, request: Request<v1::PromoteModelRequest>) -> Result<Response<v1::Model>, Status> {
        let caller = caller(&request)?;
        let v1::PromoteModelRequest {
            model_id,
            expected,
            reason,
        } = request.into_inner();
        let wish = Wish::Promote(steer::model(&model_id)?, steer::expected(expected)?);
        self.steer_model(&caller, wish, reason).await
    }

    async fn reject_candidate(
        &self,
        request: Request<v1::RejectCandidateRequest>,
    ) -> Result<Response<v1::Model>, Status> {
        let caller = caller(&request)?;
        let v1::RejectCandidateRequest {
            model_id,
            expected,
            reason,
        } = request.into_inner();
        let wish = Wish::Reject(steer::model(&model_id)?, steer::expected(expected)?);
        self.steer_model(&caller, wish, reason).await
    }

    async fn roll_back(&self, request: Request<v1::RollBackRequest>) -> Result<Response<v1::Model>, Status> {
        let caller = caller(&request)?;
        let v1::RollBackRequest {
            model_id,
            expected,
            reason,
            pin,
        } = request.into_inner();
        let then = if pin { Then::Pin } else { Then::GoOn };
        let wish = Wish::RollBack(steer::model(&model_id)?, steer::expected(expected)?, then);
        self.steer_model(&caller, wish, reason).await
    }

    async fn pin_champion(&self, request: Request<v1::PinChampionRequest>) -> Result<Response<v1::Steering>, Status> {
        let caller = caller(&request)?;
        let v1::PinChampionRequest { expected, reason } = request.into_inner();
        let steered = self.steer(&caller, Wish::Pin(steer::expected(expected)?), reason);
        Ok(Response::new(steered.await?.steering))
    }

    async fn unpin_champion(
        &self,
        request: Request<v1::UnpinChampionRequest>,
    ) -> Result<Response<v1::Steering>, Status> {
        let caller = caller(&request)?;
        let v1::UnpinChampionRequest { reason, expected } = request.into_inner();
        let steered = self.steer(&caller, Wish::Unpin(steer::expected(expected)?), reason);
        Ok(Response::new(steered.await?.steering))
    }

    async fn end_run(&self, request: Request<v1::EndRunRequest>) -> Result<Response<v1::Steering>, Status> {
        let caller = caller(&request)?;
        let v1::EndRunRequest { run_id, reason } = request.into_inner();
        let steered = self.steer(&caller, Wish::End(run_id), reason);
        Ok(Response::new(steered.await?.steering))
    }

    async fn change_settings(
        &self,
        request: Request<v1::ChangeSettingsRequest>,
    ) -> Result<Response<v1::ChangeSettingsResponse>, Status> {
        let caller = caller(&request)?;
        let v1::ChangeSettingsRequest {
            assignments,
            expected_revision,
            validate_only,
            reason,
        } = request.into_inner();
        let wish = SettingsWish {
            assignments: assignments.into_iter().map(|one| (one.key, one.value)).collect(),
            expected_revision,
            mode: if validate_only { Mode::Compare } else { Mode::Apply },
            reason: plain("reason", reason, REASON_LEN_MAX)?,
        };
        let applied = self.change(&caller, |reply| Change::Settings { wish, reply });
        let applied = applied.await??;
        Ok(Response::new(v1::ChangeSettingsResponse {
            revision: applied.revision,
            changes: applied.changes.into_iter().map(messages::setting_change).collect(),
        }))
    }

    async fn list_audit(
        &self,
        request: Request<v1::ListAuditRequest>,
    ) -> Result<Response<v1::ListAuditResponse>, Status> {
        let v1::ListAuditRequest {
            page_size: asked,
            page_token,
        } = request.into_inner();
        let limit = page_size(asked);
        let before = page_start(&page_token, i64::MAX)?;
        let page = self
            .0
            .archive
            .read(move |connection| audit_page(connection, before, limit));
        Ok(Response::new(page.await?))
    }
}

fn audit_page(connection: &rusqlite::Connection, before: i64, limit: u32) -> Result<v1::ListAuditResponse, StoreError> {
    let mut rows = trail::before(connection, before, limit + 1)?;
    let next = rows.len() > limit as usize;
    rows.truncate(limit as usize);
    let last = rows.last().filter(|_| next);
    let next_page_token = last.map(|row| row.id.to_string()).unwrap_or_default();
    let entries = rows.into_iter().map(|row| v1::AuditEntry {
        at_unix_ms: row.at_ms,
        who: row.who,
        action: row.action,
        detail: row.detail,
        old: row.old,
        new: row.new,
    });
    Ok(v1::ListAuditResponse {
        entries: entries.collect(),
        next_page_token,
    })
}

fn message(row: TokenRow) -> v1::Token {
    v1::Token {
        token_id: row.id.to_string(),
        role: row.role.to_string(),
        name: row.name,
        created_by: row.created_by,
        created_unix_ms: row.created_ms,
        expires_unix_ms: row.expires_ms.unwrap_or_default(),
        revoked_unix_ms: row.revoked_ms.unwrap_or_default(),
    }
}

/// A short text without control characters.
fn plain(field: &str, text: String, len_max: usize) -> Result<String, Status> {
    if text.len() > len_max || text.chars().any(char::is_control) {
        let fault = format!("at most {len_max} bytes without control characters are wanted");
        return Err(errors::bad_field(field, fault));
    }
    Ok(text)
}

impl From<TooManyTokens> for Status {
    fn from(error: TooManyTokens) -> Status {
        errors::refusal(Code::ResourceExhausted, "TOO_MANY_TOKENS", error)
    }
}

impl From<NoSuchToken> for Status {
    fn from(error: NoSuchToken) -> Status {
        errors::refusal(Code::NotFound, "NO_SUCH_TOKEN", error)
    }
}

impl From<NoSuchActor> for Status {
    fn from(error: NoSuchActor) -> Status {
        errors::refusal(Code::NotFound, "NO_SUCH_ACTOR", error)
    }
}
