//! The heads: from the tower's output to `policy` and `wdl`, in 32-bit floats whatever the tower computes in.

use tengen_games::{ActionBlock, triangle_cells};

use super::graph::{Attribute, GraphBuilder};
use super::{POLICY_NAME, WDL_NAME};
use crate::shape::Shape;

/// The policy parts in the order of the action blocks, joined as the output `policy`.
pub(super) fn policy(graph: &mut GraphBuilder, shape: &Shape, tower: &str) {
    let mut parts = Vec::new();
    for (index, block) in shape.action_blocks.iter().enumerate() {
        let name = format!("policy.{index}");
        let part = match block {
            ActionBlock::Cells { .. } => {
                let maps = conv(graph, &name, tower);
                graph.flatten(&name, &maps)
            }
            ActionBlock::Columns => {
                let map = conv(graph, &name, tower);
                // Over the single map and the rows: [N, 1, H, W] to [N, W].
                let axes = [Attribute::Ints("axes", &[1, 2]), Attribute::Int("keepdims", 0)];
                graph.node("ReduceMean", &format!("{name}.mean"), &[&map], &axes)
            }
            ActionBlock::Triangle => {
                let map = conv(graph, &name, tower);
                let flat = graph.flatten(&name, &map);
                let cells: Vec<i64> = triangle_cells(shape.rows).map(|cell| cell as i64).collect();
                let values = [Attribute::Ints("value_ints", &cells)];
                let cells = graph.node("Constant", &format!("{name}.cells"), &[], &values);
                let axis = [Attribute::Int("axis", 1)];
                graph.node("Gather", &format!("{name}.triangle"), &[&flat, &cells], &axis)
            }
            ActionBlock::Global { .. } => {
                let pooled = graph.pool(&name, tower);
                graph.linear(&name, &format!("{name}.gemm"), &pooled)
            }
        };
        parts.push(part);
    }
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    graph.node("Concat", POLICY_NAME, &parts, &[Attribute::Int("axis", 1)]);
}

/// The value head, ending in the output `wdl`.
pub(super) fn value(graph: &mut GraphBuilder, tower: &str) {
    let maps = conv(graph, "value.conv", tower);
    let maps = graph.relu("value.conv", &maps);
    let pooled = graph.pool("value", &maps);
    let hidden = graph.linear("value.hidden", "value.hidden.gemm", &pooled);
    let hidden = graph.relu("value.hidden", &hidden);
    graph.linear("value.out", WDL_NAME, &hidden);
}

/// A 1x1 convolution.
fn conv(graph: &mut GraphBuilder, layer: &str, input: &str) -> String {
    let (weight, bias) = (format!("{layer}.weight"), format!("{layer}.bias"));
    graph.conv(layer, [input, &weight, &bias], 1)
}
