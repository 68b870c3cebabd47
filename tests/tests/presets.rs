//! Every preset in `runs/` can be run: its file parses, its game exists, and the game has a network of its shape. Every game
//! has one, and the README lists them all. What a run of one will do here can be planned.

use std::collections::BTreeMap;

use serde_json::Value;
use tengen_games::{AnyGame, registry};
use tengen_network::Shape;
use tengen_service::run_config::RunConfig;
use tengen_system_tests::cluster::{repository, tengen_ok};

/// Every preset by the name of its file, `.toml` left out.
fn presets() -> BTreeMap<String, RunConfig> {
    let folder = repository().join("runs");
    let files = std::fs::read_dir(&folder).expect("there are presets").flatten();
    let read = files.map(|file| {
        let path = file.path();
        let text = std::fs::read_to_string(&path).expect("a preset is text");
        let config = RunConfig::from_toml(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let name = file.file_name().into_string().expect("a name in ASCII");
        let name = name.strip_suffix(".toml").expect("presets are TOML");
        (name.to_owned(), config)
    });
    read.collect()
}

#[test]
fn every_preset_parses_and_names_a_game_that_fits_its_network() {
    let presets = presets();
    assert!(!presets.is_empty());
    for (name, config) in presets {
        assert_eq!(config.run.name, name, "the run is called as its file");
        let game = AnyGame::parse(&config.run.game).unwrap_or_else(|error| panic!("{name}: {error}"));
        let shape = Shape::new(game.spec(), &config.network);
        assert!(shape.is_ok(), "{name}: {shape:?}");
    }
}

#[test]
fn every_game_has_a_preset_and_the_readme_lists_each() {
    let presets = presets();
    let families: Vec<&str> = presets
        .values()
        .map(|config| config.run.game.split('?').next().unwrap_or_default())
        .collect();
    for game in registry::names() {
        assert!(families.contains(&game), "{game} has no preset in runs/");
    }
    let readme = std::fs::read_to_string(repository().join("README.md")).expect("there is a README");
    let listed: Vec<&str> = readme
        .lines()
        .filter_map(|line| line.strip_prefix("| `runs/")?.split(".toml`").next())
        .collect();
    for name in presets.keys() {
        assert!(
            listed.contains(&name.as_str()),
            "the README does not list runs/{name}.toml"
        );
    }
    assert_eq!(listed.len(), presets.len(), "the README lists {listed:?}");
}

#[test]
fn caro5_searches_little_at_first_and_more_with_every_iteration() {
    let presets = presets();
    let (games, simulations): (Vec<u32>, Vec<u32>) = [0, 1, 2, 3, 4, 5, 6, 1_000]
        .map(|iteration| presets["caro5"].row(iteration))
        .map(|row| (row.games, row.simulations))
        .into_iter()
        .unzip();
    assert_eq!(games, [1_500, 2_000, 3_000, 3_500, 4_500, 5_000, 7_500, 7_500]);
    assert_eq!(simulations, [150, 200, 250, 300, 350, 400, 800, 800]);
}

/// Measured as briefly as a game of it allows: enough plies that games come to their end, one step.
#[test]
fn a_plan_measures_self_play_and_training_and_forecasts_nothing_that_is_no_number() {
    let words = [
        "plan",
        "--run",
        "runs/tic-tac-toe.toml",
        "--plies",
        "100",
        "--steps",
        "1",
        "--json",
    ];
    let plan: Value = serde_json::from_str(&tengen_ok(words)).expect("a plan is JSON");
    for (part, fields) in [("self_play", 9), ("training", 6), ("forecast", 9)] {
        let told = plan[part]
            .as_object()
            .unwrap_or_else(|| panic!("no {part} in {plan:#}"));
        assert_eq!(told.len(), fields, "{part} of {plan:#}");
        for (name, value) in told {
            match value {
                Value::String(word) => assert!(!word.is_empty(), "{part}.{name}"),
                // What is no number in JSON, an infinity for example, is told as null.
                other => assert!(
                    other.as_f64().is_some_and(|number| number > 0.0),
                    "{part}.{name}: {other}"
                ),
            }
        }
    }
    // Which is faster depends on the machine.
    let precision = plan["self_play"]["precision"].as_str();
    assert!(matches!(precision, Some("fp32" | "int8")), "{precision:?}");
    let measured = &plan["training"];
    assert_eq!(
        (measured["steps"].as_u64(), measured["batch"].as_u64()),
        (Some(1), Some(128))
    );
}
