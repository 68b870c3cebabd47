//! Whole searches of one player, kept for those who want to know why it plays as it does.

use std::time::{Duration, Instant};

use tengen_games::{Action, Game, Seat};
use tengen_search::{NodeStats, RootStats, Tree};

/// One search, whole.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchTrace {
    /// Index of the ply among those that were played, the opening not counted.
    pub ply: usize,
    /// Who searched.
    pub seat: Seat,
    /// What was chosen.
    pub chosen: Action,
    /// Temperature it was drawn with; 0 means the best was taken.
    pub temperature: f32,
    /// From its beginning to its choice. Searches of many games run side by side, so this is not what it cost alone.
    pub time: Duration,
    /// The root with every candidate.
    pub root: RootStats,
    /// Every position it reached.
    pub nodes: Vec<NodeStats>,
}

/// Keeps the searches of a seat.
#[derive(Debug)]
pub(crate) struct Tracer {
    seat: Seat,
    begun: Instant,
    kept: Vec<SearchTrace>,
}

impl Tracer {
    pub(crate) fn new(seat: Seat) -> Tracer {
        Tracer {
            seat,
            begun: Instant::now(),
            kept: Vec::new(),
        }
    }

    pub(crate) fn begin(&mut self) {
        self.begun = Instant::now();
    }

    /// Keeps a finished search, if it is the seat's.
    pub(crate) fn keep<G: Game>(
        &mut self,
        ply: usize,
        seat: Seat,
        chosen: Action,
        temperature: f32,
        tree: &Tree<G>,
        root: RootStats,
    ) {
        if seat == self.seat {
            self.kept.push(SearchTrace {
                ply,
                seat,
                chosen,
                temperature,
                time: self.begun.elapsed(),
                root,
                nodes: tree.nodes(),
            });
        }
    }

    pub(crate) fn take(&mut self) -> Vec<SearchTrace> {
        std::mem::take(&mut self.kept)
    }
}
