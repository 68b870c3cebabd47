//! The Swap2 opening as a state machine, shared by every stone game that offers it.
//!
//! Seat 0, the opener, places black, white, black. Seat 1, the chooser, takes black, takes white, or adds one white
//! and one black stone and hands the choice back. It knows neither board nor line rule. The colour of the next stone
//! always follows from the number of stones: white iff it is odd.

use crate::game::Seat;
use crate::line::Colour;

/// The seat that places the opening.
pub const OPENER: Seat = Seat::FIRST;
/// The seat that chooses first.
pub const CHOOSER: Seat = Seat::SECOND;
/// Stones of the first phase: black, white, black.
pub const FIRST_STONES: u8 = 3;
/// Stones on the board after an offer: one white and one black more.
pub const OFFERED_STONES: u8 = 5;

/// A choice of colours, in the order of the actions behind the cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Decision {
    /// The acting seat takes black.
    TakeBlack,
    /// The acting seat takes white.
    TakeWhite,
    /// The chooser adds two stones and lets the opener choose.
    Offer,
}

impl Decision {
    /// Every decision in action order.
    pub const ALL: [Decision; 3] = [Decision::TakeBlack, Decision::TakeWhite, Decision::Offer];

    /// As people write it.
    pub const fn text(self) -> &'static str {
        match self {
            Decision::TakeBlack => "take-black",
            Decision::TakeWhite => "take-white",
            Decision::Offer => "offer",
        }
    }
}

/// The four phases that networks are told about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The opener places three stones.
    Opening,
    /// The chooser decides.
    Choice,
    /// Two more stones, then the opener decides.
    Offer,
    /// Colours are fixed.
    Normal,
}

/// How far the opening has come. Together with the number of stones it says whose action is due, and which.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Swap2 {
    /// The opener places the first three stones.
    Placing,
    /// The chooser decides.
    ChooserDecides,
    /// The chooser places the two offered stones.
    Offering,
    /// The opener decides.
    OpenerDecides,
    /// Colours are fixed.
    Play {
        /// The seat that holds black.
        black: Seat,
        /// Stones that lay on the board when colours were fixed: 0 without an opening, else 3 or 5.
        stones_before: u8,
    },
}

impl Swap2 {
    /// A game without an opening: seat 0 holds black and begins.
    pub const fn without_opening() -> Swap2 {
        Swap2::Play {
            black: Seat::FIRST,
            stones_before: 0,
        }
    }

    /// Whether this game had or has a Swap2 opening.
    pub const fn has_opening(self) -> bool {
        !matches!(self, Swap2::Play { stones_before: 0, .. })
    }

    /// The phase, for feature planes.
    pub const fn phase(self) -> Phase {
        match self {
            Swap2::Placing => Phase::Opening,
            Swap2::ChooserDecides => Phase::Choice,
            Swap2::Offering | Swap2::OpenerDecides => Phase::Offer,
            Swap2::Play { .. } => Phase::Normal,
        }
    }

    /// The decisions that are legal now, in action order; empty when a stone is due.
    pub const fn decisions(self) -> &'static [Decision] {
        match self {
            Swap2::ChooserDecides => &Decision::ALL,
            Swap2::OpenerDecides => &[Decision::TakeBlack, Decision::TakeWhite],
            Swap2::Placing | Swap2::Offering | Swap2::Play { .. } => &[],
        }
    }

    /// The seat that holds black, once colours are fixed.
    pub const fn black(self) -> Option<Seat> {
        match self {
            Swap2::Play { black, .. } => Some(black),
            _ => None,
        }
    }

    /// The seat to act with `stones` on the board.
    pub const fn actor(self, stones: usize) -> Seat {
        match self {
            Swap2::Placing | Swap2::OpenerDecides => OPENER,
            Swap2::ChooserDecides | Swap2::Offering => CHOOSER,
            Swap2::Play { black, .. } => match next_colour(stones) {
                Colour::Black => black,
                Colour::White => black.other(),
            },
        }
    }

    /// Whole turns finished, and actions of the running turn, with `stones` on the board. A turn is a run of actions
    /// by one seat: the opener's three stones, an offer with its two stones, or taking white and placing it.
    pub const fn turn_and_stage(self, stones: usize) -> (u32, u8) {
        let stones_now = stones as u32;
        match self {
            Swap2::Placing => (0, stones as u8),
            Swap2::ChooserDecides => (1, 0),
            Swap2::Offering => (1, 1 + stones as u8 - FIRST_STONES),
            Swap2::OpenerDecides => (2, 0),
            Swap2::Play { stones_before: 0, .. } => (stones_now, 0),
            Swap2::Play { black, stones_before } => {
                let (decider, turn) = if stones_before == FIRST_STONES {
                    (CHOOSER, 1)
                } else {
                    (OPENER, 2)
                };
                let placed = stones_now - stones_before as u32;
                let took_white = black.index() != decider.index();
                match (took_white, placed) {
                    (true, 0) => (turn, 1),
                    (true, _) => (turn + placed, 0),
                    (false, _) => (turn + 1 + placed, 0),
                }
            }
        }
    }

    /// The state after a stone, with `stones` on the board afterwards.
    pub const fn after_stone(self, stones: usize) -> Swap2 {
        match self {
            Swap2::Placing if stones == FIRST_STONES as usize => Swap2::ChooserDecides,
            Swap2::Offering if stones == OFFERED_STONES as usize => Swap2::OpenerDecides,
            other => other,
        }
    }

    /// The state after a decision, or `None` where it is not legal.
    pub const fn after_decision(self, decision: Decision) -> Option<Swap2> {
        let (decider, stones_before) = match self {
            Swap2::ChooserDecides => (CHOOSER, FIRST_STONES),
            Swap2::OpenerDecides => (OPENER, OFFERED_STONES),
            Swap2::Placing | Swap2::Offering | Swap2::Play { .. } => return None,
        };
        match (decision, self) {
            (Decision::TakeBlack, _) => Some(Swap2::Play {
                black: decider,
                stones_before,
            }),
            (Decision::TakeWhite, _) => Some(Swap2::Play {
                black: decider.other(),
                stones_before,
            }),
            (Decision::Offer, Swap2::ChooserDecides) => Some(Swap2::Offering),
            (Decision::Offer, _) => None,
        }
    }

    /// A small number that differs between any two states, for hashing.
    pub(crate) const fn code(self) -> u64 {
        match self {
            Swap2::Placing => 1,
            Swap2::ChooserDecides => 2,
            Swap2::Offering => 3,
            Swap2::OpenerDecides => 4,
            Swap2::Play { black, stones_before } => 5 + 2 * stones_before as u64 + black.index() as u64,
        }
    }
}

