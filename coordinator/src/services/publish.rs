//! Publishing a network: its files are gathered, in fp32 and in whatever reduced precisions it comes, checked against the
//! run, made durable, and only then offered to the run's owner.

mod variant;

use std::io::ErrorKind;

use prost::Message;
use sha2::{Digest, Sha256};
use tengen_network::{Metadata, read_metadata};
use tengen_proto::v1;
use tengen_proto::v1::publish_model_request::Part;
use tengen_records::{ModelId, Precision};
use tengen_service::files::WriteError;
use tonic::{Status, Streaming};

use super::{Shared, blocking, errors};
use crate::clock::unix_ms;
use crate::disk::{Gauge, NoRoom};
use crate::facts::RunFacts;
use crate::files::{MODEL_BYTES_MAX, ModelFiles};
use crate::messages;
use crate::run::request::Request;
use crate::store::models::{ModelRow, ModelState};
use crate::store::variants::{self, VariantRow};

/// Most probes of a network.
const PROBES_MAX: usize = 64;

/// A publication that passed every check that needs no state of the run.
struct Publication {
    row: ModelRow,
    variants: Vec<VariantRow>,
    /// Every file with its hash, the network's own first.
    files: Vec<(ModelId, Vec<u8>)>,
}

/// Takes a publication.
pub(super) async fn take(shared: &Shared, mut parts: Streaming<v1::PublishModelRequest>) -> Result<v1::Model, Status> {
    shared.disk.check()?;
    let header = match parts.message().await?.and_then(|first| first.part) {
        Some(Part::Header(header)) => header,
        _ => return Err(errors::bad_field("part", "a publication begins with its header")),
    };
    let fence = header.fence;
    let model = header
        .model
        .ok_or_else(|| errors::bad_field("header.model", "it is missing"))?;
    let precisions = variant::precisions(&model)?;
    let files = gather(&mut parts, &sizes(&model)?).await?;
    let facts = shared.run.facts();
    let examined = blocking(move || examine(&facts, &model, &precisions, files)).await?;
    let Publication { row, variants, files } = examined?;
    let ids: Vec<ModelId> = files.iter().map(|(id, _)| *id).collect();
    if let Err(status) = write(shared, files).await {
        discard(shared, ids).await?;
        return Err(status);
    }
    let published = shared
        .run
        .ask(|reply| Request::Publish {
            fence,
            model: Box::new(row),
            variants,
            reply,
        })
        .await?;
    // What was refused leaves nothing behind, and neither does a known network that comes with other files this time.
    discard(shared, ids).await?;
    let (row, facts) = (published?, shared.run.facts());
    shared
        .archive
        .read(move |connection| messages::model(connection, facts.id.as_str(), &row))
        .await
}

/// Makes the files durable.
async fn write(shared: &Shared, files: Vec<(ModelId, Vec<u8>)>) -> Result<(), Status> {
    let (folder, disk) = (shared.archive.files.clone(), shared.disk.clone());
    blocking(move || {
        files
            .iter()
            .try_for_each(|(id, bytes)| folder.write(*id, bytes).map_err(|error| not_written(&disk, &error)))
    })
    .await?
}

/// What to say when a network's file could not be written: a full disk is no fault of ours, and it passes.
fn not_written(disk: &Gauge, error: &WriteError) -> Status {
    if error.source.kind() != ErrorKind::StorageFull {
        return errors::internal(error);
    }
    tracing::error!(%error, "a network was refused");
    disk.note_full();
    NoRoom::Full.into()
}

/// The sizes of all files in the order in which they come.
fn sizes(model: &v1::Model) -> Result<Vec<u64>, Status> {
    let variants = model.variants.iter().enumerate();
    let variants = variants.map(|(n, variant)| (format!("header.model.variants[{n}].size_bytes"), variant.size_bytes));
    let own = ("header.model.size_bytes".to_owned(), model.size_bytes);
    let announced = std::iter::once(own).chain(variants);
    announced
        .map(|(field, size_bytes)| match size_bytes {
            1..=MODEL_BYTES_MAX => Ok(size_bytes),
            _ => Err(errors::bad_field(
                &field,
                format!("{size_bytes} is not 1 to {MODEL_BYTES_MAX}"),
            )),
        })
        .collect()
}

