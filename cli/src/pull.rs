//! Pulling a network: `model.onnx`, `model.json` and `SHA256SUMS` appear in a folder together or not at all.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use clap::Args;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tengen_proto::v1::model_service_client::ModelServiceClient;
use tengen_proto::v1::{DownloadModelRequest, Model};
use tengen_service::backoff::Backoff;
use tengen_service::channel::Channel;
use tengen_service::files;

use crate::client::explain;
use crate::models::{self, NameArgs, short_id, state_name};

/// Connections lost in one download before we give up.
const INTERRUPTIONS_MAX: u32 = 8;

#[derive(Args, Debug)]
pub(crate) struct PullArgs {
    #[command(flatten)]
    model: NameArgs,
    /// Folder to write [default: RUN-genN, or RUN-ID for a network that was never champion]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub(crate) async fn run(args: PullArgs) -> anyhow::Result<()> {
    let run = args.model.coordinator.reach().await?;
    let mut client = run.models()?;
    let model = models::find(&mut client, &args.model.name).await?;
    let folder = args.out.unwrap_or_else(|| PathBuf::from(default_folder(&model)));
    let bytes = download(&mut client, &model).await?;
    write_folder(&folder, &model, &bytes)?;
    println!("{} ({} bytes, hashes checked)", folder.display(), bytes.len());
    Ok(())
}

fn default_folder(model: &Model) -> String {
    match model.generation {
        Some(generation) => format!("{}-gen{generation}", model.run_id),
        None => format!("{}-{}", model.run_id, short_id(&model.model_id)),
    }
}

/// Fetches the bytes of `model`, going on where a lost connection left off, and checks both hashes.
pub(crate) async fn download(client: &mut ModelServiceClient<Channel>, model: &Model) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(usize::try_from(model.size_bytes)?);
    let mut backoff = Backoff::default();
    let mut interruptions = 0;
    while (bytes.len() as u64) < model.size_bytes {
        match fetch_from(client, model, &mut bytes).await {
            Ok(()) => ensure!(
                bytes.len() as u64 >= model.size_bytes,
                "the coordinator sent too little"
            ),
            Err(status) if interruptions < INTERRUPTIONS_MAX && !is_answer(&status) => {
                interruptions += 1;
                tokio::time::sleep(backoff.next_delay()).await;
            }
            Err(status) => return Err(explain(&status)),
        }
    }
    ensure!(
        tengen_network::model_id(&bytes).as_slice() == model.model_id,
        "the file that arrived is not model {}: its hash differs",
        short_id(&model.model_id)
    );
    ensure!(
        Sha256::digest(&bytes).as_slice() == model.sha256,
        "the file's SHA-256 is not the announced one"
    );
    Ok(bytes)
}

/// Whether the coordinator itself refused; everything else is a connection that broke, under many codes.
fn is_answer(status: &tonic::Status) -> bool {
    use tonic::Code::{DataLoss, InvalidArgument, NotFound, OutOfRange, PermissionDenied, Unauthenticated};
    matches!(
        status.code(),
        DataLoss | InvalidArgument | NotFound | OutOfRange | PermissionDenied | Unauthenticated
    )
}

async fn fetch_from(
    client: &mut ModelServiceClient<Channel>,
    model: &Model,
    bytes: &mut Vec<u8>,
) -> Result<(), tonic::Status> {
    let request = DownloadModelRequest {
        model_id: model.model_id.clone(),
        offset: bytes.len() as u64,
    };
    let mut chunks = client.download_model(request).await?.into_inner();
    while let Some(chunk) = chunks.message().await? {
        if chunk.offset != bytes.len() as u64 {
            return Err(tonic::Status::data_loss(format!(
                "expected offset {}, got {}",
                bytes.len(),
                chunk.offset
            )));
        }
        bytes.extend_from_slice(&chunk.data);
    }
    Ok(())
}

