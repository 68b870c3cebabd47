//! The examination of one record: everything that can be said of it without the run's state.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use metrics::histogram;
use tengen_control::{GameScore, GateId, Leg};
use tengen_records::{Expected, LeaseId, ReasonCode, Record, Rejection, Work, decode};

use crate::facts::RunFacts;
use crate::metrics::RECORD_CHECK_DURATION;
use crate::run::request::{GatePlace, MatchPlace, SubmittedGame};
use crate::store::ratings::as_gated;
use crate::store::{Readers, StoreError, leases};

/// Leases kept at hand; all are forgotten when there are more, and read again as they are needed.
const LEASES_MAX: usize = 4_096;

/// A lease as records are checked against it.
#[derive(Debug)]
pub(crate) struct LeaseFacts {
    expected: Expected,
    gate: Option<u32>,
}

/// Every lease of the run, the ones in use at hand.
#[derive(Debug)]
pub(crate) struct LeaseBook {
    readers: Readers,
    facts: Arc<RunFacts>,
    known: Mutex<HashMap<LeaseId, Arc<LeaseFacts>>>,
}

/// Why a record is not on its way into the database.
#[derive(Debug)]
pub(crate) enum Fault {
    /// It is wrong.
    Rejected(Rejection),
    /// We could not look.
    Store(StoreError),
}

impl From<Rejection> for Fault {
    fn from(rejection: Rejection) -> Fault {
        Fault::Rejected(rejection)
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Fault {
        Fault::Store(error)
    }
}

impl LeaseBook {
    pub(crate) fn new(readers: Readers, facts: Arc<RunFacts>) -> LeaseBook {
        LeaseBook {
            readers,
            facts,
            known: Mutex::default(),
        }
    }

    /// A lease, if this run issued it. Blocks.
    fn find(&self, id: LeaseId) -> Result<Option<Arc<LeaseFacts>>, StoreError> {
        if let Some(lease) = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&id) {
            return Ok(Some(Arc::clone(lease)));
        }
        let Some(row) = self.readers.with(|connection| leases::get(connection, id))? else {
            return Ok(None);
        };
        let lease = Arc::new(LeaseFacts {
            expected: self.facts.expected(&row.order),
            gate: row.gate,
        });
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= LEASES_MAX {
            known.clear();
        }
        known.insert(id, Arc::clone(&lease));
        Ok(Some(lease))
    }

    /// Examines a record. Blocks, and keeps a core busy.
    pub(crate) fn examine(&self, actor: String, record: Vec<u8>) -> Result<SubmittedGame, (Fault, Vec<u8>)> {
        let begun = Instant::now();
        let judged = self.judge(&record);
        histogram!(RECORD_CHECK_DURATION).record(begun.elapsed());
        match judged {
            Ok((decoded, checked, match_game)) => Ok(SubmittedGame {
                id: decoded.id,
                kind: decoded.kind,
                actor,
                checked,
                match_game,
                created_ms: decoded.created_unix_ms,
                hash: *blake3::hash(&record).as_bytes(),
                record,
            }),
            Err(fault) => Err((fault, record)),
        }
    }

    fn judge(&self, bytes: &[u8]) -> Result<(Record, tengen_records::Checked, Option<MatchPlace>), Fault> {
        let record = decode(bytes)?;
        let Some(lease) = self.find(record.id.lease)? else {
            return Err(self.stranger(&record).into());
        };
        let checked = self.facts.game.check(&record, &lease.expected)?;
        let match_game = lease.match_place(&record);
        Ok((record, checked, match_game))
    }

    /// What to say of a record whose lease this run never issued: the plainest reason there is.
    fn stranger(&self, record: &Record) -> Rejection {
        let facts = &self.facts;
        if record.run_id != facts.id {
            return Rejection::new(
                ReasonCode::WrongRun,
                format!("run {}, this one is {}", record.run_id, facts.id),
            );
        }
        if record.game_id != facts.game.spec().id {
            // The stated name may be long and hostile text.
            let stated: String = record.game_id.chars().take(100).collect();
            let detail = format!("game {stated}, this run plays {}", facts.game.spec().id);
            return Rejection::new(ReasonCode::WrongGame, detail);
        }
        if record.rules_fingerprint != facts.rules_fingerprint {
            let detail = format!(
                "rules {}, this run's are {}",
                record.rules_fingerprint, facts.rules_fingerprint
            );
            return Rejection::new(ReasonCode::WrongRules, detail);
        }
        Rejection::new(
            ReasonCode::UnknownLease,
            format!("lease {} was never issued by this run", record.id.lease),
        )
    }
}

impl LeaseFacts {
    /// Where a checked match game belongs, and its result from the first player's view.
    fn match_place(&self, record: &Record) -> Option<MatchPlace> {
        let Work::Match(games) = &self.expected.work else {
            return None;
        };
        let game = games.get(record.id.index as usize)?;
        // The lease's first model or player: in a gate the candidate.
        let first_seat = game.seat_models().iter().position(|model| model.index() == 0)?;
        let leg = if first_seat == 0 {
            Leg::CandidateFirst
        } else {
            Leg::ChampionFirst
        };
        let score = match record.outcome.winner {
            None => GameScore::Draw,
            Some(winner) if winner.index() == first_seat => GameScore::Win,
            Some(_) => GameScore::Loss,
        };
        let players = match (&self.expected.players, &self.expected.models[..]) {
            (Some(players), _) => players.clone(),
            (None, &[candidate, opponent]) => [as_gated(candidate), as_gated(opponent)],
            (None, _) => return None,
        };
        let gate = self.gate.map(|gate| GatePlace {
            gate: GateId(gate),
            pair: game.pair,
            leg,
        });
        Some(MatchPlace { players, score, gate })
    }
}
