//! Every preset in `runs/` can be run: its file parses, its game exists, and the game has a network of its shape.

use tengen_games::AnyGame;
use tengen_network::Shape;
use tengen_service::run_config::RunConfig;
use tengen_system_tests::cluster::repository;

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
