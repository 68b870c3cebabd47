//! A toy game whose tree is written out by hand.

use tengen_games::{Action, Outcome, Reason, Seat};

use crate::toy::{Rule, Toy};

/// One place of the written tree.
#[derive(Debug, PartialEq)]
pub(crate) enum Place {
    /// `0` or `1` acts; action `i` leads to the `i`-th place of the list.
    Act(u8, &'static [usize]),
    /// `0` or `1` has won.
    Won(u8),
    /// Nobody has.
    Drawn,
}

/// The tree as a list of places; play starts at the first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Script(pub(crate) &'static [Place]);

impl Script {
    pub(crate) fn game(places: &'static [Place]) -> Toy<Script> {
        Toy::new(Script(places), 4)
    }
}

impl Rule for Script {
    type Place = usize;

    fn start(&self) -> usize {
        0
    }

    fn seat(&self, place: usize) -> Seat {
        match self.0[place] {
            Place::Act(seat, _) => Seat::new(seat).unwrap(),
            Place::Won(_) | Place::Drawn => Seat::SECOND,
        }
    }

    fn outcome(&self, place: usize) -> Option<Outcome> {
        match self.0[place] {
            Place::Act(..) => None,
            Place::Won(seat) => Some(Outcome::win(Seat::new(seat).unwrap(), Reason::Score)),
            Place::Drawn => Some(Outcome::draw(Reason::Score)),
        }
    }

    fn moves(&self, place: usize) -> Vec<(Action, usize)> {
        match self.0[place] {
            Place::Act(_, next) => (0..).map(Action).zip(next.iter().copied()).collect(),
            Place::Won(_) | Place::Drawn => Vec::new(),
        }
    }

    fn hash(&self, place: usize) -> u64 {
        place as u64
    }
}
