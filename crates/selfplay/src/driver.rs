//! Plays the games of leases, many at once on one thread, and turns them into records.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use tengen_games::{Action, Fingerprint, Game, IllegalAction, State, random_opening, rules_fingerprint};
use tengen_records::{LeaseId, ModelId, ModelIndex, Player, Record, RecordId};

use crate::cache::EvaluationCache;
use crate::evaluator::{EvaluateError, Evaluator};
use crate::flight::{Effort, Engine, Flight, FlightError, Mind, PersonError, Temper};
use crate::leases::Leases;
use crate::ledger::{Finished, seat_models};
use crate::order::{GameOrder, Lease, Plan};
use crate::pool::{Entry, Pool};
use crate::seed::{game_rng, game_seed};

/// How a driver plays.
#[derive(Clone, Copy, Debug)]
pub struct DriverOptions {
    /// Most games at once, at least 1.
    pub games: usize,
    /// Leaves each game may have waiting in one tick, at least 1. More fill batches from fewer games, at the price of
    /// virtual losses bending the search; part of what a game's moves depend on.
    pub leaves_per_game: usize,
    /// Most positions in one evaluation, at least 1.
    pub batch_max: usize,
    /// Tells the time, milliseconds since the Unix epoch, UTC.
    pub clock: fn() -> i64,
}

impl Default for DriverOptions {
    fn default() -> Self {
        DriverOptions {
            games: 64,
            leaves_per_game: 1,
            batch_max: 64,
            clock: unix_ms,
        }
    }
}

/// The system's time, milliseconds since the Unix epoch, UTC.
pub fn unix_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// What a driver has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Positions evaluated by the network.
    pub evaluations: u64,
    /// Positions whose answer was in the cache.
    pub cache_hits: u64,
    /// Batches they came in.
    pub batches: u64,
    /// Simulations of finished searches. Those that are no evaluation and no cache hit ended in a finished game.
    pub simulations: u64,
    /// Simulations that ended in a finished game.
    pub terminal_visits: u64,
    /// Root visits that searches took over from the ply before.
    pub reused_visits: u64,
    /// Plies played, openings not included.
    pub plies: u64,
    /// Games finished.
    pub games: u64,
}

impl Counters {
    pub(crate) fn searched(&mut self, effort: Effort) {
        self.simulations += effort.simulations;
        self.terminal_visits += effort.terminal;
        self.reused_visits += effort.reused;
    }
}

/// Play cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// The evaluator failed.
    #[error(transparent)]
    Evaluate(#[from] EvaluateError),
    /// A game and its search disagree.
    #[error("a game and its search disagree: {0}")]
    Flight(#[from] FlightError),
}

/// A game cannot be started. The driver is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Every place is taken.
    #[error("all {games} places are taken")]
    Full {
        /// How many places there are.
        games: usize,
    },
    /// The lease has no such game.
    #[error("lease {lease} has {games} games and none with index {index}")]
    Index {
        /// The lease.
        lease: LeaseId,
        /// Its games.
        games: u32,
        /// The index asked for.
        index: u32,
    },
    /// The opening is not legal.
    #[error("the opening of game {id} is not legal: {source}")]
    Opening {
        /// The game.
        id: RecordId,
        /// What the rules say.
        #[source]
        source: IllegalAction,
    },
    /// A player is a person.
    #[error("game {id} cannot be played: {source}")]
    Person {
        /// The game.
        id: RecordId,
        /// Who.
        #[source]
        source: PersonError,
    },
    /// The opening ends the game.
    #[error("the opening of game {id} ends it")]
    OpeningEnds {
        /// The game.
        id: RecordId,
    },
}

/// A lease cannot be played to its end.
#[derive(Debug, thiserror::Error)]
pub enum PlayError {
    /// A game cannot be started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// Play cannot go on.
    #[error(transparent)]
    Driver(#[from] DriverError),
}

/// A game that was given up before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unfinished {
    /// The game.
    pub id: RecordId,
    /// Plies it had played.
    pub plies: u32,
}

/// What the driver knows of a game beside its flight.
struct Tag {
    order: GameOrder,
    opening: Vec<Action>,
    started_unix_ms: i64,
}

