//! Pulling a network: its file, what is known of it, why it was promoted, and checksums appear in a folder together or not
//! at all.

mod card;
mod evidence;
mod folder;
mod follow;
pub(crate) mod variant;

use std::path::PathBuf;

use anyhow::{Context, ensure};
use clap::Args;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tengen_proto::v1::model_service_client::ModelServiceClient;
use tengen_proto::v1::run_service_client::RunServiceClient;
use tengen_proto::v1::{DownloadModelRequest, GetMatchRequest, MatchEvidence, Model, ModelVariant};
use tengen_records::Precision;
use tengen_service::backoff::Backoff;
use tengen_service::channel::Channel;

use crate::client::explain;
use crate::models::{self, NameArgs, short_id, state_name};

/// Connections lost in one download before we give up.
const INTERRUPTIONS_MAX: u32 = 8;

#[derive(Args, Debug)]
pub(crate) struct PullArgs {
    #[command(flatten)]
    model: NameArgs,
    /// Folder to write [default: RUN-genN, or RUN-ID for a network that was never champion]
    #[arg(long, value_name = "DIR", conflicts_with = "follow")]
    out: Option<PathBuf>,
    /// Keep this folder in step with promotions until stopped: DIR/genN for each champion, and the link DIR/champion to
    /// the present one. It goes on over restarts of the coordinator
    #[arg(long, value_name = "DIR", conflicts_with = "name")]
    follow: Option<PathBuf>,
    /// With --follow: stop once the champion of this generation or a later one is there
    #[arg(long, value_name = "N", requires = "follow")]
    until_generation: Option<u32>,
}

pub(crate) async fn run(args: PullArgs) -> anyhow::Result<()> {
    if let Some(folder) = &args.follow {
        return follow::run(&args.model.coordinator, folder, args.until_generation).await;
    }
    let run = args.model.coordinator.reach().await?;
    let mut client = run.models()?;
    let model = models::find(&mut client, &args.model.name).await?;
    let folder = args.out.unwrap_or_else(|| PathBuf::from(default_folder(&model)));
    let pulled = pull(&mut client, &mut run.runs()?, model).await?;
    folder::write(&folder, &pulled.files()?)?;
    println!("{} ({} bytes, hashes checked)", folder.display(), pulled.onnx.len());
    Ok(())
}

fn default_folder(model: &Model) -> String {
    match model.generation {
        Some(generation) => format!("{}-gen{generation}", model.run_id),
        None => format!("{}-{}", model.run_id, short_id(&model.model_id)),
    }
}

/// A network with all that goes into its folder.
#[derive(Debug)]
struct Pulled {
    model: Model,
    /// Its gate; a network that never had one has none.
    evidence: Option<MatchEvidence>,
    onnx: Vec<u8>,
    /// Its files in reduced precisions.
    variants: Vec<(Precision, Vec<u8>)>,
}

impl Pulled {
    /// The files of its folder by name, without checksums.
    fn files(&self) -> anyhow::Result<Vec<(&'static str, Vec<u8>)>> {
        let description = description(&self.model)?;
        let mut files = vec![(variant::file_name(Precision::Fp32), self.onnx.clone())];
        let variants = self.variants.iter();
        files.extend(variants.map(|(precision, bytes)| (variant::file_name(*precision), bytes.clone())));
        files.extend([
            ("model.json", serde_json::to_vec_pretty(&description)?),
            (
                "README.md",
                card::page(&self.model, self.evidence.as_ref())?.into_bytes(),
            ),
        ]);
        if let Some(evidence) = &self.evidence {
            files.push(("gate.json", serde_json::to_vec_pretty(&evidence::json(evidence))?));
        }
        Ok(files)
    }
}

/// Fetches everything of a network.
async fn pull(
    models: &mut ModelServiceClient<Channel>,
    runs: &mut RunServiceClient<Channel>,
    model: Model,
) -> anyhow::Result<Pulled> {
    let onnx = download(models, &model).await?;
    let mut variants = Vec::new();
    for (precision, variant) in variant::all(&model) {
        variants.push((precision, download_variant(models, variant).await?));
    }
    let request = GetMatchRequest {
        candidate_id: model.model_id.clone(),
        ..GetMatchRequest::default()
    };
    let evidence = match runs.get_match(request).await {
        Ok(evidence) => Some(evidence.into_inner()),
        // It had no gate, or the coordinator is older than this call.
        Err(status) if matches!(status.code(), tonic::Code::NotFound | tonic::Code::Unimplemented) => None,
        Err(status) => return Err(explain(&status)),
    };
    Ok(Pulled {
        model,
        evidence,
        onnx,
        variants,
    })
}

