//! What the learner does next, as a pure decision: train, publish, wait or stop.
//!
//! Nothing here computes, waits or talks; the training loop asks after every step.

use std::fmt;

use tengen_replay::StepLimit;
use tengen_service::reports::WAITING_FOR_GAMES;

/// How far the mirror of the window is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowProgress {
    /// Trainable positions of the run that the mirror has seen in all.
    pub positions_total: u64,
    /// Positions that can be sampled now.
    pub positions: u64,
    /// Most positions the window can hold; 0 while unknown.
    pub capacity: u64,
    /// Whether the mirror has read everything that was there when it began.
    pub caught_up: bool,
}

/// A candidate that the coordinator wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The iteration it closes; at least 1 (0 belongs to the random network).
    pub iteration: u32,
    /// Trainable positions committed when that iteration ended: it is cut once these have been trained on.
    pub positions: u64,
}

/// What the training loop is told from outside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Inputs {
    /// The window.
    pub window: WindowProgress,
    /// The newest candidate that is due.
    pub due: Option<Candidate>,
    /// Newest iteration whose candidate the coordinator has.
    pub published_iteration: u32,
    /// Newest iteration whose candidate was given up: it failed its parity check or was refused.
    pub given_up_iteration: u32,
    /// Whether a publication is on its way.
    pub publishing: bool,
    /// Whether people paused training: a candidate that is trained is still published.
    pub paused: bool,
    /// Generation of the champion that self-play uses now.
    pub champion_generation: u32,
    /// Whether the process was asked to stop.
    pub stop: bool,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Write a checkpoint and end.
    Stop,
    /// One step of training.
    Train,
    /// Cut and publish this candidate.
    Publish(Candidate),
    /// Nothing can be done until an input changes.
    Wait(Waiting),
}

/// Why nothing can be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// The mirror is still reading what was there.
    Mirror,
    /// People paused training.
    Paused,
    /// The window is smaller than the first step wants.
    Window {
        /// Positions it holds.
        positions: u64,
        /// Positions it must hold.
        needed: u64,
    },
    /// The samples-per-position limit is reached.
    Games {
        /// Positions of the run so far.
        positions_total: u64,
        /// Positions that allow the next step.
        needed: u64,
    },
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Waiting::Mirror => f.write_str("reading the window"),
            Waiting::Paused => f.write_str("waiting: training is paused"),
            Waiting::Window { positions, needed } => {
                write!(
                    f,
                    "{WAITING_FOR_GAMES}: {positions} of {needed} positions before the first step"
                )
            }
            Waiting::Games {
                positions_total,
                needed,
            } => {
                write!(
                    f,
                    "{WAITING_FOR_GAMES}: {positions_total} of {needed} positions for the next step"
                )
            }
        }
    }
}

/// Decides, and remembers which candidate it is working towards.
///
/// A candidate's goal is fixed when it is first seen. Were the newest one always taken, a learner slower than the actors
/// would run after a goal that moves away and publish nothing.
#[derive(Clone, Debug)]
pub struct Planner {
    limit: StepLimit,
    window_min_positions: u64,
    goal: Option<Candidate>,
}

impl Planner {
    /// A planner under this limit that waits for a window of so many positions before the first step.
    pub fn new(limit: StepLimit, window_min_positions: u64) -> Planner {
        Planner {
            limit,
            window_min_positions,
            goal: None,
        }
    }

    /// The limit.
    pub fn limit(&self) -> &StepLimit {
        &self.limit
    }

    /// What to do after `step` steps.
    pub fn next(&mut self, inputs: &Inputs, step: u64) -> Next {
        let settled = inputs.published_iteration.max(inputs.given_up_iteration);
        let wanted = |candidate: &Candidate| candidate.iteration > settled;
        self.goal = self.goal.filter(wanted).or(inputs.due.filter(wanted));
        if inputs.stop {
            return Next::Stop;
        }
        // The export is checked on positions of the window, so it must be there.
        let may_publish = !inputs.publishing && inputs.window.caught_up && inputs.window.positions > 0;
        if let Some(goal) = self.goal.filter(|_| may_publish)
            && step >= self.goal_step(goal)
        {
            return Next::Publish(goal);
        }
        if inputs.paused {
            return Next::Wait(Waiting::Paused);
        }
        self.train_or_wait(&inputs.window, step)
    }

