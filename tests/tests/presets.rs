//! Every preset in `runs/` can be run: its file parses, its game exists, and the game has a network of its shape. What a run
//! of one will do here can be planned.

use serde_json::Value;
use tengen_games::AnyGame;
use tengen_network::Shape;
use tengen_service::run_config::RunConfig;
use tengen_system_tests::cluster::{repository, tengen_ok};

#[test]
fn every_preset_parses_and_names_a_game_that_fits_its_network() {
    let folder = repository().join("runs");
    let mut presets = 0;
    for entry in std::fs::read_dir(&folder).expect("there are presets").flatten() {
        let path = entry.path();
        let text = std::fs::read_to_string(&path).expect("a preset is text");
        let config = RunConfig::from_toml(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let game = AnyGame::parse(&config.run.game).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let shape = Shape::new(game.spec(), &config.network);
        assert!(shape.is_ok(), "{}: {shape:?}", path.display());
        presets += 1;
    }
    assert!(presets > 0);
}

/// Measured as briefly as a game of it allows: enough plies that games come to their end, one step.
#[test]
fn a_plan_measures_self_play_and_training_and_forecasts_nothing_that_is_no_number() {
    let words = ["plan", "--run", "runs/tic-tac-toe.toml", "--plies", "100", "--steps", "1", "--json"];
    let plan: Value = serde_json::from_str(&tengen_ok(words)).expect("a plan is JSON");
    for (part, fields) in [("self_play", 7), ("training", 6), ("forecast", 9)] {
        let told = plan[part].as_object().unwrap_or_else(|| panic!("no {part} in {plan:#}"));
        assert_eq!(told.len(), fields, "{part} of {plan:#}");
        for (name, value) in told {
            match value {
                Value::String(word) => assert!(!word.is_empty(), "{part}.{name}"),
                // What is no number in JSON, an infinity for example, is told as null.
                other => assert!(other.as_f64().is_some_and(|number| number > 0.0), "{part}.{name}: {other}"),
            }
        }
    }
    let measured = &plan["training"];
    assert_eq!((measured["steps"].as_u64(), measured["batch"].as_u64()), (Some(1), Some(128)));
}
