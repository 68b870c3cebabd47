//! What all games of five in a row share: one line test, openings, planes with a history, and mistakes that other
//! programs have made.

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tengen_games::line::{Colour, DIRECTIONS};
use tengen_games::stones::{StoneGame, StoneState};
use tengen_games::{Action, AnyGame, Game, OpeningRule, Outcome, Reason, Seat, State};

use crate::{legal, play};

fn parse(text: &str) -> StoneGame {
    match AnyGame::parse(text) {
        Ok(
            AnyGame::GomokuFreestyle(game)
            | AnyGame::GomokuStandard(game)
            | AnyGame::Caro(game)
            | AnyGame::Caro5(game)
            | AnyGame::Caro5Gomocup(game)
            | AnyGame::Renju(game),
        ) => game,
        other => panic!("{text} is {other:?}"),
    }
}

const FAMILIES: [&str; 6] = [
    "gomoku-freestyle",
    "gomoku-standard",
    "caro",
    "caro5",
    "caro5-gomocup",
    "renju",
];

/// The game without an opening, so that seat 0 holds black.
fn plain(family: &str, size: usize) -> StoneGame {
    parse(&format!("{family}?size={size}&opening=none"))
}

/// The result when black holds `stones` and then plays `last`; white's stones lie apart from them and from each other.
fn result(game: &StoneGame, stones: &[usize], last: usize) -> Option<Outcome> {
    let (cells, cols) = (game.spec().cells(), game.spec().cols);
    let far = |cell: usize, from: &[usize]| {
        from.iter().all(|&other| {
            (cell / cols)
                .abs_diff(other / cols)
                .max((cell % cols).abs_diff(other % cols))
                > 1
        })
    };
    let mut line = stones.to_vec();
    line.push(last);
    let mut white: Vec<usize> = Vec::new();
    for cell in 0..cells {
        if white.len() < stones.len() && far(cell, &line) && far(cell, &white) {
            white.push(cell);
        }
    }
    assert_eq!(white.len(), stones.len(), "room for white");
    let mut state = game.start();
    for (&black, &white) in stones.iter().zip(&white) {
        for cell in [black, white] {
            state.apply(Action(cell as u16)).expect("an empty cell");
        }
    }
    assert_eq!(state.outcome(), None);
    state.apply(Action(last as u16)).expect("an empty cell");
    state.outcome()
}

/// Every five cells in a row of a board of `size`, in every direction and at every distance from the edges.
fn fives(size: usize) -> Vec<[usize; 5]> {
    let mut all = Vec::new();
    for (row_step, col_step) in DIRECTIONS {
        for cell in 0..size * size {
            let at = |n: i32| {
                let row = (cell / size) as i32 + n * i32::from(row_step);
                let col = (cell % size) as i32 + n * i32::from(col_step);
                let on_board = (0..size as i32).contains(&row) && (0..size as i32).contains(&col);
                on_board.then(|| row as usize * size + col as usize)
            };
            if let [Some(a), Some(b), Some(c), Some(d), Some(e)] = [0, 1, 2, 3, 4].map(at) {
                all.push([a, b, c, d, e]);
            }
        }
    }
    all
}

/// Whether a run of the board of `size` touches the edge with the end beyond `cell`, coming from `from`.
fn ends_at_edge(size: usize, cell: usize, from: usize) -> bool {
    let row = 2 * (cell / size) as i32 - (from / size) as i32;
    let col = 2 * (cell % size) as i32 - (from % size) as i32;
    !(0..size as i32).contains(&row) || !(0..size as i32).contains(&col)
}

#[test]
fn every_five_of_the_board_wins_whichever_stone_comes_last() {
    let size = 11;
    for family in FAMILIES {
        let game = plain(family, size);
        for five in fives(size) {
            for last in 0..5 {
                let stones: Vec<usize> = (0..5).filter(|&n| n != last).map(|n| five[n]).collect();
                let both_at_edge = ends_at_edge(size, five[0], five[1]) && ends_at_edge(size, five[4], five[3]);
                // Only the edge of caro5 closes an end, and on 11x11 only short diagonals have two such ends.
                let wins = !(family == "caro5" && both_at_edge);
                let expected = wins.then(|| Outcome::win(Seat::FIRST, Reason::Line));
                assert_eq!(
                    result(&game, &stones, five[last]),
                    expected,
                    "{family}: {five:?}, last {last}"
                );
            }
        }
    }
}

#[test]
fn filling_the_gap_of_an_overline_is_what_the_family_says() {
    // Three stones and three more with a gap: the stone between makes seven.
    let row = 5 * 11;
    let stones = [1, 2, 3, 5, 6, 7].map(|col| row + col);
    let win = Some(Outcome::win(Seat::FIRST, Reason::Line));
    let foul = Some(Outcome::win(Seat::SECOND, Reason::Overline));
    for (family, expected) in [
        ("gomoku-freestyle", win),
        ("gomoku-standard", None),
        ("caro", win),
        ("caro5", None),
        ("caro5-gomocup", None),
        ("renju", foul),
    ] {
        assert_eq!(result(&plain(family, 11), &stones, row + 4), expected, "{family}");
    }
}

