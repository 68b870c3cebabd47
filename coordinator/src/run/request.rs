//! What can be asked of the run's owner, and its answers.

use tengen_control::{GameScore, GateId, Leg};
use tengen_proto::v1;
use tengen_records::{Checked, Kind, LeaseId, ModelId, Player, RecordId, Rejection};
use tengen_selfplay::Order;
use tengen_selfplay::audit::Difference;
use tokio::sync::oneshot;

use super::admin::AdminRequest;
use crate::audit::AuditConfig;
use crate::store::actors::ActorRow;
use crate::store::models::ModelRow;
use crate::store::variants::VariantRow;

/// A record that passed every check that needs no state of the run.
#[derive(Debug)]
pub(crate) struct SubmittedGame {
    pub(crate) id: RecordId,
    pub(crate) kind: Kind,
    pub(crate) actor: String,
    pub(crate) checked: Checked,
    /// Its place in a match; absent in self-play.
    pub(crate) match_game: Option<MatchPlace>,
    pub(crate) created_ms: i64,
    pub(crate) hash: [u8; 32],
    pub(crate) record: Vec<u8>,
}

/// Where a match game belongs, and its result.
#[derive(Clone, Debug)]
pub(crate) struct MatchPlace {
    /// Who played: in a gate the candidate and whom it met.
    pub(crate) players: [Player; 2],
    /// The first one's result.
    pub(crate) score: GameScore,
    /// Its place in a gate; none for a game of a rating match.
    pub(crate) gate: Option<GatePlace>,
}

/// The place of a game in its gate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GatePlace {
    pub(crate) gate: GateId,
    pub(crate) pair: u32,
    pub(crate) leg: Leg,
}

/// What became of a checked record; durable when it is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoreVerdict {
    /// Stored now.
    Stored,
    /// Stored before, the same bytes.
    Duplicate,
    /// Stored before with other bytes.
    Conflict,
}

/// Why an actor is not served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ActorRefused {
    /// It never registered.
    #[error("actor {0:?} is not registered: call Register first")]
    Unknown(String),
    /// The run remembers as many actors as it may.
    #[error("actor {actor:?} is not taken in: the run knows {actors} actors already")]
    TooMany {
        /// The actor.
        actor: String,
        /// Actors known.
        actors: usize,
    },
    /// By an administrator, or because too many of its records were refused or failed their audit.
    #[error(
        "actor {actor:?} is suspended ({strikes} of its records were refused or failed their audit): the audit trail and the \
         tables quarantine and audit_failures say why, and an admin resumes it with `tengen actors resume {actor}`"
    )]
    Suspended {
        /// The actor.
        actor: String,
        /// Refused and failed records.
        strikes: u32,
    },
}

/// The answer to a request for work.
#[derive(Debug)]
pub(crate) enum Handout {
    /// A lease.
    Order(Box<Order>),
    /// Nothing now.
    Wait { reason: String, retry_after_ms: u32 },
}

/// The learner's place was taken by a later one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("fencing token {given} is not the newest ({newest}): another learner has registered")]
pub(crate) struct Fenced {
    /// The token that came.
    pub(crate) given: u64,
    /// The one that is good.
    pub(crate) newest: u64,
}

/// A network that is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PublishRefused {
    /// By a learner that was replaced.
    #[error(transparent)]
    Fenced(#[from] Fenced),
    /// No candidate is wanted for that iteration.
    #[error(
        "no candidate of iteration {iteration} is wanted: {ended} iterations have ended and iteration {published} is published{}",
        if *.iteration == 0 { "; a run takes a starting candidate before its own first one" } else { "" }
    )]
    Iteration {
        /// The candidate's.
        iteration: u32,
        /// Iterations that have ended.
        ended: u32,
        /// The newest with a candidate.
        published: u32,
    },
    /// The run was ended.
    #[error("the run has ended: no candidate is taken any more")]
    Ended,
    /// Its parent was never seen.
    #[error("parent {0} is not a model of this run")]
    Parent(String),
}

/// What an actor says when it asks for work.
#[derive(Clone, Debug)]
pub(crate) struct WorkAsk {
    pub(crate) actor: String,
    /// Its own rate; 0 when unknown.
    pub(crate) games_per_minute: f32,
    /// Whether it knows orders that name players.
    pub(crate) takes_players: bool,
}