/// Many games of leases on one thread.
pub struct Driver<G: Game, E> {
    game: G,
    rules: Fingerprint,
    options: DriverOptions,
    pool: Pool<G, E, Tag>,
    leases: Leases,
}

impl<G: Game, E: Evaluator> Driver<G, E> {
    /// A driver without games.
    pub fn new(game: G, evaluator: E, options: DriverOptions) -> Driver<G, E> {
        let options = DriverOptions {
            games: options.games.max(1),
            leaves_per_game: options.leaves_per_game.max(1),
            batch_max: options.batch_max.max(1),
            clock: options.clock,
        };
        let rules = rules_fingerprint(&game);
        let pool = Pool::new(&game, evaluator, options);
        Driver {
            game,
            rules,
            options,
            pool,
            leases: Leases::default(),
        }
    }

    /// Looks answers up in this cache, which other drivers may share, and keeps them there.
    #[must_use]
    pub fn sharing(mut self, cache: Option<Arc<EvaluationCache>>) -> Driver<G, E> {
        if let Some(cache) = cache {
            self.pool.share(cache);
        }
        self
    }

    /// The evaluator.
    pub fn evaluator(&self) -> &E {
        self.pool.evaluator()
    }

    /// What has been done so far.
    pub fn counters(&self) -> Counters {
        self.pool.counters()
    }

    /// Games that may be started now.
    pub fn free(&self) -> usize {
        self.pool.free()
    }

    /// Games in flight.
    pub fn games(&self) -> usize {
        self.pool.entries().len()
    }

    /// Whether no game is in flight.
    pub fn is_idle(&self) -> bool {
        self.pool.entries().is_empty()
    }

    /// Plies played in games in flight.
    pub fn plies_in_flight(&self) -> u64 {
        self.pool.plies_in_flight()
    }

    /// Starts a game that was played before: `script` holds its plies, and they are played whatever is chosen. Its record
    /// says at every ply what would have been chosen, and by which search.
    pub fn start_following(&mut self, order: GameOrder, script: Vec<Action>) -> Result<(), StartError> {
        self.begin(order, |flight| flight.following(script))
    }

    /// Starts a game.
    pub fn start(&mut self, order: GameOrder) -> Result<(), StartError> {
        self.begin(order, |flight| flight)
    }

    fn begin(&mut self, order: GameOrder, prepare: impl FnOnce(Flight<G>) -> Flight<G>) -> Result<(), StartError> {
        if self.free() == 0 {
            return Err(StartError::Full {
                games: self.options.games,
            });
        }
        let entry = self.entry(order)?;
        self.leases.add(&entry.tag.order.lease);
        self.pool.push(Entry {
            flight: prepare(entry.flight),
            ..entry
        });
        Ok(())
    }

    /// One round over all games; records of those that ended are added to `finished`.
    pub fn tick(&mut self, finished: &mut Vec<Record>) -> Result<(), DriverError> {
        let ended_unix_ms = (self.options.clock)();
        let (game, rules, leases) = (&self.game, self.rules, &mut self.leases);
        self.pool.tick(|entry, outcome| {
            let Entry { tag, flight, .. } = entry;
            leases.remove(&tag.order.lease);
            let last = flight.state().clone();
            let ended = Finished {
                game,
                rules,
                order: &tag.order,
                opening: tag.opening,
                plies: flight.into_plies(),
                last: &last,
                outcome,
                started_unix_ms: tag.started_unix_ms,
                ended_unix_ms,
            };
            finished.push(ended.record());
        })
    }

    /// Plays every game of `lease`, one after the other as places come free, and gives each record to `finished`.
    pub fn play(&mut self, lease: &Arc<Lease>, mut finished: impl FnMut(Record)) -> Result<(), PlayError> {
        let mut indexes = 0..lease.order().plan.games();
        let mut records = Vec::new();
        loop {
            while self.free() > 0 {
                let Some(index) = indexes.next() else { break };
                self.start(GameOrder {
                    lease: Arc::clone(lease),
                    index,
                })?;
            }
            if self.is_idle() {
                return Ok(());
            }
            self.tick(&mut records)?;
            records.drain(..).for_each(&mut finished);
        }
    }

