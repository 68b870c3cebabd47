//! The store of a tree: nodes for visited positions and one contiguous range of edges per expanded node.
//!
//! A node exists only for a position that was reached; the many actions never tried are 12-byte edges. Indices are 32
//! bits wide. The arena knows nothing of how a child is selected.

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
    /// Simulations through this node whose leaf is still being evaluated.
    pub(crate) outstanding: u32,
    edges_len: u16,
    pub(crate) seat: Seat,
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
            outstanding: 0,
            edges_len: 0,
            seat,
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
    pub(crate) fn back_up(&mut self, value: ValueFor) {
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

    /// Mean value as `seat` sees it, when every outstanding simulation counts as one that `seat` lost. Only for
    /// nodes with a finished or outstanding simulation.
    pub(crate) fn value_with_virtual_losses(&self, seat: Seat) -> f32 {
        let sum = ValueFor::new(self.seat, self.value_sum, self.draw_sum)
            .seen_by(seat)
            .value;
        ((sum - f64::from(self.outstanding)) / f64::from(self.visits + self.outstanding)) as f32
    }

    fn edges(&self) -> Range<usize> {
        let first = self.edges_first as usize;
        first..first + usize::from(self.edges_len)
    }
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
    edges: Vec<Edge>,
}

impl Arena {
    /// Forgets everything but the memory and starts with this root.
    pub(crate) fn reset(&mut self, root: Node) {
        self.nodes.clear();
        self.edges.clear();
        self.nodes.push(root);
    }

    pub(crate) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    pub(crate) fn node_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[id.0 as usize]
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
        self.nodes.push(node);
        let edge = self.node(parent).edges().start + offset;
        self.edges[edge].child = NonZeroU32::new(id.0);
        id
    }

    /// Gives a fresh node its value and its playable actions, with the softmax of the logits over them as priors.
    pub(crate) fn expand(&mut self, id: NodeId, wdl: Wdl, playable: &[Action], policy_logits: &[f32]) {
        let first = self.edges.len();
        let logit = |action: Action| policy_logits[action.index()];
        let greatest = playable
            .iter()
            .map(|&action| logit(action))
            .fold(f32::NEG_INFINITY, f32::max);
        let edges = playable.iter().map(|&action| {
            let prior = (logit(action) - greatest).exp();
            Edge {
                prior,
                child: None,
                action,
            }
        });
        self.edges.extend(edges);
        let sum: f32 = self.edges[first..].iter().map(|edge| edge.prior).sum();
        for edge in &mut self.edges[first..] {
            edge.prior /= sum;
        }
        let node = self.node_mut(id);
        node.kind = Kind::Expanded;
        node.set_own(ValueFor::predicted(node.seat, wdl));
        node.edges_first = index_u32(first);
        node.edges_len =
            u16::try_from(playable.len()).expect("actions are 16-bit numbers and playable ones are distinct");
    }

    /// Makes `root` the root and drops everything that is not below it. `spare` gives its memory for the copy and
    /// takes the old memory for the next one.
    pub(crate) fn keep_below(&mut self, root: NodeId, spare: &mut Arena) {
        spare.reset(self.node(root).clone());
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
        assert_eq!(size_of::<Edge>(), 12);
    }
}
