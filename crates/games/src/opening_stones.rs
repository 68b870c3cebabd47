//! Which stones a Swap2 opening placed: planes show them for the whole game.
//!
//! It keeps cells and knows no board.

use crate::swap2;

/// Stands for "no cell" where an `Option` would double the size.
pub(crate) const NO_CELL: u16 = u16::MAX;

/// The stones of a Swap2 opening: black, white, black, then the offered white and black. The first two black ones
/// are kept in ascending order, so that the order of placing them leaves no trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OpeningStones([u16; swap2::OFFERED_STONES as usize]);

impl Default for OpeningStones {
    fn default() -> OpeningStones {
        OpeningStones([NO_CELL; swap2::OFFERED_STONES as usize])
    }
}

impl OpeningStones {
    /// Notes the stone of this 0-based number.
    pub(crate) fn note(&mut self, number: usize, cell: usize) {
        self.0[number] = cell as u16;
        self.sort();
    }

    /// The stones where `cells` says that they go.
    pub(crate) fn permute(self, cells: &[u16]) -> OpeningStones {
        let mut image = OpeningStones(self.0.map(|cell| cells.get(cell as usize).copied().unwrap_or(NO_CELL)));
        image.sort();
        image
    }

    /// The cells as words, for hashing.
    pub(crate) fn words(self) -> [u64; swap2::OFFERED_STONES as usize] {
        self.0.map(u64::from)
    }

    fn sort(&mut self) {
        if self.0[0] > self.0[2] {
            self.0.swap(0, 2);
        }
    }

    /// Cells of the stones with these numbers, as far as they lie.
    pub(crate) fn cells(&self, numbers: std::ops::Range<usize>) -> impl Iterator<Item = usize> {
        self.0[numbers]
            .iter()
            .filter(|&&cell| cell != NO_CELL)
            .map(|&cell| cell as usize)
    }
}