/// The colour of the next stone when `stones` are on the board, in every phase.
pub const fn next_colour(stones: usize) -> Colour {
    if stones.is_multiple_of(2) {
        Colour::Black
    } else {
        Colour::White
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Acts through an opening and two stones of normal play; checks (actor, turn, stage) before each action.
    fn check(decisions: &[Decision], expected: &[(Seat, u32, u8)]) {
        let mut swap2 = Swap2::Placing;
        let mut stones = 0;
        let mut decisions = decisions.iter();
        for &(actor, turn, stage) in expected {
            assert_eq!(
                (swap2.actor(stones), swap2.turn_and_stage(stones)),
                (actor, (turn, stage)),
                "{swap2:?} {stones}"
            );
            swap2 = if swap2.decisions().is_empty() {
                stones += 1;
                swap2.after_stone(stones)
            } else {
                let decision = *decisions.next().expect("a decision for every choice");
                swap2.after_decision(decision).expect("the decision is legal")
            };
        }
    }

    const FIRST: [(Seat, u32, u8); 4] = [(OPENER, 0, 0), (OPENER, 0, 1), (OPENER, 0, 2), (CHOOSER, 1, 0)];
    const OFFERED: [(Seat, u32, u8); 3] = [(CHOOSER, 1, 1), (CHOOSER, 1, 2), (OPENER, 2, 0)];

    #[test]
    fn chooser_takes_black_and_the_opener_places_white() {
        check(
            &[Decision::TakeBlack],
            &[&FIRST[..], &[(OPENER, 2, 0), (CHOOSER, 3, 0)]].concat(),
        );
    }

    #[test]
    fn chooser_takes_white_and_goes_on_in_the_same_turn() {
        check(
            &[Decision::TakeWhite],
            &[&FIRST[..], &[(CHOOSER, 1, 1), (OPENER, 2, 0), (CHOOSER, 3, 0)]].concat(),
        );
    }

    #[test]
    fn opener_takes_black_after_an_offer() {
        let expected = [&FIRST[..], &OFFERED, &[(CHOOSER, 3, 0), (OPENER, 4, 0)]].concat();
        check(&[Decision::Offer, Decision::TakeBlack], &expected);
    }

    #[test]
    fn opener_takes_white_after_an_offer_and_goes_on_in_the_same_turn() {
        let expected = [&FIRST[..], &OFFERED, &[(OPENER, 2, 1), (CHOOSER, 3, 0), (OPENER, 4, 0)]].concat();
        check(&[Decision::Offer, Decision::TakeWhite], &expected);
    }

    #[test]
    fn nobody_offers_twice() {
        assert_eq!(Swap2::OpenerDecides.after_decision(Decision::Offer), None);
    }

    #[test]
    fn codes_differ() {
        let plays = [0, 3, 5].into_iter().flat_map(|stones_before| {
            Seat::BOTH
                .into_iter()
                .map(move |black| Swap2::Play { black, stones_before })
        });
        let mut codes: Vec<u64> = [
            Swap2::Placing,
            Swap2::ChooserDecides,
            Swap2::Offering,
            Swap2::OpenerDecides,
        ]
        .into_iter()
        .chain(plays)
        .map(Swap2::code)
        .collect();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), 10);
    }
}
