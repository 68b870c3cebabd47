//! What holds of every record that [`crate::check`] accepts, verified a second time and by other means.
//!
//! Written from the promises of `record.proto` and not from the check's code: where the check stops at the first fault
//! and cares for codes, this looks at everything and knows one answer. It is slow and for tests alone.

use std::collections::BTreeSet;

use tengen_games::{Action, Game, State};

use crate::expected::{Expected, Work};
use crate::record::{PlyRecord, Precision, Record, SearchBlock};

/// How far sums may be from one, as the records' documentation promises.
const SUM_SLACK: f64 = 1e-3;

/// The first promise that an accepted record breaks, in words; `None` when it keeps them all.
pub fn violation<G: Game>(game: &G, record: &Record, expected: &Expected) -> Option<String> {
    let of_lease = heading(record, expected).or_else(|| precisions(record, expected));
    of_lease.or_else(|| replay(game, record)).or_else(|| {
        record.plies.iter().enumerate().find_map(|(n, ply)| {
            let search = ply.search.as_ref()?;
            search_block(search, game.spec().symmetries.len()).map(|what| format!("ply {n}: {what}"))
        })
    })
}

fn heading(record: &Record, expected: &Expected) -> Option<String> {
    let same = record.run_id == expected.run_id
        && record.game_id == expected.game_id
        && record.rules_fingerprint == expected.rules_fingerprint
        && record.id.lease == expected.lease
        && record.models == expected.models
        && record.players == expected.players
        && record.settings_revision == expected.settings_revision
        && record.kind == expected.work.kind()
        && record.seed == crate::game_seed(expected.lease_seed, record.id.index);
    if !same {
        return Some("the heading is not the lease's".to_owned());
    }
    let work = match &expected.work {
        Work::SelfPlay {
            index_end,
            random_plies_max,
        } => {
            record.id.index < *index_end && record.opening.len() <= *random_plies_max as usize && record.match_pair == 0
        }
        Work::Match(games) => games
            .get(record.id.index as usize)
            .is_some_and(|game| record.opening == game.opening && record.match_pair == game.pair),
    };
    (!work).then(|| "the game is not one that the lease orders".to_owned())
}

/// Whoever meets in a match computes alike.
fn precisions(record: &Record, expected: &Expected) -> Option<String> {
    let searches = record.plies.iter().filter_map(|ply| ply.search.as_ref());
    let stated: BTreeSet<Precision> = searches.map(|search| search.precision).collect();
    let mixed = matches!(expected.work, Work::Match(_)) && stated.len() > 1;
    mixed.then(|| format!("a match is played in {stated:?}"))
}

/// Every action is legal where it is played, by the state's own answer for that one action, and the end is the rules'.
fn replay<G: Game>(game: &G, record: &Record) -> Option<String> {
    let mut state = game.start();
    for &action in &record.opening {
        if !state.is_legal(action) || state.apply(action).is_err() {
            return Some(format!("opening action {action} is illegal"));
        }
    }
    for (n, ply) in record.plies.iter().enumerate() {
        if state.outcome().is_some() {
            return Some(format!("ply {n} follows the end"));
        }
        if ply.seat != state.seat() || ply.model != record.seat_models[ply.seat.index()] {
            return Some(format!("ply {n} has another seat or model"));
        }
        if ply.search.is_some() && record.network(ply.model).is_none() {
            return Some(format!("ply {n} has a search and no network"));
        }
        if let Some(action) = named_actions(ply).find(|&action| !state.is_legal(action)) {
            return Some(format!("ply {n} names illegal action {action}"));
        }
        if state.apply(ply.action).is_err() {
            return Some(format!("ply {n} does not apply"));
        }
    }
    if state.outcome() != Some(record.outcome) {
        return Some(format!("the rules end it as {:?}", state.outcome()));
    }
    (state.roles() != record.roles).then(|| "the rules name other roles".to_owned())
}

/// The action played and every action its search names.
fn named_actions(ply: &PlyRecord) -> impl Iterator<Item = Action> + '_ {
    let of_search = ply.search.iter().flat_map(|search| {
        let visited = search.visits.iter().map(|&(action, _)| action);
        let probable = search.policy_target.iter().chain(&search.net_policy_top);
        visited.chain(probable.map(|&(action, _)| action))
    });
    std::iter::once(ply.action).chain(of_search)
}

fn search_block(search: &SearchBlock, symmetries: usize) -> Option<String> {
    let target: Vec<f32> = search.policy_target.iter().map(|&(_, p)| p).collect();
    let priors: Vec<f32> = search.net_policy_top.iter().map(|&(_, p)| p).collect();
    let lists = [&target[..], &priors, &search.root_wdl, &search.net_wdl];
    let mut probabilities = lists.into_iter().flatten();
    let sum = |list: &[f32]| list.iter().map(|&p| f64::from(p)).sum::<f64>();
    let whole = |list: &[f32]| (sum(list) - 1.0).abs() <= SUM_SLACK;
    let distinct = |actions: Vec<Action>| actions.iter().collect::<BTreeSet<_>>().len() == actions.len();
    let visits: u64 = search.visits.iter().map(|&(_, visits)| u64::from(visits)).sum();
    let promises = [
        (
            probabilities.all(|&p| p.is_finite() && p >= 0.0 && f64::from(p) <= 1.0 + SUM_SLACK),
            "a probability is not one",
        ),
        (
            search.weight.is_finite() && (0.0..=16.0).contains(&search.weight),
            "the weight is out of range",
        ),
        (search.prior_kl.is_finite(), "the divergence is not finite"),
        (
            search.temperature.is_finite() && search.temperature >= 0.0,
            "the temperature is negative or not finite",
        ),
        (
            whole(&target) || (target.is_empty() && search.weight == 0.0),
            "the target does not sum to one",
        ),
        (
            whole(&search.root_wdl) && whole(&search.net_wdl),
            "a value does not sum to one",
        ),
        (sum(&priors) <= 1.0 + SUM_SLACK, "the priors sum to more than one"),
        (priors.len() <= 8, "there are more than eight priors"),
        (
            search.visits.iter().all(|&(_, visits)| visits > 0),
            "an action has no visit",
        ),
        (
            search.visits_total > 0 && visits <= u64::from(search.visits_total),
            "the visits are more than their total",
        ),
        (
            search.visits_reused <= search.visits_total,
            "more visits are reused than there are",
        ),
        (usize::from(search.symmetry) < symmetries, "the symmetry does not exist"),
        (
            distinct(search.policy_target.iter().map(|&(action, _)| action).collect())
                && distinct(search.visits.iter().map(|&(action, _)| action).collect())
                && distinct(search.net_policy_top.iter().map(|&(action, _)| action).collect()),
            "an action is listed twice",
        ),
        (
            search.policy_target.is_sorted_by_key(|&(action, _)| action)
                && search.visits.is_sorted_by_key(|&(action, _)| action),
            "a list is not in order",
        ),
    ];
    promises
        .into_iter()
        .find(|(kept, _)| !kept)
        .map(|(_, what)| what.to_owned())
}
