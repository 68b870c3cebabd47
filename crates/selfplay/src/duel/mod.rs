//! Two players against each other: paired openings, both seats, a score with its interval.
//!
//! Duels are not recorded and decide nothing: the gate (`tengen-control`) decides, this tells people how strong a
//! network is.

mod score;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread;

use tengen_games::{
    Action, AnyGame, Game, GameVisitor, IllegalAction, Opening, Outcome, Seat, State, draw_openings, random_opening,
};
use tengen_inference::SessionOptions;
use tengen_records::{ModelIndex, Player as AnyPlayer};
use tengen_search::{Settings, SettingsError};

pub use score::{Score, Tally};

use crate::driver::{DriverError, DriverOptions};
use crate::evaluator::{Evaluator, SessionEvaluator};
use crate::flight::{Engine, Flight, Mind, PersonError, Temper};
use crate::model::ModelBytes;
use crate::pool::{Entry, Pool};
use crate::seed::{game_rng, game_seed};
use crate::trace::SearchTrace;

/// Longest random opening of the pairs for which the game has no distinct opening left.
const EXTRA_OPENING_PLIES_MAX: u32 = 4;
/// Plies after such an opening that are drawn from the search instead of playing the best, so that games differ.
const EXTRA_SAMPLED_PLIES: u32 = 2;

/// Who plays: a network as the bytes of its file, or a player that needs none.
pub type Player = AnyPlayer<Arc<ModelBytes>>;

/// How a duel is played.
#[derive(Clone, Debug)]
pub struct DuelOptions {
    /// Games; rounded up to whole pairs.
    pub games: u32,
    /// Seed of openings and of every game.
    pub seed: u64,
    /// Constants of the searches; `simulations` are those of networks that name none of their own.
    pub settings: Settings,
    /// Threads, at least 1.
    pub threads: usize,
    /// Games at once in one thread, at least 1.
    pub games_parallel: usize,
    /// Most positions in one evaluation, at least 1.
    pub batch_max: usize,
    /// Whether the first player's searches are kept; they take some hundred bytes a simulation.
    pub traced: bool,
}

impl Default for DuelOptions {
    fn default() -> Self {
        let settings = Settings::default();
        DuelOptions {
            games: 100,
            seed: 1,
            settings,
            threads: 1,
            games_parallel: 64,
            batch_max: 64,
            traced: false,
        }
    }
}

/// One finished game.
#[derive(Clone, Debug, PartialEq)]
pub struct DuelGame {
    /// Its index; the games `2 p` and `2 p + 1` share an opening.
    pub index: u32,
    /// The first player's seat.
    pub first_seat: Seat,
    /// The opening.
    pub opening: Vec<Action>,
    /// What was played after it.
    pub actions: Vec<Action>,
    /// How it ended.
    pub outcome: Outcome,
    /// The first player's searches, when they are kept.
    pub searches: Vec<SearchTrace>,
}

impl DuelGame {
    /// The first player's score: 0, 0.5 or 1.
    pub fn score(&self) -> f32 {
        (self.outcome.value_for(self.first_seat) + 1.0) / 2.0
    }
}

/// What a duel found.
#[derive(Clone, Debug, PartialEq)]
pub struct DuelReport {
    /// The first player's games.
    pub tally: Tally,
    /// The first player's score with its interval.
    pub score: Score,
    /// Pairs played: two games from one opening, seats swapped.
    pub pairs: u32,
    /// Pairs for which the game had no distinct opening left: they went on with random openings whose next plies were
    /// sampled from the searches.
    pub pairs_random: u32,
}

/// A duel cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum DuelError {
    /// The settings are outside their ranges.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// A player is a person.
    #[error(transparent)]
    Person(#[from] PersonError),
    /// No games were asked for.
    #[error("a duel needs at least one game")]
    NoGames,
    /// An opening does not fit the rules: a fault of ours.
    #[error("an opening is not legal: {0}")]
    Opening(#[from] IllegalAction),
    /// Play cannot go on.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// A thread did not start or did not end well.
    #[error("a thread of the duel failed: {0}")]
    Thread(String),
}

/// Plays `first` against `second` with networks in ONNX Runtime. `progress` hears of every game when it is over, with the
/// first player's tally by then.
pub fn duel(
    game: &AnyGame,
    first: &Player,
    second: &Player,
    options: &DuelOptions,
    sessions: &SessionOptions,
    progress: &mut dyn FnMut(Tally, DuelGame),
) -> Result<DuelReport, DuelError> {
    struct Visitor<'a> {
        players: [&'a Player; 2],
        options: &'a DuelOptions,
        sessions: &'a SessionOptions,
        progress: &'a mut dyn FnMut(Tally, DuelGame),
    }
    impl GameVisitor for Visitor<'_> {
        type Output = Result<DuelReport, DuelError>;

        fn visit<G: Game>(self, game: G) -> Self::Output {
            let evaluators = || SessionEvaluator::new(self.sessions.clone());
            duel_with(&game, self.players, self.options, &evaluators, self.progress)
        }
    }
    game.visit(Visitor {
        players: [first, second],
        options,
        sessions,
        progress,
    })
}

/// Plays `players` against each other; every thread makes itself an evaluator with `evaluators`.
pub fn duel_with<G: Game, E: Evaluator>(
    game: &G,
    players: [&Player; 2],
    options: &DuelOptions,
    evaluators: &(impl Fn() -> E + Sync),
    progress: &mut dyn FnMut(Tally, DuelGame),
) -> Result<DuelReport, DuelError> {
    let pairs = options.games.div_ceil(2);
    if pairs == 0 {
        return Err(DuelError::NoGames);
    }
    options.settings.validate()?;
    let (openings, pairs_random) = openings(game, pairs as usize, options.seed);
    let duel = Duel {
        game,
        players,
        options,
        openings,
        next: AtomicU32::new(0),
        games: pairs * 2,
    };
    let scores = duel.play(evaluators, progress)?;
    Ok(DuelReport {
        tally: Tally::of(&scores),
        score: Score::of_pairs(&scores),
        pairs,
        pairs_random,
    })
}

