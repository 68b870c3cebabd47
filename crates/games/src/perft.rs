//! Counting action sequences, or whole moves: the classic check of move generation.

use crate::game::{Action, Game, Moves, State};

/// Number of action sequences of exactly `depth` plies from the start. The last ply is counted, not played.
pub fn perft<G: Game>(game: &G, depth: u32) -> u64 {
    perft_from(&game.start(), depth)
}

/// Number of action sequences of exactly `depth` plies from `state`.
pub fn perft_from<S: State>(state: &S, depth: u32) -> u64 {
    let mut counter = Counter::new(depth, u64::MAX);
    counter.descend(state, depth);
    counter.count
}

/// Like [`perft`], but gives up with `None` as soon as the count exceeds `count_max`.
pub fn perft_within<G: Game>(game: &G, depth: u32, count_max: u64) -> Option<u64> {
    let mut counter = Counter::new(depth, count_max);
    counter.descend(&game.start(), depth).then_some(counter.count)
}

/// Number of sequences of exactly `depth` whole moves from `state`, as published figures count them: in games of
/// staged moves the stages of a turn make one move, and two ways to pick the same move count once. In all other games
/// the same as [`perft_from`]. `state` is at the beginning of a turn.
pub fn perft_moves<G: Game>(game: &G, state: &G::State, depth: u32) -> u64 {
    match game.moves() {
        Moves::Actions => perft_from(state, depth),
        Moves::Staged => count_moves(game, state, state, depth, &mut Vec::new()),
    }
}

/// Sequences of `depth` moves, the first of which is `picked` so far, from `before` to `state`.
fn count_moves<G: Game>(game: &G, before: &G::State, state: &G::State, depth: u32, picked: &mut Vec<Action>) -> u64 {
    if depth == 0 {
        return 1;
    }
    let mut legal = Vec::new();
    state.legal(&mut legal);
    let mut count = 0;
    for action in legal {
        let mut next = state.clone();
        if next.apply(action).is_err() {
            continue;
        }
        picked.push(action);
        if next.turn() == before.turn() {
            count += count_moves(game, before, &next, depth, picked);
        } else if game.is_named(before, picked) {
            count += count_moves(game, &next, &next, depth - 1, &mut Vec::new());
        }
        picked.pop();
    }
    count
}

struct Counter {
    count: u64,
    count_max: u64,
    /// One buffer of legal actions for each remaining depth, so that nothing is allocated on the way.
    buffers: Vec<Vec<Action>>,
}

impl Counter {
    fn new(depth: u32, count_max: u64) -> Counter {
        Counter {
            count: 0,
            count_max,
            buffers: vec![Vec::new(); depth as usize + 1],
        }
    }

    /// Whether the count is still within the limit.
    fn descend<S: State>(&mut self, state: &S, depth: u32) -> bool {
        if depth == 0 {
            self.count += 1;
            return self.count <= self.count_max;
        }
        let mut legal = std::mem::take(&mut self.buffers[depth as usize]);
        state.legal(&mut legal);
        let within = if depth == 1 {
            self.count += legal.len() as u64;
            self.count <= self.count_max
        } else {
            legal.iter().all(|&action| {
                let mut next = state.clone();
                next.apply(action).is_ok() && self.descend(&next, depth - 1)
            })
        };
        self.buffers[depth as usize] = legal;
        within
    }
}
