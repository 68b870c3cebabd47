//! The store of a tree: nodes for visited positions and one contiguous range of edges per expanded node.
//!
//! A node exists only for a position that was reached; the many actions never tried are 12-byte edges. What is looked at in
//! every child of every position on a walk, its [`Standing`], lies apart from the nodes: eight children to a cache line.
//! Indices are 32 bits wide. The arena knows nothing of how a child is selected.

use std::num::NonZeroU32;
use std::ops::Range;

use tengen_games::{Action, Seat, State};

use crate::value::{ValueFor, Wdl};

/// Index of a node in its arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeId(u32);

impl NodeId {
    /// The root is always the first node, hence never a child.
    pub(crate) const ROOT: NodeId = NodeId(0);

    fn from_index(index: usize) -> NodeId {
        NodeId(index_u32(index))
    }

    fn index(self) -> usize {
        self.0 as usize
    }
}

/// What is known of a node's position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Not evaluated yet.
    Fresh,
    /// Evaluated; its edges are its playable actions.
    Expanded,
    /// The game is over: never evaluated, never expanded.
    Terminal,
}

/// One position of the tree. All sums are from the view of the seat that acts in it.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    value_sum: f64,
    draw_sum: f64,
    own_value: f32,
    own_draw: f32,
    edges_first: u32,
    /// Finished simulations through this node.
    pub(crate) visits: u32,
    edges_len: u16,
    pub(crate) seat: Seat,
    /// Who acted in the position before; at a root that was never a child, the root's own seat.
    chosen_by: Seat,
    pub(crate) kind: Kind,
}

impl Node {
    /// An unvisited node for `state`.
    pub(crate) fn at(state: &impl State) -> Node {
        let mut node = Node::fresh(state.seat());
        if let Some(outcome) = state.outcome() {
            node.kind = Kind::Terminal;
            node.set_own(ValueFor::exact(node.seat, outcome));
        }
        node
    }

    /// An unvisited node for a position that is not over, in which `seat` acts.
    pub(crate) fn fresh(seat: Seat) -> Node {
        Node {
            value_sum: 0.0,
            draw_sum: 0.0,
            own_value: 0.0,
            own_draw: 0.0,
            edges_first: 0,
            visits: 0,
            edges_len: 0,
            seat,
            chosen_by: seat,
            kind: Kind::Fresh,
        }
    }

    /// The position's own value: the network's, or the exact one of a finished game.
    pub(crate) fn own(&self) -> ValueFor {
        ValueFor::new(self.seat, f64::from(self.own_value), f64::from(self.own_draw))
    }

    fn set_own(&mut self, value: ValueFor) {
        let value = value.seen_by(self.seat);
        self.own_value = value.value as f32;
        self.own_draw = value.draw as f32;
    }

    /// Counts one finished simulation that ended with `value`.
    fn back_up(&mut self, value: ValueFor) {
        let value = value.seen_by(self.seat);
        self.visits += 1;
        self.value_sum += value.value;
        self.draw_sum += value.draw;
    }

    /// Mean over the finished simulations; `None` without any.
    pub(crate) fn mean(&self) -> Option<ValueFor> {
        let visits = f64::from(self.visits);
        (self.visits > 0).then(|| ValueFor::new(self.seat, self.value_sum / visits, self.draw_sum / visits))
    }

    fn edges(&self) -> Range<usize> {
        let first = self.edges_first as usize;
        first..first + usize::from(self.edges_len)
    }
}

/// What a choice among siblings looks at.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Standing {
    /// Simulations through the node, finished or outstanding: those whose leaf is still being evaluated.
    pub(crate) started: u32,
    /// Their mean value in `[-1, 1]` as the seat sees it that chose the node; every outstanding one counts as one that this
    /// seat lost. Of no meaning without simulations.
    pub(crate) q: f32,
}

/// A playable action of an expanded node.
#[derive(Clone, Debug)]
pub(crate) struct Edge {
    /// The network's probability of the action among the playable ones, before noise.
    pub(crate) prior: f32,
    child: Option<NonZeroU32>,
    pub(crate) action: Action,
}

impl Edge {
    /// The node behind the action, if it was ever reached.
    pub(crate) fn child(&self) -> Option<NodeId> {
        self.child.map(|index| NodeId(index.get()))
    }
}

