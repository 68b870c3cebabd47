//! What the fault tests share: the run they are made on, how long they are, short in `make test` and long in
//! `make faults`, and the row that each writes about itself.

use std::path::{Path, PathBuf};

pub use tengen_faults::{Proof, scaled};
use tengen_service::files::write_atomic;

/// A small game whose self-play waits for no learner and no gate.
const RUN: &str = r#"
[run]
name = "faults"
game = "tic-tac-toe"
[network]
blocks = 1
channels = 8
[[schedule]]
from_iteration = 0
games = 50
simulations = 8
[selfplay]
random_plies_max = 4
[gate]
kind = "none"
[learner]
steps_behind_max = 0
"#;

/// Writes the run's configuration into `folder`.
pub fn write_run(folder: &Path) -> PathBuf {
    write_run_of(folder, "tic-tac-toe")
}

/// The same with another game.
pub fn write_run_of(folder: &Path, game: &str) -> PathBuf {
    let path = folder.join("faults.toml");
    let run = RUN.replace("tic-tac-toe", game);
    write_atomic(&path, run.as_bytes()).expect("the run's configuration can be written");
    path
}
