//! `tengen bench fan-out`: how a coordinator bears many actors that fetch a new champion at the same time.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clap::Args;
use serde_json::json;
use sha2::{Digest, Sha256};
use tengen_proto::v1;
use tengen_proto::v1::model_service_client::ModelServiceClient;
use tengen_service::channel::Channel;
use tokio::task::JoinSet;

use super::coordinator::{Coordinator, Taken, run_file};
use super::mib;

/// The game that the network is for; its board makes little of the file.
const GAME: &str = "connect-four";
/// Blocks of the network, as many as the smaller of AlphaGo Zero's towers has; its width makes its size.
const BLOCKS: usize = 20;
/// Weights of a block, each of 4 bytes, for a channel times a channel: two convolutions of 3x3.
const BLOCK_WEIGHTS: usize = 2 * 3 * 3;

#[derive(Args, Debug)]
pub(crate) struct FanOutArgs {
    /// Numbers of actors to measure, one after the other; each actor has a connection of its own
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "10,100,1000", value_parser = clap::value_parser!(u32).range(1..=20_000))]
    actors: Vec<u32>,
    /// About how large the network is, megabytes
    #[arg(long, value_name = "MB", default_value_t = 25, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    model_mb: u32,
    /// Folder whose disk the coordinator keeps the network on
    #[arg(long, value_name = "DIR", default_value = ".")]
    folder: PathBuf,
    /// Print one JSON object for each number of actors instead of a table
    #[arg(long)]
    json: bool,
}

/// What one number of actors came to.
#[derive(Clone, Copy, Debug)]
struct Measured {
    actors: u32,
    model_bytes: u64,
    /// Until the last one had it.
    seconds: f64,
    /// Until half of them had it.
    median: Duration,
    cpu_seconds: f64,
    /// Memory before the first download, with every connection open, and the most while they went on.
    resident_bytes: [u64; 2],
}

impl Measured {
    fn megabytes(&self) -> f64 {
        self.model_bytes as f64 * f64::from(self.actors) / 1e6
    }

    fn megabytes_per_second(&self) -> f64 {
        self.megabytes() / self.seconds
    }

    /// What a gigabyte cost the coordinator.
    fn cpu_seconds_per_gb(&self) -> f64 {
        self.cpu_seconds / self.megabytes() * 1_000.0
    }
}

pub(crate) async fn run(args: &FanOutArgs) -> anyhow::Result<()> {
    if !args.json {
        println!(
            "{:>7} {:>9} {:>9} {:>9} {:>9} {:>9} {:>12} {:>12}",
            "actors", "MB each", "half s", "all s", "MB/s", "CPU s/GB", "MiB before", "MiB at most"
        );
    }
    for &actors in &args.actors {
        let measured = measure(args, actors)
            .await
            .with_context(|| format!("with {actors} actors"))?;
        show(&measured, args);
    }
    Ok(())
}

async fn measure(args: &FanOutArgs, actors: u32) -> anyhow::Result<Measured> {
    let run = run_file(GAME, BLOCKS, channels(args.model_mb));
    let coordinator = Coordinator::start(&run, &args.folder, None, actors).await?;
    let mut joined = JoinSet::new();
    for _ in 0..actors {
        joined.spawn(join(coordinator.channel()?));
    }
    let mut clients = Vec::new();
    while let Some(client) = joined.join_next().await {
        clients.push(client.context("an actor panicked")??);
    }
    let model_bytes = clients.first().map_or(0, |(_, model)| model.size_bytes);
    let before = coordinator.taken()?;
    coordinator.forget_peak()?;
    let begun = Instant::now();
    let mut downloads = JoinSet::new();
    for (client, model) in clients {
        downloads.spawn(download(client, model));
    }
    let mut took = Vec::new();
    while let Some(downloaded) = downloads.join_next().await {
        downloaded.context("an actor panicked")??;
        took.push(begun.elapsed());
    }
    let after = coordinator.taken()?;
    let peak_bytes = coordinator.peak_bytes()?;
    coordinator.end().await?;
    let cpu = |taken: Taken| taken.cpu_seconds;
    Ok(Measured {
        actors,
        model_bytes,
        seconds: took.last().map_or(0.0, Duration::as_secs_f64),
        median: took[took.len() / 2],
        cpu_seconds: cpu(after) - cpu(before),
        resident_bytes: [before.resident_bytes, peak_bytes],
    })
}

/// Channels of a network of about so many megabytes.
fn channels(megabytes: u32) -> usize {
    let weights = f64::from(megabytes) * 1e6 / 4.0;
    (weights / (BLOCKS * BLOCK_WEIGHTS) as f64).sqrt().round() as usize
}

/// An actor that has asked which network is champion, so its connection is open.
async fn join(channel: Channel) -> anyhow::Result<(ModelServiceClient<Channel>, v1::Model)> {
    let mut client = ModelServiceClient::new(channel);
    let request = v1::GetModelRequest {
        name: "champion".to_owned(),
    };
    let model = client.get_model(request).await?.into_inner();
    Ok((client, model))
}

/// Fetches the network and checks it; of its bytes nothing is kept.
async fn download(mut client: ModelServiceClient<Channel>, model: v1::Model) -> anyhow::Result<()> {
    let request = v1::DownloadModelRequest {
        model_id: model.model_id,
        offset: 0,
    };
    let mut chunks = client.download_model(request).await?.into_inner();
    let (mut hasher, mut bytes) = (Sha256::new(), 0);
    while let Some(chunk) = chunks.message().await? {
        bytes += chunk.data.len() as u64;
        hasher.update(&chunk.data);
    }
    ensure!(
        bytes == model.size_bytes && hasher.finalize().as_slice() == model.sha256,
        "what came is not the network: {bytes} of {} bytes",
        model.size_bytes
    );
    Ok(())
}

fn show(measured: &Measured, args: &FanOutArgs) {
    let [before, peak] = measured.resident_bytes;
    if args.json {
        let shown = json!({
            "actors": measured.actors,
            "model_bytes": measured.model_bytes,
            "seconds": measured.seconds,
            "median_seconds": measured.median.as_secs_f64(),
            "megabytes_per_second": measured.megabytes_per_second(),
            "cpu_seconds_per_gb": measured.cpu_seconds_per_gb(),
            "resident_bytes_before": before,
            "resident_bytes_peak": peak,
        });
        println!("{shown}");
        return;
    }
    println!(
        "{:>7} {:>9.1} {:>9.2} {:>9.2} {:>9.0} {:>9.2} {:>12.1} {:>12.1}",
        measured.actors,
        measured.model_bytes as f64 / 1e6,
        measured.median.as_secs_f64(),
        measured.seconds,
        measured.megabytes_per_second(),
        measured.cpu_seconds_per_gb(),
        mib(before),
        mib(peak)
    );
}

#[cfg(test)]
mod tests {
    use tengen_games::AnyGame;
    use tengen_network::{Config, Shape};

    use super::*;

    #[test]
    fn the_network_is_about_as_large_as_asked_for() {
        let game = AnyGame::parse(GAME).unwrap();
        for megabytes in [1, 25, 100, 1_000] {
            let config = Config {
                blocks: BLOCKS,
                channels: channels(megabytes),
                value_channels: 4,
                value_hidden: 4,
            };
            let bytes = Shape::new(game.spec(), &config).unwrap().parameters() as f64 * 4.0;
            let ratio = bytes / (f64::from(megabytes) * 1e6);
            assert!((0.9..1.1).contains(&ratio), "{megabytes} MB: {ratio}");
        }
    }
}
