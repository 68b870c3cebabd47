//! Follows a coordinator's status over lost connections, and asks for each gate as it is decided.

use tengen_proto::v1::run_service_client::RunServiceClient;
use tengen_proto::v1::{Gate, GateState, ListMatchesRequest, RunStatus, WatchStatusRequest};
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
    let mut decided = None;
    while !updates.is_closed() {
        let Ok(mut client) = client::runs(&url, &credentials) else {
            return;
        };
        if let Err(status) = follow_once(&mut client, &updates, &mut decided, &mut backoff).await {
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
    decided: &mut Option<u32>,
    backoff: &mut Backoff,
) -> Result<(), tonic::Status> {
    let request = WatchStatusRequest {
        interval_ms: INTERVAL_MS,
    };
    let mut stream = client.watch_status(request).await?.into_inner();
    while let Some(status) = stream.message().await? {
        *backoff = Backoff::default();
        let new = decided.map_or(0, |before| status.gates_decided.saturating_sub(before));
        *decided = Some(status.gates_decided);
        for gate in newly_decided(client, new).await? {
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

/// The `count` newest decided gates, oldest first.
async fn newly_decided(client: &mut RunServiceClient<Channel>, count: u32) -> Result<Vec<Gate>, tonic::Status> {
    if count == 0 {
        return Ok(Vec::new());
    }
    // One more than asked for: the newest may still be open.
    let page_size = i32::try_from(count).unwrap_or(i32::MAX).saturating_add(1);
    let request = ListMatchesRequest {
        page_size,
        page_token: String::new(),
    };
    let page = client.list_matches(request).await?.into_inner();
    let is_decided = |gate: &Gate| matches!(gate.state(), GateState::Promoted | GateState::Rejected);
    let mut gates: Vec<Gate> = page.gates.into_iter().filter(is_decided).take(count as usize).collect();
    gates.reverse();
    Ok(gates)
}
