//! What the run is, its settings as of one revision, and what follows from them. Changed settings make it anew as a whole;
//! only the settings differ then.

use std::sync::{Arc, OnceLock};

use tengen_control::rating::RatingRules;
use tengen_control::{LeaseRules, Row, Rules, RulesError, Schedule};
use tengen_games::{Fingerprint, Opening};
use tengen_network::Shape;
use tengen_records::{Expected, LeaseId, Player, RunId};
use tengen_search::Settings;
use tengen_selfplay::Order;
use tengen_service::run_config::{GateKind, RatingsSection, RunConfig};

use crate::game::Referee;
use crate::gate_rules;
use crate::run::ratings::parse_baseline;

/// Openings of a pairing: enough for a rating within some 15 Elo where there are as many.
const RATING_OPENINGS_MAX: usize = 400;

/// The run as this process serves it.
#[derive(Clone, Debug)]
pub(crate) struct RunFacts {
    /// Its name.
    pub(crate) id: RunId,
    /// Its game.
    pub(crate) game: Arc<dyn Referee>,
    /// Fingerprint of the rules.
    pub(crate) rules_fingerprint: Fingerprint,
    /// Fingerprint of the planes.
    pub(crate) feature_fingerprint: Fingerprint,
    /// Shape of its networks.
    pub(crate) shape: Shape,
    /// The whole configuration.
    pub(crate) config: RunConfig,
    /// The same as TOML.
    pub(crate) toml: String,
    /// Revision of the configuration.
    pub(crate) settings_revision: u32,
    /// How stored games are audited, for people.
    pub(crate) audit: String,
    /// When the run was created.
    pub(crate) created_ms: i64,
    /// The openings of rating matches, drawn when they are first needed.
    pub(crate) rating_openings: OnceLock<Vec<Opening>>,
}

impl RunFacts {
    /// The state machine's rules.
    pub(crate) fn control_rules(&self, leases: LeaseRules) -> Result<Rules, RulesError> {
        let rows = self.config.schedule.iter().map(|row| Row {
            from_iteration: row.from_iteration,
            simulations: row.simulations,
            games: row.games,
        });
        let gate = &self.config.gate;
        Ok(Rules {
            schedule: Schedule::new(rows.collect())?,
            candidate_every: gate.candidate_every,
            gate: gate_rules::rule(gate)?,
            queue: gate_rules::queue(gate),
            gate_share: f64::from(gate.gate_share),
            actor_share: gate_rules::actor_share(gate),
            leases,
            ratings: self.rating_rules(),
        })
    }

    /// How rating matches are played.
    fn rating_rules(&self) -> RatingRules {
        let RatingsSection { share, pairs, .. } = self.config.ratings;
        let openings = if share > 0.0 { self.rating_openings().len() } else { 0 };
        RatingRules {
            share: f64::from(share),
            pairs,
            openings: openings as u32,
        }
    }

    /// The openings of rating matches, the same ones in the same order for every pairing.
    pub(crate) fn rating_openings(&self) -> &[Opening] {
        let draw = || {
            let seed = self.derive(b"tengen rating seed 1", &[]);
            self.game.openings(RATING_OPENINGS_MAX, seed)
        };
        self.rating_openings.get_or_init(draw)
    }

    /// The players that rating matches have beside champions. Those that cannot be any are refused where the run is taken
    /// up.
    pub(crate) fn baselines(&self) -> impl Iterator<Item = Player<String>> + '_ {
        let baselines = self.config.ratings.baselines.iter();
        baselines.filter_map(|text| parse_baseline(text).ok())
    }

    /// Pairs that a gate plays when there are openings enough; 0 when it plays none.
    pub(crate) fn gate_pairs_wanted(&self) -> u32 {
        match self.config.gate.kind {
            GateKind::None => 0,
            GateKind::Fixed => self.config.gate.games / 2,
            GateKind::Sprt => self.config.gate.sprt.games_max / 2,
        }
    }

    /// The seed of a lease: it follows from the run's seed and the lease's id.
    pub(crate) fn lease_seed(&self, lease: LeaseId) -> u64 {
        self.derive(b"tengen lease seed 1", &lease.to_bytes())
    }

    /// The seed that a gate's openings are drawn with.
    pub(crate) fn gate_seed(&self, gate: u32) -> u64 {
        self.derive(b"tengen gate seed 1", &gate.to_be_bytes())
    }

    /// The seed that the openings of a gate's match with an earlier champion are drawn with.
    pub(crate) fn pool_seed(&self, gate: u32, number: u32) -> u64 {
        let of = [gate.to_be_bytes(), number.to_be_bytes()].concat();
        self.derive(b"tengen pool seed 1", &of)
    }

    fn derive(&self, purpose: &[u8], of: &[u8]) -> u64 {
        let mut hasher = blake3::Hasher::new();
        hasher
            .update(purpose)
            .update(&self.config.run.seed.to_be_bytes())
            .update(of);
        let mut seed = [0; 8];
        hasher.finalize_xof().fill(&mut seed);
        u64::from_be_bytes(seed)
    }

    /// How self-play searches.
    pub(crate) fn self_play_settings(&self, simulations: u32) -> Settings {
        Settings {
            simulations,
            ..self.config.search
        }
    }

    /// How matches search: without noise, and the best move once the opening is over.
    pub(crate) fn match_settings(&self, schedule_simulations: u32) -> Settings {
        let simulations = match self.config.gate.simulations {
            0 => schedule_simulations,
            simulations => simulations,
        };
        Settings {
            simulations,
            noise_fraction: 0.0,
            temperature: 0.0,
            ..self.config.search
        }
    }

    /// What a record of a lease with this order must agree with.
    pub(crate) fn expected(&self, order: &Order) -> Expected {
        order.expected(self.id.clone(), self.game.spec().id.clone(), self.rules_fingerprint)
    }
}
