//! The connection to the coordinator: registration and the stream of games, made again after every loss.

use std::time::Duration;

use tengen_proto::v1::actor_service_client::ActorServiceClient;
use tengen_proto::v1::{SubmitGameRequest, SubmitGameResponse};
use tengen_records::RECORD_BYTES_MAX;
use tengen_service::backoff::Backoff;
use tengen_service::channel::{Channel, MESSAGE_BYTES_MAX};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;

use crate::handshake::{HandshakeError, Me, Run, register};

/// Whatever passes the spool's door fits into a message, with room for what is around it.
const _: () = assert!(RECORD_BYTES_MAX + 64 * 1024 <= MESSAGE_BYTES_MAX);

/// Games that may be on their way into the stream.
const SENDING_MAX: usize = 32;

/// A registered connection.
pub(crate) struct Link {
    /// Games go in here.
    pub(crate) games: mpsc::Sender<SubmitGameRequest>,
    /// Verdicts come out here.
    pub(crate) verdicts: Streaming<SubmitGameResponse>,
}

/// A client of the actor's service with the house's limits.
pub(crate) fn client(channel: Channel) -> ActorServiceClient<Channel> {
    ActorServiceClient::new(channel)
        .max_decoding_message_size(MESSAGE_BYTES_MAX)
        .max_encoding_message_size(MESSAGE_BYTES_MAX)
}

/// Registers and opens the stream of games after a pause, trying until it works or cannot.
pub(crate) async fn connect(
    channel: Channel,
    me: Me,
    provider: String,
    known: Option<Run>,
    pause: Duration,
) -> Result<(Run, Link), HandshakeError> {
    tokio::time::sleep(pause).await;
    let mut backoff = Backoff::default();
    let mut told = false;
    loop {
        match try_connect(channel.clone(), &me, &provider, known.as_ref()).await {
            Err(error) if error.is_transient() => {
                // Once a loss is enough: the tries may go on for hours.
                if !told {
                    tracing::warn!(%error, "no answer from the coordinator, trying on");
                    told = true;
                }
                tokio::time::sleep(backoff.next_delay()).await;
            }
            outcome => return outcome,
        }
    }
}

async fn try_connect(
    channel: Channel,
    me: &Me,
    provider: &str,
    known: Option<&Run>,
) -> Result<(Run, Link), HandshakeError> {
    let mut client = client(channel);
    let run = register(&mut client, me, provider, known).await?;
    let (games, outgoing) = mpsc::channel(SENDING_MAX);
    let verdicts = client.submit_games(ReceiverStream::new(outgoing)).await?.into_inner();
    Ok((run, Link { games, verdicts }))
}
