//! Expected results: [`Wdl`] for the outside, [`ValueFor`] for the tree, where a value always says whose it is.
//!
//! The only negation of a value in this crate is in [`ValueFor::seen_by`].

use tengen_games::{Outcome, Seat};

/// Probabilities of a win, a draw and a loss for one seat (the context says which). They sum to one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wdl {
    /// Probability of a win.
    pub win: f32,
    /// Probability of a draw.
    pub draw: f32,
    /// Probability of a loss.
    pub loss: f32,
}

impl Wdl {
    /// Softmax of the network's logits for win, draw and loss. Finite logits give finite probabilities.
    pub fn from_logits(logits: [f32; 3]) -> Wdl {
        let greatest = logits.into_iter().fold(f32::NEG_INFINITY, f32::max);
        let [win, draw, loss] = logits.map(|logit| (logit - greatest).exp());
        let sum = win + draw + loss;
        Wdl {
            win: win / sum,
            draw: draw / sum,
            loss: loss / sum,
        }
    }

    /// The probabilities that belong to an expected value in `[-1, 1]` and a probability of a draw.
    pub fn from_value_and_draw(value: f32, draw: f32) -> Wdl {
        Wdl {
            win: (1.0 - draw + value) / 2.0,
            draw,
            loss: (1.0 - draw - value) / 2.0,
        }
    }

    /// Expected result in `[-1, 1]`: win minus loss.
    pub fn value(self) -> f32 {
        self.win - self.loss
    }

    /// The same probabilities as the other seat sees them.
    #[must_use]
    pub fn flipped(self) -> Wdl {
        Wdl {
            win: self.loss,
            draw: self.draw,
            loss: self.win,
        }
    }
}

/// An expected result together with the seat whose view it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ValueFor {
    seat: Seat,
    /// Win minus loss for `seat`, in `[-1, 1]`.
    pub(crate) value: f64,
    /// Probability of a draw, the same for both seats.
    pub(crate) draw: f64,
}

impl ValueFor {
    pub(crate) const fn new(seat: Seat, value: f64, draw: f64) -> ValueFor {
        ValueFor { seat, value, draw }
    }

    /// What the network says of a position in which `seat` acts.
    pub(crate) fn predicted(seat: Seat, wdl: Wdl) -> ValueFor {
        ValueFor::new(seat, f64::from(wdl.value()), f64::from(wdl.draw))
    }

    /// The exact value of a finished game.
    pub(crate) fn exact(seat: Seat, outcome: Outcome) -> ValueFor {
        let draw = if outcome.winner.is_none() { 1.0 } else { 0.0 };
        ValueFor::new(seat, f64::from(outcome.value_for(seat)), draw)
    }

    /// The same result as `seat` sees it: negated iff it is another seat.
    pub(crate) fn seen_by(self, seat: Seat) -> ValueFor {
        let value = if seat == self.seat { self.value } else { -self.value };
        ValueFor {
            seat,
            value,
            draw: self.draw,
        }
    }

    pub(crate) fn wdl(self) -> Wdl {
        Wdl::from_value_and_draw(self.value as f32, self.draw as f32)
    }
}

#[cfg(test)]
mod tests {
    use tengen_games::Reason;

    use super::*;

    #[test]
    fn logits_become_probabilities_however_large_they_are() {
        let wdl = Wdl::from_logits([1000.0, 1000.0, -1000.0]);
        assert_eq!(
            wdl,
            Wdl {
                win: 0.5,
                draw: 0.5,
                loss: 0.0
            }
        );
        assert_eq!(wdl.value(), 0.5);
        assert_eq!(
            wdl.flipped(),
            Wdl {
                win: 0.0,
                draw: 0.5,
                loss: 0.5
            }
        );
    }

    #[test]
    fn value_and_draw_carry_the_whole_distribution() {
        let wdl = Wdl {
            win: 0.5,
            draw: 0.25,
            loss: 0.25,
        };
        assert_eq!(ValueFor::predicted(Seat::FIRST, wdl).wdl(), wdl);
        assert_eq!(
            ValueFor::predicted(Seat::FIRST, wdl).seen_by(Seat::SECOND).wdl(),
            wdl.flipped()
        );
    }

    #[test]
    fn a_value_is_negated_only_for_the_other_seat() {
        let value = ValueFor::exact(Seat::FIRST, Outcome::win(Seat::SECOND, Reason::Line));
        assert_eq!(value.value, -1.0);
        assert_eq!(value.seen_by(Seat::FIRST), value);
        assert_eq!(value.seen_by(Seat::SECOND).value, 1.0);
        assert_eq!(ValueFor::exact(Seat::FIRST, Outcome::draw(Reason::BoardFull)).draw, 1.0);
    }
}
