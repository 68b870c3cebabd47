//! Whether a record is true: the right run, lease and models, and a game that the rules replay to the stated end.
//!
//! The order is fixed, so that a record with one fault has one code: sizes, then the heading against the lease, then
//! the precisions of a match game, the opening, every ply with its search, the end, the roles.

mod heading;
mod search;

use tengen_games::{Action, Fingerprint, Game, Outcome, Reason, State};

use crate::expected::{Endings, Expected, Work};
use crate::record::{DecisionPath, PlyRecord, Record};
use crate::rejection::{ReasonCode, Rejection};

pub use search::{TOLERANCE, WEIGHT_MAX};

/// What the replay of a good record found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// Positions: plies with a policy target of weight above 0.
    pub positions: u32,
    /// Plies that were played, the opening not among them.
    pub plies: u32,
    /// Plies of the opening.
    pub opening_plies: u32,
    /// How the game ended, recomputed.
    pub outcome: Outcome,
    /// The decisions of the opening protocol, see [`Record::opening_path`].
    pub opening_path: Option<String>,
}

/// Checks `record` against the rules of `game` and against the lease.
///
/// `game` must be the one that `expected.game_id` names.
///
/// # Errors
/// The first fault, in the order of this module's description.
pub fn check<G: Game>(game: &G, record: &Record, expected: &Expected) -> Result<Checked, Rejection> {
    check_sizes(game, record)?;
    heading::check(record, expected)?;
    if let Work::Match(_) = &expected.work {
        check_precisions(record)?;
    }
    replay(game, record, |state| check_end(state, record, &expected.endings))
}

/// Checks `record` against the rules of `game` alone, where nobody knows the lease: games, rules and models agree with
/// each other, every ply is legal, the end is the one the rules name. `rules` is the game's fingerprint.
///
/// What only a lease or a run's settings can tell is taken as stated: who was ordered to play, the seed, the precisions of
/// its searches, and that a game was broken off (`resignation` with a winner, `move-limit` without) although the rules let
/// it go on.
///
/// # Errors
/// The first fault, in the order of this module's description.
pub fn referee<G: Game>(game: &G, rules: Fingerprint, record: &Record) -> Result<Checked, Rejection> {
    check_sizes(game, record)?;
    heading::check_alone(record, &game.spec().id, rules)?;
    replay(game, record, |state| check_stated_end(state, record))
}

fn replay<G: Game>(
    game: &G,
    record: &Record,
    check_end: impl FnOnce(&G::State) -> Result<(), Rejection>,
) -> Result<Checked, Rejection> {
    let mut replay = Replay::new(game);
    replay.opening(&record.opening)?;
    for (n, ply) in record.plies.iter().enumerate() {
        replay.ply(n, ply, record)?;
    }
    check_end(&replay.state)?;
    let roles = replay.state.roles();
    if roles != record.roles {
        let detail = format!("the record states {:?}, the rules say {roles:?}", record.roles);
        return Err(Rejection::new(ReasonCode::WrongRoles, detail));
    }
    Ok(Checked {
        positions: record.positions(),
        plies: record.plies.len() as u32,
        opening_plies: record.opening.len() as u32,
        outcome: record.outcome,
        opening_path: replay.path.finish(),
    })
}

/// Nothing in the record is longer than the game allows; what follows may take time in proportion to these lengths.
fn check_sizes<G: Game>(game: &G, record: &Record) -> Result<(), Rejection> {
    let spec = game.spec();
    let bounded = |what: &str, len: usize, len_max: usize| {
        let detail = || format!("{what} has {len} entries, at most {len_max} are possible");
        if len <= len_max {
            Ok(())
        } else {
            Err(Rejection::new(ReasonCode::TooLarge, detail()))
        }
    };
    bounded("the game", record.opening.len() + record.plies.len(), spec.plies_max)?;
    for search in record.plies.iter().filter_map(|ply| ply.search.as_ref()) {
        bounded("a policy target", search.policy_target.len(), spec.actions.len())?;
        bounded("a list of visits", search.visits.len(), spec.actions.len())?;
    }
    Ok(())
}

/// The searches of a match game are all in one precision, whichever it is: with two, the match would compare arithmetic too.
/// Who has no network states no search and so no precision.
fn check_precisions(record: &Record) -> Result<(), Rejection> {
    let searches = record.plies.iter().enumerate();
    let mut stated = searches.filter_map(|(n, ply)| Some((n, ply.search.as_ref()?.precision)));
    let Some((_, first)) = stated.next() else {
        return Ok(());
    };
    match stated.find(|&(_, precision)| precision != first) {
        None => Ok(()),
        Some((n, precision)) => {
            let detail = format!("ply {n}: its search is in {precision}, those before it are in {first}");
            Err(Rejection::new(ReasonCode::MixedPrecisions, detail))
        }
    }
}

