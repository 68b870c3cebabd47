//! What the view has seen: a few numbers over time, for its small charts, and the last things that happened.

use std::collections::VecDeque;

use tengen_proto::v1::run_event::Event;
use tengen_proto::v1::{RunEvent, RunStatus};

use crate::models::short_id;

/// Points of a chart that are kept: more than the widest terminal shows.
const POINTS_MAX: usize = 512;
/// Events that are kept.
const EVENTS_MAX: usize = 50;

/// The numbers of one chart, oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Series {
    points: VecDeque<f64>,
}

impl Series {
    fn push(&mut self, value: f64) {
        if self.points.len() == POINTS_MAX {
            self.points.pop_front();
        }
        self.points
            .push_back(if value.is_finite() { value.max(0.0) } else { 0.0 });
    }

    /// The newest number.
    pub(super) fn last(&self) -> f64 {
        self.points.back().copied().unwrap_or(0.0)
    }

    /// The newest `width` numbers in thousandths of the greatest among them.
    pub(super) fn thousandths(&self, width: usize) -> Vec<u64> {
        let shown = self.points.iter().skip(self.points.len().saturating_sub(width));
        let greatest = shown.clone().copied().fold(0.0, f64::max);
        let scaled = shown.map(|value| {
            if greatest > 0.0 {
                value / greatest * 1_000.0
            } else {
                0.0
            }
        });
        scaled.map(|value| value.round() as u64).collect()
    }
}

/// Everything that was seen.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    pub(super) positions_per_minute: Series,
    pub(super) evaluations_per_second: Series,
    pub(super) steps_per_second: Series,
    pub(super) policy_loss: Series,
    events: VecDeque<RunEvent>,
}

impl History {
    /// Takes in one status.
    pub(super) fn note(&mut self, status: &RunStatus) {
        self.positions_per_minute.push(status.positions_per_minute.into());
        self.evaluations_per_second.push(status.evaluations_per_second.into());
        let learner = status.learner.as_ref();
        self.steps_per_second
            .push(learner.map_or(0.0, |learner| learner.steps_per_second.into()));
        self.policy_loss
            .push(learner.map_or(0.0, |learner| learner.policy_loss.into()));
        self.events.extend(status.events.iter().cloned());
        let surplus = self.events.len().saturating_sub(EVENTS_MAX);
        self.events.drain(..surplus);
    }

    /// The newest `count` events in words, newest first.
    pub(super) fn events(&self, count: usize) -> Vec<String> {
        self.events.iter().rev().filter_map(words).take(count).collect()
    }
}

fn words(event: &RunEvent) -> Option<String> {
    let time = crate::token::time(event.at_unix_ms);
    // The day is known; the time of day says when.
    let time = time.get(11..19).unwrap_or(&time);
    let what = match event.event.as_ref()? {
        Event::IterationEnded(ended) => format!("iteration {} ended after {} games", ended.iteration, ended.games),
        Event::GateDecided(gate) => format!("gate {}: {}", gate.gate_id, gate.reason),
        Event::Promoted(promotion) => format!(
            "generation {}: {} is champion",
            promotion.generation,
            short_id(&promotion.model_id)
        ),
    };
    Some(format!("{time} {what}"))
}

#[cfg(test)]
mod tests {
    use tengen_proto::v1::IterationEnded;

    use super::*;

    #[test]
    fn a_chart_shows_its_newest_points_in_parts_of_the_greatest() {
        let mut series = Series::default();
        for value in [100.0, 1.0, 2.0, f64::NAN, 4.0] {
            series.push(value);
        }
        assert_eq!(series.thousandths(4), [250, 500, 0, 1_000]);
        assert_eq!(series.last(), 4.0);
        assert_eq!(Series::default().thousandths(4), [0; 0]);
        (0..2 * POINTS_MAX).for_each(|_| series.push(0.0));
        assert_eq!(series.thousandths(usize::MAX), vec![0; POINTS_MAX]);
    }

    #[test]
    fn events_are_told_newest_first() {
        let ended = |iteration: u32| RunEvent {
            at_unix_ms: 1_700_000_000_000,
            event: Some(Event::IterationEnded(IterationEnded {
                iteration,
                games: 5,
                positions: 9,
            })),
        };
        let mut history = History::default();
        for first in [0, 40] {
            let events = (first..first + 40).map(ended).collect();
            history.note(&RunStatus {
                events,
                ..RunStatus::default()
            });
        }
        assert_eq!(history.events(1), ["22:13:20 iteration 79 ended after 5 games"]);
        assert_eq!(history.events(1_000).len(), EVENTS_MAX);
    }
}
