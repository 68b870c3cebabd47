//! Publishing a network: its bytes are gathered, checked against the run, made durable, and only then offered to the
//! run's owner.

use prost::Message;
use sha2::{Digest, Sha256};
use tengen_network::{Metadata, read_metadata};
use tengen_proto::v1;
use tengen_proto::v1::publish_model_request::Part;
use tengen_records::ModelId;
use tengen_service::files::WriteError;
use tonic::{Status, Streaming};

use super::{Shared, blocking, errors};
use crate::clock::unix_ms;
use crate::disk::{Gauge, NoRoom};
use crate::facts::RunFacts;
use crate::files::{MODEL_BYTES_MAX, ModelFiles};
use crate::messages;
use crate::run::request::Request;
use crate::store::models::{self, ModelRow, ModelState};

/// Most probes of a network.
const PROBES_MAX: usize = 64;

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
    let bytes = gather(&mut parts, model.size_bytes).await?;
    let facts = shared.run.facts();
    let (files, disk) = (shared.archive.files.clone(), shared.disk.clone());
    let (row, files) = blocking(move || {
        let row = examine(&facts, &model, &bytes)?;
        files
            .write(row.id, &bytes)
            .map_err(|error| not_written(&disk, &error))?;
        Ok::<_, Status>((row, files))
    })
    .await??;
    let id = row.id;
    let published = shared
        .run
        .ask(|reply| Request::Publish {
            fence,
            model: Box::new(row),
            reply,
        })
        .await?;
    match published {
        Ok(row) => {
            let facts = shared.run.facts();
            shared
                .archive
                .read(move |connection| messages::model(connection, facts.id.as_str(), &row))
                .await
        }
        Err(refused) => {
            discard(shared, files, id).await?;
            Err(refused.into())
        }
    }
}

/// What to say when a network's file could not be written: a full disk is no fault of ours, and it passes.
fn not_written(disk: &Gauge, error: &WriteError) -> Status {
    if error.source.kind() != std::io::ErrorKind::StorageFull {
        return errors::internal(error);
    }
    tracing::error!(%error, "a network was refused");
    disk.note_full();
    NoRoom::Full.into()
}

/// Collects exactly the announced number of bytes.
async fn gather(parts: &mut Streaming<v1::PublishModelRequest>, size_bytes: u64) -> Result<Vec<u8>, Status> {
    let field = "header.model.size_bytes";
    if size_bytes == 0 || size_bytes > MODEL_BYTES_MAX {
        return Err(errors::bad_field(
            field,
            format!("{size_bytes} is not 1 to {MODEL_BYTES_MAX}"),
        ));
    }
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
    Ok(bytes)
}

/// Checks that the file is a network of this run and the one its description names.
fn examine(facts: &RunFacts, model: &v1::Model, bytes: &[u8]) -> Result<ModelRow, Status> {
    let named = ModelId::from_bytes(&model.model_id).map_err(|error| errors::bad_field("model.model_id", error))?;
    let id = ModelId(tengen_network::model_id(bytes));
    if id != named {
        return Err(errors::bad_field(
            "model.model_id",
            format!("the bytes hash to {id}, not to {named}"),
        ));
    }
    let metadata = read_metadata(bytes).map_err(|error| errors::bad_field("file", error))?;
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
    Ok(row(facts, model, &metadata, id, parent, bytes))
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
        let outputs = probe.policy.iter().chain(&probe.wdl);
        probe.planes.len() == spec.planes_len()
            && probe.policy.len() == spec.actions.len()
            && probe.wdl.len() == 3
            && outputs.into_iter().all(|output| output.is_finite())
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

/// Removes the file of a network that was refused, unless the run knows it from another time.
async fn discard(shared: &Shared, files: ModelFiles, id: ModelId) -> Result<(), Status> {
    if shared
        .archive
        .read(move |connection| models::get(connection, id))
        .await?
        .is_some()
    {
        return Ok(());
    }
    if let Err(error) = blocking(move || files.remove(id)).await? {
        tracing::warn!(%error, model = %id, "the file of a refused model stays behind");
    }
    Ok(())
}