    /// Plays the games in flight to their ends while `go_on` says so (asked before each round), then gives up what is
    /// left and says which games those were.
    pub fn drain(
        &mut self,
        mut go_on: impl FnMut() -> bool,
        finished: &mut Vec<Record>,
    ) -> Result<Vec<Unfinished>, DriverError> {
        while !self.is_idle() && go_on() {
            self.tick(finished)?;
        }
        Ok(self.give_up(|_| true))
    }

    /// Gives up the games of every lease for which `gone` holds. Cheap to ask in every round: as long as it holds for none,
    /// no game is looked at.
    pub fn give_up(&mut self, gone: impl Fn(&Lease) -> bool) -> Vec<Unfinished> {
        if !self.leases.any(&gone) {
            return Vec::new();
        }
        let left = self.pool.take_out(|entry| gone(&entry.tag.order.lease));
        for entry in &left {
            self.leases.remove(&entry.tag.order.lease);
        }
        left.iter()
            .map(|entry| Unfinished {
                id: id(&entry.tag.order),
                plies: entry.flight.plies().len() as u32,
            })
            .collect()
    }

    fn entry(&self, order: GameOrder) -> Result<Entry<G, Tag>, StartError> {
        let terms = order.lease.order();
        let settings = &terms.settings;
        let mut rng = game_rng(game_seed(terms.seed, order.index));
        let (opening, temper) = match &terms.plan {
            Plan::SelfPlay { random_plies_max, .. } => {
                let temper = Temper::Explore {
                    temperature: settings.temperature,
                    turns: settings.temperature_turns,
                };
                (random_opening(&self.game, *random_plies_max, &mut rng), temper)
            }
            Plan::Match { games } | Plan::Rating { games, .. } => {
                let game = games.get(order.index as usize).ok_or(StartError::Index {
                    lease: terms.lease,
                    games: terms.plan.games(),
                    index: order.index,
                })?;
                (
                    game.opening.clone(),
                    Temper::Compete {
                        sampled_plies: game.sampled_plies,
                    },
                )
            }
        };
        let mut state = self.game.start();
        for &action in &opening {
            state
                .apply(action)
                .map_err(|source| StartError::Opening { id: id(&order), source })?;
        }
        if state.outcome().is_some() {
            return Err(StartError::OpeningEnds { id: id(&order) });
        }
        let names = seat_models(&order);
        let minds = self
            .minds(&order.lease, names, &state)
            .map_err(|source| StartError::Person { id: id(&order), source })?;
        let models = order.lease.models().to_vec();
        let flight = Flight::new(state, rng, minds, names, temper);
        let tag = Tag {
            order,
            opening,
            started_unix_ms: (self.options.clock)(),
        };
        Ok(Entry { tag, models, flight })
    }

    /// One mind for both seats, or one each. A tree belongs to a model: two models have two, self-play has one.
    fn minds(&self, lease: &Lease, names: [ModelIndex; 2], state: &G::State) -> Result<Vec<Mind<G>>, PersonError> {
        let terms = lease.order();
        let settings = &terms.settings;
        let of_player = |player: &Player| {
            let model = |network: &ModelId| engine(lease, model_index(lease, network));
            Mind::of(player, &self.game, state, settings, model)
        };
        let search = |index| Mind::search(&self.game, state, engine(lease, index), settings);
        match (terms.plan.players(), names) {
            (Some(players), _) => names.iter().map(|name| of_player(&players[name.index()])).collect(),
            (None, [first, second]) if first == second => Ok(vec![search(first)]),
            (None, both) => Ok(both.map(search).into()),
        }
    }
}

/// The index of a network that a lease names.
fn model_index(lease: &Lease, network: &ModelId) -> ModelIndex {
    let at = lease.models().iter().position(|model| model.id() == *network);
    // A lease is only made with the networks it names.
    ModelIndex(at.unwrap_or(0) as u8)
}

/// A model of a lease, by its index.
fn engine(lease: &Lease, index: ModelIndex) -> Engine {
    Engine {
        index,
        precision: lease.models()[index.index()].precision(),
    }
}

fn id(order: &GameOrder) -> RecordId {
    RecordId {
        lease: order.lease.id(),
        index: order.index,
    }
}
