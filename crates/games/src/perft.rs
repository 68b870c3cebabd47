//! Counting action sequences: the classic check of move generation.

use crate::game::{Action, Game, State};

/// Number of action sequences of exactly `depth` plies from the start. The last ply is counted, not played.
pub fn perft<G: Game>(game: &G, depth: u32) -> u64 {
    perft_within(game, depth, u64::MAX).unwrap_or(u64::MAX)
}

/// Like [`perft`], but gives up with `None` as soon as the count exceeds `count_max`.
pub fn perft_within<G: Game>(game: &G, depth: u32, count_max: u64) -> Option<u64> {
    let mut counter = Counter {
        count: 0,
        count_max,
        buffers: vec![Vec::new(); depth as usize + 1],
    };
    counter.descend(&game.start(), depth).then_some(counter.count)
}

struct Counter {
    count: u64,
    count_max: u64,
    /// One buffer of legal actions for each remaining depth, so that nothing is allocated on the way.
    buffers: Vec<Vec<Action>>,
}

impl Counter {
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
