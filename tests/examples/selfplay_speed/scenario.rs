//! What is played.

use tengen_network::Precision;

/// One measurement.
#[derive(Clone, Copy)]
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) game: &'static str,
    pub(crate) blocks: usize,
    pub(crate) channels: usize,
    pub(crate) precision: Precision,
    pub(crate) games: u32,
    pub(crate) batch_max: usize,
    /// Evaluations a second that must be reached, as a share of those of ONNX Runtime alone.
    pub(crate) target: f64,
}

pub(crate) const CARO5: Scenario = Scenario {
    name: "selfplay_caro5_4x64_fp32",
    game: "caro5",
    blocks: 4,
    channels: 64,
    precision: Precision::Fp32,
    games: 32,
    batch_max: 16,
    target: 0.95,
};
const CARO5_LARGE: Scenario = Scenario {
    name: "selfplay_caro5_10x128_fp32",
    blocks: 10,
    channels: 128,
    target: 0.97,
    ..CARO5
};
pub(crate) const CONNECT_FOUR: Scenario = Scenario {
    name: "selfplay_connect_four_4x32_fp32",
    game: "connect-four",
    channels: 32,
    games: 64,
    batch_max: 32,
    ..CARO5
};
pub(crate) const SCENARIOS: [Scenario; 5] = [
    CARO5,
    Scenario {
        name: "selfplay_caro5_4x64_int8",
        precision: Precision::Int8,
        ..CARO5
    },
    CARO5_LARGE,
    Scenario {
        name: "selfplay_caro5_10x128_int8",
        precision: Precision::Int8,
        target: 0.95,
        ..CARO5_LARGE
    },
    CONNECT_FOUR,
];

/// Root visits of every search that is measured.
const SIMULATIONS: u32 = 100;

/// Whether work is saved: answers kept, trees kept.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Saving {
    Off,
    On,
}

/// What a run is for.
#[derive(Clone, Copy)]
pub(crate) enum Part {
    /// Quick games, of which the learner makes a network in the scenario's precision.
    Preparing,
    /// Games that are measured.
    Measured,
}

pub(crate) fn run_file(scenario: &Scenario, threads: usize, saving: Saving, part: Part) -> String {
    let Scenario {
        game,
        blocks,
        channels,
        precision,
        games,
        batch_max,
        ..
    } = scenario;
    let (tree_reuse, cache_mib) = match saving {
        Saving::Off => (false, 0),
        Saving::On => (true, 64),
    };
    // A few quick games, and a handful of steps, which a large network takes long for; then games and no end.
    let (games_of_iteration, simulations) = match part {
        Part::Preparing => (8, 2),
        Part::Measured => (1_000_000, SIMULATIONS),
    };
    let (window_min, precisions) = match precision {
        Precision::Fp32 => (400_000, String::new()),
        _ => (300, format!("\"{precision}\"")),
    };
    format!(
        r#"
[run]
name = "bench"
game = "{game}"
[network]
blocks = {blocks}
channels = {channels}
[search]
tree_reuse = {tree_reuse}
[[schedule]]
from_iteration = 0
games = {games_of_iteration}
simulations = {simulations}
[gate]
kind = "none"
[learner]
batch = 32
samples_per_position = 0.1
window_min_positions = {window_min}
[export]
precisions = [{precisions}]
# A network of a few steps hardly tells its actions apart.
policy_agreement_min = 0.5
[actor]
precision = "{precision}"
games = {games}
batch_max = {batch_max}
cache_mib = {cache_mib}
device = "cpu"
[cpu]
learner_threads = 1
actor_threads = {threads}
"#
    )
}
