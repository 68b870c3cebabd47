//! Brings a finished network to the coordinator, however long the coordinator is away.
//!
//! The files are already exported, checked and their checkpoint durable when they arrive here; nothing here computes.

use std::sync::Arc;

use tengen_proto::v1::model_service_client::ModelServiceClient;
use tengen_proto::v1::publish_model_request::Part;
use tengen_proto::v1::{
    Fidelity, Model, ModelVariant, Precision, Probe, ProbeAnswer, PublishHeader, PublishModelRequest,
};
use tengen_records::ModelId;
use tengen_service::backoff::Backoff;
use tengen_service::channel::Channel;
use tengen_service::run_config::ReducedPrecision;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tonic::Status;

use crate::export::Export;
use crate::plan::Candidate;
use crate::signals::Signals;
use crate::variants::Variant;
use crate::wire::{Refusal, reason, refusal};

/// Bytes of a file in one message.
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
    /// The network's file, then those of its variants in the order of the description.
    pub files: Vec<Vec<u8>>,
}

impl Publication {
    /// This file and its variants as the candidate of `run_id`, cut after `step` steps.
    pub fn new(candidate: Candidate, run_id: &str, step: u64, export: Export, variants: Vec<Variant>) -> Publication {
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
            variants: variants.iter().map(described).collect(),
            ..Model::default()
        };
        let variants = variants.into_iter().map(|variant| variant.file);
        Publication {
            candidate,
            model_id: export.model_id,
            description,
            files: std::iter::once(export.file).chain(variants).collect(),
        }
    }

    /// Without its reduced precisions.
    fn in_fp32_alone(&self) -> Publication {
        Publication {
            description: Model {
                variants: Vec::new(),
                ..self.description.clone()
            },
            files: self.files.iter().take(1).cloned().collect(),
            ..self.clone()
        }
    }
}

/// A variant, as the coordinator wants it described.
fn described(variant: &Variant) -> ModelVariant {
    let precision = match variant.precision {
        ReducedPrecision::Int8 => Precision::Int8,
        ReducedPrecision::Fp16 => Precision::Fp16,
    };
    let fidelity = variant.fidelity;
    let answers = variant.answers.iter().map(|answer| ProbeAnswer {
        policy: answer.policy.clone(),
        wdl: answer.wdl.to_vec(),
    });
    ModelVariant {
        precision: precision.into(),
        file_id: variant.file_id.to_vec(),
        size_bytes: variant.file.len() as u64,
        fidelity: Some(Fidelity {
            positions: fidelity.positions,
            policy_kl: fidelity.policy_kl as f32,
            policy_agreement: fidelity.policy_agreement as f32,
            value_error: fidelity.value_error as f32,
        }),
        answers: answers.collect(),
        ..ModelVariant::default()
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
                signals.set_status(|status| status.candidates_given_up += 1);
            }
        }
    }
}

/// Tries until the coordinator has the network, or refuses it for another reason than a lost place. The same file may be
/// published twice, so a lost answer does no harm. A network that is refused together with its reduced precisions, as by a
/// coordinator of an older build, is tried in fp32 alone before it is given up: it plays just as well, only slower.
pub(crate) async fn publish(
    client: &mut ModelServiceClient<Channel>,
    publication: &Publication,
    place: &mut watch::Receiver<Place>,
) -> Result<(), Status> {
    let mut backoff = Backoff::default();
    let mut alone = None;
    loop {
        let used = *place.borrow_and_update();
        let tried = alone.as_ref().unwrap_or(publication);
        let Err(status) = client.publish_model(messages(tried, used.fence)).await else {
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
                    if tried.description.variants.is_empty() {
                        return Err(status);
                    }
                    tracing::warn!(reason = reason(&status), "refused; the network is tried in fp32 alone");
                    alone = Some(publication.in_fp32_alone());
                }
            }
        }
    }
}

/// The description, then the files in pieces, none of which holds bytes of two files.
fn messages(publication: &Publication, fence: u64) -> impl tokio_stream::Stream<Item = PublishModelRequest> + use<> {
    let model = Some(publication.description.clone());
    let header = Part::Header(PublishHeader { fence, model });
    let chunks = publication.files.iter().flat_map(|file| file.chunks(CHUNK_BYTES_MAX));
    let chunks: Vec<Part> = chunks.map(|chunk| Part::Chunk(chunk.to_vec())).collect();
    let parts = std::iter::once(header).chain(chunks);
    tokio_stream::iter(parts.map(|part| PublishModelRequest { part: Some(part) }))
}

#[cfg(test)]
mod tests {
    use tengen_games::ActionBlock;
    use tengen_network::{Metadata, Shape};
    use tokio_stream::StreamExt;

