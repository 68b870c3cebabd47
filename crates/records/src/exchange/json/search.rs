//! The searches of a document: what is said of them must fit the position, and with what is ours they are search blocks
//! again.

use tengen_games::swap2::Decision;
use tengen_games::{Action, AnyGame, Game, GameVisitor, State};

use super::super::shown;
use super::super::stones::{Board, Kind};
use super::document::{Mcts, PolicyTarget};
use super::write::slot;
use crate::check::TOLERANCE;
use crate::record::{Precision, SearchBlock};
use crate::rejection::{ReasonCode, Rejection};

type Verdict = Result<(), Rejection>;

/// An action of a document.
#[derive(Clone, Debug)]
pub(super) struct Place<'a> {
    /// Where it stands, for messages.
    pub(super) name: String,
    /// What was done.
    pub(super) action: Action,
    /// The search that found it.
    pub(super) mcts: Option<&'a Mcts>,
}

/// Checks every search against the position it belongs to: values and probabilities are some, the policy sums to 1 over
/// legal actions, stones and choices are kept apart.
pub(super) fn check(game: &AnyGame, board: &Board, places: &[Place<'_>]) -> Verdict {
    game.visit(Check { board, places })
}

struct Check<'a> {
    board: &'a Board,
    places: &'a [Place<'a>],
}

impl GameVisitor for Check<'_> {
    type Output = Verdict;

    fn visit<G: Game>(self, game: G) -> Verdict {
        let mut state = game.start();
        for place in self.places {
            if let Some(mcts) = place.mcts {
                let value = mcts.mcts_value;
                if !(-1.0 - TOLERANCE..=1.0 + TOLERANCE).contains(&value) {
                    return refuse(place, ReasonCode::Wdl, format!("mctsValue is {value}, not in -1..=1"));
                }
                if !(0.0..=f32::MAX).contains(&mcts.temperature) {
                    return refuse(
                        place,
                        ReasonCode::Temperature,
                        format!("temperature is {}", mcts.temperature),
                    );
                }
                if let Some(policy) = &mcts.policy_target {
                    self.policy(place, policy, &state)?;
                }
            }
            // The moves have been played through the rules before.
            let _played = state.apply(place.action);
        }
        Ok(())
    }
}

impl Check<'_> {
    fn policy<S: State>(&self, place: &Place<'_>, policy: &PolicyTarget, state: &S) -> Verdict {
        let choice = matches!(self.board.kind(place.action), Some(Kind::Decision(_)));
        if choice && !policy.placements.is_empty() {
            return refuse(
                place,
                ReasonCode::PolicyIllegal,
                "placements are there where a choice is due".to_owned(),
            );
        }
        if !choice && policy.special_actions.is_some() {
            let what = "specialActions are there where a stone is due".to_owned();
            return refuse(place, ReasonCode::PolicyIllegal, what);
        }
        let mut sum = 0.0;
        for (action, probability) in target(self.board, place, policy)? {
            if !(0.0..=1.0 + TOLERANCE).contains(&probability) {
                return refuse(
                    place,
                    ReasonCode::PolicyRange,
                    format!("a probability is {probability}"),
                );
            }
            if !state.is_legal(action) {
                return refuse(
                    place,
                    ReasonCode::PolicyIllegal,
                    format!("the policy names illegal action {action}"),
                );
            }
            sum += f64::from(probability);
        }
        if (sum - 1.0).abs() > f64::from(TOLERANCE) {
            return refuse(place, ReasonCode::PolicySum, format!("the policy sums to {sum}"));
        }
        Ok(())
    }
}

fn refuse<T>(place: &Place<'_>, code: ReasonCode, what: String) -> Result<T, Rejection> {
    Err(Rejection::new(code, format!("{}: {what}", place.name)))
}

/// The policy by action, ascending.
fn target(board: &Board, place: &Place<'_>, policy: &PolicyTarget) -> Result<Vec<(Action, f32)>, Rejection> {
    let mut target = Vec::with_capacity(policy.placements.len());
    for stone in &policy.placements {
        match board.stone(stone.x, stone.y) {
            Some(action) => target.push((action, stone.probability)),
            None => {
                let what = format!("the policy names x {}, y {}, which is off the board", stone.x, stone.y);
                return refuse(place, ReasonCode::PolicyIllegal, what);
            }
        }
    }
    if let Some(mut special) = policy.special_actions {
        for decision in Decision::ALL {
            target.extend(slot(&mut special, decision).map(|probability| (board.decision(decision), probability)));
        }
    }
    target.sort_by_key(|&(action, _)| action);
    if let Some([(action, _), _]) = target.array_windows().find(|[one, other]| one.0 == other.0) {
        return refuse(
            place,
            ReasonCode::PolicyOrder,
            format!("the policy names action {action} twice"),
        );
    }
    Ok(target)
}

/// The search block that a document of ours tells; `None` where there was no search.
pub(super) fn block(place: &Place<'_>, board: &Board) -> Result<Option<SearchBlock>, Rejection> {
    let Some(mcts) = place.mcts else { return Ok(None) };
    let Some(extra) = &mcts.tengen else {
        return refuse(
            place,
            ReasonCode::Decode,
            "its mcts lacks tengen, which the others have".to_owned(),
        );
    };
    let value = extra.root_wdl[0] - extra.root_wdl[2];
    if (value - mcts.mcts_value).abs() > TOLERANCE {
        let what = format!("mctsValue is {}, tengen.rootWdl makes it {value}", mcts.mcts_value);
        return refuse(place, ReasonCode::Wdl, what);
    }
    let Some(precision) = Precision::parse(&extra.precision) else {
        return refuse(
            place,
            ReasonCode::Precision,
            format!("{:?} is no precision", shown(&extra.precision)),
        );
    };
    let policy_target = match &mcts.policy_target {
        Some(policy) => target(board, place, policy)?,
        None => Vec::new(),
    };
    Ok(Some(SearchBlock {
        policy_target,
        visits: extra
            .visits
            .iter()
            .map(|&(action, visits)| (Action(action), visits))
            .collect(),
        weight: extra.weight,
        root_wdl: extra.root_wdl,
        net_wdl: extra.net_wdl,
        net_policy_top: extra
            .net_policy_top
            .iter()
            .map(|&(action, prior)| (Action(action), prior))
            .collect(),
        prior_kl: extra.prior_kl,
        visits_total: extra.visits_total,
        visits_reused: extra.visits_reused,
        temperature: mcts.temperature,
        precision,
        symmetry: extra.symmetry,
    }))
}
