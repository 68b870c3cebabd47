//! A short run of a whole cluster that only this program watches: nothing is printed, and its folder is the caller's to
//! keep or throw away.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use anyhow::{Context, bail};
use tengen_proto::v1::run_service_client::RunServiceClient;
use tengen_proto::v1::{GameFilter, ListGamesRequest, Model, RunStatus};
use tengen_service::args::LogArgs;
use tengen_service::channel::Channel;
use tengen_service::credentials::ConnectArgs;
use tengen_service::run_config::RunConfig;
use tengen_service::shutdown;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::layout::Layout;
use super::watch::{self, Update};
use super::{Cluster, UpArgs};
use crate::{client, models};

/// Games of one call.
const PAGE_GAMES: i32 = 1_000;

/// How long a trial goes on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// It has done its work once this generation is champion and a trained network has played.
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
    /// Stored games of networks that were trained: of every generation but 0.
    pub(crate) trained_games: u64,
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
                        match reached(cluster, &status).await {
                            Ok(Some(trial)) => break Ok(trial),
                            Ok(None) => {}
                            Err(error) => break Err(error),
                        }
                    }
                    if status.games >= limits.games_max {
                        break Err(anyhow::anyhow!(
                            "after {} games the run is at generation {} of {}, or no trained network has played",
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

/// What the trial has come to, if a trained network has played.
async fn reached(cluster: &Cluster, status: &RunStatus) -> anyhow::Result<Option<Trial>> {
    let channel = client::connect(&cluster.url, &cluster.credentials)?;
    let mut networks = client::models(channel.clone());
    let mut runs = client::runs(channel);
    let mut trained_games = 0;
    for generation in 1..=status.generation {
        let network = models::find(&mut networks, &format!("gen:{generation}")).await?;
        trained_games += games_of(&mut runs, network.model_id).await?;
    }
    if trained_games == 0 {
        return Ok(None);
    }
    let champion = models::find(&mut networks, "champion").await;
    Ok(Some(Trial {
        status: status.clone(),
        champion: champion.context("failed to ask for the champion")?,
        trained_games,
    }))
}

/// How many games with this network are stored.
async fn games_of(runs: &mut RunServiceClient<Channel>, model_id: Vec<u8>) -> anyhow::Result<u64> {
    let mut request = ListGamesRequest {
        page_size: PAGE_GAMES,
        filter: Some(GameFilter {
            model_id,
            ..GameFilter::default()
        }),
        ..ListGamesRequest::default()
    };
    let mut games = 0;
    loop {
        let page = runs.list_games(request.clone()).await;
        let page = page.map_err(|status| client::explain(&status))?.into_inner();
        games += page.games.len() as u64;
        if !client::goes_on(&mut request.page_token, page.next_page_token)? {
            return Ok(games);
        }
    }
}
