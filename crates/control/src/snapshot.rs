//! The state of a run as a store keeps it.

use crate::gate::{Candidate, Gate};
use crate::ids::ModelId;
use crate::lease::Lease;
use crate::rating::RatingState;
use crate::steering::Steering;

/// A candidate that the learner owes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CandidateDue {
    /// Iterations that have ended.
    pub iteration: u32,
    /// Trainable positions stored when the last of them ended: what the candidate should have seen.
    pub positions: u64,
}

/// The state of a run as a store keeps it, for [`Control::restore`](crate::Control::restore).
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The iteration being played, counted from 0.
    pub iteration: u32,
    /// Self-play games stored in it.
    pub iteration_games: u32,
    /// Trainable positions stored in the run.
    pub positions: u64,
    /// The newest candidate that was due, published or not.
    pub due: Option<CandidateDue>,
    /// The newest iteration a candidate was published for; 0 for none.
    pub published_iteration: u32,
    /// The champion.
    pub champion: ModelId,
    /// Its generation.
    pub generation: u32,
    /// The newest generation there was; later than the champion's after a roll-back.
    pub newest_generation: u32,
    /// Gates opened so far.
    pub gates: u32,
    /// The gate in progress, its log filled in.
    pub gate: Option<Gate>,
    /// Successive candidates that have passed against this champion without becoming champion.
    pub streak: u32,
    /// The candidates that wait for their gate, oldest first.
    pub waiting: Vec<Candidate>,
    /// The leases in progress.
    pub leases: Vec<Lease>,
    /// Every match game, for the ratings.
    pub ratings: RatingState,
    /// What people have set.
    pub steering: Steering,
}

impl Snapshot {
    /// A run that has just been created with this random network.
    pub fn new(champion: ModelId) -> Snapshot {
        Snapshot {
            iteration: 0,
            iteration_games: 0,
            positions: 0,
            due: None,
            published_iteration: 0,
            champion,
            generation: 0,
            newest_generation: 0,
            gates: 0,
            gate: None,
            streak: 0,
            waiting: Vec::new(),
            leases: Vec::new(),
            ratings: RatingState::default(),
            steering: Steering::default(),
        }
    }
}
