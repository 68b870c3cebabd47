//! The model card: what a pulled network is, in a page for people, rendered from the model's facts alone.

use std::fmt::Write;
use std::time::{Duration, UNIX_EPOCH};

use serde_json::Value;
use tengen_proto::v1::{MatchEvidence, Model};

use super::{configuration, metadata, variant};
use crate::models::state_name;

/// Properties of the file that have a row of their own or say what other rows say.
const TOLD: [&str; 8] = [
    "run",
    "game",
    "iteration",
    "generation",
    "step",
    "parent",
    "created",
    "precision",
];

/// What `README.md` says.
pub(super) fn page(model: &Model, evidence: Option<&MatchEvidence>) -> anyhow::Result<String> {
    let metadata = metadata(model)?;
    let property = |key: &str| metadata[key].as_str().unwrap_or("unknown").to_owned();
    let title = match model.generation {
        Some(generation) => format!("{}, generation {generation}", model.run_id),
        None => format!("{}, candidate of iteration {}", model.run_id, model.iteration),
    };
    // Only networks that learned from games of others name the sets of them.
    let sets = metadata["train_sets"].as_str();
    let from = sets.map_or_else(
        || "games against itself".to_owned(),
        |sets| format!("games of others: {sets}"),
    );
    let mut page = format!(
        "# {title}\n\nA network that plays {}, trained by Tengen from {from}.\n",
        property("game")
    );
    page += "\n## What it is\n\n| | |\n|---|---|\n";
    let parent = match (model.parent_id.is_empty(), sets) {
        (true, None) => "none: it was drawn at random".to_owned(),
        (true, Some(_)) => "none: it began from one drawn at random".to_owned(),
        (false, _) => code(&hex::encode(&model.parent_id)),
    };
    let rows = [
        ("game", code(&property("game"))),
        ("run", model.run_id.clone()),
        (
            "generation",
            model
                .generation
                .map_or_else(|| "never champion".to_owned(), |generation| generation.to_string()),
        ),
        ("iteration, step", format!("{}, {}", model.iteration, model.step)),
        ("standing when pulled", state_name(model.state()).to_owned()),
        ("published", time(model.created_unix_ms)),
        ("precision", property("precision")),
        ("size", format!("{} bytes", model.size_bytes)),
        ("model id (BLAKE3)", code(&hex::encode(&model.model_id))),
        ("SHA-256", code(&hex::encode(&model.sha256))),
        ("trained on from", parent),
    ];
    for (name, value) in rows {
        let _ = writeln!(page, "| {name} | {value} |");
    }
    page += &properties(&metadata);
    page += &variant::section(model);
    page += &gate(model, evidence);
    page += USE;
    page += "\n## The run's configuration when it was published\n\n```toml\n";
    page += toml::to_string(&configuration(model)?)?.trim_end();
    page += "\n```\n";
    Ok(page)
}

/// The other properties of the file: shape, fingerprints, training parameters.
fn properties(metadata: &Value) -> String {
    let mut rows = String::new();
    for (key, value) in metadata.as_object().into_iter().flatten() {
        if !TOLD.contains(&key.as_str()) {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let _ = writeln!(rows, "| `{key}` | {} |", cell(&value));
        }
    }
    match rows.is_empty() {
        true => rows,
        false => format!("\n## What the file says about itself\n\n| property | value |\n|---|---|\n{rows}"),
    }
}

fn gate(model: &Model, evidence: Option<&MatchEvidence>) -> String {
    let mut text = "\n## Its gate\n\n".to_owned();
    let Some(gate) = evidence.and_then(|evidence| evidence.gate.as_ref()) else {
        let why = match model.verdict.as_str() {
            "" => "It has met no gate.",
            verdict => verdict,
        };
        return format!("{text}{why}\n");
    };
    let reason = if gate.reason.is_empty() {
        "It is not decided yet."
    } else {
        &gate.reason
    };
    let _ = writeln!(
        text,
        "Gate {} against `{}`: {} won, {} drawn, {} lost in {} pairs of games, each pair from one opening with seats \
         swapped; Elo {:+.0} ± {:.0}.\n\n> {reason}\n\nEvery game of it is in `gate.json`.",
        gate.gate_id,
        hex::encode(&gate.champion_id),
        gate.wins,
        gate.draws,
        gate.losses,
        gate.pairs,
        gate.elo,
        gate.elo_error,
    );
    text
}

/// How to use the file; it holds for every network of this format.
const USE: &str = "
## How to use it

`model.onnx` (opset 17, IR version 8) takes `planes`, bytes of shape [N, C, H, W], and gives `policy`, logits of shape
[N, A] over all actions, and `wdl`, logits of shape [N, 3] for win, draw and loss of the seat to move. The graph itself
casts and scales the bytes. Illegal actions are masked by whoever calls it.

```sh
sha256sum --check SHA256SUMS
tengen duel . random --games 100 --simulations 64
```
";

fn code(text: &str) -> String {
    format!("`{text}`")
}

/// Text that stays in its cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

fn time(unix_ms: i64) -> String {
    let since = Duration::from_millis(unix_ms.try_into().unwrap_or(0));
    humantime::format_rfc3339_seconds(UNIX_EPOCH + since).to_string()
}

#[cfg(test)]
mod tests {
    use tengen_proto::v1::Gate;

    use super::super::test_model;
    use super::*;

    #[test]
    fn the_card_tells_what_the_network_is_and_why_it_was_promoted() {
        let evidence = MatchEvidence {
            gate: Some(Gate {
                gate_id: 5,
                wins: 12,
                draws: 1,
                losses: 7,
                pairs: 10,
                reason: "promoted: enough".to_owned(),
                champion_id: vec![0xcd; 32],
                ..Gate::default()
            }),
            ..MatchEvidence::default()
        };
        let page = page(&test_model(b"x"), Some(&evidence)).unwrap();
        for part in [
            "# small, generation 3",
            "plays tic-tac-toe",
            "| standing when pulled | champion |",
            "| published | 2023-11-14T22:13:20Z |",
            "| `parity` | 0.0001 |",
            "12 won, 1 drawn, 7 lost in 10 pairs",
            "> promoted: enough",
            "sha256sum --check",
            "name = \"small\"",
        ] {
            assert!(page.contains(part), "{part:?} in\n{page}");
        }
        assert!(!page.contains("unknown"), "{page}");
    }

    #[test]
    fn a_random_network_says_so() {
        let model = Model {
            parent_id: Vec::new(),
            generation: Some(0),
            verdict: String::new(),
            ..test_model(b"x")
        };
        let page = page(&model, None).unwrap();
        assert!(page.contains("drawn at random") && page.contains("no gate"), "{page}");
    }
}