/// Writes the three files into a folder beside `folder`, then puts it in place.
fn write_folder(folder: &Path, model: &Model, onnx: &[u8]) -> anyhow::Result<()> {
    let parent = match folder.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    files::create_folder(parent).with_context(|| format!("failed to make {}", parent.display()))?;
    if folder.exists() && !folder.join("SHA256SUMS").exists() {
        bail!(
            "{} exists and was not made by `tengen models pull`: name another with --out",
            folder.display()
        );
    }
    let staging = tempfile::Builder::new().prefix(".pulling-").tempdir_in(parent)?;
    let fresh = staging.path().join("new");
    std::fs::create_dir(&fresh)?;
    let description = serde_json::to_vec_pretty(&description(model)?)?;
    let mut sums = String::new();
    for (name, content) in [("model.onnx", onnx), ("model.json", &description)] {
        write_synced(&fresh.join(name), content)?;
        sums += &format!("{}  {name}\n", hex::encode(Sha256::digest(content)));
    }
    write_synced(&fresh.join("SHA256SUMS"), sums.as_bytes())?;
    files::sync_folder(&fresh)?;
    if folder.exists() {
        std::fs::rename(folder, staging.path().join("old"))?;
    }
    std::fs::rename(&fresh, folder).with_context(|| format!("failed to put {} in place", folder.display()))?;
    files::sync_folder(parent)?;
    Ok(())
}

fn write_synced(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    let mut file = File::create(path).with_context(|| format!("failed to write {}", path.display()))?;
    file.write_all(content)?;
    Ok(file.sync_all()?)
}

/// What `model.json` says: lineage, fingerprints, configuration and training parameters.
pub(crate) fn description(model: &Model) -> anyhow::Result<Value> {
    let metadata: Value = match model.metadata_json.as_str() {
        "" => Value::Null,
        text => serde_json::from_str(text).context("the model's metadata is not JSON")?,
    };
    let configuration =
        toml::from_str::<toml::Table>(&model.run_toml).context("the run's configuration is not TOML")?;
    Ok(json!({
        "model_id": hex::encode(&model.model_id),
        "sha256": hex::encode(&model.sha256),
        "size_bytes": model.size_bytes,
        "run": model.run_id,
        "iteration": model.iteration,
        "generation": model.generation,
        "step": model.step,
        "parent_id": hex::encode(&model.parent_id),
        "state": state_name(model.state()),
        "verdict": model.verdict,
        "created_unix_ms": model.created_unix_ms,
        "metadata": metadata,
        "configuration": configuration,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(bytes: &[u8]) -> Model {
        Model {
            model_id: tengen_network::model_id(bytes).to_vec(),
            sha256: Sha256::digest(bytes).to_vec(),
            size_bytes: bytes.len() as u64,
            run_id: "small".to_owned(),
            generation: Some(3),
            metadata_json: r#"{"game":"tic-tac-toe"}"#.to_owned(),
            run_toml: "[run]\nname = \"small\"".to_owned(),
            ..Model::default()
        }
    }

    #[test]
    fn a_pulled_folder_is_replaced_whole_and_checksums_agree() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("small-gen3");
        for bytes in [b"first".as_slice(), b"second"] {
            write_folder(&folder, &model(bytes), bytes).unwrap();
        }
        assert_eq!(std::fs::read(folder.join("model.onnx")).unwrap(), b"second");
        let sums = std::fs::read_to_string(folder.join("SHA256SUMS")).unwrap();
        assert!(sums.contains(&hex::encode(Sha256::digest(b"second"))), "{sums}");
        let json: Value = serde_json::from_slice(&std::fs::read(folder.join("model.json")).unwrap()).unwrap();
        assert_eq!(json["generation"], 3);
        assert_eq!(json["metadata"]["game"], "tic-tac-toe");
        assert_eq!(json["configuration"]["run"]["name"], "small");
        assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_folder_of_somebody_else_is_not_touched() {
        let parent = tempfile::tempdir().unwrap();
        std::fs::create_dir(parent.path().join("mine")).unwrap();
        let error = write_folder(&parent.path().join("mine"), &model(b"x"), b"x").unwrap_err();
        assert!(error.to_string().contains("--out"), "{error}");
    }
}
