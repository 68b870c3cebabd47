//! Follows a coordinator's status over lost connections; no gate that is decided meanwhile is missed.

use tengen_proto::v1::run_event::Event;
use tengen_proto::v1::run_service_client::RunServiceClient;
use tengen_proto::v1::{Gate, RunStatus, WatchStatusRequest};
use tengen_service::backoff::Backoff;
use tengen_service::channel::Channel;
use tengen_service::credentials::Credentials;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::client;

/// Time between two status messages.
const INTERVAL_MS: u32 = 1_000;

/// Something to show.
pub(crate) enum Update {
    /// How the run is doing.
    Status(Box<RunStatus>),
    /// A gate was decided.
    Decided(Box<Gate>),
}

/// Sends updates until `stop` or until nobody listens.
pub(crate) async fn follow(
    url: String,
    credentials: Credentials,
    updates: mpsc::Sender<Update>,
    stop: CancellationToken,
) {
    let mut backoff = Backoff::default();
    let mut resume_token = String::new();
    while !updates.is_closed() {
        let Ok(channel) = client::connect(&url, &credentials) else {
            return;
        };
        let mut client = client::runs(channel);
        if let Err(status) = follow_once(&mut client, &updates, &mut resume_token, &mut backoff).await {
            tracing::debug!(reason = status.message(), "the status stream broke");
        }
        if !backoff.wait(&stop).await {
            return;
        }
    }
}

async fn follow_once(
    client: &mut RunServiceClient<Channel>,
    updates: &mpsc::Sender<Update>,
    resume_token: &mut String,
    backoff: &mut Backoff,
) -> Result<(), tonic::Status> {
    let request = WatchStatusRequest {
        interval_ms: INTERVAL_MS,
        resume_token: resume_token.clone(),
    };
    let mut stream = client.watch_status(request).await?.into_inner();
    while let Some(mut status) = stream.message().await? {
        *backoff = Backoff::default();
        resume_token.clone_from(&status.resume_token);
        let events = std::mem::take(&mut status.events).into_iter();
        let decided = events.filter_map(|event| match event.event {
            Some(Event::GateDecided(gate)) => Some(gate),
            _ => None,
        });
        for gate in decided {
            if updates.send(Update::Decided(Box::new(gate))).await.is_err() {
                return Ok(());
            }
        }
        if updates.send(Update::Status(Box::new(status))).await.is_err() {
            return Ok(());
        }
    }
    Ok(())
}