/// Nodes and edges of one tree.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arena {
    nodes: Vec<Node>,
    /// One for each node.
    standings: Vec<Standing>,
    edges: Vec<Edge>,
}

impl Arena {
    /// Forgets everything but the memory and starts with this root.
    pub(crate) fn reset(&mut self, root: Node) {
        self.nodes.clear();
        self.standings.clear();
        self.edges.clear();
        self.nodes.push(root);
        self.standings.push(Standing::default());
    }

    pub(crate) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    pub(crate) fn standing(&self, id: NodeId) -> Standing {
        self.standings[id.index()]
    }

    /// Simulations through the node whose leaf is still being evaluated.
    pub(crate) fn outstanding(&self, id: NodeId) -> u32 {
        self.standing(id).started - self.node(id).visits
    }

    /// The playable actions of an expanded node, ascending; empty for any other node.
    pub(crate) fn edges(&self, id: NodeId) -> &[Edge] {
        &self.edges[self.node(id).edges()]
    }

    /// The node behind `action`, if it was ever reached.
    pub(crate) fn child(&self, id: NodeId, action: Action) -> Option<NodeId> {
        let edges = self.edges(id);
        let offset = edges.binary_search_by_key(&action, |edge| edge.action).ok()?;
        edges[offset].child()
    }

    /// Puts `node` behind the edge number `offset` of `parent`.
    pub(crate) fn add_child(&mut self, parent: NodeId, offset: usize, node: Node) -> NodeId {
        let id = NodeId::from_index(self.nodes.len());
        let chosen_by = self.node(parent).seat;
        self.nodes.push(Node { chosen_by, ..node });
        self.standings.push(Standing::default());
        let edge = self.node(parent).edges().start + offset;
        self.edges[edge].child = NonZeroU32::new(id.0);
        id
    }

    /// Gives a fresh node its value and its playable actions, with the softmax of the logits over them as priors.
    ///
    /// # Errors
    /// The first playable action whose logit is not finite, with that logit. Nothing has changed then.
    pub(crate) fn expand(
        &mut self,
        id: NodeId,
        wdl: Wdl,
        playable: &[Action],
        policy_logits: &[f32],
    ) -> Result<(), (Action, f32)> {
        let logit_of = |action: Action| policy_logits[action.index()];
        let mut greatest = f32::NEG_INFINITY;
        for &action in playable {
            let logit = logit_of(action);
            if !logit.is_finite() {
                return Err((action, logit));
            }
            greatest = greatest.max(logit);
        }
        let first = self.edges.len();
        let mut sum: f32 = 0.0;
        self.edges.extend(playable.iter().map(|&action| {
            let prior = (logit_of(action) - greatest).exp();
            sum += prior;
            Edge {
                prior,
                child: None,
                action,
            }
        }));
        for edge in &mut self.edges[first..] {
            edge.prior /= sum;
        }
        let node = &mut self.nodes[id.index()];
        node.kind = Kind::Expanded;
        node.set_own(ValueFor::predicted(node.seat, wdl));
        node.edges_first = index_u32(first);
        node.edges_len =
            u16::try_from(playable.len()).expect("actions are 16-bit numbers and playable ones are distinct");
        Ok(())
    }

    /// Counts a simulation along `path` whose leaf waits for its evaluation.
    pub(crate) fn start(&mut self, path: &[NodeId]) {
        for &id in path {
            self.standings[id.index()].started += 1;
            self.settle(id);
        }
    }

    /// Takes back a simulation that was started along `path`.
    pub(crate) fn give_up(&mut self, path: &[NodeId]) {
        for &id in path {
            self.standings[id.index()].started -= 1;
            self.settle(id);
        }
    }

    /// Ends a simulation that was started along `path` with `value`.
    pub(crate) fn finish(&mut self, path: &[NodeId], value: ValueFor) {
        for &id in path {
            self.nodes[id.index()].back_up(value);
            self.settle(id);
        }
    }

    /// Counts a simulation along `path` that ended at once, with `value`.
    pub(crate) fn back_up(&mut self, path: &[NodeId], value: ValueFor) {
        for &id in path {
            self.standings[id.index()].started += 1;
            self.nodes[id.index()].back_up(value);
            self.settle(id);
        }
    }

