//! What one core does with records: reads them, checks them against the rules, both as the coordinator does with every game
//! that comes, and writes them.
//!
//! `make bench BENCH=records`, or `cargo bench --profile dev --workspace --bench records`. They are random games of Caro5 on
//! 9x9 whose searches are as long as those of some dozens of simulations, more of them than a processor's cache holds.

use std::hint::black_box;
use std::io;
use std::time::Duration;

use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use tengen_faults::bench::BenchRows;
use tengen_faults::bench::measure::Measures;
use tengen_games::{AnyGame, Game, GameVisitor};
use tengen_records::{Expected, Kind, Record, Work, check, decode, encode, game_seed, testing};

const GAME: &str = "caro5?size=9";
/// Plies of a game.
const PLIES: std::ops::RangeInclusive<usize> = 57..=63;
/// Different games; each is there many times under other ids.
const TEMPLATES: usize = 64;
const GAMES: u32 = 1_024;
/// How long each figure is measured.
const MEASURED: Duration = Duration::from_secs(3);
/// Games a second that one core is to read and check.
const CHECKED_PER_SECOND: f64 = 5_000.0;

struct Bench<'a>(&'a mut Measures);

impl GameVisitor for Bench<'_> {
    type Output = io::Result<()>;

    fn visit<G: Game>(self, game: G) -> io::Result<()> {
        let Bench(measures) = self;
        let rows = BenchRows::of("records")?;
        let (expected, records) = records(&game);
        let encoded: Vec<Vec<u8>> = records.iter().map(encode).collect();
        for bytes in &encoded {
            let again = decode(bytes).map(|record| encode(&record));
            assert!(again.as_ref() == Ok(bytes), "a record's bytes changed on the way");
        }
        let bytes: usize = encoded.iter().map(Vec::len).sum();
        println!(
            "records: {} of {} bytes on average",
            encoded.len(),
            bytes / encoded.len()
        );
        let read = |at: usize| decode(black_box(&encoded[at])).expect("its own bytes");
        let judge = |record: &Record| check(&game, record, &expected).expect("an honest record");
        told("read", games_a_second(measures, "read", read)?);
        told("checked", games_a_second(measures, "check", |at| judge(&records[at]))?);
        told(
            "written",
            games_a_second(measures, "write", |at| encode(black_box(&records[at])))?,
        );
        if let Some(rate) = games_a_second(measures, "read and check", |at| judge(&read(at)))? {
            let ratio = rate / CHECKED_PER_SECOND;
            rows.add("coordinator_check", rate, "games/s a core", ratio, 1.0)?;
        }
        Ok(())
    }
}

fn main() -> io::Result<()> {
    let game = AnyGame::parse(GAME).expect("a registered game");
    game.visit(Bench(&mut Measures::from_args(MEASURED)))
}

/// How often a second one core does this with a game; the games take turns.
fn games_a_second<T>(measures: &mut Measures, name: &str, mut work: impl FnMut(usize) -> T) -> io::Result<Option<f64>> {
    let mut turns = (0..GAMES as usize).cycle();
    let median = measures.median_ns("records", name, |bencher| bencher.iter(|| turns.next().map(&mut work)))?;
    Ok(median.map(|ns| 1e9 / ns))
}

fn told(what: &str, games_a_second: Option<f64>) {
    if let Some(rate) = games_a_second {
        println!("records: one core, {rate:.0} games/s {what}");
    }
}

/// Games of one lease, and what they are checked against.
fn records<G: Game>(game: &G) -> (Expected, Vec<Record>) {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let expected = Expected {
        work: Work::SelfPlay {
            index_end: GAMES,
            random_plies_max: 0,
        },
        ..testing::expected(game, Kind::SelfPlay, &mut rng)
    };
    let mut templates = Vec::new();
    while templates.len() < TEMPLATES {
        let mut record = testing::random_record(game, &expected, 0, &mut rng);
        if PLIES.contains(&record.plies.len()) {
            testing::thin_out(&mut record);
            templates.push(record);
        }
    }
    let games = (0..GAMES).map(|index| {
        let mut record = templates[index as usize % TEMPLATES].clone();
        record.id.index = index;
        record.seed = game_seed(expected.lease_seed, index);
        record
    });
    let games = games.collect();
    (expected, games)
}
