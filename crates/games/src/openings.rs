//! Openings: the prefixes that match pairs start from, and the random plies that self-play may start with.

use std::collections::HashSet;

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::game::{Action, Game, State};
use crate::random;
use crate::spec::OpeningRule;
use crate::swap2;

/// Longest prefix that a match opening has in a game without an opening protocol. Longer ones would decide small
/// games by themselves.
const MATCH_PLIES_MAX: usize = 4;
/// A level of prefixes is listed completely up to this many (prefix, action) combinations, else it is sampled.
const LISTED_MAX: usize = 100_000;
/// Draws without a new opening after which the openings count as exhausted.
const BARREN_DRAWS_MAX: u32 = 10_000;

/// What a pair of match games starts from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Opening {
    /// Plies that both games begin with.
    pub plies: Vec<Action>,
    /// Number of plies after these that the acting seat samples from its own search.
    pub sampled_plies: u32,
}

/// Draws the openings of a match of up to `pairs` pairs, without replacement and distinct up to symmetry.
///
/// The list is shorter when the game has fewer. Without an opening protocol the prefixes are as short as `pairs`
/// allows, one to four plies. With Swap2, pairs alternate between three stones drawn uniformly (the decisions are
/// left to the players) and the empty board on which the opener samples its stones.
pub fn draw_openings<G: Game>(game: &G, pairs: usize, seed: u64) -> Vec<Opening> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    match game.spec().opening {
        OpeningRule::None => {
            let mut prefixes = distinct_prefixes(game, pairs, &mut rng);
            random::shuffle(&mut prefixes, &mut rng);
            prefixes.truncate(pairs);
            prefixes
                .into_iter()
                .map(|plies| Opening {
                    plies,
                    sampled_plies: 0,
                })
                .collect()
        }
        OpeningRule::Swap2 => {
            let stones = distinct_first_stones(game, pairs.div_ceil(2), &mut rng);
            let mut openings = Vec::with_capacity(pairs);
            for plies in stones {
                openings.push(Opening {
                    plies,
                    sampled_plies: 0,
                });
                openings.push(Opening {
                    plies: Vec::new(),
                    sampled_plies: u32::from(swap2::FIRST_STONES),
                });
            }
            openings.truncate(pairs);
            openings
        }
    }
}

/// Between 0 and `plies_max` uniformly random legal plies from the start, the number uniform too, never ending the
/// game: shorter where every legal action would.
pub fn random_opening<G: Game, R: Rng>(game: &G, plies_max: u32, rng: &mut R) -> Vec<Action> {
    let plies = random::below(rng, plies_max as usize + 1);
    let mut state = game.start();
    let mut opening = Vec::with_capacity(plies);
    for _ in 0..plies {
        let Some((action, next)) = random_step(&state, rng) else {
            break;
        };
        opening.push(action);
        state = next;
    }
    opening
}

/// A uniformly random action among those that do not end the game, and where it leads.
fn random_step<S: State, R: Rng>(state: &S, rng: &mut R) -> Option<(Action, S)> {
    let mut legal = Vec::new();
    state.legal(&mut legal);
    random::shuffle(&mut legal, rng);
    legal
        .into_iter()
        .find_map(|action| Some((action, step(state, action)?)))
}

/// The state after `action`, unless the game ends there.
fn step<S: State>(state: &S, action: Action) -> Option<S> {
    let mut next = state.clone();
    next.apply(action).ok()?;
    next.outcome().is_none().then_some(next)
}

/// The same for all positions that are equal up to symmetry.
fn symmetric_hash<G: Game>(game: &G, state: &G::State) -> u64 {
    game.spec()
        .symmetries
        .iter()
        .map(|symmetry| state.transform(symmetry).hash())
        .min()
        .unwrap_or_else(|| state.hash())
}

/// Prefixes with distinct positions, level by level, until there are `wanted` or the longest length is reached.
fn distinct_prefixes<G: Game>(game: &G, wanted: usize, rng: &mut Xoshiro256PlusPlus) -> Vec<Vec<Action>> {
    let mut seen = HashSet::from([symmetric_hash(game, &game.start())]);
    let mut all = Vec::new();
    let mut level = vec![(Vec::new(), game.start())];
    for _ in 0..MATCH_PLIES_MAX {
        if all.len() >= wanted || level.is_empty() {
            break;
        }
        level = if level.len() * game.spec().actions.len() <= LISTED_MAX {
            list_level(game, &level, &mut seen)
        } else {
            sample_level(game, &level, wanted - all.len(), &mut seen, rng)
        };
        all.extend(level.iter().map(|(plies, _)| plies.clone()));
    }
    all
}

type Prefix<G> = (Vec<Action>, <G as Game>::State);

fn list_level<G: Game>(game: &G, level: &[Prefix<G>], seen: &mut HashSet<u64>) -> Vec<Prefix<G>> {
    let mut next_level = Vec::new();
    let mut legal = Vec::new();
    for (plies, state) in level {
        state.legal(&mut legal);
        for &action in &legal {
            let Some(next) = step(state, action) else {
                continue;
            };
            if seen.insert(symmetric_hash(game, &next)) {
                next_level.push((extended(plies, action), next));
            }
        }
    }
    next_level
}

fn sample_level<G: Game>(
    game: &G,
    level: &[Prefix<G>],
    wanted: usize,
    seen: &mut HashSet<u64>,
    rng: &mut Xoshiro256PlusPlus,
) -> Vec<Prefix<G>> {
    let mut next_level = Vec::new();
    let mut barren_draws = 0;
    while next_level.len() < wanted && barren_draws < BARREN_DRAWS_MAX {
        barren_draws += 1;
        let (plies, state) = &level[random::below(rng, level.len())];
        let Some((action, next)) = random_step(state, rng) else {
            continue;
        };
        if seen.insert(symmetric_hash(game, &next)) {
            next_level.push((extended(plies, action), next));
            barren_draws = 0;
        }
    }
    next_level
}

fn extended(plies: &[Action], action: Action) -> Vec<Action> {
    plies.iter().copied().chain([action]).collect()
}

/// Up to `wanted` openings of three uniformly random stones with distinct positions.
fn distinct_first_stones<G: Game>(game: &G, wanted: usize, rng: &mut Xoshiro256PlusPlus) -> Vec<Vec<Action>> {
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    let mut barren_draws = 0;
    while found.len() < wanted && barren_draws < BARREN_DRAWS_MAX {
        barren_draws += 1;
        let mut plies = Vec::with_capacity(swap2::FIRST_STONES as usize);
        let mut state = game.start();
        for _ in 0..swap2::FIRST_STONES {
            if let Some((action, next)) = random_step(&state, rng) {
                plies.push(action);
                state = next;
            }
        }
        if seen.insert(first_stones_hash(game, &plies)) {
            found.push(plies);
            barren_draws = 0;
        }
    }
    found
}

/// The same for three stones that make one position up to symmetry, whichever black stone came first.
fn first_stones_hash<G: Game>(game: &G, plies: &[Action]) -> u64 {
    let hash_of = |plies: &mut dyn Iterator<Item = &Action>| {
        let mut state = game.start();
        // The plies were legal in one order; stones on three different cells are legal in the other one too.
        plies.for_each(|&action| drop(state.apply(action)));
        symmetric_hash(game, &state)
    };
    hash_of(&mut plies.iter()).min(hash_of(&mut plies.iter().rev()))
}
