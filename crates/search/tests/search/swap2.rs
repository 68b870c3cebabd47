//! Swap2 on boards small enough to be solved: exact values of all openings, and the search against them.
//!
//! Normal play is solved on bit boards, independently of the rules in `tengen-games`; the opening goes through the real
//! state machine, so a wrong seat in a run of actions shows as a wrong value.

use std::collections::HashMap;

use tengen_games::mnk::Mnk;
use tengen_games::{Action, AnyGame, Game, State};
use tengen_search::{RootNoise, Settings, Tree};

use crate::drive::{exact, rng, search};
use crate::solver::Solver;

fn mnk(text: &str) -> Mnk {
    match AnyGame::parse(text).unwrap() {
        AnyGame::Mnk(game) => game,
        other => panic!("{text} is {other:?}"),
    }
}

/// k in a row on a square board of up to 16 cells, solved by whose stone comes next.
struct Board {
    cells: usize,
    lines: Vec<u16>,
    /// Images of every bit board under each of the eight symmetries.
    images: Vec<Vec<u16>>,
    known: HashMap<(u16, u16), i8>,
}

impl Board {
    fn new(size: usize, k: usize) -> Board {
        let cells = size * size;
        let mut lines = Vec::new();
        for (dx, dy) in [(1, 0), (0, 1), (1, 1), (1, -1)] {
            for cell in 0..cells {
                let at = |step: usize| {
                    let x = (cell % size) as isize + dx * step as isize;
                    let y = (cell / size) as isize + dy * step as isize;
                    let range = 0..size as isize;
                    (range.contains(&x) && range.contains(&y)).then(|| 1_u16 << (y as usize * size + x as usize))
                };
                lines.extend((0..k).map(at).sum::<Option<u16>>());
            }
        }
        let last = size - 1;
        let symmetry = |kind: usize, cell: usize| {
            let (mut x, mut y) = (cell % size, cell / size);
            if kind & 1 != 0 {
                x = last - x;
            }
            if kind & 2 != 0 {
                y = last - y;
            }
            if kind & 4 != 0 { x * size + y } else { y * size + x }
        };
        let image = |kind: usize, board: u32| bits(board as u16).map(|cell| 1 << symmetry(kind, cell)).sum();
        let images = (0..8)
            .map(|kind| (0..1 << cells).map(|board| image(kind, board)).collect())
            .collect();
        Board {
            cells,
            lines,
            images,
            known: HashMap::new(),
        }
    }

    fn has_line(&self, stones: u16) -> bool {
        self.lines.iter().any(|&line| line & !stones == 0)
    }

    fn empty(&self, stones: u16) -> u16 {
        !stones & ((1_u32 << self.cells) - 1) as u16
    }

    /// +1, 0 or -1 for the side that places the next stone.
    fn value(&mut self, mine: u16, theirs: u16) -> i8 {
        let empty = self.empty(mine | theirs);
        if bits(empty).any(|cell| self.has_line(mine | 1 << cell)) {
            return 1;
        }
        if self.lines.iter().all(|&line| line & mine != 0 && line & theirs != 0) || empty.count_ones() <= 1 {
            return 0;
        }
        let key = self
            .images
            .iter()
            .map(|image| (image[usize::from(mine)], image[usize::from(theirs)]))
            .min()
            .unwrap();
        if let Some(&value) = self.known.get(&key) {
            return value;
        }
        let threats = bits(empty)
            .filter(|&cell| self.has_line(theirs | 1 << cell))
            .map(|cell| 1 << cell)
            .sum::<u16>();
        let mut best = -1;
        for cell in bits(if threats == 0 { empty } else { threats }) {
            best = best.max(-self.value(theirs, mine | 1 << cell));
            if best == 1 {
                break;
            }
        }
        self.known.insert(key, best);
        best
    }