/// Collects exactly the announced numbers of bytes, a file each.
async fn gather(parts: &mut Streaming<v1::PublishModelRequest>, sizes: &[u64]) -> Result<Vec<Vec<u8>>, Status> {
    let field = "header.model.size_bytes";
    let size_bytes: u64 = sizes.iter().sum();
    let mut bytes = Vec::new();
    while let Some(message) = parts.message().await? {
        let Some(Part::Chunk(chunk)) = message.part else {
            return Err(errors::bad_field("part", "after the header there are only chunks"));
        };
        if bytes.len() as u64 + chunk.len() as u64 > size_bytes {
            return Err(errors::bad_field(
                field,
                format!("{size_bytes} were announced and more came"),
            ));
        }
        bytes.extend_from_slice(&chunk);
    }
    if bytes.len() as u64 != size_bytes {
        return Err(errors::bad_field(
            field,
            format!("{size_bytes} were announced and {} came", bytes.len()),
        ));
    }
    let mut files = Vec::with_capacity(sizes.len());
    for &size in sizes {
        // Below the greatest size of a file, which any machine can count.
        let rest = bytes.split_off(size as usize);
        files.push(std::mem::replace(&mut bytes, rest));
    }
    Ok(files)
}

/// Checks every file. They come in the order in which they were announced, the network's own first.
fn examine(
    facts: &RunFacts,
    model: &v1::Model,
    precisions: &[Precision],
    files: Vec<Vec<u8>>,
) -> Result<Publication, Status> {
    let (own, reduced) = files
        .split_first()
        .ok_or_else(|| errors::bad_field("header.model", "no file was announced"))?;
    let (row, metadata) = examine_network(facts, model, own)?;
    let announced = model.variants.iter().zip(precisions).zip(reduced);
    let variants: Vec<VariantRow> = announced
        .enumerate()
        .map(|(n, ((announced, &precision), bytes))| {
            let network = variant::Of {
                id: row.id,
                metadata: &metadata,
                shape: &facts.shape,
                probes: model.probes.len(),
            };
            variant::examine(&format!("model.variants[{n}]"), announced, precision, bytes, &network)
        })
        .collect::<Result<_, Status>>()?;
    if !variants.is_empty() && model.probes.is_empty() {
        return Err(errors::bad_field(
            "model.probes",
            "there are none, and who is to take a reduced precision compares it with fp32 on them",
        ));
    }
    let ids: Vec<ModelId> = std::iter::once(row.id)
        .chain(variants.iter().map(|variant| variant.file))
        .collect();
    Ok(Publication {
        row,
        variants,
        files: ids.into_iter().zip(files).collect(),
    })
}

/// The hash of a file, which must be the one that its description names.
fn hashed(field: &str, named: &[u8], bytes: &[u8]) -> Result<ModelId, Status> {
    let named = ModelId::from_bytes(named).map_err(|error| errors::bad_field(field, error))?;
    let id = ModelId(tengen_network::model_id(bytes));
    if id == named {
        return Ok(id);
    }
    Err(errors::bad_field(
        field,
        format!("the bytes hash to {id}, not to {named}"),
    ))
}

