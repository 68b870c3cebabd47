//! One stream of games from one actor: each is examined, stored, and answered with its verdict.

use std::sync::Arc;

use tengen_proto::v1;
use tengen_records::{RecordId, Rejection, peek_id};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use tonic::{Status, Streaming};

use super::examine::Fault;
use super::{Shared, blocking, errors};
use crate::access::Caller;
use crate::failpoint::Failpoint;
use crate::run::request::{Request, StoreVerdict};

/// Games of one stream that are on their way at once; the next one is read when one of them is answered.
pub(super) const IN_FLIGHT_MAX: usize = 32;

type Answers = mpsc::Sender<Result<v1::SubmitGameResponse, Status>>;

/// Serves a stream until the actor ends it, the process drains, or the actor is refused.
pub(super) async fn serve(
    shared: Shared,
    caller: Caller,
    mut games: Streaming<v1::SubmitGameRequest>,
    answers: Answers,
) {
    let in_flight = Arc::new(Semaphore::new(IN_FLIGHT_MAX));
    let refused = CancellationToken::new();
    loop {
        let Ok(permit) = Arc::clone(&in_flight).acquire_owned().await else {
            return;
        };
        let game = tokio::select! {
            game = games.message() => game,
            () = shared.archive.stop.cancelled() => {
                // What was read is answered first.
                let _all = in_flight.acquire_many(IN_FLIGHT_MAX as u32 - 1).await;
                let _gone = answers.send(Err(errors::draining())).await;
                return;
            }
            () = refused.cancelled() => return,
            () = answers.closed() => return,
        };
        let game = match game {
            Ok(Some(game)) => game,
            Ok(None) => return,
            Err(status) => {
                // A message that is too large, or no message at all. When the stream itself broke, nobody is left to tell.
                let _gone = answers.send(Err(status)).await;
                return;
            }
        };
        let (shared, answers, refused) = (shared.clone(), answers.clone(), refused.clone());
        let caller = caller.clone();
        tokio::spawn(async move {
            let answer = judge(&shared, &caller, game).await;
            if answer.is_err() {
                refused.cancel();
            }
            // An actor that went away asks again: the verdict will then be `duplicate`.
            let _gone = answers.send(answer).await;
            shared.failpoints.pass(Failpoint::Acknowledged);
            drop(permit);
        });
    }
}

/// The verdict on one game; an error ends the stream.
async fn judge(
    shared: &Shared,
    caller: &Caller,
    game: v1::SubmitGameRequest,
) -> Result<v1::SubmitGameResponse, Status> {
    shared.archive.access.speaks_for(caller, &game.actor_id)?;
    caller.take_game()?;
    shared.failpoints.pass(Failpoint::Received);
    let named = Named {
        id: peek_id(&game.record),
        ticket: game.ticket,
    };
    if let Err(no_room) = shared.disk.check() {
        // Not even looked at: a refusal would be written down, too.
        return Ok(v1::SubmitGameResponse {
            detail: no_room.to_string(),
            ..named.answer(v1::Verdict::Retry)
        });
    }
    let examined = {
        let Ok(_permit) = shared.checks.acquire().await else {
            return Err(errors::draining());
        };
        let leases = Arc::clone(&shared.leases);
        let actor = game.actor_id.clone();
        blocking(move || leases.examine(actor, game.record)).await?
    };
    match examined {
        Ok(checked) => {
            shared.failpoints.pass(Failpoint::Checked);
            let (stored_id, actor) = (checked.id, checked.actor.clone());
            let store = |reply| Request::Store {
                game: Box::new(checked),
                reply,
            };
            let Ok(stored) = shared.run.ask(store).await else {
                return Ok(named.answer(v1::Verdict::Retry));
            };
            let stored = stored?;
            if let (StoreVerdict::Stored, Some(audit)) = (stored, &shared.audit) {
                audit.offer(stored_id, &actor);
            }
            Ok(named.answer(verdict(stored)))
        }
        Err((Fault::Rejected(rejection), record)) => refuse(shared, game.actor_id, named, rejection, record).await,
        Err((Fault::Store(error), _)) => {
            tracing::error!(%error, "a record could not be examined");
            Ok(named.answer(v1::Verdict::Retry))
        }
    }
}

async fn refuse(
    shared: &Shared,
    actor: String,
    named: Named,
    rejection: Rejection,
    record: Vec<u8>,
) -> Result<v1::SubmitGameResponse, Status> {
    let reason_code = rejection.code.as_str().to_owned();
    let detail = rejection.detail.clone();
    match shared
        .run
        .ask(|reply| Request::Refuse {
            actor,
            rejection,
            record,
            strikes_max: shared.archive.access.limits().strikes_max,
            reply,
        })
        .await
    {
        Ok(noted) => {
            noted?;
            Ok(v1::SubmitGameResponse {
                reason_code,
                detail,
                ..named.answer(v1::Verdict::Rejected)
            })
        }
        Err(_) => Ok(named.answer(v1::Verdict::Retry)),
    }
}

fn verdict(stored: StoreVerdict) -> v1::Verdict {
    match stored {
        StoreVerdict::Stored => v1::Verdict::Stored,
        StoreVerdict::Duplicate => v1::Verdict::Duplicate,
        StoreVerdict::Conflict => v1::Verdict::Conflict,
    }
}

/// What a verdict calls its game.
#[derive(Clone, Copy, Debug)]
struct Named {
    /// As the record says; absent when it is not readable.
    id: Option<RecordId>,
    /// As the sender says.
    ticket: u64,
}

impl Named {
    fn answer(self, verdict: v1::Verdict) -> v1::SubmitGameResponse {
        let Named { id, ticket } = self;
        v1::SubmitGameResponse {
            lease_id: id.map(|id| id.lease.to_bytes().to_vec()).unwrap_or_default(),
            game_index: id.map_or(0, |id| id.index),
            verdict: verdict.into(),
            reason_code: String::new(),
            detail: String::new(),
            ticket,
        }
    }
}
