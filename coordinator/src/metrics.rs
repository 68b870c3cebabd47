//! What the coordinator shows to Prometheus. All but the durations is read from the status when somebody asks.

use tengen_proto::v1::RunStatus;
use tengen_service::metrics::{Kind, Metric, show_lacking_cores};

/// Durations of the owner's transactions.
pub(crate) const COMMIT_DURATION: &str = "tengen_commit_duration_seconds";
/// Durations of record checks.
pub(crate) const RECORD_CHECK_DURATION: &str = "tengen_record_check_duration_seconds";

/// Every metric of the coordinator.
#[rustfmt::skip] // one row a metric
pub const METRICS: &[Metric] = &[
    Metric::new("tengen_games_stored_total", Kind::Counter, &["kind"], "Games stored since the run began; kind is self-play or match."),
    Metric::new("tengen_positions_stored_total", Kind::Counter, &[], "Trainable positions stored since the run began."),
    Metric::new("tengen_records_rejected_total", Kind::Counter, &["reason"], "Records refused since the run began, by reason code."),
    Metric::new("tengen_calls_refused_total", Kind::Counter, &["reason"], "Calls refused since the coordinator began, by reason."),
    Metric::new("tengen_games_audited_total", Kind::Counter, &["result"], "Audits of stored games; result is passed, failed or missed."),
    Metric::new("tengen_gates_decided_total", Kind::Counter, &[], "Gates decided since the run began."),
    Metric::new("tengen_iteration", Kind::Gauge, &[], "Iteration being played, counted from 0."),
    Metric::new("tengen_iteration_games", Kind::Gauge, &[], "New games of this iteration."),
    Metric::new("tengen_iteration_target_games", Kind::Gauge, &[], "New games that end this iteration."),
    Metric::new("tengen_generation", Kind::Gauge, &[], "Generation of the champion."),
    Metric::new("tengen_gate_open", Kind::Gauge, &[], "1 while a gate is played."),
    Metric::new("tengen_gate_pairs", Kind::Gauge, &[], "Complete pairs counted in the gate that is played."),
    Metric::new("tengen_gate_target_pairs", Kind::Gauge, &[], "Pairs that this gate plays."),
    Metric::new("tengen_gate_score_ratio", Kind::Gauge, &[], "Score of the candidate in this gate, from 0 to 1."),
    Metric::new("tengen_candidates_waiting", Kind::Gauge, &[], "Candidates that wait for a gate."),
    Metric::new("tengen_window_positions", Kind::Gauge, &[], "Positions in the window."),
    Metric::new("tengen_window_capacity_positions", Kind::Gauge, &[], "Most positions the window holds."),
    Metric::new("tengen_window_games", Kind::Gauge, &[], "Games in the window."),
    Metric::new("tengen_window_lag_games", Kind::Gauge, &[], "Stored self-play games that are not in the window yet."),
    Metric::new("tengen_window_damaged_games", Kind::Gauge, &[], "Stored games that were found damaged and left out of the window."),
    Metric::new("tengen_window_age_seconds", Kind::Gauge, &[], "Age of the oldest game in the window."),
    Metric::new("tengen_samples_per_position_ratio", Kind::Gauge, &[], "How often stored positions were trained on, on average: the replay ratio."),
    Metric::new("tengen_samples_per_position_max_ratio", Kind::Gauge, &[], "The most that the replay ratio may become."),
    Metric::new("tengen_learner_behind_steps", Kind::Gauge, &[], "Steps that the stored positions allow and the learner has not done."),
    Metric::new("tengen_learner_connected", Kind::Gauge, &[], "1 while the learner is heard."),
    Metric::new("tengen_actors", Kind::Gauge, &["state"], "Actors seen in the last hour; state is heard or silent."),
    Metric::new("tengen_evaluations_per_second", Kind::Gauge, &[], "Network evaluations per second of all heard actors, as they told last."),
    Metric::new("tengen_data_bytes", Kind::Gauge, &[], "Bytes of all files in the data folder."),
    Metric::new("tengen_disk_free_bytes", Kind::Gauge, &[], "Bytes free on its disk."),
    Metric::new("tengen_disk_refusing", Kind::Gauge, &[], "1 while new games and networks are refused for want of room."),
    Metric::new("tengen_commit_duration_seconds", Kind::Histogram, &[], "Time one transaction of the run's owner took, its sync to disk included."),
    Metric::new("tengen_record_check_duration_seconds", Kind::Histogram, &[], "Time one record's check against the rules took."),
];