/// Checks that the file is a network of this run and the one its description names.
fn examine_network(facts: &RunFacts, model: &v1::Model, bytes: &[u8]) -> Result<(ModelRow, Metadata), Status> {
    let id = hashed("model.model_id", &model.model_id, bytes)?;
    let metadata = read_metadata(bytes).map_err(|error| errors::bad_field("file", error))?;
    same("precision", metadata.precision.as_str(), Precision::Fp32.as_str())?;
    same("run", &metadata.run, facts.id.as_str())?;
    same("game", &metadata.game, &facts.game.spec().id)?;
    same(
        "rules fingerprint",
        &metadata.rules_fingerprint.to_string(),
        &facts.rules_fingerprint.to_string(),
    )?;
    same(
        "feature fingerprint",
        &metadata.feature_fingerprint.to_string(),
        &facts.feature_fingerprint.to_string(),
    )?;
    same(
        "iteration",
        &metadata.iteration.to_string(),
        &model.iteration.to_string(),
    )?;
    same("step", &metadata.step.to_string(), &model.step.to_string())?;
    metadata
        .check(&facts.shape)
        .map_err(|error| errors::precondition("OTHER_NETWORK", "shape", error))?;
    let parent = match &model.parent_id[..] {
        [] => None,
        parent => Some(ModelId::from_bytes(parent).map_err(|error| errors::bad_field("model.parent_id", error))?),
    };
    check_probes(facts, &model.probes)?;
    Ok((row(facts, model, &metadata, id, parent, bytes), metadata))
}

fn row(
    facts: &RunFacts,
    model: &v1::Model,
    metadata: &Metadata,
    id: ModelId,
    parent: Option<ModelId>,
    bytes: &[u8],
) -> ModelRow {
    ModelRow {
        number: 0,
        id,
        iteration: model.iteration,
        generation: None,
        step: model.step,
        parent,
        state: ModelState::Candidate,
        created_ms: unix_ms(),
        size_bytes: bytes.len() as u64,
        sha256: Sha256::digest(bytes).to_vec(),
        metadata_json: metadata.to_json(),
        verdict: String::new(),
        settings_revision: facts.settings_revision,
        file_name: ModelFiles::name(id),
        removed_ms: None,
        probes: v1::Model {
            probes: model.probes.clone(),
            ..v1::Model::default()
        }
        .encode_to_vec(),
    }
}

fn same(what: &str, stated: &str, wanted: &str) -> Result<(), Status> {
    if stated == wanted {
        return Ok(());
    }
    Err(errors::precondition(
        "OTHER_NETWORK",
        what,
        format!("the file says {what} {stated}, where {wanted} is wanted"),
    ))
}

fn check_probes(facts: &RunFacts, probes: &[v1::Probe]) -> Result<(), Status> {
    let spec = facts.game.spec();
    let fits = |probe: &v1::Probe| {
        probe.planes.len() == spec.planes_len() && fit(&probe.policy, &probe.wdl, spec.actions.len())
    };
    match probes.iter().position(|probe| !fits(probe)) {
        Some(n) => Err(errors::bad_field(
            "model.probes",
            format!("probe {n} does not fit the game"),
        )),
        None if probes.len() > PROBES_MAX => Err(errors::bad_field(
            "model.probes",
            format!("{}, at most {PROBES_MAX} are taken", probes.len()),
        )),
        None => Ok(()),
    }
}

/// Whether these are outputs for one position of a game with so many actions.
fn fit(policy: &[f32], wdl: &[f32], actions: usize) -> bool {
    policy.len() == actions && wdl.len() == 3 && policy.iter().chain(wdl).all(|output| output.is_finite())
}

/// Removes those of the files that the run does not know.
async fn discard(shared: &Shared, ids: Vec<ModelId>) -> Result<(), Status> {
    let unknown = shared.archive.read(move |connection| {
        let mut unknown = Vec::new();
        for id in ids {
            if variants::file(connection, id)?.is_none() {
                unknown.push(id);
            }
        }
        Ok(unknown)
    });
    let (unknown, files) = (unknown.await?, shared.archive.files.clone());
    blocking(move || {
        for id in unknown {
            match files.remove(id) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => tracing::warn!(%error, file = %id, "the file of a refused model stays behind"),
            }
        }
    })
    .await
}
