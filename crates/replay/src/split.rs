//! Which games are for training and which for validation: decided by the game's id alone, so that every mirror, at
//! every time, decides the same.

use tengen_records::RecordId;

/// What a game is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// Sampled for training.
    Training,
    /// Left out of training.
    Validation,
}

impl Part {
    /// 0 or 1.
    pub(crate) const fn index(self) -> usize {
        self as usize
    }
}

/// A share that is none.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("validation share {0} is not in 0..1")]
pub struct SplitError(pub f64);

/// The share of games that validation takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    /// Hashes below this are validation's.
    bound: u64,
}

impl Split {
    /// No game is left out of training.
    pub const TRAINING_ONLY: Split = Split { bound: 0 };

    /// Validation takes this share of the games, `0.0..1.0`.
    ///
    /// # Errors
    /// When the share is out of range.
    pub fn new(validation_share: f64) -> Result<Split, SplitError> {
        if (0.0..1.0).contains(&validation_share) {
            Ok(Split {
                bound: (validation_share * 2f64.powi(64)) as u64,
            })
        } else {
            Err(SplitError(validation_share))
        }
    }

    /// What the game with this id is used for: by the first eight bytes, little endian, of BLAKE3 over
    /// `tengen/v1/validation-split` and the id's bytes.
    pub fn part(&self, id: RecordId) -> Part {
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"tengen/v1/validation-split");
        hasher.update(&id.to_bytes());
        let mut first = [0; 8];
        hasher.finalize_xof().fill(&mut first);
        if u64::from_le_bytes(first) < self.bound {
            Part::Validation
        } else {
            Part::Training
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tengen_records::LeaseId;

    fn validation_games(split: Split) -> usize {
        let ids = (0..10_000).map(|index| RecordId {
            lease: LeaseId(77),
            index,
        });
        ids.filter(|&id| split.part(id) == Part::Validation).count()
    }

    #[test]
    fn validation_takes_its_share_of_the_games() {
        assert_eq!(validation_games(Split::TRAINING_ONLY), 0);
        assert_eq!(validation_games(Split::new(0.0).expect("in range")), 0);
        let tenth = validation_games(Split::new(0.1).expect("in range"));
        assert!((900..1100).contains(&tenth), "{tenth}");
    }

    #[test]
    fn a_larger_share_keeps_the_games_of_the_smaller() {
        let (small, large) = (Split::new(0.05).expect("in range"), Split::new(0.2).expect("in range"));
        for index in 0..2000 {
            let id = RecordId {
                lease: LeaseId(5),
                index,
            };
            assert!(small.part(id) == Part::Training || large.part(id) == Part::Validation);
        }
    }

    #[test]
    fn a_share_out_of_range_is_refused() {
        for share in [-0.1, 1.0, f64::NAN] {
            assert!(Split::new(share).is_err(), "{share}");
        }
    }
}
