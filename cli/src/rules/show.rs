//! The listings of `tengen rules`: the games, one game's spec, and planes.

use serde_json::{Value, json};
use tengen_games::{ActionBlock, AnyGame, Game, GameVisitor, OpeningRule, Spec, State, registry};

use super::Answer;

pub(super) fn list() -> Answer {
    let entries = registry::entries().iter();
    let games = entries
        .clone()
        .map(|entry| json!({ "name": entry.name, "summary": entry.summary, "parameters": entry.parameters }));
    let words = entries.map(|entry| {
        format!(
            "{}: {}\n    parameters: {}\n",
            entry.name, entry.summary, entry.parameters
        )
    });
    (Value::Array(games.collect()), words.collect())
}

pub(super) fn game(game: &AnyGame) -> Answer {
    let spec = game.spec();
    let (rules, features) = (game.rules_fingerprint(), game.feature_fingerprint());
    let symmetries: Vec<&str> = spec.symmetries.iter().map(|symmetry| symmetry.name).collect();
    let (blocks, start) = (blocks(spec), game.visit(Start));
    let planes = spec
        .planes
        .iter()
        .map(|plane| json!({ "name": plane.name, "scale": plane.scale }));
    let value = json!({
        "game": spec.id,
        "rows": spec.rows,
        "cols": spec.cols,
        "actions": spec.actions.len(),
        "action_blocks": blocks,
        "planes": planes.collect::<Vec<_>>(),
        "symmetries": symmetries,
        "opening": opening(spec),
        "plies_max": spec.plies_max,
        "rules_fingerprint": rules.to_string(),
        "feature_fingerprint": features.to_string(),
        "start": start,
    });
    let mut words = format!("{}: {} rows, {} columns\n", spec.id, spec.rows, spec.cols);
    words += &format!("{} actions: {}\n", spec.actions.len(), blocks.join(", "));
    words += &format!("opening: {}; at most {} plies\n", opening(spec), spec.plies_max);
    for (index, plane) in spec.planes.iter().enumerate() {
        words += &format!("plane {index}: {} (scale {})\n", plane.name, plane.scale);
    }
    words += &format!("symmetries: {}\n", symmetries.join(", "));
    words += &format!("rules    {rules}\nfeatures {features}\n{start}");
    (value, words)
}

/// The drawing of the start.
struct Start;

impl GameVisitor for Start {
    type Output = String;

    fn visit<G: Game>(self, game: G) -> String {
        game.start().draw()
    }
}

fn blocks(spec: &Spec) -> Vec<String> {
    let text = |block: &ActionBlock| match *block {
        ActionBlock::Cells { planes: 1 } => format!("{} cells", spec.cells()),
        ActionBlock::Cells { planes } => format!("{planes} planes of {} cells", spec.cells()),
        ActionBlock::Triangle => format!("{} cells of a triangle", spec.rows * (spec.rows + 1) / 2),
        ActionBlock::Columns => format!("{} columns", spec.cols),
        ActionBlock::Global { count } => format!("{count} without a place"),
    };
    spec.actions.blocks().iter().map(text).collect()
}

fn opening(spec: &Spec) -> &'static str {
    match spec.opening {
        OpeningRule::None => "none",
        OpeningRule::Swap2 => "swap2",
    }
}

/// The planes of a position: as JSON rows of bytes, and as grids.
pub(super) fn planes<G: Game>(game: &G, state: &G::State) -> Answer {
    let spec = game.spec();
    let mut bytes = vec![0; spec.planes_len()];
    state.planes(&mut bytes);
    let mut values = Vec::with_capacity(spec.planes.len());
    let mut words = String::new();
    for (index, (plane, bytes)) in spec.planes.iter().zip(bytes.chunks_exact(spec.cells())).enumerate() {
        let rows: Vec<&[u8]> = bytes.chunks_exact(spec.cols).collect();
        values.push(json!({ "name": plane.name, "scale": plane.scale, "rows": rows }));
        words += &format!("plane {index}: {} (scale {})\n", plane.name, plane.scale);
        for row in rows {
            let row: Vec<String> = row.iter().map(u8::to_string).collect();
            words += &format!("  {}\n", row.join(" "));
        }
    }
    (json!({ "game": spec.id, "planes": values }), words)
}