    use super::*;
    use tengen_inference as inference;

    /// Bytes that tell where they stand.
    fn file(len: usize, first: u8) -> Vec<u8> {
        (0..len).map(|index| first.wrapping_add(index as u8)).collect()
    }

    fn variant(precision: ReducedPrecision, file: Vec<u8>) -> Variant {
        Variant {
            precision,
            file_id: tengen_network::model_id(&file),
            file,
            fidelity: inference::Fidelity {
                positions: 200,
                policy_kl: 0.25,
                policy_agreement: 0.75,
                value_error: 0.125,
            },
            answers: vec![inference::Probe {
                planes: vec![1],
                policy: vec![1.0],
                wdl: [0.5, 0.25, 0.25],
            }],
        }
    }

    fn publication(file: Vec<u8>, variants: Vec<Variant>) -> Publication {
        let candidate = Candidate {
            iteration: 3,
            positions: 10,
        };
        let shape = Shape {
            blocks: 1,
            channels: 1,
            value_channels: 1,
            value_hidden: 1,
            planes: 1,
            rows: 1,
            cols: 1,
            plane_scales: vec![1.0],
            action_blocks: vec![ActionBlock::Columns],
        };
        let export = Export {
            model_id: ModelId(tengen_network::model_id(&file)),
            file,
            metadata: Metadata::of_shape(&shape),
            parity: 0.0,
            illegal_mass: 0.0,
            probes: Vec::new(),
        };
        Publication::new(candidate, "run", 7, export, variants)
    }

    /// What is sent: the description, and the bytes of each message after it.
    async fn sent(publication: &Publication) -> (PublishHeader, Vec<Vec<u8>>) {
        let parts: Vec<Part> = messages(publication, 9)
            .filter_map(|message| message.part)
            .collect()
            .await;
        let mut parts = parts.into_iter();
        let Some(Part::Header(header)) = parts.next() else {
            panic!("the description comes first")
        };
        let chunks = parts.map(|part| match part {
            Part::Chunk(chunk) => chunk,
            Part::Header(_) => panic!("a second header"),
        });
        (header, chunks.collect())
    }

    #[tokio::test]
    async fn the_description_comes_first_and_the_chunks_add_up() {
        let file = file(2 * CHUNK_BYTES_MAX + 5, 0);
        let (header, chunks) = sent(&publication(file.clone(), Vec::new())).await;
        let model = header.model.unwrap();
        assert_eq!((header.fence, model.iteration, model.step), (9, 3, 7));
        assert_eq!((model.size_bytes, model.variants.len()), (file.len() as u64, 0));
        assert!(chunks.iter().all(|chunk| chunk.len() <= CHUNK_BYTES_MAX));
        assert_eq!(chunks.concat(), file);
    }

    #[tokio::test]
    async fn the_files_of_the_variants_follow_in_the_order_of_their_descriptions() {
        let int8 = variant(ReducedPrecision::Int8, file(CHUNK_BYTES_MAX, 1));
        let fp16 = variant(ReducedPrecision::Fp16, file(CHUNK_BYTES_MAX + 2, 2));
        let (header, chunks) = sent(&publication(file(CHUNK_BYTES_MAX + 1, 0), vec![int8, fp16])).await;
        let lens: Vec<usize> = chunks.iter().map(Vec::len).collect();
        assert_eq!(lens, [CHUNK_BYTES_MAX, 1, CHUNK_BYTES_MAX, CHUNK_BYTES_MAX, 2]);

        let model = header.model.unwrap();
        let precisions: Vec<Precision> = model.variants.iter().map(ModelVariant::precision).collect();
        assert_eq!(precisions, [Precision::Int8, Precision::Fp16]);
        let figures = Fidelity {
            positions: 200,
            policy_kl: 0.25,
            policy_agreement: 0.75,
            value_error: 0.125,
        };
        assert_eq!(model.variants[0].fidelity, Some(figures));
        let answer = ProbeAnswer {
            policy: vec![1.0],
            wdl: vec![0.5, 0.25, 0.25],
        };
        assert_eq!(
            model.variants[0].answers,
            [answer],
            "without the planes, which the probes have"
        );

        let mut files = vec![(&model.model_id, model.size_bytes)];
        files.extend(
            model
                .variants
                .iter()
                .map(|variant| (&variant.file_id, variant.size_bytes)),
        );
        let mut rest = chunks.concat();
        for (id, size) in files {
            let after = rest.split_off(size as usize);
            assert_eq!(tengen_network::model_id(&rest), id[..]);
            rest = after;
        }
        assert!(rest.is_empty());
    }
}
