//! Honest random records for the tests of every crate that handles records: legal games played at random, with search
//! blocks of the right shape. No network and no search is behind the numbers. Beside them: ways to spoil records
//! ([`mutation`], [`hammer`], [`fuzz`]), the bytes that earlier builds wrote ([`earlier`]), files and texts ([`exchange`],
//! [`texts`]), and a second opinion on what the check accepts ([`invariants`]).

pub mod earlier;
pub mod exchange;
pub mod fuzz;
pub mod hammer;
pub mod invariants;
pub mod mutation;
pub mod texts;

use rand::{Rng, RngExt};
use tengen_games::{Action, AnyGame, Game, GameVisitor, State, random_opening, registry, rules_fingerprint};

use crate::expected::{Endings, Expected, MatchGame, Work};
use crate::ids::{LeaseId, ModelId, RecordId, RunId};
use crate::player::Player;
use crate::record::{Kind, ModelIndex, NET_POLICY_TOP_MAX, PlyRecord, Precision, Record, SearchBlock};
use crate::seed::game_seed;
use crate::wire::networks_of;

/// A test to run on every registered game.
pub trait EveryGame {
    /// Runs it on this one.
    fn test<G: Game>(&self, game: &G);
}

/// Runs `test` on every registered family with its default parameters and with its samples.
///
/// # Panics
/// When the test does, or when the registry does not know its own names.
pub fn each_game<T: EveryGame>(test: &T) {
    struct Visit<'a, T>(&'a T);
    impl<T: EveryGame> GameVisitor for Visit<'_, T> {
        type Output = ();
        fn visit<G: Game>(self, game: G) {
            self.0.test(&game);
        }
    }
    for family in registry::entries() {
        for name in std::iter::once(family.name).chain(family.samples.iter().copied()) {
            AnyGame::parse(name)
                .expect("the registry knows its own names")
                .visit(Visit(test));
        }
    }
}

/// Games of the match lease that [`expected`] makes.
const MATCH_GAMES: u32 = 8;
/// Actions that a search of some dozens of simulations visits.
const VISITED_MAX: usize = 24;

/// A lease of `kind` that honest records can be made for: self-play takes any index and up to four random opening
/// plies; a match has eight games in four pairs.
pub fn expected<G: Game, R: Rng>(game: &G, kind: Kind, rng: &mut R) -> Expected {
    let (models, work) = match kind {
        Kind::SelfPlay => (
            1,
            Work::SelfPlay {
                index_end: u32::MAX,
                random_plies_max: 4,
            },
        ),
        Kind::Match => (2, Work::Match(match_games(game, rng))),
    };
    Expected {
        run_id: RunId::new("testing").expect("a legal run id"),
        game_id: game.spec().id.clone(),
        rules_fingerprint: rules_fingerprint(game),
        lease: LeaseId(rng.random()),
        models: (0..models).map(|_| ModelId(rng.random())).collect(),
        players: None,
        settings_revision: rng.random_range(0..100),
        lease_seed: rng.random(),
        work,
        endings: Endings::default(),
    }
}

/// The lease `expected` for rating games of these players instead of a match of its models.
///
/// # Panics
/// When it is for self-play.
pub fn rated(expected: Expected, players: [Player; 2]) -> Expected {
    assert_eq!(expected.work.kind(), Kind::Match, "only matches are rated");
    Expected {
        models: networks_of(&players),
        players: Some(players),
        ..expected
    }
}

fn match_games<G: Game, R: Rng>(game: &G, rng: &mut R) -> Vec<MatchGame> {
    let mut games = Vec::new();
    for pair in 0..MATCH_GAMES / 2 {
        let opening = random_opening(game, 2, rng);
        for seat0_model in [ModelIndex(0), ModelIndex(1)] {
            games.push(MatchGame {
                pair,
                opening: opening.clone(),
                seat0_model,
            });
        }
    }
    games
}

