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
        let priors = self.children.iter().map(|child| child.prior);
        kl(target_weights(&self.children).zip(priors))
    }
}

/// The policy a network is trained towards: the share of visits of each visited action, ascending by action. When only
/// the root itself was evaluated it is the priors.
pub fn policy_target(stats: &RootStats) -> Vec<(Action, f32)> {
    let actions = stats.children.iter().map(|child| child.action);
    let target = actions
        .zip(target_weights(&stats.children))
        .filter(|&(_, weight)| weight > 0.0);
    // Kept until the game is over: no larger than it must be.
    let mut kept = Vec::with_capacity(target.clone().count());
    kept.extend(target);
    kept
}

/// Kullback-Leibler divergence of the priors from the targets in nats: the sum of `target * ln(target / prior)` over the
/// pairs of an action's target and its prior. Infinite when a prior is zero where the target is not.
pub fn kl(pairs: impl Iterator<Item = (f32, f32)>) -> f32 {
    let terms = pairs.filter(|&(target, _)| target > 0.0).map(|(target, prior)| {
        let (target, prior) = (f64::from(target), f64::from(prior));
        target * (target / prior).ln()
    });
    // Rounding may leave a hair below zero.
    terms.sum::<f64>().max(0.0) as f32
}

/// Shares of visits, or the priors when no child has any.
fn target_weights(children: &[ChildStats]) -> impl Iterator<Item = f32> + Clone {
    let visits: u64 = children.iter().map(|child| u64::from(child.visits)).sum();
    children.iter().map(move |child| match visits {
        0 => child.prior,
        visits => (f64::from(child.visits) / visits as f64) as f32,
    })
}

/// `share` to this power. To the power of one, which is the rule in self-play, it is left as it is.
fn power(share: f64, exponent: f64) -> f64 {
    if exponent == 1.0 { share } else { share.powf(exponent) }
}

impl<G: Game> Tree<G> {
    /// What the finished simulations say of the root. Takes memory for the list of children, unlike the search itself: it is
    /// for whoever keeps what a search found, once a search.
    pub fn root_stats(&self) -> RootStats {
        let root = self.arena.node(NodeId::ROOT);
        let known = |value: ValueFor| value.wdl();
        let draw = Wdl {
            win: 0.0,
            draw: 1.0,
            loss: 0.0,
        };
        RootStats {
            children: self.children().collect(),
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
        let mut children = self.children();
        let visited = self.children().any(|child| child.visits > 0);
        let weight = |child: &ChildStats| if visited { child.visits as f32 } else { child.prior };
        if temperature > 0.0 {
            let weights = children.map(|child| weight(&child));
            let greatest = f64::from(weights.clone().fold(0.0, f32::max));
            let exponent = 1.0 / f64::from(temperature);
            // Taken relative to the greatest, a power with a large exponent cannot overflow.
            let powers = weights.map(|weight| power(f64::from(weight) / greatest, exponent));
            let drawn = weighted_index(powers, rng)?;
            return self.children().nth(drawn).map(|child| child.action);
        }
        let key = |child: &ChildStats| (weight(child), child.q);
        let mut best = children.next()?;
        for child in children {
            if key(&child) > key(&best) {
                best = child;
            }
        }
        Some(best.action)
    }

    /// Every playable action of the root in ascending order.
    fn children(&self) -> impl Iterator<Item = ChildStats> + Clone {
        let seat = self.arena.node(NodeId::ROOT).seat;
        self.arena.edges(NodeId::ROOT).iter().map(move |edge| {
            let child = edge.child().map(|child| self.arena.node(child));
            let mean = child.and_then(|child| child.mean());
            ChildStats {
                action: edge.action,
                visits: child.map_or(0, |child| child.visits),
                q: mean.map_or(0.0, |mean| mean.seen_by(seat).value as f32),
                prior: edge.prior,
            }
        })
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
        assert_eq!(kl([(0.5, 1.0), (0.5, 0.0)].into_iter()), f32::INFINITY);
        assert_eq!(kl([(1.0, 0.5), (0.0, 0.5)].into_iter()), 2.0_f32.ln());
    }

    #[test]
    fn at_temperature_one_shares_are_drawn_as_the_power_would_have_them() {
        let one = std::hint::black_box(1.0);
        for greatest in 1..=200_u32 {
            for visits in 0..=greatest {
                let share = f64::from(visits) / f64::from(greatest);
                assert_eq!(power(share, 1.0), share.powf(one));
            }
        }
        assert_eq!(power(0.5, 2.0), 0.25);
    }
}
