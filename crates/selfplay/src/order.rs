//! What to play: a lease's order in typed form, and one game of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tengen_games::{Action, Fingerprint};
use tengen_records::{Endings, Expected, Kind, LeaseId, ModelId, ModelIndex, Player, RunId, Work, networks_of};
use tengen_search::Settings;

use crate::model::ModelBytes;

/// Further games that are believed of a self-play lease whose actor could not reach its coordinator: an hour of the fastest
/// actor seen, many times over.
const OVERRUN_GAMES_MAX: u32 = 1 << 20;

/// A work order as the coordinator gave it, parsed.
#[derive(Clone, Debug, PartialEq)]
pub struct Order {
    /// The lease it belongs to.
    pub lease: LeaseId,
    /// Models in the order that records point into: self-play names one; a match names candidate, then champion; a rating
    /// match names the networks of its players, each once.
    pub models: Vec<ModelId>,
    /// How to search.
    pub settings: Settings,
    /// Revision of the run's settings.
    pub settings_revision: u32,
    /// Seed that every game's own seed derives from.
    pub seed: u64,
    /// The games.
    pub plan: Plan,
}

impl Order {
    /// What a record of this order must agree with, in the run `run_id` of the game `game_id` by these `rules`.
    pub fn expected(&self, run_id: RunId, game_id: String, rules: Fingerprint) -> Expected {
        let work = match &self.plan {
            Plan::SelfPlay {
                games,
                random_plies_max,
            } => Work::SelfPlay {
                index_end: games.saturating_add(OVERRUN_GAMES_MAX),
                random_plies_max: *random_plies_max,
            },
            Plan::Match { games } | Plan::Rating { games, .. } => Work::Match(
                games
                    .iter()
                    .map(|game| tengen_records::MatchGame {
                        pair: game.pair,
                        opening: game.opening.clone(),
                        seat0_model: ModelIndex(u8::from(game.seat0_model != 0)),
                    })
                    .collect(),
            ),
        };
        Expected {
            run_id,
            game_id,
            rules_fingerprint: rules,
            lease: self.lease,
            models: self.models.clone(),
            players: self.plan.players().cloned(),
            settings_revision: self.settings_revision,
            lease_seed: self.seed,
            work,
            endings: Endings::default(),
        }
    }
}

/// The games of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Games for the window.
    SelfPlay {
        /// How many; their indexes are `0..games`.
        games: u32,
        /// Each begins with 0 to this many uniformly random plies.
        random_plies_max: u32,
    },
    /// Games of a gate; a game's place in the list is its index.
    Match {
        /// The games.
        games: Vec<MatchGame>,
    },
    /// Games that tell how strong two players are; a game's place in the list is its index.
    Rating {
        /// Who plays.
        players: [Player; 2],
        /// The games.
        games: Vec<MatchGame>,
    },
}

/// One game of a gate or of a rating match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchGame {
    /// Pair within the match; two games share one pair.
    pub pair: u32,
    /// Opening plies.
    pub opening: Vec<Action>,
    /// Plies after the opening that are sampled from the search at temperature 1.
    pub sampled_plies: u32,
    /// Index of the model, in a rating match of the player, in seat 0 (0 or 1); the other one takes seat 1.
    pub seat0_model: usize,
}

impl Plan {
    /// What its records are for.
    pub fn kind(&self) -> Kind {
        match self {
            Plan::SelfPlay { .. } => Kind::SelfPlay,
            Plan::Match { .. } | Plan::Rating { .. } => Kind::Match,
        }
    }

    /// How many games it has.
    pub fn games(&self) -> u32 {
        match self {
            Plan::SelfPlay { games, .. } => *games,
            Plan::Match { games } | Plan::Rating { games, .. } => games.len() as u32,
        }
    }

    /// The games of a match, whichever kind it is.
    pub fn match_games(&self) -> Option<&[MatchGame]> {
        match self {
            Plan::SelfPlay { .. } => None,
            Plan::Match { games } | Plan::Rating { games, .. } => Some(games),
        }
    }

    /// The players of a rating match.
    pub fn players(&self) -> Option<&[Player; 2]> {
        match self {
            Plan::Rating { players, .. } => Some(players),
            Plan::SelfPlay { .. } | Plan::Match { .. } => None,
        }
    }

    /// How many models it plays with.
    pub fn models(&self) -> usize {
        match self {
            Plan::SelfPlay { .. } => 1,
            Plan::Match { .. } => 2,
            Plan::Rating { players, .. } => networks_of(players).len(),
        }
    }
}

/// Models and order do not belong together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("lease {lease} names models {named:?} but was given {given:?}")]
pub struct LeaseError {
    /// The lease.
    pub lease: LeaseId,
    /// Models of the order.
    pub named: Vec<ModelId>,
    /// Models that were given.
    pub given: Vec<ModelId>,
}

/// An order with everything needed to play it. Shared by its games.
#[derive(Debug)]
pub struct Lease {
    run: RunId,
    order: Order,
    models: Vec<Arc<ModelBytes>>,
    cancelled: AtomicBool,
}

impl Lease {
    /// The order of `run` with its models, which must be those it names, in its order. They may be in any precision, and
    /// those of a match should be in the same one: else it compares arithmetic.
    pub fn new(run: RunId, order: Order, models: Vec<Arc<ModelBytes>>) -> Result<Arc<Lease>, LeaseError> {
        let given: Vec<ModelId> = models.iter().map(|model| model.id()).collect();
        if given != order.models || given.len() != order.plan.models() {
            return Err(LeaseError {
                lease: order.lease,
                named: order.models,
                given,
            });
        }
        Ok(Arc::new(Lease {
            run,
            order,
            models,
            cancelled: AtomicBool::new(false),
        }))
    }

    /// Its id.
    pub fn id(&self) -> LeaseId {
        self.order.lease
    }

    /// The run it is for.
    pub fn run(&self) -> &RunId {
        &self.run
    }

    /// The order.
    pub fn order(&self) -> &Order {
        &self.order
    }

    /// Says that nobody wants the rest of its games. Whoever plays them gives them up at the next look.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Whether nobody wants the rest of its games.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Its models, in the order's order.
    pub fn models(&self) -> &[Arc<ModelBytes>] {
        &self.models
    }
}

/// One game to play.
#[derive(Clone, Debug)]
pub struct GameOrder {
    /// The lease it belongs to.
    pub lease: Arc<Lease>,
    /// Its index there, below `lease.order().plan.games()`.
    pub index: u32,
}