#[test]
fn forbidden_points_are_nothing_outside_renju() {
    // A game record that a judge once ruled black's foul although it was freestyle: an overline won.
    let row = 7 * 15;
    let stones = [4, 5, 6, 8, 9].map(|col| row + col);
    let free = plain("gomoku-freestyle", 15);
    let win = Some(Outcome::win(Seat::FIRST, Reason::Line));
    assert_eq!(result(&free, &stones, row + 7), win);
    let mut state = play(&free, &[]);
    let mut playable = Vec::new();
    while state.outcome().is_none() {
        state.playable(&mut playable);
        assert_eq!(playable, legal(&state));
        state.apply(playable[playable.len() / 3]).expect("a legal action");
    }
}

/// The record on 20x20 of that report, columns and rows from the top left counted from 1, and the stone that made six of
/// it: a win in freestyle, no end in standard play, a foul in renju.
#[test]
fn a_reported_record_of_an_overline_is_a_win_of_freestyle() {
    let record = [
        (2, 10),
        (5, 10),
        (6, 11),
        (7, 9),
        (6, 10),
        (8, 8),
        (6, 8),
        (7, 7),
        (6, 7),
        (9, 10),
        (6, 12),
        (17, 5),
        (6, 9),
    ];
    let actions = record.map(|(col, row): (u16, u16)| (row - 1) * 20 + col - 1);
    let outcome = |family: &str| play(&plain(family, 20), &actions).outcome();
    assert_eq!(
        outcome("gomoku-freestyle"),
        Some(Outcome::win(Seat::FIRST, Reason::Line))
    );
    assert_eq!(outcome("gomoku-standard"), None);
    assert_eq!(outcome("renju"), Some(Outcome::win(Seat::SECOND, Reason::Overline)));
}

/// Fills a board of even `size` so that no colour has more than two in a row: pairs that change colour with every row.
fn quiet_filling(size: usize) -> Vec<u16> {
    let mut by_colour = [Vec::new(), Vec::new()];
    for cell in 0..size * size {
        let (row, col) = (cell / size, cell % size);
        by_colour[(row + col / 2) % 2].push(cell as u16);
    }
    let [black, white] = by_colour;
    black
        .into_iter()
        .zip(white)
        .flat_map(|(black, white)| [black, white])
        .collect()
}

#[test]
fn a_full_board_without_a_winner_is_a_draw() {
    for family in ["gomoku-freestyle", "gomoku-standard", "caro", "caro5", "caro5-gomocup"] {
        let game = plain(family, 6);
        let actions = quiet_filling(6);
        let mut state = play(&game, &actions[..35]);
        assert_eq!(state.outcome(), None, "{family}\n{}", state.draw());
        state.apply(Action(actions[35])).expect("the last cell");
        assert_eq!(state.outcome(), Some(Outcome::draw(Reason::BoardFull)), "{family}");
        assert!(legal(&state).is_empty() && state.apply(Action(0)).is_err());
    }
}

#[test]
fn a_line_by_the_last_stone_of_the_board_wins() {
    // The quiet filling of 5x5 with its first row given to black, whose last stone completes it.
    let game = plain("gomoku-freestyle", 5);
    let black = [0, 1, 2, 3, 6, 8, 10, 12, 15, 19, 21, 23, 4];
    let white = [5, 7, 9, 11, 13, 14, 16, 17, 18, 20, 22, 24];
    let mut state = game.start();
    for (n, cell) in black.into_iter().enumerate() {
        state.apply(Action(cell)).expect("an empty cell");
        if let Some(&white) = white.get(n) {
            assert_eq!(state.outcome(), None);
            state.apply(Action(white)).expect("an empty cell");
        }
    }
    assert!(state.board().is_full());
    assert_eq!(state.outcome(), Some(Outcome::win(Seat::FIRST, Reason::Line)));
}

#[test]
fn an_occupied_cell_is_refused_and_changes_nothing() {
    for family in FAMILIES {
        let mut state = play(&plain(family, 9), &[40, 41]);
        let before = state.clone();
        for cell in [40, 41] {
            let error = state.apply(Action(cell)).expect_err("a taken cell");
            assert!(error.to_string().contains("the cell is taken"), "{error}");
        }
        assert_eq!(state, before);
    }
}

/// Whether any stone of the board is part of a winning line of its colour.
fn has_winning_line(state: &StoneState) -> bool {
    let board = state.board();
    (0..board.cells()).any(|cell| {
        board
            .get(cell)
            .is_some_and(|colour| state.rules().lines[colour as usize].wins_at(board, cell, colour))
    })
}

