//! The moves since the last capture, and what a position that comes back for the third time makes of them.
//!
//! A capture can never be undone, so nothing before it comes back, and without captures every move can be taken back: that
//! is how earlier positions are found.

use super::pieces::Pieces;
use crate::hash::Mixer;

/// Moves in a row without a capture that make a draw.
pub(super) const QUIET_MOVES_MAX: u8 = 120;

/// A move that captured nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Quiet {
    from: u8,
    to: u8,
    gives_check: bool,
}

/// The entries beyond the newest are this one, so that equal pasts are equal arrays.
const NONE: Quiet = Quiet {
    from: 0,
    to: 0,
    gives_check: false,
};

/// The moves since the last capture or the beginning, oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Past {
    moves: [Quiet; QUIET_MOVES_MAX as usize],
    len: u8,
}

/// Who made the third occurrence of a position inevitable by checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repetition {
    /// Every move of the side that moved last gave check since the position's previous occurrence, and not every one of
    /// the other's.
    CheckedByLast,
    /// The same of the side that is to move.
    CheckedByNext,
    /// Neither side did, or both.
    Even,
}

impl Past {
    /// Nothing so far.
    pub(super) const EMPTY: Past = Past {
        moves: [NONE; QUIET_MOVES_MAX as usize],
        len: 0,
    };

    fn moves(&self) -> &[Quiet] {
        &self.moves[..self.len as usize]
    }

    /// Adds a move. The game is over before there is no room.
    pub(super) fn push(&mut self, from: usize, to: usize, gives_check: bool) {
        if let Some(slot) = self.moves.get_mut(self.len as usize) {
            *slot = Quiet {
                from: from as u8,
                to: to as u8,
                gives_check,
            };
            self.len += 1;
        }
    }

    /// How many moves ago the position `now` was there before with the same side to move, the latest first.
    fn occurrences(&self, now: &Pieces) -> impl Iterator<Item = usize> {
        let now = *now;
        let mut before = now;
        let mut differing = 0_i32;
        let moves = self.moves().iter().rev().enumerate();
        moves.filter_map(move |(back, quiet)| {
            let (from, to) = (quiet.from as usize, quiet.to as usize);
            let differ = |before: &Pieces| {
                let points = [from, to].into_iter();
                points.filter(|&point| before.get(point) != now.get(point)).count() as i32
            };
            differing -= differ(&before);
            if let Some(piece) = before.take(to) {
                before.set(from, piece);
            }
            differing += differ(&before);
            (differing == 0 && back % 2 == 1).then_some(back + 1)
        })
    }

    /// Whether the position `now` was there before.
    pub(super) fn has_repeated(&self, now: &Pieces) -> bool {
        self.occurrences(now).next().is_some()
    }

    /// What the third occurrence of the position `now` means, if it is one.
    pub(super) fn third_occurrence(&self, now: &Pieces) -> Option<Repetition> {
        let mut occurrences = self.occurrences(now);
        let (latest, _) = (occurrences.next()?, occurrences.next()?);
        let since = self.moves().iter().rev().take(latest);
        let always = |skipped: usize| since.clone().skip(skipped).step_by(2).all(|quiet| quiet.gives_check);
        Some(match (always(0), always(1)) {
            (true, false) => Repetition::CheckedByLast,
            (false, true) => Repetition::CheckedByNext,
            _ => Repetition::Even,
        })
    }

    pub(super) fn permute(&self, cells: &[u16]) -> Past {
        let mut image = *self;
        for quiet in &mut image.moves[..self.len as usize] {
            quiet.from = cells[quiet.from as usize] as u8;
            quiet.to = cells[quiet.to as usize] as u8;
        }
        image
    }

    /// Adds all of it to a hash: what a repetition will mean depends on the way here.
    pub(super) fn mix(&self, mixer: Mixer) -> Mixer {
        let words = self.moves().chunks(4).map(|moves| {
            moves.iter().fold(0, |word, quiet| {
                word << 16 | u64::from(quiet.gives_check) << 15 | u64::from(quiet.from) << 8 | u64::from(quiet.to)
            })
        });
        words.fold(mixer.with(u64::from(self.len)), Mixer::with)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::game::Seat;
    use crate::xiangqi::pieces::{Kind, Piece};

    /// Two generals that step to and fro, one of them with a check or none each time: no position of a real game, but the
    /// past does not ask.
    fn third_occurrence(first_checks: [bool; 2], second_checks: [bool; 2]) -> Option<Repetition> {
        let mut now = Pieces::EMPTY;
        for (seat, point) in [(Seat::FIRST, 84), (Seat::SECOND, 4)] {
            let kind = Kind::General;
            now.set(point, Piece { seat, kind });
        }
        let mut past = Past::EMPTY;
        for _ in 0..2 {
            for there in [false, true] {
                let steps = [(84, 85, first_checks), (4, 3, second_checks)];
                for (from, to, checks) in steps {
                    let (from, to) = if there { (to, from) } else { (from, to) };
                    past.push(from, to, checks[usize::from(there)]);
                }
            }
        }
        past.third_occurrence(&now)
    }

    #[test]
    fn one_side_that_always_checks_is_to_blame_and_two_are_even() {
        let (always, sometimes, never) = ([true, true], [true, false], [false, false]);
        assert_eq!(third_occurrence(always, never), Some(Repetition::CheckedByNext));
        assert_eq!(third_occurrence(sometimes, always), Some(Repetition::CheckedByLast));
        assert_eq!(third_occurrence(always, always), Some(Repetition::Even));
        assert_eq!(third_occurrence(sometimes, never), Some(Repetition::Even));
    }

    #[test]
    fn a_position_that_was_there_once_before_is_no_third_occurrence() {
        let mut now = Pieces::EMPTY;
        let kind = Kind::General;
        now.set(
            84,
            Piece {
                seat: Seat::FIRST,
                kind,
            },
        );
        now.set(
            4,
            Piece {
                seat: Seat::SECOND,
                kind,
            },
        );
        let mut past = Past::EMPTY;
        assert!(!past.has_repeated(&now));
        for (from, to) in [(84, 85), (4, 3), (85, 84), (3, 4)] {
            past.push(from, to, true);
        }
        assert!(past.has_repeated(&now));
        assert_eq!(past.third_occurrence(&now), None);
        assert_eq!(past.moves().len(), 4);
    }
}
