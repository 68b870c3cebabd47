//! Speed of the rules of every game on one core: perft, random playouts, and planes of random positions.
//!
//! `make bench BENCH=rules`, or `cargo bench --profile dev --workspace --bench rules -- [FILTER]`: every registered game with
//! its default parameters; a filter such as `planes/go` takes a part. It prints figures and judges none.

use std::hint::black_box;
use std::io;
use std::time::{Duration, Instant};

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tengen_faults::bench::measure::{Measures, in_lumps};
use tengen_games::{Action, AnyGame, Game, GameVisitor, State, perft, registry};

/// How long each figure is measured.
const MEASURED: Duration = Duration::from_millis(700);
/// How long one count may take at most.
const COUNT_MAX: Duration = Duration::from_millis(25);
/// How often a count is timed before it is judged by the quickest time.
const TIMED: usize = 3;
/// Positions whose planes are encoded again and again.
const POSITIONS: usize = 1_000;

struct Bench<'a>(&'a mut Measures);

impl GameVisitor for Bench<'_> {
    type Output = io::Result<()>;

    fn visit<G: Game>(self, game: G) -> io::Result<()> {
        let Bench(measures) = self;
        counts(measures, &game)?;
        playouts(measures, &game)?;
        planes(measures, &game)
    }
}

fn main() -> io::Result<()> {
    let mut measures = Measures::from_args(MEASURED);
    for name in registry::names() {
        let game = AnyGame::parse(name).expect("the registry knows its own names");
        game.visit(Bench(&mut measures))?;
    }
    Ok(())
}

fn counts<G: Game>(measures: &mut Measures, game: &G) -> io::Result<()> {
    let id = &game.spec().id;
    let mut counted = None;
    let median = measures.median_ns("perft", id, |bencher| {
        let (depth, _) = *counted.get_or_insert_with(|| deepest(game));
        bencher.iter(|| perft(black_box(game), depth));
    })?;
    if let (Some(ns), Some((depth, count))) = (median, counted) {
        let per_second = count as f64 / ns * 1e3;
        println!("{id}: perft({depth}) = {count}, {per_second:.2} million action sequences a second");
    }
    Ok(())
}

/// The greatest depth whose count should not take too long, or the whole game if that is small; and the count.
fn deepest<G: Game>(game: &G) -> (u32, u64) {
    let (mut depth, mut before) = (1, 1);
    loop {
        let begun = Instant::now();
        let count = perft(game, depth);
        let again = (1..TIMED).map(|_| {
            let begun = Instant::now();
            black_box(perft(game, depth));
            begun.elapsed()
        });
        let taken = again.fold(begun.elapsed(), Duration::min);
        // One more ply makes about as many more sequences of them as the last one did.
        let next = taken.mul_f64(count as f64 / before as f64);
        if next > COUNT_MAX || depth as usize >= game.spec().plies_max {
            return (depth, count);
        }
        (depth, before) = (depth + 1, count.max(1));
    }
}

/// Plays one random game and shows every position before it is played on.
fn random_game<G: Game>(
    game: &G,
    rng: &mut Xoshiro256PlusPlus,
    legal: &mut Vec<Action>,
    mut each: impl FnMut(&G::State),
) {
    let mut state = game.start();
    while state.outcome().is_none() {
        each(&state);
        state.playable(legal);
        let action = legal[(rng.next_u64() % legal.len() as u64) as usize];
        state.apply(action).expect("a playable action");
    }
}

fn playouts<G: Game>(measures: &mut Measures, game: &G) -> io::Result<()> {
    let id = &game.spec().id;
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut legal = Vec::new();
    let (mut games, mut plies) = (0_u64, 0_u64);
    let median = measures.median_ns("playout", id, |bencher| {
        bencher.iter(|| {
            random_game(game, &mut rng, &mut legal, |_| plies += 1);
            games += 1;
        });
    })?;
    if let Some(ns) = median {
        let per_second = 1e9 / ns;
        let plies_per_second = per_second * plies as f64 / games as f64;
        println!(
            "{id}: random playouts, {per_second:.0} games and {:.2} million plies a second",
            plies_per_second / 1e6
        );
    }
    Ok(())
}

fn planes<G: Game>(measures: &mut Measures, game: &G) -> io::Result<()> {
    let id = &game.spec().id;
    let mut bytes = vec![0; game.spec().planes_len()];
    let mut positions = None;
    let median = measures.median_ns("planes", id, |bencher| {
        let positions = &*positions.get_or_insert_with(|| random_positions(game));
        bencher.iter_custom(|wanted| {
            in_lumps(wanted, || {
                let begun = Instant::now();
                for state in positions {
                    state.planes(black_box(&mut bytes));
                }
                (positions.len() as u64, begun.elapsed())
            })
        });
    })?;
    if let Some(ns) = median {
        println!("{id}: planes, {:.2} microseconds a position", ns / 1e3);
    }
    Ok(())
}

fn random_positions<G: Game>(game: &G) -> Vec<G::State> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(2);
    let mut legal = Vec::new();
    let mut positions = Vec::with_capacity(POSITIONS);
    while positions.len() < POSITIONS {
        random_game(game, &mut rng, &mut legal, |state| positions.push(state.clone()));
    }
    positions
}
