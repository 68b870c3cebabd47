//! A short run of a whole cluster that only this program watches: nothing is printed, and its folder is the caller's to
//! keep or throw away.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use anyhow::{Context, bail};
use tengen_proto::v1::{Model, RunStatus};
use tengen_service::args::LogArgs;
use tengen_service::credentials::ConnectArgs;
use tengen_service::run_config::RunConfig;
use tengen_service::{channel, shutdown};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::layout::Layout;
use super::watch::{self, Update};
use super::{Cluster, UpArgs};
use crate::{client, models};

/// How long a trial goes on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// It has done its work once this generation is champion.
    pub(crate) generation: u32,
    /// With so many games stored before that, it has failed.
    pub(crate) games_max: u64,
}

/// What a trial came to.
#[derive(Clone, Debug)]
pub(crate) struct Trial {
    /// The run when the generation was reached.
    pub(crate) status: RunStatus,
    /// Its champion then.
    pub(crate) champion: Model,
}

/// Runs the cluster of the run file `run`, one actor, in the folder `data`, and shows every status on the way.
pub(crate) async fn trial(
    run: &Path,
    data: &Path,
    limits: Limits,
    log: &LogArgs,
    mut show: impl FnMut(&RunStatus),
) -> anyhow::Result<Trial> {
    let args = UpArgs {
        apply: false,
        run: run.to_owned(),
        data: Some(data.to_owned()),
        actors: 1,
        until_generation: None,
        until_games: None,
        duration: None,
        listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        coordinator_config: None,
        metrics: None,
        connect: ConnectArgs::default(),
    };
    let layout = Layout::new(&args, &RunConfig::load(run)?, data.to_owned(), log)?;
    let stop = shutdown::on_signals()?;
    let Some(mut cluster) = Cluster::start(&layout, args.actors, &stop).await? else {
        bail!("stopped before the coordinator served");
    };
    let outcome = follow(&mut cluster, limits, &stop, &mut show).await;
    cluster.drain().await;
    outcome
}

async fn follow(
    cluster: &mut Cluster,
    limits: Limits,
    stop: &CancellationToken,
    show: &mut impl FnMut(&RunStatus),
) -> anyhow::Result<Trial> {
    let (updates, mut received) = mpsc::channel(16);
    let watching = tokio::spawn(watch::follow(
        cluster.url.clone(),
        cluster.credentials.clone(),
        updates,
        stop.clone(),
    ));
    let outcome = loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => break Err(anyhow::anyhow!("stopped")),
            event = cluster.events.recv() => {
                if let Some(event) = event {
                    break Err(anyhow::anyhow!("{event}"));
                }
            }
            update = received.recv() => match update {
                Some(Update::Status(status)) => {
                    show(&status);
                    if status.generation >= limits.generation {
                        break champion(cluster).await.map(|champion| Trial { status: *status, champion });
                    }
                    if status.games >= limits.games_max {
                        break Err(anyhow::anyhow!(
                            "after {} games the run is at generation {}, not {}",
                            status.games, status.generation, limits.generation
                        ));
                    }
                }
                Some(Update::Decided(_)) => {}
                None => break Err(anyhow::anyhow!("the status stream ended")),
            },
        }
    };
    watching.abort();
    outcome
}

async fn champion(cluster: &Cluster) -> anyhow::Result<Model> {
    let channel = channel::connect(&cluster.url, &cluster.credentials)?;
    let found = models::find(&mut client::models(channel), "champion").await;
    found.context("failed to ask for the champion")
}
