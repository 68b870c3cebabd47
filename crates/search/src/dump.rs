//! A tree as text, for people and for golden files.

use std::fmt::Write;

use tengen_games::Game;

use crate::arena::{Kind, NodeId};
use crate::tree::Tree;

impl<G: Game> Tree<G> {
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
        if node.outstanding > 0 {
            // Writing to a string cannot fail.
            let _ = write!(out, " outstanding {}", node.outstanding);
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
