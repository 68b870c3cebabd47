//! The laws that every game obeys, checked over seeded random games.
//!
//! The registry generates one test per family that runs [`check_family`]; a new game is in the suite as soon as it has
//! its line there.

mod position;
mod structure;

use std::collections::HashMap;

use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::game::{Action, Game, Outcome, Roles, Seat, State};
use crate::params::{self, Params};
use crate::random;
use crate::registry::{AnyGame, Family};
use crate::spec::{OpeningRule, Spec, Symmetry};

/// How much is checked.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Random games to play.
    pub games: u32,
    /// Plies after which no further game is begun, so that long games take no longer than many short ones.
    pub plies_max: u64,
    /// About how many positions are checked under every symmetry; they are spread evenly over all plies.
    pub deep_checks: u32,
    /// Seed of the random games.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            games: 10_000,
            plies_max: 300_000,
            deep_checks: 12_000,
            seed: 1,
        }
    }
}

/// What was checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Random games played to their end.
    pub games: u32,
    /// Their plies.
    pub plies: u64,
    /// Positions checked under every symmetry.
    pub deep_checks: u64,
    /// Wins of seat 0, wins of seat 1, draws.
    pub results: [u32; 3],
}

/// A law that a game breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{game}: {law} ({detail}) after actions {actions:?}")]
pub struct Violation {
    /// The game's id.
    pub game: String,
    /// The law, as a sentence.
    pub law: &'static str,
    /// What was seen.
    pub detail: String,
    /// The actions that lead there, as indexes.
    pub actions: Vec<u16>,
}

/// Checks the default and every sample parameterisation of a family; what was checked, by id.
pub fn check_family<G: Game>(family: Family<G>, options: &Options) -> Result<Vec<(String, Summary)>, Violation> {
    let mut summaries = Vec::new();
    for text in [family.name].iter().chain(family.samples) {
        let broken = |law, detail| Violation {
            game: (*text).to_owned(),
            law,
            detail,
            actions: Vec::new(),
        };
        let game = params::split(text)
            .and_then(|(_, given)| (family.build)(Params::new(family.name, given)?))
            .map_err(|error| broken("every sample is a game", error.to_string()))?;
        let id = &game.spec().id;
        let again = AnyGame::parse(id).map(|game| game.spec().id.clone());
        if again.as_ref() != Ok(id) {
            return Err(broken(
                "the canonical id names the game itself",
                format!("{id} parses as {again:?}"),
            ));
        }
        summaries.push((id.clone(), check(&game, options)?));
    }
    Ok(summaries)
}

/// Checks one game.
pub fn check<G: Game>(game: &G, options: &Options) -> Result<Summary, Violation> {
    let spec = game.spec();
    let plies_bound = options.plies_max.min(u64::from(options.games) * spec.plies_max as u64);
    let mut checker = Checker {
        game,
        spec,
        deep_interval: (plies_bound / u64::from(options.deep_checks.max(1))).max(1),
        actions: Vec::new(),
        seen: HashMap::new(),
        summary: Summary::default(),
        scratch: Scratch::new(spec),
    };
    checker.check_spec()?;
    for number in 0..options.games {
        if checker.summary.plies >= options.plies_max {
            break;
        }
        let seed = options
            .seed
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .wrapping_add(u64::from(number));
        checker.play(&mut Xoshiro256PlusPlus::seed_from_u64(seed))?;
    }
    Ok(checker.summary)
}

/// Greatest number of hashes remembered for the law that equal hashes imply equal planes.
const SEEN_MAX: usize = 200_000;

struct Checker<'a, G: Game> {
    game: &'a G,
    spec: &'a Spec,
    deep_interval: u64,
    actions: Vec<Action>,
    /// Position hash -> digest of everything that must then be equal.
    seen: HashMap<u64, u64>,
    summary: Summary,
    scratch: Scratch,
}

/// Buffers that are reused over all positions.
#[derive(Default)]
struct Scratch {
    planes: Vec<u8>,
    image_planes: Vec<u8>,
    legal: Vec<Action>,
    image_legal: Vec<Action>,
    playable: Vec<Action>,
}

impl Scratch {
    fn new(spec: &Spec) -> Scratch {
        let planes = vec![0; spec.planes_len()];
        Scratch {
            image_planes: planes.clone(),
            planes,
            legal: Vec::new(),
            image_legal: Vec::new(),
            playable: Vec::new(),
        }
    }
}

