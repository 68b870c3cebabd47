//! What happens to a run, and what the run wants done about it.

use crate::gate::{Candidate, Evidence, MatchPlan, Openings, Outcome};
use crate::ids::{ActorId, GateId, LeaseId, ModelId};
use crate::lease::{Lease, LeaseEnd};
use crate::log::{GameScore, Leg, Standing};
use crate::rating::PlayerId;
use crate::rules::GatePlay;

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A self-play game was stored for the first time.
    SelfPlayStored {
        /// Its lease; it counts whether or not the lease still stands.
        lease: LeaseId,
        /// Its trainable positions.
        positions: u32,
    },
    /// A match game was stored for the first time.
    MatchStored {
        /// Its lease.
        lease: LeaseId,
        /// The gate the lease was issued for.
        gate: GateId,
        /// Its pair.
        pair: u32,
        /// Which game of the pair.
        leg: Leg,
        /// The result.
        score: GameScore,
    },
    /// A match game was stored for the first time, of a gate or of a rating match: told to the ratings.
    GameRated {
        /// One player.
        first: PlayerId,
        /// The other one.
        second: PlayerId,
        /// The first player's result.
        score: GameScore,
    },
    /// A game of a rating match was stored for the first time.
    RatingStored(LeaseId),
    /// The learner published a network.
    CandidatePublished(Candidate),
    /// The openings that [`Effect::GateWanted`] asked for are drawn.
    GateDrawn {
        /// The gate.
        gate: GateId,
        /// Those of the match with the champion.
        openings: Openings,
        /// The matches with earlier champions, with theirs.
        pool: Vec<MatchPlan>,
    },
    /// An actor asks for work.
    WorkAsked {
        /// Who asks.
        actor: ActorId,
        /// The id that a lease would get: fresh random bits.
        lease: LeaseId,
        /// The actor's own rate; 0 when unknown.
        games_per_minute: f32,
        /// Most games of self-play that may be under way in all leases together; 0 wants none now.
        self_play_max: u32,
        /// Who may play a rating match, if one is due; empty where the actor plays none.
        rating_players: Vec<PlayerId>,
    },
    /// An actor reports.
    ActorHeard(ActorId),
    /// An actor says that it is at work on a lease, and has done some work since it said so last.
    LeaseMentioned(LeaseId),
    /// An actor hands a lease back unfinished.
    LeaseReturned(LeaseId),
    /// Time passes.
    Tick,
}

/// Something to do, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// An iteration's games are stored; the next one has begun.
    IterationEnded {
        /// The iteration that ended, counted from 0.
        iteration: u32,
        /// Its games.
        games: u32,
        /// Trainable positions stored in the run so far.
        positions: u64,
        /// Whether a candidate is due now.
        candidate_due: bool,
    },
    /// A match game was entered in its gate's log.
    MatchLogged(Standing),
    /// A gate should be played: draw openings, then tell [`Event::GateDrawn`].
    GateWanted {
        /// The new gate's number.
        gate: GateId,
        /// Who wants to become champion.
        candidate: Candidate,
        /// Who is champion.
        champion: ModelId,
        /// How many pairs, what decides, and how many earlier champions are wanted.
        play: GatePlay,
    },
    /// The gate is open.
    GateOpened {
        /// The gate.
        gate: GateId,
        /// Most pairs that will be played against the champion.
        pairs: u32,
    },
    /// A gate was decided.
    GateDecided {
        /// The gate.
        gate: GateId,
        /// The candidate it was about.
        candidate: ModelId,
        /// How it ended.
        outcome: Outcome,
        /// What the decision rests on.
        evidence: Evidence,
        /// The decision in a sentence.
        reason: String,
    },
    /// The champion changes.
    Promoted {
        /// The new champion.
        model: ModelId,
        /// Its generation.
        generation: u32,
        /// The champion until now: the promotion holds only if it still is.
        previous: ModelId,
        /// Why, in a sentence.
        reason: String,
    },
    /// A newer candidate took this one's place: before its gate was decided, or after it passed as one of several in a row.
    Superseded(ModelId),
    /// A candidate passed while the champion is pinned: it is not promoted.
    Held {
        /// The candidate.
        model: ModelId,
        /// How it passed, in a sentence.
        reason: String,
    },
    /// Somebody closed a gate before its games decided it.
    GateVoid {
        /// The gate.
        gate: GateId,
        /// What its games had brought until then.
        evidence: Evidence,
        /// Why, in a sentence.
        reason: String,
    },
    /// A candidate waits for a new gate, its former one being void.
    Waits(ModelId),
    /// Somebody gave up a candidate.
    Rejected {
        /// The candidate.
        model: ModelId,
        /// Why, in a sentence.
        reason: String,
    },
    /// Somebody made an earlier champion the champion again.
    RolledBack {
        /// The champion from now on.
        model: ModelId,
        /// The champion until now: the change holds only if it still is.
        previous: ModelId,
        /// Why, in a sentence.
        reason: String,
    },
    /// Work was handed out.
    LeaseIssued(Lease),
    /// There is no work now.
    NoWork {
        /// Why, for people.
        reason: &'static str,
        /// When to ask again, milliseconds.
        retry_after_ms: u32,
    },
    /// A lease ended.
    LeaseClosed {
        /// The lease.
        lease: LeaseId,
        /// How.
        end: LeaseEnd,
    },
}
