//! What an actor is told on its command line.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use tengen_games::AnyGame;
use tengen_inference::Devices;
use tengen_selfplay::feeding::{self, Division, Feeding, SessionsPer, TrialError, Wishes};
use tengen_service::credentials::ConnectArgs;
use tengen_service::run_config::{THREADS_PER_DEVICE, WantedPrecision};

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
    /// Games at once, over all threads [default: as many as two batches of each thread want, one on a GPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub games: Option<u32>,
    /// Most positions in one evaluation [default: measured with the first network, at most 16, 256 on a GPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4_096))]
    pub batch_max: Option<u32>,
    /// Memory for answers of networks that are asked for again, MiB over all threads; 0 keeps none [default: 64, on GPUs 256
    /// for each]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(..=1_048_576))]
    pub cache_mib: Option<u32>,
    /// Threads that play on a CPU, each by itself [default: the machine's cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_024))]
    pub threads: Option<u32>,
    /// Threads that feed each GPU in turn: while the batch of one is evaluated, the others walk their trees
    #[arg(long, value_name = "N", default_value_t = THREADS_PER_DEVICE, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub threads_per_device: u32,
    /// Where networks are evaluated: auto, cpu, openvino, cuda:N, tensorrt:N, or several GPUs of one kind, cuda:0,cuda:1.
    /// `auto` takes the first GPU through CUDA if one works, else the CPU
    #[arg(long, value_name = "DEVICES", default_value_t = Devices::default())]
    pub device: Devices,
    /// Feed the CPU as a GPU is fed: its threads are --threads-per-device, and they share sessions. For tests
    #[arg(long, hide = true)]
    pub share_sessions: bool,
    /// Which of a network's precisions is played. A reduced one is taken only where it agrees with fp32 on this machine
    #[arg(long, value_name = "PRECISION", value_enum, default_value_t = WantedPrecision::Auto)]
    pub precision: WantedPrecision,
    /// Most bytes of finished games on disk that have no verdict yet. At seven eighths of it self-play pauses until the
    /// coordinator has taken some; the rest is for matches and for games in flight. What the coordinator refuses goes to
    /// rejected/ in the data folder, with the reason
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 30, value_parser = clap::value_parser!(u64).range(SPOOL_BYTES_MIN..))]
    pub spool_bytes_max: u64,
    /// How long a finished game waits for others that are synced to the disk and sent together with it, milliseconds; 0 syncs
    /// each at once, which costs small boards some of their speed
    #[arg(long, value_name = "MS", default_value_t = 100, value_parser = clap::value_parser!(u32).range(..=1_000))]
    pub spool_linger_ms: u32,
    /// ONNX Runtime's library, or the folder it is in [default: looked up, for openvino the one that has it]
    #[arg(long, value_name = "PATH")]
    pub onnxruntime: Option<PathBuf>,
    /// When asked to stop, how long games in flight may go on before they are handed back, seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 20)]
    pub drain_seconds: u32,
    /// By which it is decided whether what failed is tried again.
    #[arg(skip)]
    pub clock: Clock,
}

/// Tells the time; tests have one of their own.
#[derive(Clone, Copy, Debug)]
pub struct Clock(pub fn() -> Instant);

impl Default for Clock {
    /// The system's.
    fn default() -> Clock {
        Clock(Instant::now)
    }
}

impl Clock {
    pub(crate) fn now(self) -> Instant {
        (self.0)()
    }
}

impl Options {
    /// Who feeds which device in a run of `game`. Tries a network where `auto` must be found out. Blocks.
    pub(crate) fn feeding(&self, game: &AnyGame) -> Result<Feeding, TrialError> {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        let devices = feeding::find(&self.device, game)?;
        let division = Division::new(&devices, &self.wishes(), cores);
        Ok(Feeding::new(division, game.spec().planes_len()))
    }

    fn wishes(&self) -> Wishes {
        let number = |told: Option<u32>| told.map(|number| number as usize);
        Wishes {
            games: number(self.games),
            batch_max: number(self.batch_max),
            threads: number(self.threads),
            threads_per_device: self.threads_per_device as usize,
            sessions_per: self.share_sessions.then_some(SessionsPer::Device),
            cache_mib: number(self.cache_mib),
        }
    }

    /// How long a finished game waits for others that are made durable with it.
    pub(crate) fn spool_linger(&self) -> Duration {
        Duration::from_millis(u64::from(self.spool_linger_ms))
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

    fn with(words: &[&str]) -> Result<Options, clap::Error> {
        let all = ["tengen-actor", "--join", "http://127.0.0.1:7300"].iter().chain(words);
        Cli::try_parse_from(all).map(|cli| cli.options)
    }

    #[test]
    fn several_gpus_are_a_list_and_what_is_no_list_is_refused_with_the_reason() {
        let options = with(&["--device", "cuda:0,cuda:1"]).unwrap();
        assert_eq!(options.device.to_string(), "cuda:0,cuda:1");
        for (device, reason) in [
            ("cuda:0,cuda:0", "twice"),
            ("cpu,cuda:0", "alone"),
            ("openvino,cuda:0", "alone"),
            ("cuda:0,tensorrt:1", "all `cuda:N` or all `tensorrt:N`"),
            ("tpu", "no device"),
        ] {
            let refused = with(&["--device", device]).unwrap_err().to_string();
            assert!(refused.contains(reason), "{refused}");
        }
    }

    #[test]
    fn what_is_not_told_is_left_to_the_devices() {
        let game = AnyGame::parse("tic-tac-toe").unwrap();
        let division = |words: &[&str]| with(words).unwrap().feeding(&game).unwrap().division().clone();
        let cpu = division(&["--device", "cpu", "--threads", "3"]);
        assert_eq!((cpu.threads(), cpu.sessions(), cpu.games()), (3, 3, 96));
        let told = division(&["--device", "cpu", "--threads", "3", "--games", "8", "--batch-max", "5"]);
        assert_eq!((told.threads(), told.games(), told.batch().max()), (3, 8, 5));
        let gpus = division(&[
            "--device",
            "cuda:0,cuda:1",
            "--threads",
            "3",
            "--threads-per-device",
            "4",
        ]);
        assert_eq!((gpus.threads(), gpus.sessions(), gpus.games()), (8, 2, 2_048));
        let kept = ["--device", "cpu", "--cache-mib", "5"];
        assert_eq!((cpu.cache_bytes(), gpus.cache_bytes()), (64 << 20, 512 << 20));
        assert_eq!(division(&kept).cache_bytes(), 5 << 20);
        let shared = division(&["--device", "cpu", "--share-sessions"]);
        assert_eq!((shared.threads(), shared.sessions()), (2, 1));
    }
}
