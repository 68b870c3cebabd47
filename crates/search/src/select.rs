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
    let exploration = exploration(arena.standing(id).started, settings);
    let mut tried = Greatest::NONE;
    let mut untried = Greatest::NONE;
    let mut tried_mass: f32 = 0.0;
    for (offset, edge) in arena.edges(id).iter().enumerate() {
        let prior = prior_of(offset, edge);
        let child = edge.child().map(|child| arena.standing(child));
        match child.filter(|child| child.started > 0) {
            Some(child) => {
                tried_mass += prior;
                tried.offer(child.q + exploration * prior / (1.0 + child.started as f32), offset);
            }
            None => untried.offer(prior, offset),
        }
    }
    let Some(first_play) = untried.offset() else {
        return tried.offset();
    };
    let parent = arena.node(id).mean().map_or(0.0, |mean| mean.value as f32);
    let urgency = parent - fpu_reduction * tried_mass.sqrt() + exploration * untried.number;
    let tried_wins = tried.number > urgency || (tried.number == urgency && tried.offset < first_play);
    Some(if tried_wins { tried.offset } else { first_play })
}

/// The greatest of some finite numbers, and where it was; among equals the first.
struct Greatest {
    number: f32,
    offset: usize,
}

impl Greatest {
    /// Less than every finite number.
    const NONE: Greatest = Greatest {
        number: f32::NEG_INFINITY,
        offset: usize::MAX,
    };

    fn offer(&mut self, number: f32, offset: usize) {
        if number > self.number {
            *self = Greatest { number, offset };
        }
    }

    /// Where it was; `None` when there was no number.
    fn offset(&self) -> Option<usize> {
        (self.number > f32::NEG_INFINITY).then_some(self.offset)
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
        arena
            .expand(
                NodeId::ROOT,
                Wdl {
                    win: 0.0,
                    draw: 1.0,
                    loss: 0.0,
                },
                &legal,
                logits,
            )
            .unwrap();
        arena.back_up(&[NodeId::ROOT], DRAW);
        arena
    }

    /// One finished simulation through the edge, worth `value` to seat 0.
    fn visit(arena: &mut Arena, offset: usize, value: f64) {
        let child = arena.edges(NodeId::ROOT)[offset].child();
        let child = child.unwrap_or_else(|| arena.add_child(NodeId::ROOT, offset, Node::fresh(Seat::SECOND)));
        arena.back_up(&[NodeId::ROOT, child], ValueFor::new(Seat::FIRST, value, 0.0));
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
        arena.start(&[child]);
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