/// The record of a random game with this `index` under the lease; [`crate::check`] finds nothing wrong with it.
///
/// Most plies are positions; some are cheap searches (weight 0) and some have no search.
///
/// # Panics
/// When a match lease has no game of this index.
pub fn random_record<G: Game, R: Rng>(game: &G, expected: &Expected, index: u32, rng: &mut R) -> Record {
    let (opening, seat_models, match_pair) = match &expected.work {
        Work::SelfPlay { random_plies_max, .. } => {
            (random_opening(game, *random_plies_max, rng), [ModelIndex(0); 2], 0)
        }
        Work::Match(games) => {
            let game = &games[index as usize];
            (game.opening.clone(), game.seat_models(), game.pair)
        }
    };
    let mut state = game.start();
    for &action in &opening {
        state.apply(action).expect("openings are legal");
    }
    let symmetries = game.spec().symmetries.len() as u16;
    let mut playable = Vec::new();
    let mut plies = Vec::new();
    while state.outcome().is_none() {
        state.playable(&mut playable);
        let action = playable[rng.random_range(0..playable.len())];
        let seat = state.seat();
        let network = match &expected.players {
            None => true,
            Some(players) => players[seat_models[seat.index()].index()].network().is_some(),
        };
        let search = (network && rng.random_bool(0.9)).then(|| search_block(&playable, symmetries, rng));
        plies.push(PlyRecord {
            seat,
            action,
            model: seat_models[seat.index()],
            search,
        });
        state.apply(action).expect("the action was drawn from the legal ones");
    }
    Record {
        id: RecordId {
            lease: expected.lease,
            index,
        },
        run_id: expected.run_id.clone(),
        game_id: expected.game_id.clone(),
        rules_fingerprint: expected.rules_fingerprint,
        kind: expected.work.kind(),
        models: expected.models.clone(),
        players: expected.players.clone(),
        seat_models,
        settings_revision: expected.settings_revision,
        seed: game_seed(expected.lease_seed, index),
        opening,
        plies,
        outcome: state.outcome().expect("the loop ends with the game"),
        roles: state.roles(),
        created_unix_ms: 1_700_000_000_000 + i64::from(index),
        duration_ms: rng.random_range(1..100_000),
        match_pair,
    }
}

/// A search block for a position with these legal actions.
pub fn search_block<R: Rng>(legal: &[Action], symmetries: u16, rng: &mut R) -> SearchBlock {
    let chosen: Vec<Action> = legal.iter().copied().filter(|_| rng.random_bool(0.8)).collect();
    let chosen = if chosen.is_empty() { vec![legal[0]] } else { chosen };
    let visits: Vec<(Action, u32)> = chosen
        .into_iter()
        .map(|action| (action, rng.random_range(1..100)))
        .collect();
    let children: u32 = visits.iter().map(|&(_, visits)| visits).sum();
    let policy_target = visits
        .iter()
        .map(|&(action, visits)| (action, visits as f32 / children as f32))
        .collect();
    let mut priors = distribution(legal.len(), rng)
        .into_iter()
        .zip(legal)
        .map(|(p, &a)| (a, p))
        .collect::<Vec<_>>();
    priors.sort_by(|left, right| right.1.total_cmp(&left.1));
    priors.truncate(NET_POLICY_TOP_MAX);
    SearchBlock {
        policy_target,
        visits,
        weight: if rng.random_bool(0.8) { 1.0 } else { 0.0 },
        root_wdl: wdl(rng),
        net_wdl: wdl(rng),
        net_policy_top: priors,
        prior_kl: rng.random_range(0.0..3.0),
        visits_total: children + 1,
        visits_reused: rng.random_range(0..=children),
        temperature: if rng.random_bool(0.5) { 1.0 } else { 0.0 },
        precision: Precision::Fp32,
        symmetry: rng.random_range(0..symmetries),
    }
}

/// Leaves of every search what one of some dozens of simulations would have visited: the record becomes about as long as a
/// real one.
pub fn thin_out(record: &mut Record) {
    for search in record.plies.iter_mut().filter_map(|ply| ply.search.as_mut()) {
        let children = shorten(search, VISITED_MAX);
        search.visits_total = children + 1;
        search.visits_reused = 0;
    }
}

/// Leaves the first children that a search visited, with the policy target that they make; how often they were visited.
fn shorten(search: &mut SearchBlock, visited_max: usize) -> u32 {
    search.visits.truncate(visited_max);
    let children: u32 = search.visits.iter().map(|visit| visit.1).sum();
    let share = |&(action, visits): &(Action, u32)| (action, visits as f32 / children as f32);
    search.policy_target = search.visits.iter().map(share).collect();
    children
}

fn wdl<R: Rng>(rng: &mut R) -> [f32; 3] {
    let values = distribution(3, rng);
    [values[0], values[1], values[2]]
}

/// `len` random probabilities that sum to 1.
fn distribution<R: Rng>(len: usize, rng: &mut R) -> Vec<f32> {
    let weights: Vec<f32> = (0..len).map(|_| rng.random_range(0.01..1.0)).collect();
    let sum: f32 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / sum).collect()
}
