//! Speed of the rules of every game on one core: perft, random playouts, and planes of random positions.
//!
//! `make bench`, or `cargo bench --profile dev --workspace --bench rules -- [GAME ...]`: by default every registered
//! game with its default parameters. It prints figures and judges none.

use std::hint::black_box;
use std::time::{Duration, Instant};

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tengen_games::{Action, AnyGame, Game, GameVisitor, State, perft, registry};

/// A measurement goes on until it has taken this long.
const LONG_ENOUGH: Duration = Duration::from_millis(500);
/// Positions whose planes are encoded again and again.
const POSITIONS: usize = 1_000;

struct Bench;

impl GameVisitor for Bench {
    type Output = ();

    fn visit<G: Game>(self, game: G) {
        let id = &game.spec().id;
        let (depth, count, taken) = measured_perft(&game);
        let per_second = count as f64 / taken.as_secs_f64() / 1e6;
        println!("{id}: perft({depth}) = {count}, {per_second:.2} million action sequences a second");
        let (games, plies, taken) = playouts(&game);
        let (games, plies) = (games / taken.as_secs_f64(), plies / taken.as_secs_f64());
        println!(
            "{id}: random playouts, {games:.0} games and {:.2} million plies a second",
            plies / 1e6
        );
        let micros = planes(&game);
        println!("{id}: planes, {micros:.2} microseconds a position");
    }
}

fn main() {
    let mut names: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    if names.is_empty() {
        names = registry::names().into_iter().map(str::to_owned).collect();
    }
    for name in names {
        match AnyGame::parse(&name) {
            Ok(game) => game.visit(Bench),
            Err(error) => eprintln!("{error}"),
        }
    }
}

/// The first depth whose count takes long enough, or the whole game if that is small.
fn measured_perft<G: Game>(game: &G) -> (u32, u64, Duration) {
    for depth in 1.. {
        let begin = Instant::now();
        let count = perft(game, depth);
        let taken = begin.elapsed();
        if taken >= LONG_ENOUGH || depth as usize >= game.spec().plies_max {
            return (depth, count, taken);
        }
    }
    unreachable!("some depth is the last")
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

fn playouts<G: Game>(game: &G) -> (f64, f64, Duration) {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut legal = Vec::new();
    let (mut games, mut plies) = (0, 0);
    let begin = Instant::now();
    while begin.elapsed() < LONG_ENOUGH {
        random_game(game, &mut rng, &mut legal, |_| plies += 1);
        games += 1;
    }
    (f64::from(games), f64::from(plies), begin.elapsed())
}

/// Microseconds for the planes of one position.
fn planes<G: Game>(game: &G) -> f64 {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(2);
    let mut legal = Vec::new();
    let mut positions: Vec<G::State> = Vec::with_capacity(POSITIONS);
    while positions.len() < POSITIONS {
        random_game(game, &mut rng, &mut legal, |state| positions.push(state.clone()));
    }
    let mut bytes = vec![0; game.spec().planes_len()];
    let mut encoded = 0_u32;
    let begin = Instant::now();
    while begin.elapsed() < LONG_ENOUGH {
        for state in &positions {
            state.planes(black_box(&mut bytes));
        }
        encoded += positions.len() as u32;
    }
    begin.elapsed().as_secs_f64() * 1e6 / f64::from(encoded)
}
