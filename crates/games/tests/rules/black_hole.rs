//! Black Hole: distances, rings, symmetries, published scores, and planes.

use std::collections::{BTreeSet, VecDeque};

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::Deserialize;
use tengen_games::black_hole::{BlackHole, BlackHoleState, Triangle};
use tengen_games::{Action, AnyGame, Game, Outcome, Reason, Seat, State};

use crate::{game, legal, play, vectors};

const ROWS: [usize; 5] = [2, 5, 6, 9, 10];

fn of_rows(rows: usize) -> BlackHole {
    game!(BlackHole, &format!("black-hole?rows={rows}"))
}

#[derive(Deserialize)]
struct Vector {
    rows: usize,
    moves: Vec<u16>,
    hole: usize,
    rings: Vec<[u32; 2]>,
    winner_seat: Option<u8>,
}

#[test]
fn the_vectors_hold() {
    let all: Vec<Vector> = vectors("blackhole.json");
    assert!(all.len() >= 7);
    for vector in &all {
        let state = play(&of_rows(vector.rows), &vector.moves);
        assert_eq!(state.hole(), Some(vector.hole), "{:?}", vector.moves);
        assert_eq!(state.rings(vector.hole), vector.rings, "{:?}", vector.moves);
        let winner = vector.winner_seat.and_then(Seat::new);
        let reason = Reason::Score;
        assert_eq!(state.outcome(), Some(Outcome { winner, reason }), "{:?}", vector.moves);
    }
}

#[test]
fn only_boards_with_as_many_tiles_for_either_seat_exist() {
    for rows in 0..=12 {
        let parsed = AnyGame::parse(&format!("black-hole?rows={rows}"));
        assert_eq!(parsed.is_ok(), ROWS.contains(&rows), "{rows} rows");
    }
    let error = AnyGame::parse("black-hole?rows=8").expect_err("36 cells");
    assert!(error.to_string().contains("one of 2, 5, 6, 9, 10"), "{error}");
}

/// The neighbours of a cell, written out.
fn neighbours(triangle: Triangle, cell: usize) -> Vec<usize> {
    let (row, col) = triangle.place(cell);
    let (row, col) = (row as i32, col as i32);
    [
        (row, col - 1),
        (row, col + 1),
        (row - 1, col - 1),
        (row - 1, col),
        (row + 1, col),
        (row + 1, col + 1),
    ]
    .into_iter()
    .filter(|&(row, col)| 0 <= col && col <= row && row < triangle.rows() as i32)
    .map(|(row, col)| (row * (row + 1) / 2 + col) as usize)
    .collect()
}

#[test]
fn the_distance_is_the_number_of_steps_between_neighbours() {
    for rows in ROWS {
        let triangle = Triangle::new(rows);
        let mut edges = 0;
        for start in 0..triangle.cells() {
            edges += neighbours(triangle, start).len();
            let mut steps = vec![None; triangle.cells()];
            steps[start] = Some(0);
            let mut queue = VecDeque::from([start]);
            while let Some(cell) = queue.pop_front() {
                for next in neighbours(triangle, cell) {
                    if steps[next].is_none() {
                        steps[next] = steps[cell].map(|steps| steps + 1);
                        queue.push_back(next);
                    }
                }
            }
            for (cell, steps) in steps.iter().enumerate() {
                assert_eq!(
                    *steps,
                    Some(triangle.distance(start, cell)),
                    "{rows} rows, {start} to {cell}"
                );
            }
        }
        assert_eq!(edges / 2, 3 * rows * (rows - 1) / 2);
    }
}

#[test]
fn rings_have_the_known_sizes() {
    let sizes = |rows, (row, col): (usize, usize)| {
        let triangle = Triangle::new(rows);
        let mut sizes = vec![0; rows];
        (0..triangle.cells()).for_each(|cell| sizes[triangle.distance(row * (row + 1) / 2 + col, cell)] += 1);
        sizes.retain(|&size| size > 0);
        sizes[1..].to_vec()
    };
    assert_eq!(sizes(9, (0, 0)), [2, 3, 4, 5, 6, 7, 8, 9]);
    assert_eq!(sizes(9, (5, 2)), [6, 12, 14, 7, 4, 1]);
    assert_eq!(sizes(9, (8, 4)), [4, 7, 10, 13, 4, 3, 2, 1]);
    assert_eq!(sizes(10, (6, 3)), [6, 12, 18, 9, 6, 3]);
}

#[test]
fn the_symmetries_are_the_six_of_the_triangle() {
    let game = of_rows(6);
    let images = |name: &str| {
        let symmetry = game.spec().symmetries.iter().find(|symmetry| symmetry.name == name);
        symmetry.map(|symmetry| symmetry.actions.clone()).unwrap_or_default()
    };
    assert_eq!(
        images("rotate 120"),
        [15, 16, 10, 17, 11, 6, 18, 12, 7, 3, 19, 13, 8, 4, 1, 20, 14, 9, 5, 2, 0]
    );
    assert_eq!(
        images("mirror left-right"),
        [0, 2, 1, 5, 4, 3, 9, 8, 7, 6, 14, 13, 12, 11, 10, 20, 19, 18, 17, 16, 15]
    );
    for (rows, orbits) in ROWS.into_iter().zip([1, 4, 5, 10, 12]) {
        let game = of_rows(rows);
        let symmetries = &game.spec().symmetries;
        assert_eq!(symmetries.len(), 6, "{rows} rows");
        let smallest: BTreeSet<_> = (0..game.triangle().cells())
            .map(|cell| symmetries.iter().map(|symmetry| symmetry.actions[cell]).min())
            .collect();
        assert_eq!(smallest.len(), orbits, "distinct first moves of {rows} rows");
    }
}

