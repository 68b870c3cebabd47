//! Spoils records for as long as one likes: nothing may panic, and what the check accepts must keep every promise.
//!
//! `cargo run --release -p tengen-records --example mutate -- [MUTATIONS] [PREFIX_RECORDS] [HONEST_GAMES] [SEED]`
//!
//! MUTATIONS are spread over all games of the registry. PREFIX_RECORDS records of the small ones are cut after every
//! byte. HONEST_GAMES random games go through the wire and the check and must all be accepted. Ends with status 1 when
//! anything is wrong.

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use rand_xoshiro::Xoshiro256PlusPlus;
use tengen_faults::Proof;
use tengen_games::{AnyGame, Game, GameVisitor, registry};
use tengen_records::testing::hammer::{Tally, every_prefix, hammer, honest_refused};

/// Games whose records are a few kilobytes: cutting one costs the square of its length.
const SMALL: [&str; 2] = ["tic-tac-toe", "connect-four"];
/// Pieces of work that a game's share is split into.
const PIECES: u64 = 8;

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: u64| arguments.next().map_or(Ok(default), |text| text.parse());
    let (mutations, prefixes, honest, seed) = (number(1_000_000)?, number(1_000)?, number(100_000)?, number(1)?);
    let games: Vec<&str> = registry::entries()
        .iter()
        .flat_map(|family| std::iter::once(family.name).chain(family.samples.iter().copied()))
        .collect();

    let proof = Proof::begin("records-spoilt-in-process");
    let started = Instant::now();
    let spoilt = on_all(&games, |game, piece| {
        Work::hammer(game, share(mutations, games.len()), seed + piece)
    });
    println!("| damage | tried | decoded | accepted |\n|-|-|-|-|");
    for (kind, [tried, decoded, accepted]) in &spoilt.kinds {
        println!("| {kind:?} | {tried} | {decoded} | {accepted} |");
    }
    let [tried, _, accepted] = spoilt.totals();
    println!(
        "{tried} mutations, {accepted} accepted, {} faults, {:.0?}",
        spoilt.faults,
        started.elapsed()
    );

    let started = Instant::now();
    let cut = on_all(&SMALL, |game, piece| {
        Work::prefixes(game, share(prefixes, SMALL.len()), seed + piece)
    });
    println!(
        "{} prefixes, {} faults, {:.0?}",
        cut.totals()[0],
        cut.faults,
        started.elapsed()
    );

    let started = Instant::now();
    let refused = on_all(&games, |game, piece| {
        Work::honest(game, share(honest, games.len()), seed + piece)
    });
    let played = share(honest, games.len()) * PIECES * games.len() as u64;
    println!(
        "{played} honest games, {} refused, {:.0?}",
        refused.faults,
        started.elapsed()
    );

    let told = spoilt.told.iter().chain(&cut.told).chain(&refused.told);
    told.for_each(|fault| println!("{fault}"));
    if spoilt.faults + cut.faults + refused.faults > 0 {
        return Ok(ExitCode::FAILURE);
    }
    let records_cut = share(prefixes, SMALL.len()) * PIECES * SMALL.len() as u64;
    let proof = proof
        .count("mutations", tried as usize)
        .count("accepted", accepted as usize);
    let proof = proof
        .count("records_cut", records_cut as usize)
        .count("prefixes", cut.totals()[0] as usize);
    proof.count("honest_games", played as usize).proved();
    Ok(ExitCode::SUCCESS)
}

/// One piece's share, rounded up.
fn share(count: u64, games: usize) -> u64 {
    count.div_ceil(games as u64 * PIECES)
}

/// Does every piece of every game on all cores.
fn on_all(games: &[&str], work: impl Fn(&str, u64) -> Tally + Sync) -> Tally {
    let next = AtomicUsize::new(0);
    let sum = Mutex::new(Tally::default());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let piece = next.fetch_add(1, Ordering::Relaxed);
                    let Some(game) = games.get(piece / PIECES as usize) else {
                        return;
                    };
                    let tally = work(game, piece as u64);
                    sum.lock().expect("no holder panics").add(tally);
                }
            });
        }
    });
    sum.into_inner().expect("no holder panics")
}

enum Work {
    Hammer,
    Prefixes,
    Honest,
}

struct Piece(Work, u64, u64);

impl GameVisitor for Piece {
    type Output = Tally;
    fn visit<G: Game>(self, game: G) -> Tally {
        let Piece(work, count, seed) = self;
        match work {
            Work::Hammer => hammer::<G, Xoshiro256PlusPlus>(&game, count, seed),
            Work::Prefixes => every_prefix::<G, Xoshiro256PlusPlus>(&game, count as u32, seed),
            Work::Honest => {
                let told = honest_refused::<G, Xoshiro256PlusPlus>(&game, count, seed);
                Tally {
                    faults: told.len() as u64,
                    told,
                    ..Tally::default()
                }
            }
        }
    }
}

impl Work {
    fn hammer(game: &str, count: u64, seed: u64) -> Tally {
        Work::Hammer.on(game, count, seed)
    }

    fn prefixes(game: &str, count: u64, seed: u64) -> Tally {
        Work::Prefixes.on(game, count, seed)
    }

    fn honest(game: &str, count: u64, seed: u64) -> Tally {
        Work::Honest.on(game, count, seed)
    }

    fn on(self, game: &str, count: u64, seed: u64) -> Tally {
        let game = AnyGame::parse(game).expect("the registry knows its own names");
        game.visit(Piece(self, count, seed))
    }
}