    /// The opener's value after its three stones, by the definition of Swap2 alone. `line_by_offer` says whether an
    /// offer may complete a black line, which the opener then takes.
    fn opener_value(&mut self, black: u16, white: u16, line_by_offer: bool) -> i8 {
        let as_white = self.value(white, black);
        let mut chooser = as_white.max(-as_white);
        let empty = self.empty(black | white);
        for offered_white in bits(empty) {
            for offered_black in bits(empty & !(1 << offered_white)) {
                let (white, black) = (white | 1 << offered_white, black | 1 << offered_black);
                let opener = if self.has_line(black) {
                    if !line_by_offer {
                        continue;
                    }
                    1
                } else {
                    let as_white = self.value(white, black);
                    as_white.max(-as_white)
                };
                chooser = chooser.max(-opener);
            }
        }
        -chooser
    }

    /// The acting seat's value in a real position, reached by the stones `placed`.
    fn value_of_state<S: State>(&mut self, state: &S, placed: &mut Vec<usize>) -> i8 {
        let seat = state.seat();
        if let Some(outcome) = state.outcome() {
            return outcome.value_for(seat) as i8;
        }
        if let Some(black) = state.roles().first_colour {
            let stones = |parity| {
                placed
                    .iter()
                    .skip(parity)
                    .step_by(2)
                    .map(|&cell| 1 << cell)
                    .sum::<u16>()
            };
            let white_is_next = placed.len() % 2 == 1;
            assert_eq!(seat, if white_is_next { black.other() } else { black });
            let (black, white) = (stones(0), stones(1));
            return if white_is_next {
                self.value(white, black)
            } else {
                self.value(black, white)
            };
        }
        let mut best = -1;
        for action in legal(state) {
            let child = after(state, action);
            let is_stone = action.index() < self.cells;
            if is_stone {
                placed.push(action.index());
            }
            let value = self.value_of_state(&child, placed);
            if is_stone {
                placed.pop();
            }
            best = best.max(if child.seat() == seat { value } else { -value });
            if best == 1 {
                break;
            }
        }
        best
    }
}

fn bits(mut board: u16) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let cell = board.trailing_zeros() as usize;
        board &= board.wrapping_sub(1);
        (cell < 16).then_some(cell)
    })
}

fn legal<S: State>(state: &S) -> Vec<Action> {
    let mut legal = Vec::new();
    state.legal(&mut legal);
    legal
}

fn after<S: State>(state: &S, action: Action) -> S {
    let mut next = state.clone();
    next.apply(action).unwrap();
    next
}

/// Every opening as `[black, white, black]`, the two black stones in ascending order.
fn openings(cells: usize) -> Vec<[usize; 3]> {
    let mut openings = Vec::new();
    for first in 0..cells {
        for white in (0..cells).filter(|&white| white != first) {
            openings.extend(
                (first + 1..cells)
                    .filter(|&second| second != white)
                    .map(|second| [first, white, second]),
            );
        }
    }
    openings
}

/// How many openings are won, drawn and lost for the opener; the two ways of counting must agree.
fn tally(game: &str, size: usize, k: usize) -> [usize; 3] {
    let game = mnk(game);
    let mut board = Board::new(size, k);
    let mut tally = [0; 3];
    for opening in openings(size * size) {
        let [first, white, second] = opening.map(|cell| 1 << cell);
        let [with, without] = [true, false].map(|allowed| board.opener_value(first | second, white, allowed));
        assert_eq!(
            with, without,
            "an offer that completes a line changes nothing: {opening:?}"
        );
        let mut state = game.start();
        for cell in opening {
            state.apply(Action(cell as u16)).unwrap();
        }
        let chooser = board.value_of_state(&state, &mut opening.to_vec());
        assert_eq!(-chooser, with, "{opening:?}");
        tally[(1 - with) as usize] += 1;
    }
    tally
}

#[test]
fn three_in_a_row_on_3x3_has_138_drawn_and_114_lost_openings() {
    assert_eq!(tally("mnk?m=3&n=3&k=3&opening=swap2", 3, 3), [0, 138, 114]);
}

#[test]
fn three_in_a_row_on_4x4_loses_every_opening() {
    assert_eq!(tally("mnk?m=4&n=4&k=3&opening=swap2", 4, 3), [0, 0, 1680]);
}

#[test]
fn four_in_a_row_on_4x4_draws_every_opening() {
    assert_eq!(tally("mnk?m=4&n=4&k=4&opening=swap2", 4, 4), [0, 1680, 0]);
}

/// Three in a row on 3x3: the game that the search is held against.
fn small_game() -> (Mnk, Solver) {
    (mnk("mnk?m=3&n=3&k=3&opening=swap2"), Solver::default())
}

