//! Why a record is refused: a stable code for machines and a sentence for people.

use std::fmt;

macro_rules! reason_codes {
    ($($(#[$doc:meta])* $variant:ident => $name:literal,)*) => {
        /// What is wrong with a record. The text form ([`ReasonCode::as_str`]) is stable: it goes over the wire and into
        /// the database.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ReasonCode {
            $($(#[$doc])* $variant,)*
        }

        impl ReasonCode {
            /// Every code.
            pub const ALL: &'static [ReasonCode] = &[$(ReasonCode::$variant,)*];

            /// The stable name.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(ReasonCode::$variant => $name,)*
                }
            }
        }
    };
}

reason_codes! {
    /// The bytes are not a record.
    Decode => "decode",
    /// More bytes, plies or list entries than the game can have.
    TooLarge => "too-large",
    /// A schema version this build does not know.
    SchemaVersion => "schema-version",
    /// A game of another run.
    WrongRun => "wrong-run",
    /// Another game, or the same with other parameters.
    WrongGame => "wrong-game",
    /// The rules fingerprint is not the run's.
    WrongRules => "wrong-rules",
    /// Self-play sent for a match lease or the other way round.
    WrongKind => "wrong-kind",
    /// The lease was not issued by this run.
    UnknownLease => "unknown-lease",
    /// No game with this index belongs to the lease.
    IndexOutOfLease => "index-out-of-lease",
    /// Models, their order or their seats are not the lease's.
    WrongModel => "wrong-model",
    /// The players of a rating game are not the lease's.
    WrongPlayers => "wrong-players",
    /// A player without a network states what a network saw.
    UnwantedSearch => "unwanted-search",
    /// The settings revision is not the lease's.
    WrongRevision => "wrong-revision",
    /// The seed does not derive from the lease's.
    WrongSeed => "wrong-seed",
    /// The match pair is not the lease's.
    WrongPair => "wrong-pair",
    /// The opening is illegal, ends the game, is too long or is not the lease's.
    Opening => "opening",
    /// A ply names a seat that does not act there.
    WrongSeat => "wrong-seat",
    /// A ply's action is not legal there.
    IllegalAction => "illegal-action",
    /// Plies follow the end of the game.
    PliesAfterEnd => "plies-after-end",
    /// The game is not over.
    Unfinished => "unfinished",
    /// The winner is not the one the rules name.
    WrongResult => "wrong-result",
    /// The reason is unknown or not the one the rules name.
    WrongReason => "wrong-reason",
    /// The roles are not the ones the rules name.
    WrongRoles => "wrong-roles",
    /// A target probability is not a finite number.
    PolicyNotFinite => "policy-not-finite",
    /// A target probability is negative or above one.
    PolicyRange => "policy-range",
    /// Target entries are not in ascending order of distinct actions.
    PolicyOrder => "policy-order",
    /// A target names an action that is not legal there.
    PolicyIllegal => "policy-illegal",
    /// The target does not sum to one, or is absent where the position is trained on.
    PolicySum => "policy-sum",
    /// Visit counts are zero, out of order, for illegal actions or more than the total.
    Visits => "visits",
    /// The network's largest priors are too many, repeated, illegal or no probabilities.
    NetPolicy => "net-policy",
    /// Win, draw and loss are not three probabilities that sum to one.
    Wdl => "wdl",
    /// The training weight is not a finite number in its range.
    Weight => "weight",
    /// The divergence from the prior is negative or not finite.
    PriorKl => "prior-kl",
    /// The temperature is negative or not finite.
    Temperature => "temperature",
    /// The network's precision is not stated.
    Precision => "precision",
    /// The searches of a match game are in more than one precision.
    MixedPrecisions => "mixed-precisions",
    /// The game has no symmetry with this index.
    Symmetry => "symmetry",
}

impl ReasonCode {
    /// The code with this stable name.
    pub fn parse(name: &str) -> Option<ReasonCode> {
        ReasonCode::ALL.iter().copied().find(|code| code.as_str() == name)
    }
}

impl fmt::Display for ReasonCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A refused record: sending it again will not help.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("record rejected ({code}): {detail}")]
pub struct Rejection {
    /// What is wrong, for machines.
    pub code: ReasonCode,
    /// What is wrong, with the offending values, for people.
    pub detail: String,
}

impl Rejection {
    /// A rejection with this code and detail.
    pub fn new(code: ReasonCode, detail: impl Into<String>) -> Rejection {
        Rejection {
            code,
            detail: detail.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_its_own_kebab_case_name() {
        for &code in ReasonCode::ALL {
            let name = code.as_str();
            assert_eq!(ReasonCode::parse(name), Some(code));
            assert!(name.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{name}");
        }
        assert_eq!(ReasonCode::parse("fine"), None);
    }

    #[test]
    fn a_rejection_reads_as_a_sentence() {
        let rejection = Rejection::new(ReasonCode::WrongSeat, "ply 3 names seat 1");
        assert_eq!(
            rejection.to_string(),
            "record rejected (wrong-seat): ply 3 names seat 1"
        );
    }
}