/// One opening for each pair, and how many of them had to be random.
fn openings<G: Game>(game: &G, pairs: usize, seed: u64) -> (Vec<Opening>, u32) {
    let mut openings = draw_openings(game, pairs, seed);
    let pairs_random = pairs - openings.len();
    let mut rng = game_rng(game_seed(seed, u32::MAX));
    for _ in 0..pairs_random {
        let plies = random_opening(game, EXTRA_OPENING_PLIES_MAX, &mut rng);
        openings.push(Opening {
            plies,
            sampled_plies: EXTRA_SAMPLED_PLIES,
        });
    }
    (openings, pairs_random as u32)
}

/// A duel in progress, shared by its threads.
struct Duel<'a, G: Game> {
    game: &'a G,
    players: [&'a Player; 2],
    options: &'a DuelOptions,
    openings: Vec<Opening>,
    next: AtomicU32,
    games: u32,
}

/// A finished game, or why a thread stopped.
type News = Result<DuelGame, DuelError>;

impl<G: Game> Duel<'_, G> {
    /// The first player's score (0, 0.5 or 1) in each game, by index.
    fn play<E: Evaluator>(
        &self,
        evaluators: &(impl Fn() -> E + Sync),
        progress: &mut dyn FnMut(Tally, DuelGame),
    ) -> Result<Vec<f32>, DuelError> {
        let mut scores = vec![0.0; self.games as usize];
        let mut tally = Tally::default();
        thread::scope(|scope| -> Result<(), DuelError> {
            let (news, heard) = mpsc::channel::<News>();
            for number in 0..self.options.threads.clamp(1, self.games as usize) {
                let news = news.clone();
                let run = move || {
                    if let Err(error) = self.play_share(evaluators(), &news) {
                        // Nobody listens any more only when another thread has failed already.
                        let _ = news.send(Err(error));
                    }
                };
                let spawned = thread::Builder::new()
                    .name(format!("duel-{number}"))
                    .spawn_scoped(scope, run);
                spawned.map_err(|error| DuelError::Thread(error.to_string()))?;
            }
            drop(news);
            for event in heard {
                let game = event.inspect_err(|_| self.next.store(self.games, Ordering::Relaxed))?;
                scores[game.index as usize] = game.score();
                tally.add(game.score());
                progress(tally, game);
            }
            Ok::<(), DuelError>(())
        })?;
        Ok(scores)
    }

    /// Plays games until none is left to start.
    fn play_share<E: Evaluator>(&self, evaluator: E, news: &mpsc::Sender<News>) -> Result<(), DuelError> {
        let options = DriverOptions {
            games: self.options.games_parallel.max(1),
            batch_max: self.options.batch_max.max(1),
            ..DriverOptions::default()
        };
        let mut pool = Pool::new(self.game, evaluator, options);
        loop {
            while pool.free() > 0 {
                let index = self.next.fetch_add(1, Ordering::Relaxed);
                if index >= self.games {
                    // Far below wrapping: each thread passes here at most once a tick, and only until its games end.
                    self.next.store(self.games, Ordering::Relaxed);
                    break;
                }
                pool.push(self.entry(index)?);
            }
            if pool.entries().is_empty() {
                return Ok(());
            }
            pool.tick(|entry, outcome| {
                let _ = news.send(Ok(self.finished(entry, outcome)));
            })?;
        }
    }

    fn finished(&self, mut entry: Entry<G, u32>, outcome: Outcome) -> DuelGame {
        let index = entry.tag;
        DuelGame {
            index,
            first_seat: first_players_seat(index),
            opening: self.openings[index as usize / 2].plies.clone(),
            outcome,
            searches: entry.flight.take_traces(),
            actions: entry.flight.plies().iter().map(|ply| ply.action).collect(),
        }
    }

    fn entry(&self, index: u32) -> Result<Entry<G, u32>, DuelError> {
        let opening = &self.openings[index as usize / 2];
        let mut state = self.game.start();
        for &action in &opening.plies {
            state.apply(action)?;
        }
        let mut models = Vec::new();
        let mut minds = Vec::new();
        let seats = match first_players_seat(index) {
            Seat::FIRST => self.players,
            _ => [self.players[1], self.players[0]],
        };
        for player in seats {
            let model = |model: &Arc<ModelBytes>| {
                models.push(Arc::clone(model));
                Engine {
                    index: ModelIndex(models.len() as u8 - 1),
                    precision: model.precision(),
                }
            };
            minds.push(Mind::of(player, self.game, &state, &self.options.settings, model)?);
        }
        let rng = game_rng(game_seed(self.options.seed, index));
        let temper = Temper::Compete {
            sampled_plies: opening.sampled_plies,
        };
        // Duels are not recorded.
        let flight = Flight::new(state, rng, minds, [ModelIndex(0); 2], temper);
        Ok(Entry {
            tag: index,
            models,
            flight: if self.options.traced {
                flight.traced(first_players_seat(index))
            } else {
                flight
            },
        })
    }
}

/// Even games: the first player takes the first seat; odd ones: the second.
fn first_players_seat(index: u32) -> Seat {
    if index.is_multiple_of(2) {
        Seat::FIRST
    } else {
        Seat::SECOND
    }
}
