//! Random games to their end, of which several items of the checklist speak.

use std::collections::BTreeMap;

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tengen_games::{Action, Game, GameVisitor, Outcome, State};

use super::SEED;

/// Games to play, and plies after which no further one is begun: long games take no longer than many short ones.
const GAMES_MAX: usize = 2_000;
const PLIES_MAX: u64 = 50_000;

/// One random game.
pub(super) struct Played {
    pub(super) actions: Vec<Action>,
    pub(super) outcome: Option<Outcome>,
}

/// What random games showed.
pub(super) struct Survey {
    pub(super) games: Vec<Played>,
    pub(super) plies: u64,
    /// Ends by reason.
    pub(super) ends: BTreeMap<&'static str, u32>,
    /// Whether an action was legal anywhere, by action.
    legal_somewhere: Vec<bool>,
    /// Sum over positions of the share of illegal actions.
    illegal_shares: f64,
}

impl Survey {
    pub(super) fn actions(&self) -> usize {
        self.legal_somewhere.len()
    }

    pub(super) fn never_legal(&self) -> usize {
        self.legal_somewhere.iter().filter(|&&legal| !legal).count()
    }

    /// What an even policy puts on illegal actions, on average over positions.
    pub(super) fn illegal_share(&self) -> f64 {
        self.illegal_shares / self.plies.max(1) as f64
    }

    /// Plies of a game on average.
    pub(super) fn plies_per_game(&self) -> f64 {
        self.plies as f64 / self.games.len().max(1) as f64
    }

    /// The ends in words, the most frequent first.
    pub(super) fn ends_in_words(&self) -> String {
        let mut ends: Vec<_> = self.ends.iter().collect();
        ends.sort_by_key(|&(reason, count)| (std::cmp::Reverse(*count), *reason));
        let words: Vec<String> = ends.iter().map(|(reason, count)| format!("{reason} {count}")).collect();
        words.join(", ")
    }
}

/// Plays the games: every other one among all legal actions, by which fouls are made too, the others among those that
/// players choose from.
pub(super) struct Take;

impl GameVisitor for Take {
    type Output = Survey;

    fn visit<G: Game>(self, game: G) -> Survey {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(SEED);
        let mut survey = Survey {
            games: Vec::new(),
            plies: 0,
            ends: BTreeMap::new(),
            legal_somewhere: vec![false; game.spec().actions.len()],
            illegal_shares: 0.0,
        };
        while survey.games.len() < GAMES_MAX && survey.plies < PLIES_MAX {
            let played = play(&game, &mut survey, &mut rng);
            survey.plies += played.actions.len() as u64;
            if let Some(outcome) = played.outcome {
                *survey.ends.entry(outcome.reason.as_str()).or_default() += 1;
            }
            survey.games.push(played);
        }
        survey
    }
}

fn play<G: Game>(game: &G, survey: &mut Survey, rng: &mut Xoshiro256PlusPlus) -> Played {
    let among_legal = survey.games.len().is_multiple_of(2);
    let mut state = game.start();
    let (mut actions, mut legal, mut playable) = (Vec::new(), Vec::new(), Vec::new());
    loop {
        state.legal(&mut legal);
        state.playable(&mut playable);
        let choice = if among_legal { &legal } else { &playable };
        if choice.is_empty() {
            break;
        }
        legal
            .iter()
            .for_each(|action| survey.legal_somewhere[action.index()] = true);
        survey.illegal_shares += 1.0 - legal.len() as f64 / survey.legal_somewhere.len() as f64;
        let action = choice[rng.random_range(0..choice.len())];
        // A legal action is not refused; were it, the laws would say so, and here the game just ends.
        if state.apply(action).is_err() {
            break;
        }
        actions.push(action);
    }
    Played {
        actions,
        outcome: state.outcome(),
    }
}
