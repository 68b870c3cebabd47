//! What an actor is told on its command line.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use tengen_games::AnyGame;
use tengen_inference::{Device, SessionOptions};
use tengen_selfplay::{DriverOptions, EvaluationCache};
use tengen_service::credentials::ConnectArgs;
use tengen_service::run_config::{CACHE_MIB, WantedPrecision};

/// Smallest spool: its reserve holds the largest game there is.
const SPOOL_BYTES_MIN: u64 = 64 << 20;

/// How an actor plays, and for whom.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Address of the coordinator, for example http://127.0.0.1:7300
    #[arg(long, value_name = "URL")]
    pub join: String,
    #[command(flatten)]
    #[allow(missing_docs, reason = "clap would show a doc comment here as help")]
    pub connect: ConnectArgs,
    /// Folder of the actor's identity, its spool, its refused games and its cache of networks; one actor at a time holds it
    #[arg(long, value_name = "DIR", default_value = "actor")]
    pub data: PathBuf,
    /// Several actors of this machine are given the same --data: take the first folder in it that none of them holds, with
    /// whatever games an earlier actor left there
    #[arg(long)]
    pub share_data: bool,
    /// Games at once, over all threads
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub games: u32,
    /// Most positions in one evaluation
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=4_096))]
    pub batch_max: u32,
    /// Memory for answers of networks that are asked for again, MiB over all threads; 0 keeps none
    #[arg(long, value_name = "MIB", default_value_t = CACHE_MIB, value_parser = clap::value_parser!(u32).range(..=1_048_576))]
    pub cache_mib: u32,
    /// Threads that play [default: the machine's cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_024))]
    pub threads: Option<u32>,
    /// Where networks are evaluated: auto, cpu or cuda:N
    #[arg(long, value_name = "DEVICE", default_value_t = Device::Auto)]
    pub device: Device,
    /// Which of a network's precisions is played. A reduced one is taken only where it agrees with fp32 on this machine
    #[arg(long, value_name = "PRECISION", value_enum, default_value_t = WantedPrecision::Auto)]
    pub precision: WantedPrecision,
    /// Most bytes of finished games on disk that have no verdict yet. At seven eighths of it self-play pauses until the
    /// coordinator has taken some; the rest is for matches and for games in flight. What the coordinator refuses goes to
    /// rejected/ in the data folder, with the reason
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 30, value_parser = clap::value_parser!(u64).range(SPOOL_BYTES_MIN..))]
    pub spool_bytes_max: u64,
    /// ONNX Runtime's library, or the folder it is in [default: looked up]
    #[arg(long, value_name = "PATH")]
    pub onnxruntime: Option<PathBuf>,
    /// When asked to stop, how long games in flight may go on before they are handed back, seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 20)]
    pub drain_seconds: u32,
}

impl Options {
    /// Threads that play: never more than games.
    pub(crate) fn worker_threads(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, |cores| cores.get());
        self.threads
            .map_or_else(cores, |threads| threads as usize)
            .clamp(1, self.games as usize)
    }

    /// How thread number `worker` of `workers` plays: an even share of the games.
    pub(crate) fn driver(&self, worker: usize, workers: usize) -> DriverOptions {
        let games = self.games as usize;
        let share = games / workers + usize::from(worker < games % workers);
        DriverOptions {
            games: share,
            batch_max: self.batch_max as usize,
            ..DriverOptions::default()
        }
    }

    /// How one thread evaluates networks: on its own core alone.
    pub(crate) fn sessions(&self) -> SessionOptions {
        SessionOptions {
            device: self.device,
            intra_threads: 1,
            batch_max: self.batch_max as usize,
        }
    }

    /// Answers of networks that all threads share; `None` where no memory is given to them.
    pub(crate) fn cache(&self, game: &AnyGame) -> Option<Arc<EvaluationCache>> {
        let bytes = (self.cache_mib as usize) << 20;
        EvaluationCache::new(bytes, game.spec().actions.len()).map(Arc::new)
    }

    /// How long games in flight may go on once the actor is asked to stop.
    pub(crate) fn drain(&self) -> Duration {
        Duration::from_secs(u64::from(self.drain_seconds))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        options: Options,
    }

    #[test]
    fn an_actor_needs_nothing_but_an_address_and_what_shows_who_it_is() {
        let url = "http://127.0.0.1:7300";
        let alone = Cli::try_parse_from(["tengen-actor", "--join", url]).unwrap().options;
        assert_eq!((alone.join.as_str(), alone.data), (url, PathBuf::from("actor")));
        let words = ["tengen-actor", "--join", url, "--token-file", "T", "--ca", "C"];
        let shown = Cli::try_parse_from(words).unwrap().options;
        assert_eq!(shown.connect.token_file, Some(PathBuf::from("T")));
        assert_eq!(shown.connect.ca, Some(PathBuf::from("C")));
        let elsewhere = Cli::try_parse_from(words.iter().chain(&["--data", "D"]))
            .unwrap()
            .options;
        assert_eq!(elsewhere.data, PathBuf::from("D"));
        assert!(Cli::try_parse_from(["tengen-actor"]).is_err());
        assert_eq!(alone.precision, WantedPrecision::Auto);
        let reduced = Cli::try_parse_from(["tengen-actor", "--join", url, "--precision", "int8"]);
        assert_eq!(reduced.unwrap().options.precision, WantedPrecision::Int8);
    }
}
