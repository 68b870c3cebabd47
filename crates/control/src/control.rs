//! The state machine itself: one owner of a run's state, one function that takes an event.

mod gating;
mod hand_out;
mod steer;

use std::collections::{BTreeSet, VecDeque};

use self::hand_out::Ask;
use crate::event::{Effect, Event};
use crate::gate::{Candidate, Gate};
use crate::ids::{ActorId, GateId, LeaseId, ModelId};
use crate::lease::{Lease, LeaseEnd, Leases, Work};
use crate::rating::Desk;
use crate::rules::{GatePlay, Rules, RulesError};
use crate::schedule::Row;
use crate::snapshot::{CandidateDue, Snapshot};
use crate::steering::{Activity, Steering};

/// Where the run's gate stands.
#[derive(Clone, Debug)]
enum GateState {
    /// No candidate is being tested.
    Idle,
    /// A gate was asked for and waits for its openings.
    Drawing {
        gate: GateId,
        candidate: Candidate,
        play: GatePlay,
    },
    /// A match is on. The counts are games handed out since it opened, for the gate's share.
    Open {
        gate: Box<Gate>,
        match_games: u64,
        self_play_games: u64,
        /// Self-play leases that were out when it opened: the match need not wait for their end. Those handed out
        /// since are self-play's share and stay.
        earlier: BTreeSet<LeaseId>,
    },
}

impl GateState {
    /// A gate whose match begins while these leases are out.
    fn open(gate: Gate, leases: &Leases) -> GateState {
        let self_play = leases.iter().filter(|lease| lease.is_self_play());
        GateState::Open {
            gate: Box::new(gate),
            match_games: 0,
            self_play_games: 0,
            earlier: self_play.map(|lease| lease.id).collect(),
        }
    }
}

/// The state machine of one run.
#[derive(Clone, Debug)]
pub struct Control {
    rules: Rules,
    iteration: u32,
    iteration_games: u32,
    positions: u64,
    due: Option<CandidateDue>,
    published_iteration: u32,
    champion: ModelId,
    generation: u32,
    newest_generation: u32,
    gates: u32,
    gate: GateState,
    /// Successive candidates that have passed against this champion.
    streak: u32,
    /// Candidates without a gate, oldest first.
    waiting: VecDeque<Candidate>,
    leases: Leases,
    ratings: Desk,
    steering: Steering,
}

impl Control {
    /// Takes up a run where its store left it. The effects are what the (perhaps new) rules make of that state.
    pub fn restore(rules: Rules, snapshot: Snapshot, now_ms: u64) -> Result<(Control, Vec<Effect>), RulesError> {
        rules.validate()?;
        let mut leases = Leases::default();
        let mut gate = snapshot.gate;
        for mut lease in snapshot.leases {
            if let (Work::Match { pairs, gate: id, .. }, Some(gate)) = (&lease.work, &mut gate)
                && *id == gate.id()
            {
                gate.assign(pairs, lease.id, lease.actor);
            }
            // The time the run stood still is nobody's silence.
            lease.progress_ms = now_ms;
            leases.insert(lease);
        }
        // A restart forgets what was handed out since the gate opened: its share is counted anew, as at an opening.
        let gate = gate.map_or(GateState::Idle, |gate| GateState::open(gate, &leases));
        let mut control = Control {
            rules,
            iteration: snapshot.iteration,
            iteration_games: snapshot.iteration_games,
            positions: snapshot.positions,
            due: snapshot.due,
            published_iteration: snapshot.published_iteration,
            champion: snapshot.champion,
            generation: snapshot.generation,
            newest_generation: snapshot.newest_generation,
            gates: snapshot.gates,
            gate,
            streak: snapshot.streak,
            waiting: snapshot.waiting.into(),
            leases,
            ratings: Desk::new(snapshot.ratings),
            steering: snapshot.steering,
        };
        let mut effects = Vec::new();
        control.end_iterations(&mut effects);
        control.bound_queue(&mut effects);
        control.settle_gate(&mut effects);
        Ok((control, effects))
    }

    /// Takes one event at a time that never runs backwards and says what is to be done, in order.
    pub fn step(&mut self, event: Event, now_ms: u64) -> Vec<Effect> {
        let mut effects = Vec::new();
        match event {
            Event::SelfPlayStored { lease, positions } => {
                self.iteration_games += 1;
                self.positions += u64::from(positions);
                self.note_stored(lease, now_ms, &mut effects);
                self.end_iterations(&mut effects);
            }
            Event::MatchStored {
                lease,
                gate,
                pair,
                leg,
                score,
            } => {
                let decided_before = self.matches_decided();
                self.log_match_game(lease, gate, pair, leg, score, &mut effects);
                self.note_stored(lease, now_ms, &mut effects);
                if self.matches_decided() > decided_before {
                    self.cancel_pointless(&mut effects);
                }
                self.settle_gate(&mut effects);
            }
            Event::GameRated { first, second, score } => self.ratings.add(first, second, score),
            Event::RatingStored(lease) => self.note_stored(lease, now_ms, &mut effects),
            Event::CandidatePublished(candidate) => {
                self.take_candidate(candidate, &mut effects);
                self.settle_gate(&mut effects);
            }
            Event::GateDrawn { gate, openings, pool } => {
                self.open_gate(gate, openings, &pool, &mut effects);
                self.settle_gate(&mut effects);
            }
            Event::WorkAsked {
                actor,
                lease,
                games_per_minute,
                self_play_max,
                rating_players,
            } => {
                self.leases.heard(actor, now_ms);
                effects.push(self.hand_out(
                    Ask {
                        actor,
                        lease,
                        games_per_minute,
                        self_play_max,
                        rating_players,
                    },
                    now_ms,
                ));
            }
            Event::ActorHeard(actor) => self.leases.heard(actor, now_ms),
            Event::LeaseMentioned(lease) => self.leases.progress(lease, now_ms),
            Event::LeaseReturned(lease) => self.close(lease, LeaseEnd::Returned, &mut effects),
            Event::Tick => {
                for lease in self.leases.lapsed(self.rules.leases.lapse_ms, now_ms) {
                    self.close(lease, LeaseEnd::Lapsed, &mut effects);
                }
            }
        }
        effects
    }

