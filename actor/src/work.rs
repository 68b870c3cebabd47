//! Getting work: one lease with every network it needs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tengen_proto::v1;
use tengen_proto::v1::get_work_response::Work;
use tengen_records::{LeaseId, RunId};
use tengen_selfplay::feeding::Feeding;
use tengen_selfplay::wire::{WireError, order_from_wire};
use tengen_selfplay::{Lease, LeaseError};
use tengen_service::channel::Channel;
use tokio::task::spawn_blocking;
use tonic::Status;

use crate::handshake::CALL_TIMEOUT;
use crate::models::{ModelError, Models};
use crate::{link, pace};

/// Bounds of the pause that we believe.
const RETRY_MS: std::ops::RangeInclusive<u32> = 10..=60_000;
/// Most games of one lease that is taken: far above what any actor plays in its two minutes.
const LEASE_GAMES_MAX: u32 = 1_000_000;

/// The coordinator's answer.
pub(crate) enum Answer {
    /// Work, ready to play.
    Lease(Arc<Lease>),
    /// Nothing now.
    Wait { reason: String, pause: Duration },
}

/// No work was had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WorkError {
    /// The call failed.
    #[error("{}", .0.message())]
    Call(Box<Status>),
    /// The lease cannot be played here and goes back.
    #[error("lease {lease} cannot be played: {reason}")]
    Lease { lease: LeaseId, reason: Reason },
    /// The answer is not a lease at all.
    #[error("the work order makes no sense: {0}")]
    Order(#[from] WireError),
    /// The answer is empty.
    #[error("the answer holds neither work nor the advice to wait")]
    Empty,
}

/// Why a lease cannot be played.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Reason {
    /// A network.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// Order and networks do not belong together.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// Too many games.
    #[error("it has {0} games, at most {LEASE_GAMES_MAX} are taken")]
    Games(u32),
}

impl Reason {
    /// Whether the next lease would fail for the same reason: the actor should stop and say so.
    pub(crate) fn is_fatal(&self) -> bool {
        matches!(self, Reason::Model(ModelError::Corrupt { .. }))
    }
}

/// The lease that is on its way, as both sides see it: whoever reports names it, or it would lapse while its networks are
/// fetched and loaded; whoever prepares it hears when nobody will play it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Coming {
    lease: Arc<OnceLock<LeaseId>>,
    pointless: Arc<AtomicBool>,
}

impl Coming {
    fn note(&self, lease: LeaseId) {
        // Nothing else is ever noted: each request has its own.
        let _ = self.lease.set(lease);
    }

    /// Its id, once there is one.
    pub(crate) fn lease(&self) -> Option<LeaseId> {
        self.lease.get().copied()
    }

    /// Nobody will play it.
    pub(crate) fn give_up(&self) {
        self.pointless.store(true, Ordering::Relaxed);
    }

    fn is_pointless(&self) -> bool {
        self.pointless.load(Ordering::Relaxed)
    }
}

/// Asks for a lease and fetches its networks; where games are played already, threads find their sessions ready. The first
/// network ever is measured.
pub(crate) async fn ask(
    channel: Channel,
    run: RunId,
    models: Arc<Models>,
    feeding: Arc<Feeding>,
    coming: Coming,
    request: v1::GetWorkRequest,
) -> Result<Answer, WorkError> {
    let mut request = tonic::Request::new(request);
    request.set_timeout(CALL_TIMEOUT);
    let answer = link::client(channel).get_work(request).await;
    match answer
        .map_err(|status| WorkError::Call(Box::new(status)))?
        .into_inner()
        .work
    {
        None => Err(WorkError::Empty),
        Some(Work::Wait(wait)) => {
            let ms = wait.retry_after_ms.clamp(*RETRY_MS.start(), *RETRY_MS.end());
            Ok(Answer::Wait {
                reason: wait.reason,
                pause: Duration::from_millis(u64::from(ms)),
            })
        }
        Some(Work::Order(order)) => {
            let order = order_from_wire(&order)?;
            let lease = order.lease;
            coming.note(lease);
            let prepared = async {
                let games = order.plan.games();
                if games > LEASE_GAMES_MAX {
                    return Err(Reason::Games(games));
                }
                let fetched = models.fetch(&order.models).await?;
                if let Some(model) = fetched.first() {
                    pace::settle(&feeding, model).await;
                }
                let lease = Lease::new(run, order, fetched)?;
                make_ready(&feeding, &lease, &coming).await;
                Ok(lease)
            };
            prepared
                .await
                .map(Answer::Lease)
                .map_err(|reason| WorkError::Lease { lease, reason })
        }
    }
}

/// Loads the sessions that threads will want for this lease, so that no game waits for them. Where that fails they load them
/// themselves, and say why they cannot.
async fn make_ready(feeding: &Arc<Feeding>, lease: &Arc<Lease>, coming: &Coming) {
    let (loading, wanted) = (Arc::clone(feeding), Arc::clone(lease));
    let coming = coming.clone();
    match spawn_blocking(move || loading.prepare(&wanted, || !coming.is_pointless())).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(%error, "sessions were not loaded ahead of their games"),
        Err(error) => tracing::warn!(%error, "loading sessions ahead of their games was broken off"),
    }
}
