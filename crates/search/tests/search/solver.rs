//! Exact values by exhaustive search, by acting seat.

use std::collections::HashMap;

use tengen_games::State;

/// Remembers the exact value of every position it has seen, by hash.
#[derive(Default)]
pub(crate) struct Solver {
    known: HashMap<u64, i8>,
}

impl Solver {
    /// +1, 0 or -1 for the seat that acts in `state`.
    pub(crate) fn value<S: State>(&mut self, state: &S) -> i8 {
        let seat = state.seat();
        if let Some(outcome) = state.outcome() {
            return outcome.value_for(seat) as i8;
        }
        if let Some(&value) = self.known.get(&state.hash()) {
            return value;
        }
        let mut legal = Vec::new();
        state.legal(&mut legal);
        let mut best = -1;
        for action in legal {
            let mut child = state.clone();
            child.apply(action).unwrap();
            let value = self.value(&child);
            best = best.max(if child.seat() == seat { value } else { -value });
            if best == 1 {
                break;
            }
        }
        self.known.insert(state.hash(), best);
        best
    }
}
