//! What people order about a run, and how an order is refused.

use tengen_control::{Activity, GateId, Seen, SeenGate, Then};
use tengen_proto::v1;
use tengen_records::ModelId;

use super::state::control_model;
use crate::store::models::ModelRow;

/// What is ordered.
#[derive(Clone, Debug)]
pub(crate) enum Wish {
    Pause(Activity),
    Resume(Activity),
    Pin(Expected),
    Unpin(Expected),
    /// The run of this name.
    End(String),
    Promote(ModelId, Expected),
    Reject(ModelId, Expected),
    RollBack(ModelId, Expected, Then),
}

/// What an order was based on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected {
    pub(crate) champion: ModelId,
    /// 0 for none; absent when it does not matter.
    pub(crate) gate: Option<u32>,
}

/// How the run is steered once an order is carried out, and the network it was about.
#[derive(Clone, Debug)]
pub(crate) struct Steered {
    pub(crate) steering: v1::Steering,
    pub(crate) model: Option<ModelRow>,
}

/// An order that was not carried out; nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SteerRefused {
    #[error(
        "the order is stale: it expects {what} {expected}, and now it is {found}; look again (`tengen status`) and repeat it"
    )]
    Stale {
        what: &'static str,
        expected: String,
        found: String,
    },
    #[error("there is no network {0} in this run: `tengen models list` shows those there are")]
    NoSuchModel(ModelId),
    #[error("network {0} is champion already")]
    IsChampion(ModelId),
    #[error(
        "network {id} was champion, as generation {generation}: go back to it with `tengen rollback gen:{generation}`"
    )]
    WasChampion { id: ModelId, generation: u32 },
    #[error("network {0} never was champion: make it that with `tengen promote`")]
    NeverChampion(ModelId),
    #[error("the file of network {0} was removed by the run's retention, so nobody could play with it")]
    FileGone(ModelId),
    #[error("network {id} is no candidate now: {now}")]
    NoCandidate { id: ModelId, now: String },
    #[error("the run has ended: it can be read, and nothing about it changes any more")]
    Ended,
    #[error("this coordinator serves the run {found:?}, not {expected:?}")]
    OtherRun { expected: String, found: String },
}

impl Expected {
    /// The same for the state machine.
    pub(super) fn seen(self) -> Seen {
        let gate = self.gate.map(|gate| match gate {
            0 => SeenGate::None,
            gate => SeenGate::Open(GateId(gate)),
        });
        Seen {
            champion: control_model(self.champion),
            gate,
        }
    }
}

impl Wish {
    /// Its stable name in the audit.
    pub(super) fn action(&self) -> &'static str {
        match self {
            Wish::Pause(_) => "pause",
            Wish::Resume(_) => "resume",
            Wish::Pin(_) => "pin",
            Wish::Unpin(_) => "unpin",
            Wish::End(_) => "end-run",
            Wish::Promote(..) => "promote",
            Wish::Reject(..) => "reject",
            Wish::RollBack(..) => "roll-back",
        }
    }

    /// The network it is about.
    pub(super) fn model(&self) -> Option<ModelId> {
        match self {
            Wish::Promote(id, _) | Wish::Reject(id, _) | Wish::RollBack(id, ..) => Some(*id),
            Wish::Pause(_) | Wish::Resume(_) | Wish::Pin(_) | Wish::Unpin(_) | Wish::End(_) => None,
        }
    }
}