/// A file that the coordinator serves.
struct Served<'a> {
    /// BLAKE3.
    id: &'a [u8],
    size_bytes: u64,
    sha256: &'a [u8],
}

/// Fetches the bytes of `model` in fp32, going on where a lost connection left off, and checks both hashes.
pub(crate) async fn download(client: &mut ModelServiceClient<Channel>, model: &Model) -> anyhow::Result<Vec<u8>> {
    let served = Served {
        id: &model.model_id,
        size_bytes: model.size_bytes,
        sha256: &model.sha256,
    };
    fetch(client, &served).await
}

/// The same for a network in a reduced precision.
pub(crate) async fn download_variant(
    client: &mut ModelServiceClient<Channel>,
    variant: &ModelVariant,
) -> anyhow::Result<Vec<u8>> {
    let served = Served {
        id: &variant.file_id,
        size_bytes: variant.size_bytes,
        sha256: &variant.sha256,
    };
    fetch(client, &served).await
}

async fn fetch(client: &mut ModelServiceClient<Channel>, served: &Served<'_>) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(usize::try_from(served.size_bytes)?);
    let mut backoff = Backoff::default();
    let mut interruptions = 0;
    while (bytes.len() as u64) < served.size_bytes {
        match fetch_from(client, served, &mut bytes).await {
            Ok(()) => ensure!(
                bytes.len() as u64 >= served.size_bytes,
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
        tengen_network::model_id(&bytes).as_slice() == served.id,
        "the file that arrived is not model {}: its hash differs",
        short_id(served.id)
    );
    ensure!(
        Sha256::digest(&bytes).as_slice() == served.sha256,
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
    served: &Served<'_>,
    bytes: &mut Vec<u8>,
) -> Result<(), tonic::Status> {
    let request = DownloadModelRequest {
        model_id: served.id.to_vec(),
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

/// What `model.json` says: lineage, fingerprints, other precisions, configuration and training parameters.
pub(crate) fn description(model: &Model) -> anyhow::Result<Value> {
    let variants = variant::all(model).map(|(precision, variant)| variant::json(precision, variant));
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
        "variants": variants.collect::<Vec<_>>(),
        "metadata": metadata(model)?,
        "configuration": configuration(model)?,
    }))
}

/// What the model file says about itself.
fn metadata(model: &Model) -> anyhow::Result<Value> {
    match model.metadata_json.as_str() {
        "" => Ok(Value::Null),
        text => serde_json::from_str(text).context("the model's metadata is not JSON"),
    }
}

/// The run's configuration when it was published.
fn configuration(model: &Model) -> anyhow::Result<toml::Table> {
    toml::from_str(&model.run_toml).context("the run's configuration is not TOML")
}

/// A network of tests.
#[cfg(test)]
fn test_model(bytes: &[u8]) -> Model {
    Model {
        model_id: tengen_network::model_id(bytes).to_vec(),
        sha256: Sha256::digest(bytes).to_vec(),
        size_bytes: bytes.len() as u64,
        run_id: "small".to_owned(),
        iteration: 4,
        generation: Some(3),
        step: 1_200,
        parent_id: vec![7; 32],
        state: tengen_proto::v1::ModelState::Champion.into(),
        created_unix_ms: 1_700_000_000_000,
        verdict: "promoted: 12 wins, 1 draw and 7 losses".to_owned(),
        metadata_json: r#"{"game":"tic-tac-toe","blocks":"1","channels":"4","precision":"fp32","parity":"0.0001"}"#
            .to_owned(),
        run_toml: "[run]\nname = \"small\"\ngame = \"tic-tac-toe\"".to_owned(),
        ..Model::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_that_had_a_gate_has_its_evidence_beside_it() {
        let mut pulled = Pulled {
            model: test_model(b"x"),
            evidence: None,
            onnx: b"x".to_vec(),
            variants: Vec::new(),
        };
        let names = |pulled: &Pulled| pulled.files().unwrap().iter().map(|file| file.0).collect::<Vec<_>>();
        assert_eq!(names(&pulled), ["model.onnx", "model.json", "README.md"]);
        pulled.evidence = Some(MatchEvidence::default());
        assert_eq!(names(&pulled), ["model.onnx", "model.json", "README.md", "gate.json"]);
        pulled.variants.push((Precision::Int8, b"y".to_vec()));
        assert_eq!(names(&pulled)[..3], ["model.onnx", "model.int8.onnx", "model.json"]);
        let json: Value = serde_json::from_slice(&pulled.files().unwrap()[2].1).unwrap();
        assert_eq!(json["generation"], 3);
        assert_eq!(json["metadata"]["game"], "tic-tac-toe");
        assert_eq!(json["configuration"]["run"]["name"], "small");
    }
}
