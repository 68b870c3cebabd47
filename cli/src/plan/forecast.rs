//! What follows from the measurements and the run's configuration: arithmetic alone.

use tengen_service::run_config::{GateKind, RunConfig, ScheduleRow};

use super::bench::{Measured, Training};

/// The part of its greatest length that a sequential gate takes for candidates near the champion, on average (measured:
/// docs/gates.md); for others it is shorter.
const SPRT_PART: f64 = 0.6;

/// Which side the other waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    SelfPlay,
    Learner,
    /// The cores of this machine, which an actor and the learner share.
    Cores,
}

/// What one position costs on this machine, and how many cores there are to pay it.
#[derive(Clone, Copy, Debug)]
struct Costs {
    cores: f64,
    /// Core seconds of an actor, its share of the gates' games included.
    playing: f64,
    /// Core seconds of the learner; 0 where it computes elsewhere.
    learning: f64,
}

/// What the run will do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Forecast {
    pub(super) positions_per_hour: f64,
    /// What self-play could do, beside its gates.
    pub(super) self_play_positions_per_hour: f64,
    /// What the learner could use.
    pub(super) learner_positions_per_hour: f64,
    pub(super) limit: Limit,
    pub(super) minutes_per_iteration: f64,
    pub(super) window_turnover_hours: f64,
    pub(super) bytes_per_day: f64,
    /// Positions an hour with one more actor.
    pub(super) one_more_actor: f64,
    /// Positions an hour with a learner that takes no time.
    pub(super) faster_learner: f64,
}

impl Forecast {
    /// The forecast for `actors` actors like the measured one, of which one is on this machine with its `cores` cores, as
    /// the learner is; the others have a machine each.
    pub(super) fn new(
        config: &RunConfig,
        row: ScheduleRow,
        self_play: &Measured,
        training: &Training,
        (actors, cores): (u32, u32),
    ) -> Forecast {
        let share = self_play_share(config, row);
        let one_actor = self_play.positions_per_second() * 3_600.0 * share;
        let learning = learner_positions_per_hour(config, training);
        let costs = Costs {
            cores: cores.into(),
            playing: self_play.cpu_seconds_per_position() / share,
            learning: learning_cost(config, training),
        };
        let playing = |actors: u32| costs.here(one_actor, actors - 1) + one_actor * f64::from(actors - 1);
        let alone = one_actor * f64::from(actors);
        let positions_per_hour = playing(actors).min(learning);
        let positions = f64::from(row.games) * self_play.positions_per_game;
        Forecast {
            positions_per_hour,
            self_play_positions_per_hour: alone,
            learner_positions_per_hour: learning,
            limit: if learning < playing(actors) {
                Limit::Learner
            } else if playing(actors) < alone {
                Limit::Cores
            } else {
                Limit::SelfPlay
            },
            minutes_per_iteration: positions / positions_per_hour * 60.0,
            window_turnover_hours: config.replay.capacity_positions as f64 / positions_per_hour,
            // Match games are stored too, as much of them as of the work.
            bytes_per_day: positions_per_hour / share * self_play.bytes_per_position * 24.0,
            one_more_actor: playing(actors + 1).min(learning),
            faster_learner: alone,
        }
    }
}

impl Costs {
    /// Positions an hour of the actor on this machine, beside a learner that also trains on those of `others`: as many as
    /// it plays alone, or as the cores bear.
    fn here(&self, alone: f64, others: u32) -> f64 {
        let core_seconds = self.cores * 3_600.0 - alone * f64::from(others) * self.learning;
        (core_seconds / (self.playing + self.learning)).clamp(0.0, alone)
    }
}

/// Core seconds of training for a position. A learner on an accelerator waits for it, with its threads busy or not; that is
/// no work that an actor could do instead.
fn learning_cost(config: &RunConfig, training: &Training) -> f64 {
    if training.device != "cpu" {
        return 0.0;
    }
    training.cpu_seconds_per_step * config.learner.samples_per_position / f64::from(config.learner.batch)
}

/// Positions an hour that the learner can use: each is sampled so often. Without a limit to how far it may be behind,
/// self-play never waits for it.
fn learner_positions_per_hour(config: &RunConfig, training: &Training) -> f64 {
    let learner = &config.learner;
    if learner.steps_behind_max == 0 {
        return f64::INFINITY;
    }
    training.steps_per_second * 3_600.0 * f64::from(learner.batch) / learner.samples_per_position
}

