//! Figures of the window at full size, with a real redis-server: how long a learner takes to mirror it, what memory the
//! mirror takes, and how many positions a second it gives on one core.
//!
//! `make bench BENCH=window`, or `cargo bench --profile dev --workspace --bench window -- [positions] [entries]`: by default
//! 500,000 positions of Caro5 whose searches visited 64 actions each. Games are random, so they are longer than trained
//! ones; searches are cut to so many entries. The mirror runs in a process of its own, as a learner's does, so that its
//! memory is its own. Rows are written of a full window only.
//!
//! It is timed by hand, not by criterion: a mirror is made once, of a server that takes longest to fill, and sampling goes on
//! in the same process, for its memory counts too, and is told in time that the core computed.

use std::num::NonZeroU64;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use tengen_faults::bench::BenchRows;
use tengen_games::{AnyGame, Game, GameVisitor};
use tengen_records::{Expected, Kind, Record, decode, encode, testing};
use tengen_replay::testing::RedisServer;
use tengen_replay::{
    Augmentation, Batch, Cursor, LoggedGame, Part, RedisOptions, RedisReader, RedisWriter, Sampler, Split, Standing,
    Window, WindowGame, WindowSource,
};

const GAME: &str = "caro5";
const RUN: &str = "bench";
const EPOCH: u64 = 1;
const BATCH: usize = 256;
const SAMPLING: Duration = Duration::from_secs(5);
/// Positions of a full window.
const POSITIONS: u64 = 500_000;
/// How long its mirror may take at most, seconds.
const MIRROR_SECONDS: f64 = 10.0;
/// Positions a second that one core is to sample.
const SAMPLED_PER_SECOND: f64 = 20_000.0;
/// As the learner's own.
const PAGE_BYTES_MAX: usize = 4 << 20;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    if let [word, url] = words.as_slice()
        && word == "mirror"
    {
        runtime.block_on(mirror(url));
        return;
    }
    let number = |n: usize, default: u64| words.get(n).map_or(default, |word| word.parse().expect("a number"));
    let (positions, entries) = (number(0, POSITIONS), number(1, 64));
    let folder = tempfile::tempdir().expect("a folder");
    let server = RedisServer::start(folder.path(), &[]);
    runtime.block_on(fill(&server, positions, entries as usize));
    let memory = server.command(&[
        "MEMORY",
        "USAGE",
        &format!("{{{RUN}}}:window:{EPOCH}"),
        "SAMPLES",
        "1000",
    ]);
    println!(
        "redis: {} MB for the stream",
        megabytes(memory.trim_start_matches(':').parse().unwrap_or(0))
    );
    let myself = std::env::current_exe().expect("this program's path");
    let status = Command::new(myself).args(["mirror", &server.url()]).status();
    assert!(status.expect("the mirror runs").success());
}

/// Writes random games until the window is full.
async fn fill(server: &RedisServer, positions: u64, entries: usize) {
    let options = RedisOptions::load(&server.url(), None, None).expect("a good URL");
    let (mut writer, _) = RedisWriter::open(&options, RUN, 1).await.expect("a fit server");
    let game = AnyGame::parse(GAME).expect("a game");
    let mut source = game.visit(Source(entries));
    let mut built = Standing {
        epoch: EPOCH,
        capacity: positions,
        last_sequence: 0,
        held: 0,
        games: 0,
        positions_total: 0,
    };
    writer.begin(EPOCH).await.expect("begun");
    let (mut bytes, mut writing) = (0, Duration::ZERO);
    while built.held < positions {
        let after = built.last_sequence;
        let mut games = Vec::new();
        while games.iter().map(|game: &LoggedGame| game.record.len()).sum::<usize>() < 2 << 20 && built.held < positions
        {
            let record = source();
            built.last_sequence += 1;
            built.games += 1;
            built.held += u64::from(record.positions());
            games.push(LoggedGame {
                sequence: built.last_sequence,
                positions: record.positions(),
                positions_total: built.held,
                record: encode(&record).into(),
            });
        }
        bytes += games.iter().map(|game| game.record.len()).sum::<usize>();
        let begun = Instant::now();
        writer.load(EPOCH, after, &games).await.expect("loaded");
        writing += begun.elapsed();
    }
    built.positions_total = built.held;
    let standing = writer.switch(built).await.expect("switched");
    println!(
        "window: {} positions in {} games of {GAME}, {} MB of records, written in {:.1} s",
        standing.fill().positions,
        standing.games,
        megabytes(bytes),
        writing.as_secs_f64()
    );
}

/// Gives random games of Caro5 whose searches have at most so many entries.
struct Source(usize);

