//! A set of up to 128 points of a board, as bits.

/// Most points of a board.
pub const POINTS_MAX: usize = 128;

/// A set of points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Points(u128);

impl Points {
    /// No point.
    pub const EMPTY: Points = Points(0);

    /// The points `0..len`.
    pub const fn below(len: usize) -> Points {
        if len >= POINTS_MAX {
            Points(u128::MAX)
        } else {
            Points((1 << len) - 1)
        }
    }

    /// Whether `point` is in the set.
    pub const fn has(self, point: usize) -> bool {
        point < POINTS_MAX && self.0 >> point & 1 == 1
    }

    /// Adds `point`.
    pub const fn insert(&mut self, point: usize) {
        self.0 |= 1 << point;
    }

    /// Takes `point` out.
    pub const fn remove(&mut self, point: usize) {
        self.0 &= !(1 << point);
    }

    /// Whether there is no point.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Number of points.
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Points of either set.
    #[must_use]
    pub const fn or(self, other: Points) -> Points {
        Points(self.0 | other.0)
    }

    /// Points of both sets.
    #[must_use]
    pub const fn and(self, other: Points) -> Points {
        Points(self.0 & other.0)
    }

    /// Points of this set that are not in the other.
    #[must_use]
    pub const fn without(self, other: Points) -> Points {
        Points(self.0 & !other.0)
    }

    /// The points in ascending order.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        let mut bits = self.0;
        std::iter::from_fn(move || {
            let point = bits.trailing_zeros() as usize;
            bits &= bits.wrapping_sub(1);
            (point < POINTS_MAX).then_some(point)
        })
    }

    /// The points that `keep` accepts.
    #[must_use]
    pub fn filter(self, mut keep: impl FnMut(u8) -> bool) -> Points {
        self.iter().filter(|&point| keep(point as u8)).collect()
    }

    /// The images of the points.
    #[must_use]
    pub fn permute(self, cells: &[u16]) -> Points {
        self.iter().map(|point| cells[point] as usize).collect()
    }

    /// The set as two words.
    pub const fn words(self) -> [u64; 2] {
        [self.0 as u64, (self.0 >> 64) as u64]
    }

    /// Writes a one at every point of `plane`.
    pub fn fill(self, plane: &mut [u8]) {
        self.iter().for_each(|point| plane[point] = 1);
    }
}

impl FromIterator<usize> for Points {
    fn from_iter<I: IntoIterator<Item = usize>>(points: I) -> Points {
        let mut set = Points::EMPTY;
        points.into_iter().for_each(|point| set.insert(point));
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_listed_in_ascending_order() {
        let set: Points = [127, 0, 64, 63].into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 63, 64, 127]);
        assert_eq!(
            (set.len(), set.has(64), set.has(65), set.has(128)),
            (4, true, false, false)
        );
        assert_eq!(Points::below(128).len(), 128);
        assert_eq!(Points::below(49).len(), 49);
    }
}