const TAKE_BLACK: Action = Action(9);
const TAKE_WHITE: Action = Action(10);
const OFFER: Action = Action(11);

/// Every position in which a colour is chosen: 252 of the chooser, then those of the opener after every offer.
fn choice_nodes(game: &Mnk) -> Vec<<Mnk as Game>::State> {
    let mut nodes = Vec::new();
    for opening in openings(9) {
        let chooser = opening
            .iter()
            .fold(game.start(), |state, &cell| after(&state, Action(cell as u16)));
        let offering = after(&chooser, OFFER);
        nodes.push(chooser);
        for white in legal(&offering) {
            let offered_white = after(&offering, white);
            let offered = legal(&offered_white)
                .into_iter()
                .map(|black| after(&offered_white, black));
            nodes.extend(offered.filter(|state| state.outcome().is_none()));
        }
    }
    nodes
}

#[test]
fn the_empty_board_is_a_draw_for_the_opener() {
    let (game, mut solver) = small_game();
    assert_eq!(solver.value(&game.start()), 0);
}

#[test]
fn white_is_worth_the_opposite_of_black_at_every_choice_node() {
    let (game, mut solver) = small_game();
    // With this much exploration each legal action gets exactly one visit, so that q is one exact leaf value.
    let settings = Settings {
        cpuct_init: 100.0,
        ..Settings::default()
    };
    let nodes = choice_nodes(&game);
    assert!(nodes.len() > 7000);
    let mut decisive = 0;
    for node in nodes {
        let mut tree = Tree::new(game.clone(), node.clone(), settings);
        let evaluate = exact(&game, |state| solver.value(state));
        let simulations = 1 + legal(&node).len() as u32;
        search(&mut tree, simulations, RootNoise::None, 1, &mut rng(0), evaluate);
        let stats = tree.root_stats();
        assert!(stats.children.iter().all(|child| child.visits == 1), "{stats:?}");
        let [black, white] = [&stats.children[0], &stats.children[1]];
        assert_eq!([black.action, white.action], [TAKE_BLACK, TAKE_WHITE]);
        assert_eq!(black.q, -white.q, "{}\n{stats:?}", node.draw());
        for child in &stats.children {
            let next = after(&node, child.action);
            let sign = if next.seat() == node.seat() { 1 } else { -1 };
            assert_eq!(
                child.q,
                f32::from(sign * solver.value(&next)),
                "{}\n{stats:?}",
                node.draw()
            );
        }
        assert_eq!(stats.net_wdl.value(), f32::from(solver.value(&node)));
        decisive += u32::from(black.q != 0.0);
    }
    assert!(
        decisive > 1000,
        "most signs would go unseen: {decisive} decisive choices"
    );
}

#[test]
fn the_optimal_colour_is_chosen_at_every_choice_node() {
    let (game, mut solver) = small_game();
    for node in choice_nodes(&game) {
        let mut tree = Tree::new(game.clone(), node.clone(), Settings::default());
        search(
            &mut tree,
            100,
            RootNoise::None,
            4,
            &mut rng(0),
            exact(&game, |state| solver.value(state)),
        );
        let next = after(&node, tree.choose(0.0, &mut rng(0)).unwrap());
        let sign = if next.seat() == node.seat() { 1 } else { -1 };
        assert_eq!(
            sign * solver.value(&next),
            solver.value(&node),
            "{}\n{}",
            node.draw(),
            tree.dump(2)
        );
    }
}

#[test]
fn a_game_searched_with_exact_values_never_leaves_its_value() {
    let (game, mut solver) = small_game();
    let mut tree = Tree::new(game.clone(), game.start(), Settings::default());
    let mut rng = rng(1);
    while tree.root().outcome().is_none() {
        let exact = exact(&game, |state| solver.value(state));
        search(&mut tree, 400, RootNoise::None, 4, &mut rng, exact);
        let action = tree.choose(0.0, &mut rng).unwrap();
        tree.advance(action).unwrap();
        assert_eq!(
            solver.value(tree.root()),
            0,
            "after {}:\n{}",
            game.action_text(action),
            tree.root().draw()
        );
    }
}
