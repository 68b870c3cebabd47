//! Gates: their openings and opponents, drawn when they open, and what is noted when they are decided.

use rusqlite::Connection;
use tengen_control::{Candidate, Effect, Event, Evidence, GateId, GatePlay, Openings, Outcome, PoolRule, Tally};
use tengen_records::ModelId;
use tengen_service::run_config::ExhaustedOpenings;

use super::owner::Now;
use super::state::{State, control_model};
use crate::facts::RunFacts;
use crate::store::gates::{Decided, GateRow, GateState, StoredMatch, StoredOpening};
use crate::store::models::ModelState;
use crate::store::{StoreError, gates, models};

/// Plies after a repeated opening that are sampled from the search, as in a duel that runs out of openings, and twice as
/// many: here a repeated pair decides who becomes champion.
const REPEATED_SAMPLED_PLIES: u32 = 4;

/// A gate that is wanted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) gate: GateId,
    pub(super) candidate: Candidate,
    pub(super) champion: tengen_control::ModelId,
    pub(super) play: GatePlay,
}

impl State {
    /// Draws a gate's openings and opens it; what follows from that is returned.
    pub(super) fn open_gate(
        &mut self,
        connection: &Connection,
        wanted: Wanted,
        now: Now,
    ) -> Result<Vec<Effect>, StoreError> {
        let Wanted {
            gate,
            candidate,
            champion,
            play,
        } = wanted;
        let seed = self.facts.gate_seed(gate.0);
        let (mut openings, drawn) = draw(&self.facts, play.rule.pairs(), seed);
        let mut pool = Vec::new();
        for (number, opponent) in self.earlier_champions(connection, play.pool)?.into_iter().enumerate() {
            let Some(PoolRule { rule, .. }) = play.pool else { break };
            // Another match draws anew: what must not come twice is an opening within one.
            let (more, drawn) = draw(&self.facts, rule.pairs, self.facts.pool_seed(gate.0, number as u32));
            openings.extend(more);
            pool.push(StoredMatch::planned(control_model(opponent), rule, drawn));
        }
        self.openings = openings;
        self.gate_opened_ms = now.unix_ms;
        gates::insert(
            connection,
            &GateRow {
                id: gate.0,
                candidate: ModelId(candidate.model.0),
                champion: ModelId(champion.0),
                iteration: candidate.iteration,
                rule: play.rule,
                drawn,
                pool: pool.clone(),
                seed,
                openings: self.openings.clone(),
                state: GateState::Open,
                tally: Tally::default(),
                llr: None,
                elo: None,
                streak: 0,
                in_a_row: play.in_a_row,
                reason: String::new(),
                opened_ms: now.unix_ms,
                decided_ms: None,
            },
        )?;
        models::set_state(connection, ModelId(candidate.model.0), ModelState::Gating)?;
        let pool = pool.iter().map(StoredMatch::plan).collect();
        let openings = drawn;
        Ok(self.control.step(Event::GateDrawn { gate, openings, pool }, now.ms))
    }

    fn earlier_champions(&self, connection: &Connection, pool: Option<PoolRule>) -> Result<Vec<ModelId>, StoreError> {
        match pool {
            None => Ok(Vec::new()),
            Some(pool) => models::earlier_champions(connection, self.control.generation(), pool.champions),
        }
    }

    /// Notes a gate's decision.
    #[expect(clippy::too_many_arguments, reason = "the fields of one effect")]
    pub(super) fn end_gate(
        &mut self,
        connection: &Connection,
        gate: GateId,
        candidate: tengen_control::ModelId,
        outcome: Outcome,
        evidence: &Evidence,
        reason: &str,
        now: Now,
    ) -> Result<(), StoreError> {
        let (state, streak) = match outcome {
            Outcome::Promoted { streak } => (GateState::Promoted, streak),
            Outcome::Passed { streak } => (GateState::Rejected, streak),
            Outcome::Rejected => (GateState::Rejected, 0),
        };
        let decided = Decided {
            state,
            evidence,
            streak,
            reason,
        };
        gates::decide(connection, gate, decided, now.unix_ms)?;
        let candidate = ModelId(candidate.0);
        models::set_verdict(connection, candidate, reason)?;
        if outcome == Outcome::Rejected {
            models::set_state(connection, candidate, ModelState::Rejected)?;
        }
        self.gates_decided += 1;
        tracing::info!(gate = gate.0, candidate = %candidate.short(), reason, "gate decided");
        Ok(())
    }
}

/// The openings of a match of `pairs` pairs. When the game has not enough the match is shorter, or, as the run is
/// configured, goes through them again with the first moves after them sampled.
fn draw(facts: &RunFacts, pairs: u32, seed: u64) -> (Vec<StoredOpening>, Openings) {
    let drawn = facts.game.openings(pairs as usize, seed);
    let distinct: Vec<StoredOpening> = drawn
        .iter()
        .take(pairs as usize)
        .map(|opening| StoredOpening {
            plies: opening.plies.iter().map(|action| action.0).collect(),
            sampled_plies: opening.sampled_plies,
        })
        .collect();
    let count = distinct.len() as u32;
    match facts.config.gate.exhausted_openings {
        ExhaustedOpenings::Shorten => (distinct, Openings::distinct(count)),
        ExhaustedOpenings::Sample => {
            let repeated = pairs - count;
            let start = StoredOpening {
                plies: Vec::new(),
                sampled_plies: 0,
            };
            let source = if distinct.is_empty() {
                vec![start]
            } else {
                distinct.clone()
            };
            let again = source.into_iter().cycle().take(repeated as usize);
            let sampled = again.map(|opening| StoredOpening {
                sampled_plies: opening.sampled_plies.max(REPEATED_SAMPLED_PLIES),
                ..opening
            });
            (
                distinct.into_iter().chain(sampled).collect(),
                Openings { pairs, repeated },
            )
        }
    }
}
