//! Where training begins and what self-play uses: reads networks back from the coordinator.

use std::sync::Arc;

use tengen_network::{ReadError, Shape, Weights, read_weights};
use tengen_proto::v1::model_service_client::ModelServiceClient;
use tengen_proto::v1::{DownloadModelRequest, GetModelRequest, WatchChampionRequest};
use tengen_records::{ModelId, ParseIdError};
use tengen_service::backoff::Backoff;
use tengen_service::channel::{Channel, MESSAGE_BYTES_MAX};
use tokio_util::sync::CancellationToken;
use tonic::Status;

use crate::signals::Signals;
use crate::wire::{Refusal, reason, refusal};

/// Largest file that is read back: far above any network of a shape that configuration allows on these boards.
const FILE_BYTES_MAX: usize = 1 << 30;

/// The network to begin from could not be had.
#[derive(Debug, thiserror::Error)]
pub enum AncestryError {
    /// The coordinator says no.
    #[error("failed to read generation 0: {0}")]
    Refused(String),
    /// Its id is none.
    #[error("generation 0: {0}")]
    Id(#[from] ParseIdError),
    /// The bytes are not the file that was named.
    #[error("generation 0 has id {expected}, the bytes read have {actual}")]
    Hash {
        /// The id.
        expected: ModelId,
        /// Hash of what was read.
        actual: ModelId,
    },
    /// The file is too large to be a network of ours.
    #[error("generation 0 has more than {FILE_BYTES_MAX} bytes")]
    TooLarge,
    /// The file holds no weights.
    #[error("generation 0: {0}")]
    Read(#[from] ReadError),
    /// Its weights are of another shape.
    #[error("generation 0 is not of this run's shape ({shape}): {reason}")]
    Shape {
        /// The run's shape.
        shape: String,
        /// What does not fit.
        reason: String,
    },
}

/// The network that training begins from.
#[derive(Debug)]
pub struct Ancestor {
    /// Its id.
    pub model_id: ModelId,
    /// Its weights, of the run's shape.
    pub weights: Weights,
}

/// Reads generation 0, however long the coordinator is away. `None`: stopped before it was there.
pub async fn generation_zero(
    channel: Channel,
    shape: &Shape,
    stop: &CancellationToken,
) -> Result<Option<Ancestor>, AncestryError> {
    let mut client = ModelServiceClient::new(channel).max_decoding_message_size(MESSAGE_BYTES_MAX);
    let mut backoff = Backoff::default();
    let (id, file) = loop {
        let read = tokio::select! {
            () = stop.cancelled() => return Ok(None),
            read = download(&mut client) => read,
        };
        match read {
            Ok(read) => break read,
            Err(status) if refusal(&status) == Refusal::Final => {
                return Err(AncestryError::Refused(reason(&status)));
            }
            Err(status) => tracing::warn!(reason = reason(&status), "failed to read generation 0, trying again"),
        }
        if !backoff.wait(stop).await {
            return Ok(None);
        }
    };
    ancestor(&id, &file, shape).map(Some)
}

async fn download(client: &mut ModelServiceClient<Channel>) -> Result<(Vec<u8>, Vec<u8>), Status> {
    let model = client
        .get_model(GetModelRequest {
            name: "gen:0".to_owned(),
        })
        .await?
        .into_inner();
    let request = DownloadModelRequest {
        model_id: model.model_id.clone(),
        offset: 0,
    };
    let mut chunks = client.download_model(request).await?.into_inner();
    let mut file = Vec::new();
    while let Some(chunk) = chunks.message().await? {
        file.extend_from_slice(&chunk.data);
        if file.len() > FILE_BYTES_MAX {
            return Err(Status::out_of_range(AncestryError::TooLarge.to_string()));
        }
    }
    Ok((model.model_id, file))
}

fn ancestor(id: &[u8], file: &[u8], shape: &Shape) -> Result<Ancestor, AncestryError> {
    let model_id = ModelId::from_bytes(id)?;
    let actual = ModelId(tengen_network::model_id(file));
    if actual != model_id {
        return Err(AncestryError::Hash {
            expected: model_id,
            actual,
        });
    }
    let weights = read_weights(file)?;
    weights.check(shape).map_err(|error| AncestryError::Shape {
        shape: shape.describe(),
        reason: error.to_string(),
    })?;
    Ok(Ancestor { model_id, weights })
}

/// Follows the champion, so that exported networks can name its generation, until `stop` is cancelled.
pub async fn watch_champion(channel: Channel, signals: Arc<Signals>, stop: CancellationToken) {
    let mut client = ModelServiceClient::new(channel).max_decoding_message_size(MESSAGE_BYTES_MAX);
    let mut backoff = Backoff::default();
    loop {
        let ended = tokio::select! {
            () = stop.cancelled() => return,
            ended = follow_champion(&mut client, &signals, &mut backoff) => ended,
        };
        if let Err(status) = ended {
            tracing::debug!(reason = reason(&status), "lost the champion, following it again");
        }
        if !backoff.wait(&stop).await {
            return;
        }
    }
}

async fn follow_champion(
    client: &mut ModelServiceClient<Channel>,
    signals: &Signals,
    backoff: &mut Backoff,
) -> Result<(), Status> {
    let mut champions = client.watch_champion(WatchChampionRequest {}).await?.into_inner();
    while let Some(champion) = champions.message().await? {
        *backoff = Backoff::default();
        let generation = champion.generation.unwrap_or(0);
        signals.update(|inputs| inputs.champion_generation = generation);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tengen_games::AnyGame;
    use tengen_network::{Config, Metadata, random_weights, write_onnx};

    use super::*;

    fn shape(channels: usize) -> Shape {
        let game = AnyGame::parse("tic-tac-toe").unwrap();
        Shape::new(
            game.spec(),
            &Config {
                blocks: 1,
                channels,
                ..Config::default()
            },
        )
        .unwrap()
    }

    #[test]
    fn the_weights_of_the_file_are_what_training_begins_from() {
        let shape = shape(8);
        let weights = random_weights(&shape, 3);
        let file = write_onnx(&shape, &weights, &Metadata::of_shape(&shape)).unwrap();
        let id = tengen_network::model_id(&file);
        assert_eq!(ancestor(&id, &file, &shape).unwrap().weights, weights);
        let torn = ancestor(&id, &file[..file.len() - 1], &shape).unwrap_err();
        assert!(matches!(torn, AncestryError::Hash { .. }), "{torn}");
        let wider = ancestor(&id, &file, &self::shape(16)).unwrap_err();
        assert!(matches!(wider, AncestryError::Shape { .. }), "{wider}");
    }
}
