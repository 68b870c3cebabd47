//! Words in which actors and learners say why they do nothing, and by which the coordinator tells the causes apart.
//!
//! Such a report is a sentence for people. These are the parts of it that are more than that: both sides take them from here.

/// How an actor begins that cannot use the network of its lease, or the lease itself.
pub const LEASE_UNPLAYABLE: &str = "a lease cannot be played";
/// How an actor begins whose spool takes nothing more, or only match games.
pub const SPOOL_FULL: &str = "its spool is full";
/// Says that two builds mean different things by one game's name.
pub const FINGERPRINT: &str = "fingerprint";
/// Says that a build does not know the run's game.
pub const GAME_UNKNOWN: &str = "cannot be played by this build";
/// Says that a build knows the run's game by another name.
pub const GAME_RENAMED: &str = "which this build calls";
/// How a learner begins that trains when there are more games.
pub const WAITING_FOR_GAMES: &str = "waiting for games";

/// Whether an actor that gave up has other rules or planes than the run, or does not know its game.
pub fn is_other_rules(why: &str) -> bool {
    [FINGERPRINT, GAME_UNKNOWN, GAME_RENAMED]
        .iter()
        .any(|words| why.contains(words))
}
