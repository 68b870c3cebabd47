//! Black Hole on five rows, solved: every first move wins for seat 0, and the search agrees with the exact values.
//!
//! The solver shares nothing with the rules in `tengen-games` but the numbers of the cells: it keeps, for every cell that
//! may become the hole, the difference of the ring sums as one number in which nearer rings weigh more.

use std::collections::HashMap;

use rand::Rng;
use tengen_games::black_hole::{BlackHole, BlackHoleState};
use tengen_games::{AnyGame, Game, Seat, State};
use tengen_search::{RootNoise, Settings, Tree};

use crate::drive::{exact, rng, search};

const ROWS: usize = 5;
const CELLS: usize = 15;
/// More than twice the sum of all tiles of a seat, so that no number of far rings outweighs a nearer one.
const BASE: i64 = 64;

/// What a solver needs to know of a position.
#[derive(Clone, Copy)]
struct Node {
    /// For every cell: seat 0's sums less seat 1's if that cell became the hole.
    differences: [i64; CELLS],
    empty: u16,
    ply: u8,
}

struct Solver {
    /// `weights[hole][cell]`: the weight of a tile on `cell` around `hole`.
    weights: [[i64; CELLS]; CELLS],
    known: HashMap<u64, i8>,
}

impl Solver {
    fn new() -> Solver {
        let places: Vec<(i64, i64)> = (0..ROWS as i64)
            .flat_map(|row| (0..=row).map(move |col| (row, col)))
            .collect();
        let mut weights = [[0; CELLS]; CELLS];
        for (hole, from) in places.iter().enumerate() {
            for (cell, to) in places.iter().enumerate().filter(|&(cell, _)| cell != hole) {
                let (rows, cols) = (to.0 - from.0, to.1 - from.1);
                let ring = rows.abs().max(cols.abs()).max((rows - cols).abs());
                weights[hole][cell] = BASE.pow((ROWS as i64 - ring) as u32);
            }
        }
        Solver {
            weights,
            known: HashMap::new(),
        }
    }

    fn start() -> Node {
        Node {
            differences: [0; CELLS],
            empty: (1 << CELLS) - 1,
            ply: 0,
        }
    }

    fn after(&self, node: &Node, cell: usize) -> Node {
        let mut next = *node;
        let number = i64::from(node.ply / 2 + 1);
        let signed = if node.ply.is_multiple_of(2) { number } else { -number };
        for (difference, weights) in next.differences.iter_mut().zip(&self.weights) {
            *difference += signed * weights[cell];
        }
        next.empty &= !(1 << cell);
        next.ply += 1;
        next
    }

    /// +1, 0 or -1 for the seat that acts, as far as it lies between `alpha` and `beta`.
    fn value(&self, node: &Node, mut alpha: i8, beta: i8) -> i8 {
        if node.empty.count_ones() == 1 {
            // The lower sum wins; with one cell left it is seat 0's turn.
            return -node.differences[node.empty.trailing_zeros() as usize].signum() as i8;
        }
        let mut left = node.empty;
        while left != 0 {
            let cell = left.trailing_zeros() as usize;
            left &= left - 1;
            alpha = alpha.max(-self.value(&self.after(node, cell), -beta, -alpha));
            if alpha >= beta {
                break;
            }
        }
        alpha
    }

    /// The exact value of a state for the seat that acts; images of a known one are known.
    fn state_value(&mut self, game: &BlackHole, state: &BlackHoleState) -> i8 {
        let images = game
            .spec()
            .symmetries
            .iter()
            .map(|symmetry| state.transform(symmetry).hash());
        let key = images.min().unwrap();
        if let Some(&value) = self.known.get(&key) {
            return value;
        }
        let mut tiles: Vec<(u8, usize)> = (0..CELLS)
            .filter_map(|cell| {
                let (seat, number) = state.tile(cell)?;
                Some((2 * (number - 1) + seat.index() as u8, cell))
            })
            .collect();
        tiles.sort_unstable();
        let node = tiles
            .iter()
            .fold(Solver::start(), |node, &(_, cell)| self.after(&node, cell));
        let value = self.value(&node, -1, 1);
        self.known.insert(key, value);
        value
    }
}

fn game() -> BlackHole {
    match AnyGame::parse("black-hole?rows=5").unwrap() {
        AnyGame::BlackHole(game) => game,
        other => panic!("black-hole is {other:?}"),
    }
}

#[test]
fn every_first_move_wins_for_the_first_seat_and_the_search_sees_it() {
    let game = game();
    let mut solver = Solver::new();
    let mut legal = Vec::new();
    game.start().legal(&mut legal);
    for &action in &legal {
        let mut state = game.start();
        state.apply(action).unwrap();
        assert_eq!(solver.state_value(&game, &state), -1, "seat 1 loses after {action}");
    }
    let mut tree = Tree::new(game.clone(), game.start(), Settings::default());
    let value = exact(&game, |state| solver.state_value(&game, state));
    search(&mut tree, 40, RootNoise::None, 1, &mut rng(0), value);
    let stats = tree.root_stats();
    assert_eq!(stats.net_wdl.value(), 1.0);
    assert!(stats.root_wdl.value() > 0.5, "{stats:?}");
    let visited: Vec<_> = stats.children.iter().filter(|child| child.visits > 0).collect();
    assert!(
        !visited.is_empty() && visited.iter().all(|child| child.q > 0.5),
        "{stats:?}"
    );
}

#[test]
fn a_search_with_exact_values_keeps_the_value_of_every_position() {
    let game = game();
    let mut solver = Solver::new();
    let mut rng = rng(5);
    let mut values = [0; 3];
    for _ in 0..60 {
        let mut state = game.start();
        let mut legal = Vec::new();
        for _ in 0..6 {
            state.legal(&mut legal);
            state
                .apply(legal[(rng.next_u64() % legal.len() as u64) as usize])
                .unwrap();
        }
        let value = solver.state_value(&game, &state);
        let mut tree = Tree::new(game.clone(), state.clone(), Settings::default());
        let evaluate = exact(&game, |state| solver.state_value(&game, state));
        search(&mut tree, 300, RootNoise::None, 1, &mut rng, evaluate);
        let mut next = state.clone();
        next.apply(tree.choose(0.0, &mut rng).unwrap()).unwrap();
        assert_eq!(next.seat(), Seat::FIRST.other());
        assert_eq!(
            -solver.state_value(&game, &next),
            value,
            "{}\n{}",
            state.draw(),
            tree.dump(1)
        );
        values[(value + 1) as usize] += 1;
    }
    assert!(
        values[0] > 0 && values[2] > 0,
        "both seats win some of them: {values:?}"
    );
}