/// The part of the actors' work that is self-play: the rest are the games of gates. A game of a gate costs as much as its
/// searches; it is as long as a game of self-play.
fn self_play_share(config: &RunConfig, row: ScheduleRow) -> f64 {
    let gate = &config.gate;
    let match_games = match gate.kind {
        GateKind::None => 0.0,
        GateKind::Fixed => f64::from(gate.games) / f64::from(gate.candidate_every),
        GateKind::Sprt => SPRT_PART * f64::from(gate.sprt.games_max) / f64::from(gate.candidate_every),
    };
    let match_simulations = match gate.simulations {
        0 => row.simulations,
        simulations => simulations,
    };
    let self_play = f64::from(row.games) * f64::from(row.simulations);
    let matches = match_games * f64::from(match_simulations);
    self_play / (self_play + matches)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tengen_records::Precision;

    use super::*;

    const RUN: &str = "
[run]
name = \"small\"
game = \"tic-tac-toe\"
[network]
[[schedule]]
from_iteration = 0
games = 100
simulations = 50
[gate]
games = 50
simulations = 100
[replay]
capacity_positions = 36000
[learner]
batch = 100
samples_per_position = 4.0
";

    fn forecast(positions: u64, steps_per_second: f64, actors: u32) -> Forecast {
        forecast_on(16, positions, steps_per_second, actors)
    }

    fn forecast_on(cores: u32, positions: u64, steps_per_second: f64, actors: u32) -> Forecast {
        let config = RunConfig::from_toml(RUN).unwrap();
        let self_play = Measured {
            threads: 2,
            provider: "CPU".to_owned(),
            precision: Precision::Fp32,
            batch: 16,
            positions,
            evaluations: positions * 50,
            elapsed: Duration::from_secs(10),
            busy: Duration::from_secs(20),
            positions_per_game: 8.0,
            bytes_per_position: 100.0,
        };
        let training = Training {
            device: "cpu".to_owned(),
            threads: 1,
            batch: 100,
            steps: 10,
            steps_per_second,
            cpu_seconds_per_step: 0.1,
        };
        Forecast::new(&config, config.row(0), &self_play, &training, (actors, cores))
    }

    #[test]
    fn half_the_work_is_gates_and_self_play_is_the_limit() {
        // 20 positions a second, of which gates leave half: 36,000 an hour; the learner could use 90,000.
        let now = forecast(200, 1.0, 1);
        assert_eq!(now.limit, Limit::SelfPlay);
        assert!((now.positions_per_hour - 36_000.0).abs() < 1.0, "{now:?}");
        assert!((now.learner_positions_per_hour - 90_000.0).abs() < 1.0);
        assert!((now.minutes_per_iteration - 800.0 / 600.0).abs() < 0.01);
        assert!((now.window_turnover_hours - 1.0).abs() < 0.01);
        assert!((now.bytes_per_day - 72_000.0 * 100.0 * 24.0).abs() < 1.0);
        assert!((now.one_more_actor - 72_000.0).abs() < 1.0);
        assert_eq!(now.faster_learner, now.positions_per_hour);
    }

    #[test]
    fn an_actor_and_a_learner_share_the_cores_of_their_machine() {
        // A position costs an actor 0.1 core seconds, with its gates 0.2; the learner 0.004: two cores bear 9.8 a second.
        let shared = forecast_on(2, 200, 10.0, 1);
        assert_eq!(shared.limit, Limit::Cores);
        assert!((shared.positions_per_hour - 7_200.0 / 0.204).abs() < 1.0, "{shared:?}");
        assert_eq!(shared.faster_learner, 36_000.0);
        // Another machine's positions are trained on here, too: its 10 a second take 0.04 cores from the actor here.
        assert!(
            (shared.one_more_actor - 36_000.0 - (7_200.0 - 144.0) / 0.204).abs() < 1.0,
            "{shared:?}"
        );
        assert_eq!(forecast_on(3, 200, 10.0, 1).limit, Limit::SelfPlay);
    }

    #[test]
    fn more_actors_reach_what_the_learner_can_use_and_no_further() {
        let now = forecast(200, 1.0, 4);
        assert_eq!(now.limit, Limit::Learner);
        assert!((now.positions_per_hour - 90_000.0).abs() < 1.0);
        assert_eq!(now.one_more_actor, now.positions_per_hour);
        assert!((now.faster_learner - 144_000.0).abs() < 1.0);
    }
}
