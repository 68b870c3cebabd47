//! What does not change while the process runs: the run's identity, its settings, and what follows from them.

use std::sync::Arc;

use tengen_control::{FixedRule, GateRule, LeaseRules, Row, Rules, RulesError, Schedule};
use tengen_games::Fingerprint;
use tengen_network::Shape;
use tengen_records::{Endings, Expected, LeaseId, MatchGame, ModelIndex, RunId, Work};
use tengen_search::Settings;
use tengen_selfplay::{Order, Plan};
use tengen_service::run_config::{GateKind, RunConfig};

use crate::game::Referee;

/// Further games that are believed of a self-play lease whose actor could not reach us: an hour of the fastest actor
/// seen, many times over.
const OVERRUN_GAMES_MAX: u32 = 1 << 20;

/// The run as this process serves it.
#[derive(Debug)]
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
        let rule = match gate.kind {
            GateKind::None => GateRule::None,
            GateKind::Fixed => GateRule::Fixed(FixedRule::new(gate.games, f64::from(gate.threshold), gate.strict)?),
        };
        Ok(Rules {
            schedule: Schedule::new(rows.collect())?,
            candidate_every: gate.candidate_every,
            gate: rule,
            gate_share: f64::from(gate.gate_share),
            leases,
        })
    }

    /// Pairs that a gate plays when there are openings enough; 0 when it plays none.
    pub(crate) fn gate_pairs_wanted(&self) -> u32 {
        match self.config.gate.kind {
            GateKind::None => 0,
            GateKind::Fixed => self.config.gate.games / 2,
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
        let work = match &order.plan {
            Plan::SelfPlay {
                games,
                random_plies_max,
            } => Work::SelfPlay {
                index_end: games.saturating_add(OVERRUN_GAMES_MAX),
                random_plies_max: *random_plies_max,
            },
            Plan::Match { games } => Work::Match(
                games
                    .iter()
                    .map(|game| MatchGame {
                        pair: game.pair,
                        opening: game.opening.clone(),
                        seat0_model: ModelIndex(u8::from(game.seat0_model != 0)),
                    })
                    .collect(),
            ),
        };
        Expected {
            run_id: self.id.clone(),
            game_id: self.game.spec().id.clone(),
            rules_fingerprint: self.rules_fingerprint,
            lease: order.lease,
            models: order.models.clone(),
            settings_revision: order.settings_revision,
            lease_seed: order.seed,
            work,
            endings: Endings::default(),
        }
    }
}
