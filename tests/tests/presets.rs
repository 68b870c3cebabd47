//! Every preset in `runs/` can be run: its file parses, its game exists, and the game has a network of its shape. Every game
//! has one, and the README lists them all.

use std::collections::BTreeMap;

use tengen_games::{AnyGame, registry};
use tengen_network::Shape;
use tengen_service::run_config::RunConfig;
use tengen_system_tests::cluster::repository;

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
