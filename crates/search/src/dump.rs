//! A tree as text, for people and for golden files, and as a list of its nodes, for those who look into a search.

use std::fmt::Write;

use tengen_games::{Action, Game, Seat};

use crate::arena::{Kind, NodeId};
use crate::tree::Tree;

/// One position that a search reached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NodeStats {
    /// The position it was reached from, as an index into the same list, and the action; `None` for the root.
    pub from: Option<(u32, Action)>,
    /// The network's probability of that action among the playable ones, before noise; 1 for the root.
    pub prior: f32,
    /// Who acts here; after the end of a game, who would.
    pub seat: Seat,
    /// Finished simulations through it.
    pub visits: u32,
    /// Their mean value in `[-1, 1]` as `seat` sees it; 0 without visits.
    pub q: f32,
    /// Their mean probability of a draw.
    pub draw: f32,
    /// What the network says of it, or the result itself, in `[-1, 1]` as `seat` sees it.
    pub own: f32,
    /// Whether the game is over here.
    pub terminal: bool,
}

impl<G: Game> Tree<G> {
    /// Every position that was reached, each after the one it was reached from, children in action order.
    pub fn nodes(&self) -> Vec<NodeStats> {
        let mut found = Vec::new();
        let mut open = vec![(NodeId::ROOT, None, 1.0)];
        while let Some((id, from, prior)) = open.pop() {
            let node = self.arena.node(id);
            let mean = node.mean();
            let index = u32::try_from(found.len()).expect("the arena counts its nodes in 32 bits");
            found.push(NodeStats {
                from,
                prior,
                seat: node.seat,
                visits: node.visits,
                q: mean.map_or(0.0, |mean| mean.value as f32),
                draw: mean.map_or(0.0, |mean| mean.draw as f32),
                own: node.own().value as f32,
                terminal: node.kind == Kind::Terminal,
            });
            // The last one pushed comes next.
            for edge in self.arena.edges(id).iter().rev() {
                if let Some(child) = edge.child() {
                    open.push((child, Some((index, edge.action)), edge.prior));
                }
            }
        }
        found
    }

    /// The visited part of the tree down to `depth_max` plies below the root, one line a position, children indented
    /// below their parent in action order.
    ///
    /// `q`, `draw` and `own` (the position's own evaluation) are the acting seat's of **that** position; `prior` is the
    /// action's before noise.
    pub fn dump(&self, depth_max: usize) -> String {
        let mut out = String::from("root");
        self.dump_node(NodeId::ROOT, 0, depth_max, &mut out);
        out
    }

    /// Ends the begun line and adds the lines of the children.
    fn dump_node(&self, id: NodeId, depth: usize, depth_max: usize, out: &mut String) {
        let node = self.arena.node(id);
        let kind = match node.kind {
            Kind::Fresh => " fresh",
            Kind::Terminal => " terminal",
            Kind::Expanded => "",
        };
        let mean = node.mean().unwrap_or(node.own());
        let numbers = [mean.value, mean.draw, node.own().value].map(steady);
        let [q, draw, own] = numbers;
        let line = format!(
            " {} visits {} q {q:+.4} draw {draw:.4} own {own:+.4}{kind}",
            node.seat, node.visits
        );
        out.push_str(&line);
        let outstanding = self.arena.outstanding(id);
        if outstanding > 0 {
            // Writing to a string cannot fail.
            let _ = write!(out, " outstanding {outstanding}");
        }
        out.push('\n');
        if depth == depth_max {
            return;
        }
        for edge in self.arena.edges(id) {
            let Some(child) = edge.child() else { continue };
            let indent = "  ".repeat(depth + 1);
            let _ = write!(
                out,
                "{indent}{} prior {:.4}",
                self.game.action_text(edge.action),
                edge.prior
            );
            self.dump_node(child, depth + 1, depth_max, out);
        }
    }
}

/// Rounds away the sign of a value that prints as zero.
fn steady(value: f64) -> f64 {
    (value * 1e4).round() / 1e4 + 0.0
}
