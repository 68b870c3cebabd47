//! How people steer a run: what they hold, pin and end, and what they order about its champion.

use std::collections::BTreeSet;

use crate::gate::Candidate;
use crate::ids::{GateId, ModelId};

/// What can be paused, each apart from the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Activity {
    /// Self-play: no new lease of it is handed out; those that are out go on to their end.
    SelfPlay,
    /// Training: the learner holds before its next step. This crate only remembers it.
    Training,
    /// Gating: no gate begins and no pair is handed out, nor a rating match; pairs that are out count, and may decide
    /// their gate.
    Gating,
}

impl Activity {
    /// Every one of them.
    pub const ALL: [Activity; 3] = [Activity::SelfPlay, Activity::Training, Activity::Gating];
}

/// What people have set about a run; it outlives restarts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Steering {
    /// What is paused.
    pub paused: BTreeSet<Activity>,
    /// Whether gates are played and promote nobody; people still may.
    pub pinned: bool,
    /// Whether the run was ended: for good, nothing is handed out or published any more.
    pub ended: bool,
}

/// What whoever gave an order had seen. An order about something else than what there is now is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The champion.
    pub champion: ModelId,
    /// The gate in progress; `None` does not care.
    pub gate: Option<SeenGate>,
}

/// The gate in progress as somebody saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeenGate {
    /// There was none.
    None,
    /// This one.
    Open(GateId),
}

/// Something people order. Unlike an event it can be refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Hold an activity.
    Pause(Activity),
    /// Let it go on.
    Resume(Activity),
    /// Let no gate change this champion.
    Pin(Seen),
    /// Let gates promote again over this champion.
    Unpin(Seen),
    /// End the run.
    End {
        /// In whose words the gate in progress is closed.
        reason: String,
    },
    /// Make a network champion that never was.
    Promote {
        /// The network.
        model: ModelId,
        /// What the order was based on.
        seen: Seen,
        /// Why, in a sentence.
        reason: String,
    },
    /// Give up a candidate that waits for its gate or is in it.
    Reject {
        /// The candidate.
        model: ModelId,
        /// What the order was based on.
        seen: Seen,
        /// Why, in a sentence.
        reason: String,
    },
    /// Make an earlier champion the champion again.
    RollBack {
        /// The network.
        model: ModelId,
        /// Its generation, which the run has from now on.
        generation: u32,
        /// What the order was based on.
        seen: Seen,
        /// Why, in a sentence.
        reason: String,
        /// Whether the champion is pinned from now on.
        then: Then,
    },
}

/// What follows a roll-back, in the same step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// Gates go on as before.
    GoOn,
    /// The champion is pinned.
    Pin,
}

/// An order that was not carried out; nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OrderRefused {
    /// Another network is champion than the order was based on.
    #[error("the champion is another one than the order was based on")]
    Champion {
        /// The order's.
        expected: ModelId,
        /// The run's.
        found: ModelId,
    },
    /// Another gate is in progress than the order was based on.
    #[error("the gate in progress is another one than the order was based on")]
    Gate {
        /// The order's.
        expected: SeenGate,
        /// The run's.
        found: SeenGate,
    },
    /// The network is champion already.
    #[error("the network is champion already")]
    IsChampion,
    /// The network neither waits for a gate nor is in one.
    #[error("the network is no candidate now")]
    NoCandidate {
        /// The candidate in the gate, if there is one.
        gating: Option<Candidate>,
        /// The candidates that wait, oldest first.
        waiting: Vec<Candidate>,
    },
    /// The run was ended.
    #[error("the run has ended")]
    Ended,
}
