//! Where training begins and what self-play uses: reads networks back from the coordinator.

use std::sync::Arc;

use tengen_network::{ReadError, Shape, Weights, read_metadata, read_weights};
use tengen_proto::v1::model_service_client::ModelServiceClient;
use tengen_proto::v1::{DownloadModelRequest, GetModelRequest, Model, WatchChampionRequest};
use tengen_records::{ModelId, ParseIdError};
use tengen_service::backoff::Backoff;
use tengen_service::channel::{Channel, MESSAGE_BYTES_MAX};
use tokio_util::sync::CancellationToken;
use tonic::Status;

use crate::export::TRAIN_POSITIONS;
use crate::signals::Signals;
use crate::wire::{Refusal, reason, refusal};

/// Largest file that is read back: far above any network of a shape that configuration allows on these boards.
const FILE_BYTES_MAX: usize = 1 << 30;

/// The network to begin from could not be had.
#[derive(Debug, thiserror::Error)]
pub enum AncestryError {
    /// The coordinator says no.
    #[error("failed to read the newest network: {0}")]
    Refused(String),
    /// Its id is none.
    #[error("the newest network: {0}")]
    Id(#[from] ParseIdError),
    /// The bytes are not the file that was named.
    #[error("the newest network has id {expected}, the bytes read have {actual}")]
    Hash {
        /// The id.
        expected: ModelId,
        /// Hash of what was read.
        actual: ModelId,
    },
    /// The file is too large to be a network of ours.
    #[error("the newest network has more than {FILE_BYTES_MAX} bytes")]
    TooLarge,
    /// The file holds no weights.
    #[error("the newest network: {0}")]
    Read(#[from] ReadError),
    /// Its weights are of another shape.
    #[error("the newest network is not of this run's shape ({shape}): {reason}")]
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
    /// Trainable positions of the run when it was cut; `None` for the random network.
    pub positions_total: Option<u64>,
}

/// The newest network of the run, however long the coordinator is away. `None`: stopped before it was there.
pub async fn newest(channel: Channel, stop: &CancellationToken) -> Result<Option<Model>, AncestryError> {
    persist(channel, stop, |mut client| async move {
        let request = GetModelRequest {
            name: "latest".to_owned(),
        };
        Ok(client.get_model(request).await?.into_inner())
    })
    .await
}

/// Its weights, however long the coordinator is away. `None`: stopped before they were there.
pub async fn read(
    channel: Channel,
    model: &Model,
    shape: &Shape,
    stop: &CancellationToken,
) -> Result<Option<Ancestor>, AncestryError> {
    let file = persist(channel, stop, |client| download(client, model.model_id.clone())).await?;
    file.map(|file| ancestor(&model.model_id, &file, shape)).transpose()
}

/// Calls until there is an answer or a refusal that stays one. `None`: stopped before.
async fn persist<T, Answer: Future<Output = Result<T, Status>>>(
    channel: Channel,
    stop: &CancellationToken,
    call: impl Fn(ModelServiceClient<Channel>) -> Answer,
) -> Result<Option<T>, AncestryError> {
    let client = ModelServiceClient::new(channel).max_decoding_message_size(MESSAGE_BYTES_MAX);
    let mut backoff = Backoff::default();
    loop {
        let answer = tokio::select! {
            () = stop.cancelled() => return Ok(None),
            answer = call(client.clone()) => answer,
        };
        match answer {
            Ok(answer) => return Ok(Some(answer)),
            Err(status) if refusal(&status) == Refusal::Final => {
                return Err(AncestryError::Refused(reason(&status)));
            }
            Err(status) => tracing::warn!(
                reason = reason(&status),
                "failed to read the newest network, trying again"
            ),
        }
        if !backoff.wait(stop).await {
            return Ok(None);
        }
    }
}

async fn download(mut client: ModelServiceClient<Channel>, model_id: Vec<u8>) -> Result<Vec<u8>, Status> {
    let request = DownloadModelRequest { model_id, offset: 0 };
    let mut chunks = client.download_model(request).await?.into_inner();
    let mut file = Vec::new();
    while let Some(chunk) = chunks.message().await? {
        file.extend_from_slice(&chunk.data);
        if file.len() > FILE_BYTES_MAX {
            return Err(Status::out_of_range(AncestryError::TooLarge.to_string()));
        }
    }
    Ok(file)
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
    let positions = read_metadata(file)?.extra.get(TRAIN_POSITIONS).cloned();
    Ok(Ancestor {
        model_id,
        weights,
        positions_total: positions.and_then(|positions| positions.parse().ok()),
    })
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