impl<G: Game> Checker<'_, G> {
    fn require(&self, holds: bool, law: &'static str, detail: impl FnOnce() -> String) -> Result<(), Violation> {
        if holds {
            return Ok(());
        }
        let actions = self.actions.iter().map(|action| action.0).collect();
        Err(Violation {
            game: self.spec.id.clone(),
            law,
            detail: detail(),
            actions,
        })
    }

    /// Plays one random game, and beside it its image under a random symmetry.
    fn play(&mut self, rng: &mut Xoshiro256PlusPlus) -> Result<(), Violation> {
        self.actions.clear();
        let symmetry = &self.spec.symmetries[random::below(rng, self.spec.symmetries.len())];
        let mut state = self.game.start();
        let mut image = self.game.start();
        let mut legal = Vec::new();
        loop {
            state.legal(&mut legal);
            self.check_legal(&state, &legal)?;
            if self.summary.plies.is_multiple_of(self.deep_interval) || state.outcome().is_some() {
                self.check_image(&state, &image, symmetry)?;
            }
            if self.summary.plies.is_multiple_of(self.deep_interval) {
                self.check_playable(&state, &legal)?;
                self.check_deeply(&state, rng)?;
            }
            if let Some(outcome) = state.outcome() {
                return self.check_end(&state, outcome);
            }
            let action = legal[random::below(rng, legal.len())];
            let before = (state.seat(), state.turn(), state.stage(), state.roles());
            let played = state.apply(action);
            self.actions.push(action);
            self.require(played.is_ok(), "a legal action can be played", || format!("{played:?}"))?;
            let image_played = image.apply(Action(symmetry.actions[action.index()]));
            self.require(image_played.is_ok(), "the image of a legal action is legal", || {
                format!("{image_played:?}")
            })?;
            self.check_turn(&state, before)?;
            self.summary.plies += 1;
            let plies = self.actions.len();
            self.require(plies <= self.spec.plies_max, "no game is longer than plies_max", || {
                plies.to_string()
            })?;
        }
    }

    fn check_legal(&self, state: &G::State, legal: &[Action]) -> Result<(), Violation> {
        let over = state.outcome().is_some();
        self.require(
            legal.is_empty() == over,
            "there are legal actions until the end",
            || format!("{legal:?}"),
        )?;
        let sorted = legal.windows(2).all(|pair| pair[0] < pair[1]);
        self.require(sorted, "legal actions are ascending", || format!("{legal:?}"))?;
        let mut listed = legal.iter().peekable();
        for action in (0..self.spec.actions.len() as u16).map(Action) {
            let is_listed = listed.next_if(|&&next| next == action).is_some();
            let same = is_listed == state.is_legal(action);
            self.require(same, "is_legal agrees with legal", || {
                format!("action {action}, listed: {is_listed}")
            })?;
        }
        self.require(listed.next().is_none(), "legal actions are in the action space", || {
            format!("{legal:?}")
        })
    }

    /// Players choose among legal actions, and have one; what is left out loses at once.
    fn check_playable(&mut self, state: &G::State, legal: &[Action]) -> Result<(), Violation> {
        let mut playable = std::mem::take(&mut self.scratch.playable);
        state.playable(&mut playable);
        let has_one = playable.is_empty() == legal.is_empty();
        self.require(has_one, "there are playable actions until the end", || {
            format!("{legal:?}")
        })?;
        let mut chosen = playable.iter().peekable();
        for &action in legal {
            if chosen.next_if(|&&next| next == action).is_some() {
                continue;
            }
            let mut after = state.clone();
            let loses = after.apply(action).is_ok()
                && after.outcome().and_then(|outcome| outcome.winner) == Some(state.seat().other());
            self.require(loses, "a legal action that is not playable loses at once", || {
                action.to_string()
            })?;
        }
        let listed = chosen.next().is_none();
        self.require(listed, "playable actions are legal and ascending", || {
            format!("{playable:?}")
        })?;
        self.scratch.playable = playable;
        Ok(())
    }

    fn check_turn(&self, state: &G::State, before: (Seat, u32, u8, Roles)) -> Result<(), Violation> {
        let (seat, turn, stage, roles) = before;
        let same_turn = state.turn() == turn && state.stage() == stage + 1 && state.seat() == seat;
        let next_turn = state.turn() == turn + 1 && state.stage() == 0;
        self.require(
            same_turn || next_turn,
            "a ply is the next stage or begins the next turn",
            || {
                format!(
                    "{seat}, turn {turn}, stage {stage} to {}, {}, {}",
                    state.seat(),
                    state.turn(),
                    state.stage()
                )
            },
        )?;
        let now = state.roles();
        let kept = roles.first_colour.is_none() || roles == now;
        self.require(kept, "roles never change once fixed", || {
            format!("{roles:?} to {now:?}")
        })?;
        let swap2 = self.spec.opening == OpeningRule::Swap2;
        let named = now.opener.is_some() == swap2 && now.chooser == now.opener.map(Seat::other);
        self.require(named, "opener and chooser are named iff there is an opening", || {
            format!("{now:?}")
        })
    }

    /// The image that was played along equals the transformed state: nothing kept incrementally has drifted.
    fn check_image(&self, state: &G::State, image: &G::State, symmetry: &Symmetry) -> Result<(), Violation> {
        let transformed = state.transform(symmetry);
        self.require(transformed == *image, "playing commutes with symmetry", || {
            format!("{}: {transformed:?} but played {image:?}", symmetry.name)
        })?;
        self.require(
            transformed.hash() == image.hash(),
            "equal states have equal hashes",
            || symmetry.name.to_owned(),
        )
    }

    fn check_end(&mut self, state: &G::State, outcome: Outcome) -> Result<(), Violation> {
        for action in (0..self.spec.actions.len() as u16).map(Action) {
            self.require(!state.is_legal(action), "nothing is legal after the end", || {
                action.to_string()
            })?;
            self.check_illegal(state, action)?;
        }
        self.summary.games += 1;
        self.summary.results[outcome.winner.map_or(2, Seat::index)] += 1;
        Ok(())
    }
}