/// Shows a status.
pub(crate) fn show(status: &RunStatus) {
    count(status);
    progress(status);
    window(status);
    machines(status);
}

fn set(name: &'static str, value: f64) {
    metrics::gauge!(name).set(value);
}

fn count(status: &RunStatus) {
    metrics::counter!("tengen_games_stored_total", "kind" => "self-play").absolute(status.games);
    metrics::counter!("tengen_games_stored_total", "kind" => "match").absolute(status.match_games);
    metrics::counter!("tengen_positions_stored_total").absolute(status.positions);
    metrics::counter!("tengen_gates_decided_total").absolute(status.gates_decided.into());
    for (reason, count) in &status.rejected {
        metrics::counter!("tengen_records_rejected_total", "reason" => reason.clone()).absolute(*count);
    }
    for (reason, count) in &status.refused_calls {
        metrics::counter!("tengen_calls_refused_total", "reason" => reason.clone()).absolute(*count);
    }
    let passed = status.audited.saturating_sub(status.audit_failed);
    for (result, count) in [
        ("passed", passed),
        ("failed", status.audit_failed),
        ("missed", status.audit_missed),
    ] {
        metrics::counter!("tengen_games_audited_total", "result" => result).absolute(count);
    }
}

fn progress(status: &RunStatus) {
    set("tengen_iteration", status.iteration.into());
    set("tengen_iteration_games", status.iteration_games.into());
    set("tengen_iteration_target_games", status.iteration_games_target.into());
    set("tengen_generation", status.generation.into());
    set("tengen_candidates_waiting", status.candidates_waiting.into());
    let gate = status.gate.clone().unwrap_or_default();
    set("tengen_gate_open", f64::from(u8::from(status.gate.is_some())));
    set("tengen_gate_pairs", gate.pairs.into());
    set("tengen_gate_target_pairs", gate.pairs_target.into());
    set("tengen_gate_score_ratio", gate.score.into());
}

fn window(status: &RunStatus) {
    set("tengen_window_positions", status.window_positions as f64);
    set("tengen_window_capacity_positions", status.window_capacity as f64);
    set("tengen_window_games", status.window_games as f64);
    set("tengen_window_lag_games", status.window_lag_games as f64);
    set("tengen_window_damaged_games", status.damaged_games as f64);
    let age_ms = match status.window_oldest_unix_ms {
        0 => 0,
        oldest => status.clock_unix_ms.saturating_sub(oldest).max(0),
    };
    set("tengen_window_age_seconds", age_ms as f64 / 1_000.0);
    set("tengen_samples_per_position_ratio", status.samples_per_position);
    set("tengen_samples_per_position_max_ratio", status.samples_per_position_max);
    set("tengen_learner_behind_steps", status.steps_behind as f64);
}

fn machines(status: &RunStatus) {
    let learner = status.learner.as_ref().is_some_and(|learner| learner.alive);
    set("tengen_learner_connected", f64::from(u8::from(learner)));
    let heard = status.actors.iter().filter(|actor| actor.alive).count();
    metrics::gauge!("tengen_actors", "state" => "heard").set(heard as f64);
    metrics::gauge!("tengen_actors", "state" => "silent").set((status.actors.len() - heard) as f64);
    set("tengen_evaluations_per_second", status.evaluations_per_second.into());
    if let Some(lacking) = status.usage.as_ref().and_then(|usage| usage.cpu_cores_lacking) {
        show_lacking_cores(lacking);
    }
    let disk = status.disk.clone().unwrap_or_default();
    set("tengen_data_bytes", disk.data_bytes as f64);
    set("tengen_disk_free_bytes", disk.free_bytes as f64);
    set("tengen_disk_refusing", f64::from(u8::from(!disk.refusing.is_empty())));
}