    /// Goes by another limit and another least window from now on. The goal stays.
    pub fn follow(&mut self, limit: StepLimit, window_min_positions: u64) {
        self.limit = limit;
        self.window_min_positions = window_min_positions;
    }

    /// Steps after which the candidate is cut: all that its positions allow, and at least one, since an untrained network is
    /// no candidate. Never out of reach for good: self-play does not wait for candidates, so positions keep coming.
    fn goal_step(&self, goal: Candidate) -> u64 {
        self.limit.steps(goal.positions).max(1)
    }

    fn train_or_wait(&self, window: &WindowProgress, step: u64) -> Next {
        if !window.caught_up {
            return Next::Wait(Waiting::Mirror);
        }
        // Never more than the window can hold at all, or a small window would wait for ever.
        let needed = self.window_min_positions.clamp(1, window.capacity.max(1));
        if window.positions < needed {
            return Next::Wait(Waiting::Window {
                positions: window.positions,
                needed,
            });
        }
        if step < self.limit.steps(window.positions_total) {
            return Next::Train;
        }
        let needed = self.limit.positions_for(step + 1);
        Next::Wait(Waiting::Games {
            positions_total: window.positions_total,
            needed,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planner() -> Planner {
        Planner::new(StepLimit::new(100, 2.0), 500)
    }

    fn inputs(positions_total: u64) -> Inputs {
        let window = WindowProgress {
            positions_total,
            positions: positions_total,
            capacity: 10_000,
            caught_up: true,
        };
        Inputs {
            window,
            ..Inputs::default()
        }
    }

    fn due(iteration: u32, positions: u64) -> Option<Candidate> {
        Some(Candidate { iteration, positions })
    }

    #[test]
    fn training_waits_for_the_mirror_then_for_the_window_then_for_the_limit() {
        let mut planner = planner();
        let reading = WindowProgress {
            caught_up: false,
            ..inputs(5_000).window
        };
        assert_eq!(
            planner.next(
                &Inputs {
                    window: reading,
                    ..inputs(0)
                },
                0
            ),
            Next::Wait(Waiting::Mirror)
        );
        let small = Waiting::Window {
            positions: 499,
            needed: 500,
        };
        assert_eq!(planner.next(&inputs(499), 0), Next::Wait(small));
        assert_eq!(planner.next(&inputs(500), 0), Next::Train);
        assert_eq!(planner.next(&inputs(500), 9), Next::Train);
        let held_back = Waiting::Games {
            positions_total: 500,
            needed: 550,
        };
        assert_eq!(planner.next(&inputs(500), 10), Next::Wait(held_back));
        assert_eq!(planner.next(&inputs(550), 10), Next::Train);
    }

    #[test]
    fn a_learner_that_lacks_games_says_so_in_the_words_that_the_coordinator_knows() {
        let window = Waiting::Window {
            positions: 1,
            needed: 2,
        };
        let games = Waiting::Games {
            positions_total: 1,
            needed: 2,
        };
        for waiting in [window, games] {
            assert!(waiting.to_string().starts_with(WAITING_FOR_GAMES), "{waiting}");
        }
        for other in [Waiting::Mirror, Waiting::Paused] {
            assert!(!other.to_string().starts_with(WAITING_FOR_GAMES), "{other}");
        }
    }

    #[test]
    fn a_window_smaller_than_the_first_step_wants_does_not_wait_for_ever() {
        let window = |positions| WindowProgress {
            positions,
            capacity: 300,
            ..inputs(5_000).window
        };
        let next = |positions| {
            planner().next(
                &Inputs {
                    window: window(positions),
                    ..inputs(0)
                },
                0,
            )
        };
        assert_eq!(
            next(299),
            Next::Wait(Waiting::Window {
                positions: 299,
                needed: 300
            })
        );
        assert_eq!(next(300), Next::Train);
    }

    #[test]
    fn a_candidate_is_cut_when_its_positions_are_trained_on() {
        let mut planner = planner();
        let now = Inputs {
            due: due(1, 600),
            ..inputs(900)
        };
        assert_eq!(planner.next(&now, 11), Next::Train);
        assert_eq!(
            planner.next(&now, 12),
            Next::Publish(Candidate {
                iteration: 1,
                positions: 600
            })
        );
        assert_eq!(
            planner.next(
                &Inputs {
                    publishing: true,
                    ..now
                },
                12
            ),
            Next::Train
        );
        for settled in [
            Inputs {
                published_iteration: 1,
                ..now
            },
            Inputs {
                given_up_iteration: 1,
                ..now
            },
        ] {
            assert_eq!(planner.clone().next(&settled, 12), Next::Train);
        }
    }

    #[test]
    fn a_newer_candidate_does_not_move_the_goal() {
        let mut planner = planner();
        assert_eq!(
            planner.next(
                &Inputs {
                    due: due(1, 600),
                    ..inputs(900)
                },
                5
            ),
            Next::Train
        );
        let later = Inputs {
            due: due(2, 5_000),
            ..inputs(5_000)
        };
        assert_eq!(
            planner.next(&later, 12),
            Next::Publish(Candidate {
                iteration: 1,
                positions: 600
            })
        );
        let settled = Inputs {
            published_iteration: 1,
            ..later
        };
        assert_eq!(planner.next(&settled, 12), Next::Train);
        assert_eq!(
            planner.next(&settled, 100),
            Next::Publish(Candidate {
                iteration: 2,
                positions: 5_000
            })
        );
    }

    #[test]
    fn after_a_restart_nothing_is_published_before_the_window_is_read() {
        let mut planner = planner();
        let now = Inputs {
            due: due(1, 600),
            ..Inputs::default()
        };
        assert_eq!(planner.next(&now, 12), Next::Wait(Waiting::Mirror));
        let read = Inputs {
            window: inputs(600).window,
            ..now
        };
        assert_eq!(
            planner.next(&read, 12),
            Next::Publish(Candidate {
                iteration: 1,
                positions: 600
            })
        );
    }

    #[test]
    fn an_untrained_network_is_not_published() {
        let mut planner = planner();
        let now = Inputs {
            due: due(1, 10),
            ..inputs(10)
        };
        assert_eq!(
            planner.next(&now, 0),
            Next::Wait(Waiting::Window {
                positions: 10,
                needed: 500
            })
        );
        assert_eq!(
            planner.next(&now, 1),
            Next::Publish(Candidate {
                iteration: 1,
                positions: 10
            })
        );
    }

    #[test]
    fn a_candidate_waits_until_the_mirror_has_its_games() {
        let mut planner = planner();
        let now = Inputs {
            due: due(3, 1_200),
            ..inputs(1_000)
        };
        assert!(matches!(planner.next(&now, 20), Next::Wait(Waiting::Games { .. })));
        let arrived = Inputs {
            due: due(3, 1_200),
            ..inputs(1_210)
        };
        assert_eq!(planner.next(&arrived, 20), Next::Train);
        assert_eq!(
            planner.next(&arrived, 24),
            Next::Publish(Candidate {
                iteration: 3,
                positions: 1_200
            })
        );
    }

    #[test]
    fn a_pause_holds_the_next_step_and_not_a_candidate_that_is_trained() {
        let mut planner = planner();
        let paused = Inputs {
            paused: true,
            ..inputs(900)
        };
        assert_eq!(planner.next(&paused, 5), Next::Wait(Waiting::Paused));
        let trained = Inputs {
            due: due(1, 600),
            ..paused
        };
        assert_eq!(planner.next(&trained, 11), Next::Wait(Waiting::Paused));
        assert!(matches!(planner.next(&trained, 12), Next::Publish(_)));
        let stopped = Inputs { stop: true, ..paused };
        assert_eq!(planner.next(&stopped, 5), Next::Stop);
    }

    #[test]
    fn another_limit_holds_from_the_next_step_on() {
        let mut planner = planner();
        assert!(matches!(
            planner.next(&inputs(500), 10),
            Next::Wait(Waiting::Games { .. })
        ));
        let limit = planner.limit().continued(100, 4.0, 10);
        planner.follow(limit, 2_000);
        assert!(matches!(
            planner.next(&inputs(900), 10),
            Next::Wait(Waiting::Window { needed: 2_000, .. })
        ));
        planner.follow(limit, 500);
        assert_eq!(planner.next(&inputs(525), 10), Next::Train);
    }

    #[test]
    fn stop_comes_before_everything() {
        let mut planner = planner();
        let now = Inputs {
            stop: true,
            due: due(1, 600),
            ..inputs(900)
        };
        assert_eq!(planner.next(&now, 12), Next::Stop);
    }
}
