//! A toy game grown from a seed: who acts, what is legal and how it ends are arbitrary at every place. Runs of
//! actions by one seat and positions with a single legal action are common.

use tengen_games::{Action, Outcome, Reason, Seat};

use crate::drive::mix;
use crate::toy::{Rule, Toy};

/// Number of actions of the action space.
pub(crate) const ACTIONS: u16 = 6;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Thicket {
    pub(crate) seed: u64,
    pub(crate) depth_max: u8,
}

impl Thicket {
    pub(crate) fn game(seed: u64, depth_max: u8) -> Toy<Thicket> {
        Toy::new(Thicket { seed, depth_max }, usize::from(ACTIONS))
    }
}

impl Rule for Thicket {
    /// Hash of the way and its length.
    type Place = (u64, u8);

    fn start(&self) -> (u64, u8) {
        (mix(self.seed), 0)
    }

    fn seat(&self, (way, _): (u64, u8)) -> Seat {
        Seat::new((way >> 8) as u8 & 1).unwrap()
    }

    fn outcome(&self, (way, depth): (u64, u8)) -> Option<Outcome> {
        let over = depth == self.depth_max || (depth > 0 && (way >> 16) % 8 == 0);
        over.then(|| match (way >> 24) % 3 {
            0 => Outcome::draw(Reason::Score),
            1 => Outcome::win(Seat::FIRST, Reason::Score),
            _ => Outcome::win(Seat::SECOND, Reason::Score),
        })
    }

    fn moves(&self, (way, depth): (u64, u8)) -> Vec<(Action, (u64, u8))> {
        let mask = match (way >> 32) as u16 % (1 << ACTIONS) {
            0 => 1,
            mask => mask,
        };
        let legal = (0..ACTIONS).filter(|bit| mask >> bit & 1 == 1);
        legal
            .map(|action| (Action(action), (mix(way ^ u64::from(action)), depth + 1)))
            .collect()
    }

    fn hash(&self, (way, _): (u64, u8)) -> u64 {
        way
    }
}
