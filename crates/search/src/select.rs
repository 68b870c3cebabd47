//! Which child a simulation goes to: PUCT with a growing exploration rate and first-play urgency.

use crate::arena::{Arena, Edge, NodeId};
use crate::settings::Settings;

/// The offset of the edge of an expanded node that the next simulation takes; ties go to the lower offset. `None`
/// only for a node without legal actions.
///
/// `score(a) = Q(a) + c(N) * P(a) * sqrt(N) / (1 + N(a))` with `c(N) = ln((N + c_base + 1) / c_base) + c_init`,
/// outstanding simulations counted as visits in N and as losses in Q (AlphaZero, Silver et al. 2018, supplementary
/// pseudocode `ucb_score`). `noise` holds the noise per edge at a noisy root and is empty everywhere else.
pub(crate) fn select(arena: &Arena, id: NodeId, settings: &Settings, noise: &[f32]) -> Option<usize> {
    if noise.is_empty() {
        return best(arena, id, settings, settings.fpu_reduction, |_, edge| edge.prior);
    }
    let fraction = settings.noise_fraction;
    best(arena, id, settings, 0.0, |offset, edge| {
        (1.0 - fraction) * edge.prior + fraction * noise[offset]
    })
}

/// One pass over the edges. Among those never tried only the one with the greatest prior can win, and its score needs
/// the prior mass of the others, so it is settled after the pass.
fn best(
    arena: &Arena,
    id: NodeId,
    settings: &Settings,
    fpu_reduction: f32,
    prior_of: impl Fn(usize, &Edge) -> f32,
) -> Option<usize> {
    let node = arena.node(id);
    let exploration = exploration(node.visits + node.outstanding, settings);
    let mut best: Option<(f32, usize)> = None;
    let mut untried: Option<(f32, usize)> = None;
    let mut tried_mass = 0.0;
    for (offset, edge) in arena.edges(id).iter().enumerate() {
        let prior = prior_of(offset, edge);
        let child = edge
            .child()
            .map(|child| arena.node(child))
            .filter(|child| child.visits + child.outstanding > 0);
        let Some(child) = child else {
            if untried.is_none_or(|(greatest, _)| prior > greatest) {
                untried = Some((prior, offset));
            }
            continue;
        };
        tried_mass += prior;
        let weight = 1.0 + (child.visits + child.outstanding) as f32;
        let score = child.value_with_virtual_losses(node.seat) + exploration * prior / weight;
        if best.is_none_or(|(greatest, _)| score > greatest) {
            best = Some((score, offset));
        }
    }
    let Some((prior, offset)) = untried else {
        return best.map(|(_, offset)| offset);
    };
    let parent = node.mean().map_or(0.0, |mean| mean.value as f32);
    let score = parent - fpu_reduction * tried_mass.sqrt() + exploration * prior;
    match best {
        Some((greatest, tried)) if greatest > score || (greatest == score && tried < offset) => Some(tried),
        _ => Some(offset),
    }
}

/// `c(N) * sqrt(N)`.
fn exploration(visits: u32, settings: &Settings) -> f32 {
    let visits = visits as f32;
    let rate = ((visits + settings.cpuct_base + 1.0) / settings.cpuct_base).ln() + settings.cpuct_init;
    rate * visits.sqrt()
}

#[cfg(test)]
mod tests {
    use tengen_games::{Action, Seat};

    use super::*;
    use crate::arena::Node;
    use crate::value::{ValueFor, Wdl};

    const DRAW: ValueFor = ValueFor::new(Seat::FIRST, 0.0, 1.0);

    /// An evaluated root of seat 0 with these policy logits; its value is a draw.
    fn root(logits: &[f32]) -> Arena {
        let mut arena = Arena::default();
        arena.reset(Node::fresh(Seat::FIRST));
        let legal: Vec<Action> = (0..logits.len() as u16).map(Action).collect();
        arena.expand(
            NodeId::ROOT,
            Wdl {
                win: 0.0,
                draw: 1.0,
                loss: 0.0,
            },
            &legal,
            logits,
        );
        arena.node_mut(NodeId::ROOT).back_up(DRAW);
        arena
    }

    /// One finished simulation through the edge, worth `value` to seat 0.
    fn visit(arena: &mut Arena, offset: usize, value: f64) {
        let child = arena.edges(NodeId::ROOT)[offset].child();
        let child = child.unwrap_or_else(|| arena.add_child(NodeId::ROOT, offset, Node::fresh(Seat::SECOND)));
        for id in [NodeId::ROOT, child] {
            arena.node_mut(id).back_up(ValueFor::new(Seat::FIRST, value, 0.0));
        }
    }

    fn selected(arena: &Arena, settings: &Settings, noise: &[f32]) -> usize {
        select(arena, NodeId::ROOT, settings, noise).unwrap()
    }

    #[test]
    fn exploration_rate_grows_with_the_logarithm_of_visits() {
        let settings = Settings::default();
        let rate = |visits: u32| exploration(visits, &settings) / (visits as f32).sqrt();
        assert!((rate(1) - 1.25).abs() < 1e-3);
        assert!((rate(19_651) - (2.0_f32.ln() + 1.25)).abs() < 1e-3);
    }

    #[test]
    fn ties_go_to_the_lower_action() {
        let settings = Settings {
            fpu_reduction: 0.0,
            ..Settings::default()
        };
        let mut arena = root(&[0.0, 0.0, 0.0]);
        assert_eq!(selected(&arena, &settings, &[]), 0);
        visit(&mut arena, 1, 0.0);
        assert_eq!(selected(&arena, &settings, &[]), 0);
        visit(&mut arena, 0, 0.0);
        visit(&mut arena, 2, 0.0);
        assert_eq!(selected(&arena, &settings, &[]), 0);
    }

    #[test]
    fn the_reduction_keeps_an_unlikely_action_untried_for_longer() {
        let mut arena = root(&[0.0, -4.0]);
        visit(&mut arena, 0, 0.0);
        let [reduced, full] = [2.0, 0.0].map(|fpu_reduction| {
            let settings = Settings {
                fpu_reduction,
                ..Settings::default()
            };
            let mut arena = arena.clone();
            (0..).find(|_| {
                let offset = selected(&arena, &settings, &[]);
                visit(&mut arena, offset, 0.0);
                offset == 1
            })
        });
        assert!(reduced > full, "tried after {reduced:?} and {full:?} more visits");
    }

    #[test]
    fn a_virtual_loss_sends_the_next_simulation_elsewhere() {
        let settings = Settings::default();
        let mut arena = root(&[1.0, 0.0]);
        visit(&mut arena, 0, 0.5);
        visit(&mut arena, 1, 0.0);
        assert_eq!(selected(&arena, &settings, &[]), 0);
        let child = arena.edges(NodeId::ROOT)[0].child().unwrap();
        arena.node_mut(child).outstanding += 1;
        assert_eq!(selected(&arena, &settings, &[]), 1);
    }

    #[test]
    fn noise_is_mixed_in_by_its_fraction() {
        let arena = root(&[0.1, 0.0, 0.0]);
        let settings = Settings {
            noise_fraction: 0.25,
            ..Settings::default()
        };
        assert_eq!(selected(&arena, &settings, &[]), 0);
        assert_eq!(selected(&arena, &settings, &[0.0, 0.0, 1.0]), 2);
        let settings = Settings {
            noise_fraction: 0.0,
            ..settings
        };
        assert_eq!(selected(&arena, &settings, &[0.0, 0.0, 1.0]), 0);
    }
}
