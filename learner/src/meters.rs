//! What the learner shows to Prometheus; all of it is read from its status when somebody asks.

use tengen_proto::v1::LearnerStatus;
use tengen_service::metrics::{Kind, Metric};

/// Every metric of the learner.
#[rustfmt::skip] // one row a metric
pub const METRICS: &[Metric] = &[
    Metric::new("tengen_learner_steps_total", Kind::Counter, &[], "Steps trained since the run began."),
    Metric::new("tengen_learner_candidates_given_up_total", Kind::Counter, &[], "Candidates since the learner began that were given up because their file computed something else than the learner, or was refused."),
    Metric::new("tengen_learner_allowed_steps", Kind::Gauge, &[], "Steps that the samples-per-position limit allows."),
    Metric::new("tengen_learner_policy_loss_nats", Kind::Gauge, &[], "Loss of the policy head, smoothed."),
    Metric::new("tengen_learner_value_loss_nats", Kind::Gauge, &[], "Loss of the value head, smoothed."),
    Metric::new("tengen_learner_learning_rate", Kind::Gauge, &[], "Learning rate."),
    Metric::new("tengen_learner_steps_per_second", Kind::Gauge, &[], "Steps per second while it trains; 0 while it waits."),
    Metric::new("tengen_learner_waited_for_batches_ratio", Kind::Gauge, &[], "Share of the time of the last steps in which training waited for the sampling thread, 0 to 1; 0 while it waits for games."),
    Metric::new("tengen_learner_seen_positions", Kind::Gauge, &[], "Trainable positions of the run that the mirror has seen."),
    Metric::new("tengen_learner_mirror_positions", Kind::Gauge, &[], "Positions in its mirror of the window."),
    Metric::new("tengen_learner_export_difference", Kind::Gauge, &[], "Greatest difference of the last export from the learner's own forward pass."),
    Metric::new("tengen_learner_illegal_policy_ratio", Kind::Gauge, &[], "Mean probability that the last exported policy puts on illegal actions, 0 to 1, before they are masked."),
];

/// Shows a status.
pub(crate) fn show(status: &LearnerStatus) {
    metrics::counter!("tengen_learner_steps_total").absolute(status.step);
    metrics::counter!("tengen_learner_candidates_given_up_total").absolute(status.candidates_given_up.into());
    let set = |name: &'static str, value: f64| metrics::gauge!(name).set(value);
    set("tengen_learner_allowed_steps", status.step_limit as f64);
    set("tengen_learner_policy_loss_nats", status.policy_loss.into());
    set("tengen_learner_value_loss_nats", status.value_loss.into());
    set("tengen_learner_learning_rate", status.learning_rate.into());
    set("tengen_learner_steps_per_second", status.steps_per_second.into());
    set(
        "tengen_learner_waited_for_batches_ratio",
        status.waited_for_batches.into(),
    );
    set("tengen_learner_seen_positions", status.positions_seen as f64);
    set("tengen_learner_mirror_positions", status.mirror_positions as f64);
    set("tengen_learner_export_difference", status.parity.into());
    if let Some(mass) = status.illegal_mass {
        set("tengen_learner_illegal_policy_ratio", mass.into());
    }
}