/// What an actor tells.
#[derive(Debug)]
pub(crate) struct ActorReport {
    /// What it says of itself, checked; without the leases.
    pub(crate) told: v1::ReportActorRequest,
    pub(crate) mentioned: Vec<LeaseId>,
    pub(crate) returned: Vec<LeaseId>,
}

/// The answer to a report: what is wanted of the actor's leases.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LeaseWishes {
    /// To drop: their match is decided.
    pub(crate) cancelled: Vec<LeaseId>,
    /// Self-play to hand back unless every game has been started: match work waits.
    pub(crate) wanted_back: Vec<LeaseId>,
}

/// What an audit of a stored game found.
#[derive(Clone, Debug)]
pub(crate) struct AuditReport {
    pub(crate) game: RecordId,
    pub(crate) actor: String,
    /// The first network the game names.
    pub(crate) model: ModelId,
    /// Positions evaluated again.
    pub(crate) positions: u32,
    /// What was found at each; nothing when no ply states what its network saw.
    pub(crate) differences: Vec<Difference>,
    /// What is held against the actor, and when.
    pub(crate) config: AuditConfig,
}

/// What the learner is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LearnerTask {
    pub(crate) iteration: u32,
    pub(crate) candidate_iteration: u32,
    pub(crate) candidate_positions: u64,
    pub(crate) published_iteration: u32,
    pub(crate) training_paused: bool,
    pub(crate) ended: bool,
}

/// One thing asked of the owner. A dropped reply means that it could not be committed.
#[derive(Debug)]
pub(crate) enum Request {
    /// Store a checked record.
    Store {
        game: Box<SubmittedGame>,
        reply: oneshot::Sender<Result<StoreVerdict, ActorRefused>>,
    },
    /// Set a refused record aside and count it.
    Refuse {
        actor: String,
        rejection: Rejection,
        record: Vec<u8>,
        /// Refused records after which the actor is suspended.
        strikes_max: u32,
        reply: oneshot::Sender<Result<(), ActorRefused>>,
    },
    /// Take in an actor.
    RegisterActor {
        actor: ActorRow,
        reply: oneshot::Sender<Result<(), ActorRefused>>,
    },
    /// Hand out work.
    Work {
        ask: WorkAsk,
        reply: oneshot::Sender<Result<Handout, ActorRefused>>,
    },
    /// Take an actor's report; the reply says what is wanted of its leases.
    Report {
        report: Box<ActorReport>,
        reply: oneshot::Sender<Result<LeaseWishes, ActorRefused>>,
    },
    /// Give the learner's place to a new learner; the reply is its fencing token.
    RegisterLearner {
        /// What is known of it so far.
        status: Box<v1::LearnerStatus>,
        reply: oneshot::Sender<u64>,
    },
    /// Take the learner's report.
    ReportLearner {
        fence: u64,
        status: v1::LearnerStatus,
        reply: oneshot::Sender<Result<LearnerTask, Fenced>>,
    },
    /// Do what an administrator asks.
    Admin(Box<AdminRequest>),
    /// Take a network whose files are durable.
    Publish {
        fence: u64,
        model: Box<ModelRow>,
        /// The reduced precisions that it comes in.
        variants: Vec<VariantRow>,
        reply: oneshot::Sender<Result<ModelRow, PublishRefused>>,
    },
    /// Give the window a new epoch, above this one too.
    NewWindowEpoch { above: u64, reply: oneshot::Sender<u64> },
    /// Count an audit, if one was done, and the drawn games that were missed since the last.
    Audited {
        report: Option<Box<AuditReport>>,
        missed: u64,
        /// What is not judged on this machine and why, for people; empty when everything is.
        withheld: String,
        reply: oneshot::Sender<()>,
    },
    /// Let time pass.
    Tick,
    /// Hand out no more work.
    Drain,
    /// End after the batch this is in, whoever still holds a handle.
    Stop,
}

impl Request {
    /// Whether every actor sends it again and again, or time alone brings it: what it changes may be shown a little later.
    pub(crate) fn is_routine(&self) -> bool {
        match self {
            Request::Store { .. }
            | Request::Refuse { .. }
            | Request::RegisterActor { .. }
            | Request::Work { .. }
            | Request::Report { .. }
            | Request::Audited { .. }
            | Request::Tick => true,
            Request::RegisterLearner { .. }
            | Request::ReportLearner { .. }
            | Request::Admin(_)
            | Request::Publish { .. }
            | Request::NewWindowEpoch { .. }
            | Request::Drain
            | Request::Stop => false,
        }
    }
}
