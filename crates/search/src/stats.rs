//! What a search found at its root: statistics, the action to play, and the target a network is trained towards.

use rand_xoshiro::Xoshiro256PlusPlus;
use tengen_games::{Action, Game};

use crate::arena::{Kind, NodeId};
use crate::noise::weighted_index;
use crate::tree::Tree;
use crate::value::{ValueFor, Wdl};

/// One playable action of the root.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChildStats {
    /// The action.
    pub action: Action,
    /// Finished simulations that began with it.
    pub visits: u32,
    /// Their mean value in `[-1, 1]` as the seat acting at the root sees it; 0 without visits.
    pub q: f32,
    /// The network's probability among the playable actions, before noise.
    pub prior: f32,
}

/// What is known at the root. All values are the acting seat's.
#[derive(Clone, Debug, PartialEq)]
pub struct RootStats {
    /// Every playable action in ascending order; empty before the root's evaluation and after the end of the game.
    pub children: Vec<ChildStats>,
    /// Finished simulations of the root; the first is its own evaluation, the others went through children.
    pub visits_total: u32,
    /// Those that were there when the search began.
    pub visits_reused: u32,
    /// Mean over the root's simulations; a plain draw before the first.
    pub root_wdl: Wdl,
    /// The network's evaluation of the root (the result itself after the end); a plain draw before it arrives.
    pub net_wdl: Wdl,
}

impl RootStats {
    /// Divergence of the policy target from the priors, in nats: what the search changed.
    pub fn prior_kl(&self) -> f32 {
        let weights = target_weights(&self.children);
        let priors: Vec<f32> = self.children.iter().map(|child| child.prior).collect();
        kl(&weights, &priors)
    }
}

/// The policy a network is trained towards: the share of visits of each visited action, ascending by action. When only
/// the root itself was evaluated it is the priors.
pub fn policy_target(stats: &RootStats) -> Vec<(Action, f32)> {
    let weights = target_weights(&stats.children);
    let actions = stats.children.iter().map(|child| child.action);
    actions.zip(weights).filter(|&(_, weight)| weight > 0.0).collect()
}

/// Kullback-Leibler divergence of `prior` from `target` in nats: the sum of `target * ln(target / prior)`. Both list
/// the same actions in the same order. Infinite when a prior is zero where the target is not.
pub fn kl(target: &[f32], prior: &[f32]) -> f32 {
    let terms = target
        .iter()
        .zip(prior)
        .filter(|&(&target, _)| target > 0.0)
        .map(|(&target, &prior)| {
            let (target, prior) = (f64::from(target), f64::from(prior));
            target * (target / prior).ln()
        });
    // Rounding may leave a hair below zero.
    terms.sum::<f64>().max(0.0) as f32
}

/// Shares of visits, or the priors when no child has any.
fn target_weights(children: &[ChildStats]) -> Vec<f32> {
    let visits: u64 = children.iter().map(|child| u64::from(child.visits)).sum();
    if visits == 0 {
        return children.iter().map(|child| child.prior).collect();
    }
    children
        .iter()
        .map(|child| (f64::from(child.visits) / visits as f64) as f32)
        .collect()
}

impl<G: Game> Tree<G> {
    /// What the finished simulations say of the root.
    pub fn root_stats(&self) -> RootStats {
        let root = self.arena.node(NodeId::ROOT);
        let known = |value: ValueFor| value.wdl();
        let draw = Wdl {
            win: 0.0,
            draw: 1.0,
            loss: 0.0,
        };
        RootStats {
            children: self.child_stats(),
            visits_total: root.visits,
            visits_reused: self.visits_reused,
            root_wdl: root.mean().map_or(draw, known),
            net_wdl: if root.kind == Kind::Fresh {
                draw
            } else {
                known(root.own())
            },
        }
    }

    /// The action to play, or `None` when the root is not evaluated or the game is over.
    ///
    /// At temperature 0 it is the most visited one (ties: higher q, then lower index); above, an action is drawn with
    /// weight `visits^(1 / temperature)`. When no action has a visit, the priors stand in for the visits.
    pub fn choose(&self, temperature: f32, rng: &mut Xoshiro256PlusPlus) -> Option<Action> {
        let children = self.child_stats();
        let visited = children.iter().any(|child| child.visits > 0);
        let weight = |child: &ChildStats| if visited { child.visits as f32 } else { child.prior };
        if temperature > 0.0 {
            let greatest = f64::from(children.iter().map(weight).fold(0.0, f32::max));
            // Taken relative to the greatest, a power with a large exponent cannot overflow.
            let powers = children
                .iter()
                .map(|child| (f64::from(weight(child)) / greatest).powf(1.0 / f64::from(temperature)));
            let powers: Vec<f64> = powers.collect();
            return weighted_index(&powers, rng).map(|index| children[index].action);
        }
        let key = |child: &ChildStats| (weight(child), child.q);
        let mut best = children.first()?;
        for child in &children[1..] {
            if key(child) > key(best) {
                best = child;
            }
        }
        Some(best.action)
    }

    fn child_stats(&self) -> Vec<ChildStats> {
        let seat = self.arena.node(NodeId::ROOT).seat;
        let stats = self.arena.edges(NodeId::ROOT).iter().map(|edge| {
            let child = edge.child().map(|child| self.arena.node(child));
            let mean = child.and_then(|child| child.mean());
            ChildStats {
                action: edge.action,
                visits: child.map_or(0, |child| child.visits),
                q: mean.map_or(0.0, |mean| mean.seen_by(seat).value as f32),
                prior: edge.prior,
            }
        });
        stats.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats(visits: &[u32]) -> RootStats {
        let children = visits.iter().enumerate().map(|(index, &visits)| ChildStats {
            action: Action(index as u16 * 10),
            visits,
            q: 0.0,
            prior: 1.0 / 4.0,
        });
        let draw = Wdl {
            win: 0.0,
            draw: 1.0,
            loss: 0.0,
        };
        RootStats {
            children: children.collect(),
            visits_total: 1,
            visits_reused: 0,
            root_wdl: draw,
            net_wdl: draw,
        }
    }

    #[test]
    fn the_target_is_the_share_of_visits() {
        assert_eq!(
            policy_target(&stats(&[3, 0, 1, 0])),
            [(Action(0), 0.75), (Action(20), 0.25)]
        );
        assert!((stats(&[3, 0, 1, 0]).prior_kl() - (0.75 * 3.0_f32.ln())).abs() < 1e-6);
    }

    #[test]
    fn without_visits_the_target_is_the_priors() {
        assert_eq!(policy_target(&stats(&[0, 0, 0, 0])).len(), 4);
        assert_eq!(stats(&[0, 0, 0, 0]).prior_kl(), 0.0);
    }

    #[test]
    fn divergence_from_an_impossible_prior_is_infinite() {
        assert_eq!(kl(&[0.5, 0.5], &[1.0, 0.0]), f32::INFINITY);
        assert_eq!(kl(&[1.0, 0.0], &[0.5, 0.5]), 2.0_f32.ln());
    }
}