#[test]
fn a_rescan_of_the_whole_board_finds_a_line_iff_the_last_stone_won() {
    for family in FAMILIES {
        for opening in ["none", "swap2"] {
            let game = parse(&format!("{family}?size=8&opening={opening}"));
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(12);
            for _ in 0..60 {
                let mut state = game.start();
                while state.outcome().is_none() {
                    let legal = legal(&state);
                    let action = legal[(rng.next_u64() % legal.len() as u64) as usize];
                    state.apply(action).expect("a legal action");
                    let won = state.outcome().is_some_and(|outcome| outcome.reason == Reason::Line);
                    assert_eq!(has_winning_line(&state), won, "{family}\n{}", state.draw());
                }
            }
        }
    }
}

#[test]
fn every_family_takes_either_opening_at_every_size() {
    for family in FAMILIES {
        for size in 5..=20 {
            let none = parse(&format!("{family}?size={size}&opening=none"));
            let swap2 = parse(&format!("{family}?size={size}&opening=swap2"));
            let cells = size * size;
            assert_eq!(none.spec().opening, OpeningRule::None);
            assert_eq!((none.spec().actions.len(), none.spec().plies_max), (cells, cells));
            assert_eq!(swap2.spec().opening, OpeningRule::Swap2);
            assert_eq!(
                (swap2.spec().actions.len(), swap2.spec().plies_max),
                (cells + 3, cells + 2)
            );
        }
    }
}

fn planes_of(game: &StoneGame, state: &StoneState) -> Vec<Vec<u8>> {
    let mut planes = vec![0xff; game.spec().planes_len()];
    state.planes(&mut planes);
    planes.chunks(game.spec().cells()).map(<[u8]>::to_vec).collect()
}

fn marked(plane: &[u8]) -> Vec<u16> {
    (0..plane.len() as u16)
        .filter(|&cell| plane[cell as usize] != 0)
        .collect()
}

#[test]
fn without_an_opening_the_history_is_the_stack_of_the_gomoku_project() {
    for depth in (2..=16).step_by(2) {
        let game = parse(&format!("gomoku-freestyle?history={depth}&threat_planes=false"));
        assert_eq!(game.spec().planes.len(), depth + 1);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
        let mut state = game.start();
        let mut stones = [Vec::new(), Vec::new()];
        while state.outcome().is_none() && state.board().stones_len() < 60 {
            let planes = planes_of(&game, &state);
            let black_next = state.colour() == Colour::Black;
            assert_eq!(planes[0], vec![u8::from(black_next); 225]);
            for (n, plane) in planes[1..].iter().enumerate() {
                let (colour, steps_back) = (n / (depth / 2), n % (depth / 2));
                let kept: &Vec<u16> = &stones[colour];
                let mut expected = kept[..kept.len().saturating_sub(steps_back)].to_vec();
                expected.sort_unstable();
                assert_eq!(marked(plane), expected, "history {depth}, plane {}", n + 1);
            }
            let legal = legal(&state);
            let action = legal[(rng.next_u64() % legal.len() as u64) as usize];
            stones[usize::from(!black_next)].push(action.0);
            state.apply(action).expect("a legal action");
        }
    }
}

#[test]
fn a_history_keeps_the_planes_that_the_opening_needs() {
    let game = parse("caro5?history=6");
    let names: Vec<&str> = game.spec().planes.iter().map(|plane| plane.name).collect();
    assert_eq!(names.len(), 7 + 7 + 3);
    let actions = [112, 113, 144, 227, 128, 98];
    for plies in 0..=actions.len() {
        let state = play(&game, &actions[..plies]);
        let with = planes_of(&game, &state);
        let without_game = parse("caro5");
        let without = planes_of(&without_game, &play(&without_game, &actions[..plies]));
        // Every plane of the game without history that is no bare set of stones is there, by name and content.
        for (plane, expected) in without_game.spec().planes.iter().zip(&without).skip(2) {
            let at = names.iter().position(|&name| name == plane.name);
            assert_eq!(at.map(|at| &with[at]), Some(expected), "{}", plane.name);
        }
    }
}

#[test]
fn threat_planes_are_the_last_three_and_can_be_left_out() {
    for family in FAMILIES {
        for opening in ["none", "swap2"] {
            let text = format!("{family}?size=9&opening={opening}");
            let (shown, left_out) = (parse(&text), parse(&format!("{text}&threat_planes=false")));
            let (all, fewer) = (&shown.spec().planes, &left_out.spec().planes);
            assert_eq!(all.len(), fewer.len() + 3);
            assert_eq!(&all[..fewer.len()], &fewer[..]);
            assert!(all[fewer.len()].name.starts_with("runs of three or four"));
        }
    }
}
