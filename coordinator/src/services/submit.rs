//! One stream of games from one actor: each is examined, stored, and answered with its verdict.

use std::sync::Arc;

use tengen_proto::v1;
use tengen_records::{RecordId, Rejection, peek_id};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use tonic::{Status, Streaming};

use super::examine::Fault;
use super::{Shared, blocking, errors};
use crate::failpoint::Failpoint;
use crate::run::request::{Request, StoreVerdict};

/// Games of one stream that are on their way at once; the next one is read when one of them is answered.
pub(super) const IN_FLIGHT_MAX: usize = 32;

type Answers = mpsc::Sender<Result<v1::SubmitGameResponse, Status>>;

/// Serves a stream until the actor ends it, the process drains, or the actor is refused.
pub(super) async fn serve(shared: Shared, mut games: Streaming<v1::SubmitGameRequest>, answers: Answers) {
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
        // An error of the stream itself means that nobody is left to tell.
        let Ok(Some(game)) = game else { return };
        let (shared, answers, refused) = (shared.clone(), answers.clone(), refused.clone());
        tokio::spawn(async move {
            let answer = judge(&shared, game).await;
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
async fn judge(shared: &Shared, game: v1::SubmitGameRequest) -> Result<v1::SubmitGameResponse, Status> {
    shared.failpoints.pass(Failpoint::Received);
    let id = peek_id(&game.record);
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
                return Ok(answer(id, v1::Verdict::Retry));
            };
            let stored = stored?;
            if let (StoreVerdict::Stored, Some(audit)) = (stored, &shared.audit) {
                audit.offer(stored_id, &actor);
            }
            Ok(answer(id, verdict(stored)))
        }
        Err((Fault::Rejected(rejection), record)) => refuse(shared, game.actor_id, id, rejection, record).await,
        Err((Fault::Store(error), _)) => {
            tracing::error!(%error, "a record could not be examined");
            Ok(answer(id, v1::Verdict::Retry))
        }
    }
}

async fn refuse(
    shared: &Shared,
    actor: String,
    id: Option<RecordId>,
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
            reply,
        })
        .await
    {
        Ok(noted) => {
            noted?;
            Ok(v1::SubmitGameResponse {
                reason_code,
                detail,
                ..answer(id, v1::Verdict::Rejected)
            })
        }
        Err(_) => Ok(answer(id, v1::Verdict::Retry)),
    }
}

fn verdict(stored: StoreVerdict) -> v1::Verdict {
    match stored {
        StoreVerdict::Stored => v1::Verdict::Stored,
        StoreVerdict::Duplicate => v1::Verdict::Duplicate,
        StoreVerdict::Conflict => v1::Verdict::Conflict,
    }
}

fn answer(id: Option<RecordId>, verdict: v1::Verdict) -> v1::SubmitGameResponse {
    v1::SubmitGameResponse {
        lease_id: id.map(|id| id.lease.to_bytes().to_vec()).unwrap_or_default(),
        game_index: id.map_or(0, |id| id.index),
        verdict: verdict.into(),
        reason_code: String::new(),
        detail: String::new(),
    }
}
