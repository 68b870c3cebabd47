//! Turns what was played into what is recorded: search blocks and records. Decides nothing.

use tengen_games::{Action, Fingerprint, Game, Outcome, State};
use tengen_records::{ModelIndex, NET_POLICY_TOP_MAX, PlyRecord, Precision, Record, RecordId, SearchBlock};
use tengen_search::{RootStats, Wdl, kl, policy_target};

use crate::order::{GameOrder, MatchGame};
use crate::seed::game_seed;

/// What a finished search says, as recorded. Of symmetries it knows nothing: who had the root evaluated under one says so.
pub(crate) fn search_block(stats: &RootStats, weight: f32, temperature: f32, precision: Precision) -> SearchBlock {
    let policy_target = policy_target(stats);
    let visited = stats.children.iter().filter(|child| child.visits > 0);
    // Kept until the game is over: no larger than it must be.
    let mut visits = Vec::with_capacity(visited.clone().count());
    visits.extend(visited.map(|child| (child.action, child.visits)));
    SearchBlock {
        visits,
        weight,
        root_wdl: probabilities(stats.root_wdl),
        net_wdl: probabilities(stats.net_wdl),
        net_policy_top: net_policy_top(stats),
        prior_kl: prior_kl(stats, &policy_target),
        policy_target,
        visits_total: stats.visits_total,
        visits_reused: stats.visits_reused,
        temperature,
        precision,
        symmetry: 0,
    }
}

/// The largest priors, the largest first; among equals the lower action.
fn net_policy_top(stats: &RootStats) -> Vec<(Action, f32)> {
    let mut top: Vec<(Action, f32)> = Vec::with_capacity(NET_POLICY_TOP_MAX + 1);
    for child in &stats.children {
        // Children come ascending by action: an equal one that is there already stays before this one.
        let at = top.partition_point(|(_, prior)| prior.total_cmp(&child.prior).is_ge());
        if at < NET_POLICY_TOP_MAX {
            top.insert(at, (child.action, child.prior));
            top.truncate(NET_POLICY_TOP_MAX);
        }
    }
    top
}

/// Means carry rounding: a record's probabilities are never a hair outside [0, 1].
fn probabilities(wdl: Wdl) -> [f32; 3] {
    [wdl.win, wdl.draw, wdl.loss].map(|probability| probability.clamp(0.0, 1.0))
}

/// Divergence of the target from the priors. Noise can lead a search to an action whose prior underflowed to nothing;
/// the smallest number stands for it, so that the divergence stays finite.
fn prior_kl(stats: &RootStats, policy_target: &[(Action, f32)]) -> f32 {
    let prior_of = |action: Action| {
        let child = stats.children.binary_search_by_key(&action, |child| child.action);
        child.map_or(0.0, |at| stats.children[at].prior).max(f32::MIN_POSITIVE)
    };
    kl(policy_target.iter().map(|&(action, target)| (target, prior_of(action))))
}

/// A finished game of a lease.
pub(crate) struct Finished<'a, G: Game> {
    pub(crate) game: &'a G,
    pub(crate) rules: Fingerprint,
    pub(crate) order: &'a GameOrder,
    pub(crate) opening: Vec<Action>,
    pub(crate) plies: Vec<PlyRecord>,
    pub(crate) last: &'a G::State,
    pub(crate) outcome: Outcome,
    pub(crate) started_unix_ms: i64,
    pub(crate) ended_unix_ms: i64,
}

impl<G: Game> Finished<'_, G> {
    /// The record of the game.
    pub(crate) fn record(self) -> Record {
        let lease = &self.order.lease;
        let order = lease.order();
        Record {
            id: RecordId {
                lease: lease.id(),
                index: self.order.index,
            },
            run_id: lease.run().clone(),
            game_id: self.game.spec().id.clone(),
            rules_fingerprint: self.rules,
            kind: order.plan.kind(),
            models: order.models.clone(),
            players: order.plan.players().cloned(),
            seat_models: seat_models(self.order),
            settings_revision: order.settings_revision,
            seed: game_seed(order.seed, self.order.index),
            opening: self.opening,
            plies: self.plies,
            outcome: self.outcome,
            roles: self.last.roles(),
            created_unix_ms: self.ended_unix_ms,
            duration_ms: u32::try_from((self.ended_unix_ms - self.started_unix_ms).max(0)).unwrap_or(u32::MAX),
            match_pair: match_game(self.order).map_or(0, |game| game.pair),
        }
    }
}

/// The model or player in seat 0 and in seat 1.
pub(crate) fn seat_models(order: &GameOrder) -> [ModelIndex; 2] {
    match_game(order).map_or([ModelIndex(0); 2], |game| {
        let first = game.seat0_model as u8;
        [ModelIndex(first), ModelIndex(1 - first)]
    })
}

/// A game of a match as it was ordered.
fn match_game(order: &GameOrder) -> Option<&MatchGame> {
    order.lease.order().plan.match_games()?.get(order.index as usize)
}

#[cfg(test)]
mod tests {
    use tengen_search::ChildStats;

    use super::*;

    #[test]
    fn the_largest_priors_are_told_the_largest_first_and_equal_ones_by_their_action() {
        let priors = [0.05, 0.1, 0.02, 0.1, 0.2, 0.01, 0.1, 0.08, 0.07, 0.1, 0.09, 0.08];
        let child = |(index, &prior): (usize, &f32)| ChildStats {
            action: Action(index as u16 * 3),
            visits: 0,
            q: 0.0,
            prior,
        };
        let draw = Wdl {
            win: 0.0,
            draw: 1.0,
            loss: 0.0,
        };
        let stats = |children: usize| RootStats {
            children: priors.iter().enumerate().take(children).map(child).collect(),
            visits_total: 1,
            visits_reused: 0,
            root_wdl: draw,
            net_wdl: draw,
        };
        for children in 0..=priors.len() {
            let stats = stats(children);
            let mut sorted: Vec<(Action, f32)> =
                stats.children.iter().map(|child| (child.action, child.prior)).collect();
            sorted.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            sorted.truncate(NET_POLICY_TOP_MAX);
            assert_eq!(net_policy_top(&stats), sorted);
        }
    }
}
