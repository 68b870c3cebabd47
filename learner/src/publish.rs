//! Brings a finished network to the coordinator, however long the coordinator is away.
//!
//! The file is already exported, checked and its checkpoint durable when it arrives here; nothing here computes.

use std::sync::Arc;

use tengen_proto::v1::model_service_client::ModelServiceClient;
use tengen_proto::v1::publish_model_request::Part;
use tengen_proto::v1::{Model, Probe, PublishHeader, PublishModelRequest};
use tengen_records::ModelId;
use tengen_service::backoff::Backoff;
use tengen_service::channel::Channel;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tonic::Status;

use crate::export::Export;
use crate::plan::Candidate;
use crate::signals::Signals;
use crate::wire::{Refusal, reason, refusal};

/// Bytes of the file in one message.
const CHUNK_BYTES_MAX: usize = 1024 * 1024;

/// A network on its way.
#[derive(Clone, Debug)]
pub struct Publication {
    /// The candidate it is.
    pub candidate: Candidate,
    /// Its id.
    pub model_id: ModelId,
    /// Its description, as the coordinator wants it.
    pub description: Model,
    /// The file.
    pub file: Vec<u8>,
}

impl Publication {
    /// This file as the candidate of `run_id`, cut after `step` steps.
    pub fn new(candidate: Candidate, run_id: &str, step: u64, export: Export) -> Publication {
        let probes = export.probes.into_iter().map(|probe| Probe {
            planes: probe.planes,
            policy: probe.policy,
            wdl: probe.wdl.to_vec(),
        });
        let description = Model {
            model_id: export.model_id.to_bytes().to_vec(),
            run_id: run_id.to_owned(),
            iteration: candidate.iteration,
            step,
            parent_id: export.metadata.parent.map(Vec::from).unwrap_or_default(),
            size_bytes: export.file.len() as u64,
            metadata_json: export.metadata.to_json(),
            probes: probes.collect(),
            ..Model::default()
        };
        Publication {
            candidate,
            model_id: export.model_id,
            description,
            file: export.file,
        }
    }
}

/// What the reporter knows of the learner's place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The fencing token to use.
    pub fence: u64,
    /// Reports that the coordinator accepted under it; counts up, so that a watcher sees each.
    pub reports_accepted: u64,
}

/// Publishes what arrives, one at a time, until the sender is gone or `stop` is cancelled. What becomes of each is told
/// through `signals`.
pub async fn run(
    channel: Channel,
    mut publications: mpsc::Receiver<Publication>,
    mut place: watch::Receiver<Place>,
    signals: Arc<Signals>,
    stop: CancellationToken,
) {
    let mut client = ModelServiceClient::new(channel);
    while let Some(publication) = publications.recv().await {
        let iteration = publication.candidate.iteration;
        let settled = tokio::select! {
            biased;
            // Not told to the training loop: its checkpoint knows the file, and the next start asks the coordinator.
            () = stop.cancelled() => return,
            settled = publish(&mut client, &publication, &mut place) => settled,
        };
        match settled {
            Ok(()) => {
                tracing::info!(iteration, model = %publication.model_id.short(), "network published");
                signals.update(|inputs| {
                    inputs.publishing = false;
                    inputs.published_iteration = inputs.published_iteration.max(iteration);
                });
            }
            Err(status) => {
                tracing::error!(
                    iteration,
                    reason = reason(&status),
                    "the coordinator refused the network"
                );
                signals.update(|inputs| {
                    inputs.publishing = false;
                    inputs.given_up_iteration = inputs.given_up_iteration.max(iteration);
                });
            }
        }
    }
}

/// Tries until the coordinator has the network, or refuses it for another reason than a lost place. The same file may be
/// published twice, so a lost answer does no harm.
pub(crate) async fn publish(
    client: &mut ModelServiceClient<Channel>,
    publication: &Publication,
    place: &mut watch::Receiver<Place>,
) -> Result<(), Status> {
    let mut backoff = Backoff::default();
    loop {
        let used = *place.borrow_and_update();
        let Err(status) = client.publish_model(messages(publication, used.fence)).await else {
            return Ok(());
        };
        match refusal(&status) {
            Refusal::Transient => {
                tracing::warn!(reason = reason(&status), "failed to publish, trying again");
                // Stopping drops this future, wait and all: a file on its way is never taken for a refused one.
                tokio::time::sleep(backoff.next_delay()).await;
            }
            // Perhaps the coordinator restarted and forgot our place. The reporter finds out: either it takes a new
            // place, and this is worth another try, or its next report passes, and the refusal was about the network.
            Refusal::Final => {
                if place.changed().await.is_err() || place.borrow().fence == used.fence {
                    return Err(status);
                }
            }
        }
    }
}

/// The description, then the file in pieces.
fn messages(publication: &Publication, fence: u64) -> impl tokio_stream::Stream<Item = PublishModelRequest> + use<> {
    let model = Some(publication.description.clone());
    let header = Part::Header(PublishHeader { fence, model });
    let chunks: Vec<Part> = publication
        .file
        .chunks(CHUNK_BYTES_MAX)
        .map(|chunk| Part::Chunk(chunk.to_vec()))
        .collect();
    let parts = std::iter::once(header).chain(chunks);
    tokio_stream::iter(parts.map(|part| PublishModelRequest { part: Some(part) }))
}

#[cfg(test)]
mod tests {
    use tokio_stream::StreamExt;

    use super::*;

    #[tokio::test]
    async fn the_description_comes_first_and_the_chunks_add_up() {
        let file: Vec<u8> = (0..2 * CHUNK_BYTES_MAX + 5).map(|index| index as u8).collect();
        let publication = Publication {
            candidate: Candidate {
                iteration: 3,
                positions: 10,
            },
            model_id: ModelId([7; 32]),
            description: Model {
                iteration: 3,
                ..Model::default()
            },
            file: file.clone(),
        };
        let parts: Vec<Part> = messages(&publication, 9)
            .filter_map(|message| message.part)
            .collect()
            .await;
        let Part::Header(header) = &parts[0] else {
            panic!("{:?}", parts[0])
        };
        assert_eq!((header.fence, header.model.as_ref().unwrap().iteration), (9, 3));
        let mut sent = Vec::new();
        for part in &parts[1..] {
            let Part::Chunk(chunk) = part else {
                panic!("a second header")
            };
            assert!(chunk.len() <= CHUNK_BYTES_MAX);
            sent.extend_from_slice(chunk);
        }
        assert_eq!(sent, file);
    }
}
