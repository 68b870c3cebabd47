//! Keeping a folder in step with promotions: `DIR/genN` for each champion seen, and the link `DIR/champion` to the present
//! one. A champion's folder is whole before the link names it.

use std::path::Path;

use anyhow::Context;
use tengen_proto::v1::{Model, WatchChampionRequest};
use tengen_service::backoff::Backoff;
use tengen_service::channel::Channel;
use tengen_service::lock::lock_folder;
use tengen_service::{files, shutdown};
use tonic::Code;

use super::folder;
use crate::client::{CoordinatorArgs, connect, explain, models as models_of, runs as runs_of};

/// Name of the link.
const CHAMPION: &str = "champion";

/// Follows until stopped, or until the champion of generation `until` is there.
pub(super) async fn run(coordinator: &CoordinatorArgs, folder: &Path, until: Option<u32>) -> anyhow::Result<()> {
    files::create_folder(folder).with_context(|| format!("failed to make {}", folder.display()))?;
    // Two of them would remove each other's work.
    let _held = lock_folder(folder, "follow")?;
    // Where no coordinator ever was, none is waited for.
    coordinator.served_url()?;
    let stop = shutdown::on_signals()?;
    let mut backoff = Backoff::default();
    loop {
        let followed = tokio::select! {
            () = stop.cancelled() => return Ok(()),
            followed = follow(coordinator, folder, until, &mut backoff) => followed,
        };
        match followed {
            Ok(Outcome::Reached) => return Ok(()),
            Ok(Outcome::Lost(reason)) => tracing::warn!(reason, "the coordinator is away, trying on"),
            Err(error) => return Err(error),
        }
        if !backoff.wait(&stop).await {
            return Ok(());
        }
    }
}

/// How following ended.
enum Outcome {
    /// The wanted generation is there.
    Reached,
    /// The coordinator is away, and why.
    Lost(String),
}

/// Follows over one connection.
async fn follow(
    coordinator: &CoordinatorArgs,
    folder: &Path,
    until: Option<u32>,
    backoff: &mut Backoff,
) -> anyhow::Result<Outcome> {
    // Looked up anew each time: a coordinator that is started again may listen elsewhere.
    let url = match coordinator.served_url() {
        Ok(url) => url,
        // A local run that is just being started has no address yet.
        Err(error) => return Ok(Outcome::Lost(format!("{error:#}"))),
    };
    let channel = connect(&url, &coordinator.credentials()?)?;
    let mut champions = match models_of(channel.clone()).watch_champion(WatchChampionRequest {}).await {
        Ok(answer) => answer.into_inner(),
        Err(status) => return lost(&status),
    };
    loop {
        let champion = match champions.message().await {
            Ok(Some(champion)) => champion,
            Ok(None) => return Ok(Outcome::Lost("the stream ended".to_owned())),
            Err(status) => return lost(&status),
        };
        *backoff = Backoff::default();
        let generation = champion.generation.unwrap_or(0);
        if let Some(reason) = take(channel.clone(), folder, champion).await? {
            return Ok(Outcome::Lost(reason));
        }
        if until.is_some_and(|until| generation >= until) {
            return Ok(Outcome::Reached);
        }
    }
}

/// What refuses us will refuse us again; everything else may pass.
fn lost(status: &tonic::Status) -> anyhow::Result<Outcome> {
    match status.code() {
        Code::Unauthenticated | Code::PermissionDenied | Code::Unimplemented | Code::InvalidArgument => {
            Err(explain(status))
        }
        _ => Ok(Outcome::Lost(status.message().to_owned())),
    }
}

/// Makes the champion's folder, unless it is there already, and lets the link name it. What the coordinator did not give
/// is told and may be had later; what cannot be written here is an error.
async fn take(channel: Channel, folder: &Path, champion: Model) -> anyhow::Result<Option<String>> {
    let name = format!("gen{}", champion.generation.unwrap_or(0));
    let path = folder.join(&name);
    if !holds(&path, &champion) {
        match super::pull(&mut models_of(channel.clone()), &mut runs_of(channel), champion).await {
            Ok(pulled) => folder::write(&path, &pulled.files()?)?,
            Err(error) => return Ok(Some(format!("{error:#}"))),
        }
    }
    if std::fs::read_link(folder.join(CHAMPION)).is_ok_and(|target| target == Path::new(&name)) {
        return Ok(None);
    }
    folder::point(folder, CHAMPION, &name)?;
    println!("{} -> {name}", folder.join(CHAMPION).display());
    Ok(None)
}

/// Whether the folder is whole and this network's.
fn holds(path: &Path, model: &Model) -> bool {
    let description = std::fs::read(path.join("model.json")).unwrap_or_default();
    let description: serde_json::Value = serde_json::from_slice(&description).unwrap_or_default();
    description["model_id"] == hex::encode(&model.model_id) && folder::is_whole(path)
}