    /// The iteration being played, counted from 0: as many have ended.
    pub fn iteration(&self) -> u32 {
        self.iteration
    }

    /// Self-play games stored in this iteration.
    pub fn iteration_games(&self) -> u32 {
        self.iteration_games
    }

    /// The schedule row of this iteration.
    pub fn row(&self) -> Row {
        self.rules.schedule.row(self.iteration)
    }

    /// Trainable positions stored in the run.
    pub fn positions(&self) -> u64 {
        self.positions
    }

    /// The champion.
    pub fn champion(&self) -> ModelId {
        self.champion
    }

    /// The champion's generation.
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// The gate in progress.
    pub fn gate(&self) -> Option<&Gate> {
        match &self.gate {
            GateState::Open { gate, .. } => Some(gate),
            GateState::Idle | GateState::Drawing { .. } => None,
        }
    }

    /// The candidates that wait for their gate, oldest first.
    pub fn waiting(&self) -> impl ExactSizeIterator<Item = Candidate> + '_ {
        self.waiting.iter().copied()
    }

    /// Successive candidates that have passed against this champion, and how many must.
    pub fn streak(&self) -> (u32, u32) {
        (self.streak, self.in_a_row())
    }

    /// The candidate that the learner owes, if it owes one.
    pub fn due(&self) -> Option<CandidateDue> {
        self.due.filter(|due| due.iteration > self.published_iteration)
    }

    /// The newest candidate that was due, published or not: what a store keeps.
    pub fn newest_due(&self) -> Option<CandidateDue> {
        self.due
    }

    /// The newest iteration a candidate was published for; 0 for none.
    pub fn published_iteration(&self) -> u32 {
        self.published_iteration
    }

    /// Whether a candidate cut after `iteration` iterations would be news. One of iteration 0 is a start from elsewhere, which
    /// learned from no game of this run: it is news until the run has a candidate of its own.
    pub fn wants_candidate(&self, iteration: u32) -> bool {
        let from_elsewhere = iteration == 0 && self.published_iteration == 0;
        let newer = iteration > self.published_iteration && iteration <= self.iteration;
        !self.steering.ended && (from_elsewhere || newer)
    }

    /// Whether rating matches have had less than their share of the games handed out.
    pub fn rating_is_due(&self) -> bool {
        self.ratings.is_due(&self.rules.ratings)
    }

    /// A lease in progress.
    pub fn lease(&self, id: LeaseId) -> Option<&Lease> {
        self.leases.get(id)
    }

    /// The leases in progress.
    pub fn leases(&self) -> impl Iterator<Item = &Lease> {
        self.leases.iter()
    }

    /// The self-play leases of `actor` that match work should not wait for: handed out before the gate opened, while
    /// the gate has pairs that nobody plays. Their games that have not been started are wanted back.
    pub fn wanted_back(&self, actor: ActorId) -> impl Iterator<Item = LeaseId> + '_ {
        let earlier = match &self.gate {
            GateState::Open { gate, earlier, .. }
                if self.goes_on(Activity::Gating) && gate.free().is_some() && self.room(gate, actor) > 0 =>
            {
                Some(earlier)
            }
            _ => None,
        };
        let of_actor = move |id: &LeaseId| self.leases.get(*id).is_some_and(|lease| lease.actor == actor);
        earlier.into_iter().flatten().copied().filter(of_actor)
    }

    fn end_iterations(&mut self, effects: &mut Vec<Effect>) {
        while self.iteration_games >= self.row().games {
            let ended = self.iteration;
            let games = self.row().games;
            self.iteration += 1;
            // More are left only where a changed schedule made an iteration shorter than it already was.
            self.iteration_games -= games;
            let candidate_due = self.iteration.is_multiple_of(self.rules.candidate_every);
            if candidate_due {
                self.due = Some(CandidateDue {
                    iteration: self.iteration,
                    positions: self.positions,
                });
            }
            effects.push(Effect::IterationEnded {
                iteration: ended,
                games,
                positions: self.positions,
                candidate_due,
            });
        }
    }

    fn note_stored(&mut self, lease: LeaseId, now_ms: u64, effects: &mut Vec<Effect>) {
        if self.leases.stored(lease, now_ms) {
            self.close(lease, LeaseEnd::Finished, effects);
        }
    }

    fn close(&mut self, lease: LeaseId, end: LeaseEnd, effects: &mut Vec<Effect>) {
        if self.leases.remove(lease).is_none() {
            return;
        }
        if let GateState::Open { gate, earlier, .. } = &mut self.gate {
            gate.release(lease);
            earlier.remove(&lease);
        }
        effects.push(Effect::LeaseClosed { lease, end });
    }
}
