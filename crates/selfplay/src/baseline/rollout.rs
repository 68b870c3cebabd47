//! Monte Carlo tree search with random playouts: UCB1 in the tree (Auer, Cesa-Bianchi and Fischer 2002; Kocsis and
//! Szepesvári 2006), uniformly random play below it, one node added a playout. It keeps nothing from ply to ply.

use rand_xoshiro::Xoshiro256PlusPlus;
use tengen_games::{Action, Outcome, Seat, State};

use super::{random, shuffled};

/// Weight of the exploration term beside points in [0, 1]: with it the term is UCB1's own `sqrt(2 ln N / n)`.
pub(crate) const UCB1_C: f64 = std::f64::consts::SQRT_2;

/// A position in the tree.
struct Node {
    /// Who acts here.
    seat: Seat,
    /// Actions that have not been tried, in random order.
    untried: Vec<Action>,
    children: Vec<(Action, usize)>,
    visits: u32,
    /// Points of [`Seat::FIRST`] in the playouts through here: a win is 1, a draw one half.
    points: f64,
}

impl Node {
    fn new<S: State>(state: &S, rng: &mut Xoshiro256PlusPlus) -> Node {
        Node {
            seat: state.seat(),
            // Empty after the end.
            untried: shuffled(state, rng),
            children: Vec::new(),
            visits: 0,
            points: 0.0,
        }
    }

    /// Points a playout, as `seat` sees them.
    fn mean_for(&self, seat: Seat) -> f64 {
        let of_first = self.points / f64::from(self.visits.max(1));
        if seat == Seat::FIRST { of_first } else { 1.0 - of_first }
    }
}

/// The action with the most of `simulations` playouts (ties: the better mean, then the lower index); `None` after the end.
pub(crate) fn rollout<S: State>(state: &S, simulations: u32, rng: &mut Xoshiro256PlusPlus) -> Option<Action> {
    let mut nodes = vec![Node::new(state, rng)];
    let mut scratch = Vec::new();
    for _ in 0..simulations {
        simulate(state, &mut nodes, &mut scratch, rng)?;
    }
    let seat = state.seat();
    let best = nodes[0].children.iter().max_by(|(one, a), (other, b)| {
        let (a, b) = (&nodes[*a], &nodes[*b]);
        let by_visits = a.visits.cmp(&b.visits);
        by_visits
            .then(a.mean_for(seat).total_cmp(&b.mean_for(seat)))
            .then(other.cmp(one))
    });
    best.map(|&(action, _)| action)
}

/// One playout: down the tree, one step out of it, then at random to the end. `None` when an action is refused, which
/// none of them is.
fn simulate<S: State>(
    root: &S,
    nodes: &mut Vec<Node>,
    scratch: &mut Vec<Action>,
    rng: &mut Xoshiro256PlusPlus,
) -> Option<()> {
    let mut state = root.clone();
    let mut path = vec![0];
    let mut at = 0;
    while state.outcome().is_none() {
        if let Some(action) = nodes[at].untried.pop() {
            state.apply(action).ok()?;
            nodes.push(Node::new(&state, rng));
            let child = nodes.len() - 1;
            nodes[at].children.push((action, child));
            path.push(child);
            break;
        }
        let (action, child) = most_promising(nodes, at)?;
        state.apply(action).ok()?;
        path.push(child);
        at = child;
    }
    let outcome = play_out(state, scratch, rng)?;
    let points = f64::midpoint(f64::from(outcome.value_for(Seat::FIRST)), 1.0);
    for node in path {
        nodes[node].visits += 1;
        nodes[node].points += points;
    }
    Some(())
}

/// The child with the greatest upper confidence bound for the seat that acts at `at`.
fn most_promising(nodes: &[Node], at: usize) -> Option<(Action, usize)> {
    let node = &nodes[at];
    let spread = f64::from(node.visits.max(1)).ln();
    let bound = |&(_, child): &(Action, usize)| {
        let child = &nodes[child];
        child.mean_for(node.seat) + UCB1_C * (spread / f64::from(child.visits.max(1))).sqrt()
    };
    node.children
        .iter()
        .copied()
        .max_by(|one, other| bound(one).total_cmp(&bound(other)))
}

fn play_out<S: State>(mut state: S, scratch: &mut Vec<Action>, rng: &mut Xoshiro256PlusPlus) -> Option<Outcome> {
    loop {
        if let Some(outcome) = state.outcome() {
            return Some(outcome);
        }
        let action = random(&state, rng, scratch)?;
        state.apply(action).ok()?;
    }
}

#[cfg(test)]
mod tests {
    use tengen_games::{AnyGame, Game, GameVisitor};

    use super::*;
    use crate::seed::game_rng;

    /// What a player of `simulations` plays after these cells of tic-tac-toe, once for each of 20 seeds.
    fn choices(cells: &[u16], simulations: u32) -> Vec<u16> {
        struct Visitor<'a>(&'a [u16], u32);
        impl GameVisitor for Visitor<'_> {
            type Output = Vec<u16>;
            fn visit<G: Game>(self, game: G) -> Vec<u16> {
                let mut state = game.start();
                for &cell in self.0 {
                    state.apply(Action(cell)).unwrap();
                }
                let choose = |seed| rollout(&state, self.1, &mut game_rng(seed)).unwrap().0;
                (0..20).map(choose).collect()
            }
        }
        AnyGame::parse("tic-tac-toe")
            .unwrap()
            .visit(Visitor(cells, simulations))
    }

    #[test]
    fn wins_and_threats_are_seen_for_both_seats() {
        // The first seat wins at 2; the second one must block there.
        assert!(choices(&[0, 3, 1, 4], 400).iter().all(|&cell| cell == 2));
        assert!(choices(&[0, 4, 1], 400).iter().all(|&cell| cell == 2));
        // The second seat wins at 5.
        assert!(choices(&[0, 3, 1, 4, 8], 400).iter().all(|&cell| cell == 5));
    }

    #[test]
    fn a_choice_follows_from_the_seed() {
        assert_eq!(choices(&[4], 50), choices(&[4], 50));
        assert!(
            choices(&[4], 1).iter().any(|&cell| cell != choices(&[4], 1)[0]),
            "one playout is a random move"
        );
    }
}