fn random_game(game: &BlackHole, rng: &mut Xoshiro256PlusPlus) -> BlackHoleState {
    let mut state = game.start();
    while state.outcome().is_none() {
        let legal = legal(&state);
        let action = legal[(rng.next_u64() % legal.len() as u64) as usize];
        state.apply(action).expect("a legal action");
    }
    state
}

#[test]
fn tiles_come_in_order_until_one_cell_is_left() {
    let game = of_rows(9);
    let mut state = game.start();
    for ply in 0..44 {
        assert_eq!(legal(&state).len(), 45 - ply);
        assert_eq!(state.outcome(), None);
        let (seat, number) = (Seat::BOTH[ply % 2], ply as u8 / 2 + 1);
        assert_eq!(state.seat(), seat);
        let cell = (7 * ply) % 45;
        state.apply(Action(cell as u16)).expect("an empty cell");
        assert_eq!(state.tile(cell), Some((seat, number)));
    }
    assert!(state.outcome().is_some() && legal(&state).is_empty());
}

#[test]
fn totals_are_equal_so_the_last_ring_alone_never_decides() {
    for rows in ROWS {
        let game = of_rows(rows);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(9);
        let tiles = game.triangle().tiles() as u32;
        for _ in 0..2_000 {
            let state = random_game(&game, &mut rng);
            let hole = state.hole().expect("the game is over");
            let rings = state.rings(hole);
            let total = |seat: usize| rings.iter().map(|ring| ring[seat]).sum::<u32>();
            assert_eq!([total(0), total(1)], [tiles * (tiles + 1) / 2; 2]);
            let last = rings.len() - 1;
            let first_different = rings.iter().position(|[first, second]| first != second);
            assert!(first_different.is_none_or(|ring| ring < last), "{rings:?}");
            // On two rows both tiles lie around the hole.
            assert!(rows > 2 || first_different.is_none());
        }
    }
}

fn planes_of(game: &BlackHole, state: &BlackHoleState) -> Vec<Vec<u8>> {
    let mut planes = vec![0xff; game.spec().planes_len()];
    state.planes(&mut planes);
    planes.chunks(game.spec().cells()).map(<[u8]>::to_vec).collect()
}

/// A plane from its cells and their bytes.
fn plane(game: &BlackHole, bytes: &[(usize, u8)]) -> Vec<u8> {
    let rows = game.spec().rows;
    let mut plane = vec![0; rows * rows];
    for &(cell, byte) in bytes {
        let (row, col) = game.triangle().place(cell);
        plane[row * rows + col] = byte;
    }
    plane
}

#[test]
fn the_planes_show_numbers_empty_cells_and_what_is_to_come() {
    let game = game!(BlackHole, "black-hole?rows=5&history=2");
    let spec = game.spec();
    assert_eq!(spec.planes.len(), 5 + 4);
    // A tile's number over the greatest, 7.
    assert_eq!(spec.planes[0].scale, 1.0 / 7.0);
    assert_eq!([2, 4].map(|plane| spec.planes[plane].scale), [1.0, 1.0]);
    let state = play(&game, &[4, 0, 9, 14, 3]);
    let all: Vec<usize> = (0..15).collect();
    let of = |byte: u8, cells: &[usize]| plane(&game, &cells.iter().map(|&cell| (cell, byte)).collect::<Vec<_>>());
    let empty: Vec<usize> = all
        .iter()
        .copied()
        .filter(|cell| ![4, 0, 9, 14, 3].contains(cell))
        .collect();
    let expected = [
        // Seat 1 is to place its third tile.
        plane(&game, &[(0, 1), (14, 2)]),
        plane(&game, &[(4, 1), (9, 2), (3, 3)]),
        of(1, &empty),
        of(5, &all),
        of(1, &all),
        plane(&game, &[(0, 1), (14, 2)]),
        plane(&game, &[(4, 1), (9, 2)]),
        plane(&game, &[(0, 1)]),
        plane(&game, &[(4, 1), (9, 2)]),
    ];
    assert_eq!(planes_of(&game, &state), expected);
}

#[test]
fn a_history_changes_the_planes_and_not_the_rules() {
    let [plain, history] = ["black-hole?rows=6", "black-hole?rows=6&history=8"].map(|text| game!(BlackHole, text));
    assert_eq!(
        tengen_games::rules_fingerprint(&plain),
        tengen_games::rules_fingerprint(&history)
    );
    assert_ne!(
        tengen_games::feature_fingerprint(&plain),
        tengen_games::feature_fingerprint(&history)
    );
}

#[test]
fn a_position_is_drawn_as_a_triangle() {
    let mut state = play(&of_rows(2), &[0]);
    assert_eq!(state.draw(), "  a   X1\n  b .   .\nseat 1 to place 1\n");
    state.apply(Action(2)).expect("an empty cell");
    assert_eq!(state.draw(), "  a   X1\n  b .   O1\ndraw (score)\n");
}