    /// Works the node's standing out anew, after its counts or its sums have changed.
    fn settle(&mut self, id: NodeId) {
        let node = &self.nodes[id.index()];
        let standing = &mut self.standings[id.index()];
        let outstanding = standing.started - node.visits;
        let sum = ValueFor::new(node.seat, node.value_sum, node.draw_sum).seen_by(node.chosen_by);
        // Without simulations there is nothing to divide.
        let started = f64::from(standing.started.max(1));
        standing.q = ((sum.value - f64::from(outstanding)) / started) as f32;
    }

    /// Makes `root` the root and drops everything that is not below it. `spare` gives its memory for the copy and
    /// takes the old memory for the next one.
    pub(crate) fn keep_below(&mut self, root: NodeId, spare: &mut Arena) {
        spare.reset(self.node(root).clone());
        spare.standings[NodeId::ROOT.index()] = self.standing(root);
        let mut next = 0;
        // Breadth first: the copied nodes are their own queue, and until a node's turn comes its range still points
        // into the old edges.
        while next < spare.nodes.len() {
            let old_range = spare.nodes[next].edges();
            let first = spare.edges.len();
            spare.edges.extend_from_slice(&self.edges[old_range]);
            spare.nodes[next].edges_first = index_u32(first);
            for edge in &mut spare.edges[first..] {
                if let Some(child) = edge.child() {
                    edge.child = NonZeroU32::new(index_u32(spare.nodes.len()));
                    spare.nodes.push(self.node(child).clone());
                    spare.standings.push(self.standing(child));
                }
            }
            next += 1;
        }
        std::mem::swap(self, spare);
    }
}

fn index_u32(index: usize) -> u32 {
    u32::try_from(index).expect("SIMULATIONS_MAX keeps arenas below 2^32 entries")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_and_edges_stay_small() {
        assert_eq!(size_of::<Node>(), 40);
        assert_eq!(size_of::<Standing>(), 8);
        assert_eq!(size_of::<Edge>(), 12);
    }

    #[test]
    fn a_standing_follows_every_simulation_and_counts_the_outstanding_ones_as_lost() {
        let draw = Wdl {
            win: 0.0,
            draw: 1.0,
            loss: 0.0,
        };
        let mut arena = Arena::default();
        arena.reset(Node::fresh(Seat::FIRST));
        arena.expand(NodeId::ROOT, draw, &[Action(0)], &[0.0]).unwrap();
        let child = arena.add_child(NodeId::ROOT, 0, Node::fresh(Seat::SECOND));
        let path = [NodeId::ROOT, child];
        // The same sums beside it, as the first seat sees them, which chose the child.
        let (mut sum, mut started, mut visits) = (0.0_f64, 0_u32, 0_u32);
        for (n, event) in "start finish start start give-up finish back-up start back-up start finish give-up"
            .split(' ')
            .enumerate()
        {
            let value = (n as f64 * 0.7).sin();
            let seen = ValueFor::new(Seat::FIRST, value, 0.0);
            match event {
                "start" => arena.start(&path),
                "give-up" => arena.give_up(&path),
                "finish" => arena.finish(&path, seen),
                _ => arena.back_up(&path, seen),
            }
            match event {
                "start" | "back-up" => started += 1,
                "give-up" => started -= 1,
                _ => {}
            }
            if ["finish", "back-up"].contains(&event) {
                (sum, visits) = (sum + value, visits + 1);
            }
            let outstanding = started - visits;
            let q = ((sum - f64::from(outstanding)) / f64::from(started)) as f32;
            assert_eq!(arena.standing(child), Standing { started, q }, "event {n}");
            assert_eq!(
                (arena.node(child).visits, arena.outstanding(child)),
                (visits, outstanding)
            );
        }

        // A kept child stands as it stood.
        let before = [NodeId::ROOT, child].map(|id| arena.standing(id));
        arena.keep_below(NodeId::ROOT, &mut Arena::default());
        let kept = arena.child(NodeId::ROOT, Action(0)).unwrap();
        assert_eq!([NodeId::ROOT, kept].map(|id| arena.standing(id)), before);
    }
}