impl GameVisitor for Source {
    type Output = Box<dyn FnMut() -> Record>;

    fn visit<G: Game>(self, game: G) -> Self::Output {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let expected: Expected = testing::expected(&game, Kind::SelfPlay, &mut rng);
        let mut index = 0;
        Box::new(move || {
            index += 1;
            let mut record = testing::random_record(&game, &expected, index, &mut rng);
            for search in record.plies.iter_mut().filter_map(|ply| ply.search.as_mut()) {
                search.visits.truncate(self.0);
                search.policy_target.truncate(self.0);
                let sum: f32 = search.policy_target.iter().map(|target| target.1).sum();
                search.policy_target.iter_mut().for_each(|target| target.1 /= sum);
            }
            record
        })
    }
}

/// Mirrors the window as a learner does, then samples it.
async fn mirror(url: &str) {
    let options = RedisOptions::load(url, None, None).expect("a good URL");
    let before = resident_bytes();
    let (begun, computed) = (Instant::now(), cpu_seconds());
    let mut reader = RedisReader::open(&options, RUN, PAGE_BYTES_MAX)
        .await
        .expect("a fit server");
    let mut window = Window::new(NonZeroU64::MIN, Split::TRAINING_ONLY);
    let (mut cursor, mut payload) = (Cursor::default(), 0);
    loop {
        let chunk = reader.next(cursor).await.expect("a window");
        if chunk.epoch != window.epoch() {
            window = window.begin(chunk.epoch, chunk.capacity);
        }
        cursor.epoch = chunk.epoch;
        for game in &chunk.games {
            cursor.after_sequence = game.sequence;
            payload += game.record.len();
            let game = WindowGame {
                sequence: game.sequence,
                positions_total: game.positions_total,
                record: decode(&game.record).expect("our own record"),
            };
            window.push(&game).expect("games ascend");
        }
        if chunk.caught_up {
            break;
        }
    }
    let took = begun.elapsed().as_secs_f64();
    let resident = resident_bytes().saturating_sub(before);
    let computed = cpu_seconds() - computed;
    let positions = window.fill().positions;
    println!("mirror: {positions} positions read in {took:.1} s, {computed:.1} s of them computing");
    println!(
        "mirror: {} MB resident for {} MB of records and {} MB of what sampling needs: {:.2} and {:.2} times",
        megabytes(resident),
        megabytes(payload),
        megabytes(window.bytes()),
        resident as f64 / payload as f64,
        resident as f64 / window.bytes() as f64
    );
    let game = AnyGame::parse(GAME).expect("a game");
    let sampled = game.visit(Sampling(Arc::new(window)));
    if positions >= POSITIONS {
        let ratio = sampled / SAMPLED_PER_SECOND;
        let rows = BenchRows::of("window").expect("a file for rows");
        let mirrored = rows.add_time("window_mirror", took, "s", MIRROR_SECONDS);
        let sampled = rows.add("window_sampling", sampled, "positions/s a core", ratio, 1.0);
        mirrored.and(sampled).expect("rows can be written");
    }
}

/// Samples for a while; positions a second of one core.
struct Sampling(Arc<Window>);

impl GameVisitor for Sampling {
    type Output = f64;

    fn visit<G: Game>(self, game: G) -> f64 {
        let sampler = Sampler::new(game, Augmentation::Symmetries);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(2);
        let mut batch = Batch::default();
        let (begun, computed, mut sampled) = (Instant::now(), cpu_seconds(), 0);
        while begun.elapsed() < SAMPLING {
            sampler
                .sample(&self.0, Part::Training, BATCH, &mut batch, &mut rng)
                .expect("the window is full");
            sampled += batch.len;
        }
        let by_clock = sampled as f64 / begun.elapsed().as_secs_f64();
        let by_core = sampled as f64 / (cpu_seconds() - computed);
        println!(
            "sampling: {by_core:.0} positions a second of one core ({by_clock:.0} by the clock), batches of {BATCH}, planes \
             and symmetry included"
        );
        by_core
    }
}

fn resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|rest| rest.split_whitespace().next()?.parse::<usize>().ok());
    kilobytes.expect("VmRSS is there") * 1024
}

/// Time this process has computed: what a busy machine does not change much.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    // The program's name, which may hold anything, ends with the last parenthesis.
    let fields = stat.rsplit_once(')').expect("a name").1.split_whitespace();
    let ticks: u64 = fields
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse::<u64>().ok())
        .sum();
    // User and system time, in hundredths of a second on Linux.
    ticks as f64 / 100.0
}

fn megabytes(bytes: usize) -> usize {
    bytes / 1_000_000
}