/// A game being replayed.
struct Replay<'a, G: Game> {
    game: &'a G,
    state: G::State,
    legal: Vec<Action>,
    path: DecisionPath,
}

impl<'a, G: Game> Replay<'a, G> {
    fn new(game: &'a G) -> Replay<'a, G> {
        Replay {
            game,
            state: game.start(),
            legal: Vec::new(),
            path: DecisionPath::new(game.spec()),
        }
    }

    fn opening(&mut self, opening: &[Action]) -> Result<(), Rejection> {
        for (n, &action) in opening.iter().enumerate() {
            let refuse = |what: String| Rejection::new(ReasonCode::Opening, format!("opening ply {n}: {what}"));
            self.path.note(self.game, &self.state, action);
            self.state.apply(action).map_err(|error| refuse(error.to_string()))?;
            if self.state.outcome().is_some() {
                return Err(refuse(format!("action {action} ends the game")));
            }
        }
        Ok(())
    }

    fn ply(&mut self, n: usize, ply: &PlyRecord, record: &Record) -> Result<(), Rejection> {
        let refuse = |code, what: String| Err(Rejection::new(code, format!("ply {n}: {what}")));
        if let Some(outcome) = self.state.outcome() {
            return refuse(
                ReasonCode::PliesAfterEnd,
                format!("the game is over ({})", outcome.reason.as_str()),
            );
        }
        let seat = self.state.seat();
        if ply.seat != seat {
            return refuse(
                ReasonCode::WrongSeat,
                format!("the record names {}, {seat} acts", ply.seat),
            );
        }
        let model = record.seat_models[seat.index()];
        if ply.model != model {
            return refuse(
                ReasonCode::WrongModel,
                format!("model {} chose, {seat} is model {}'s", ply.model.0, model.0),
            );
        }
        self.state.legal(&mut self.legal);
        if self.legal.binary_search(&ply.action).is_err() {
            return refuse(ReasonCode::IllegalAction, format!("action {} is illegal", ply.action));
        }
        if let Some(block) = &ply.search {
            if record.network(ply.model).is_none() {
                return refuse(
                    ReasonCode::UnwantedSearch,
                    format!("player {} has no network and states a search of one", ply.model.0),
                );
            }
            let symmetries = self.game.spec().symmetries.len();
            search::check(block, &self.legal, symmetries).or_else(|(code, what)| refuse(code, what))?;
        }
        self.path.note(self.game, &self.state, ply.action);
        self.state
            .apply(ply.action)
            .or_else(|error| refuse(ReasonCode::IllegalAction, error.to_string()))
    }
}

/// The end is the rules' own, or one that the run allows.
fn check_end<S: State>(state: &S, record: &Record, endings: &Endings) -> Result<(), Rejection> {
    let stated = record.outcome;
    let plies = record.opening.len() + record.plies.len();
    let by_rules = state.outcome();
    let broken_off = match stated.reason {
        Reason::Resignation if endings.resignation => Some(Outcome::win(state.seat().other(), Reason::Resignation)),
        Reason::MoveLimit if endings.move_limit_plies.is_some_and(|limit| plies == limit as usize) => {
            Some(Outcome::draw(Reason::MoveLimit))
        }
        _ => None,
    };
    agrees(stated, by_rules.or(broken_off), plies)
}

/// The end is the rules' own, or that of a game that was broken off.
fn check_stated_end<S: State>(state: &S, record: &Record) -> Result<(), Rejection> {
    let stated = record.outcome;
    let broken_off = match (stated.reason, stated.winner) {
        (Reason::Resignation, Some(_)) | (Reason::MoveLimit, None) => Some(stated),
        _ => None,
    };
    let plies = record.opening.len() + record.plies.len();
    agrees(stated, state.outcome().or(broken_off), plies)
}

fn agrees(stated: Outcome, found: Option<Outcome>, plies: usize) -> Result<(), Rejection> {
    let Some(outcome) = found else {
        let detail = format!(
            "after {plies} plies the game goes on, the record states {:?}",
            stated.reason.as_str()
        );
        return Err(Rejection::new(ReasonCode::Unfinished, detail));
    };
    if stated.winner != outcome.winner {
        let detail = format!(
            "the record states {}, the rules say {}",
            winner_text(stated),
            winner_text(outcome)
        );
        return Err(Rejection::new(ReasonCode::WrongResult, detail));
    }
    if stated.reason != outcome.reason {
        let detail = format!(
            "the record states {:?}, the rules say {:?}",
            stated.reason.as_str(),
            outcome.reason.as_str()
        );
        return Err(Rejection::new(ReasonCode::WrongReason, detail));
    }
    Ok(())
}

fn winner_text(outcome: Outcome) -> String {
    outcome
        .winner
        .map_or_else(|| "a draw".to_owned(), |seat| format!("a win of {seat}"))
}
