//! What `tengen up` shows: bars in a terminal, plain lines elsewhere, and a line for everything that happens once.

use std::io::Write;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use tengen_proto::v1::{Gate, RunStatus};
use tokio::time::Instant;

use crate::models::short_id;
use crate::status::{page, processes};

/// Plain lines come at most this often.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// The display.
pub(crate) struct Progress {
    started: Instant,
    generation: Option<u32>,
    style: Style,
}

enum Style {
    Bars(Box<Bars>),
    Lines { last: Option<Instant> },
}

struct Bars {
    all: MultiProgress,
    iteration: ProgressBar,
    window: ProgressBar,
    learner: ProgressBar,
    gate: ProgressBar,
    simulations: ProgressBar,
    rates: ProgressBar,
}

impl Progress {
    pub(crate) fn new() -> Progress {
        let bars = Bars::new();
        // Hidden where they could not be drawn over: in a pipe, in a file, in a terminal that cannot go back a line.
        let style = if bars.all.is_hidden() {
            Style::Lines { last: None }
        } else {
            Style::Bars(Box::new(bars))
        };
        Progress {
            started: Instant::now(),
            generation: None,
            style,
        }
    }

    /// A line that stays.
    pub(crate) fn note(&self, text: &str) {
        let line = format!("[{}] {text}", self.elapsed());
        match &self.style {
            // Printing fails only when the terminal is gone; there is nobody to tell then.
            Style::Bars(bars) => drop(bars.all.println(line)),
            Style::Lines { .. } => print_line(&line),
        }
    }

    /// A gate was decided.
    pub(crate) fn decided(&mut self, gate: &Gate) {
        self.note(&format!(
            "gate {}: candidate {} of iteration {} {}",
            gate.gate_id,
            short_id(&gate.candidate_id),
            gate.iteration,
            gate.reason
        ));
    }

    /// The run's newest status.
    pub(crate) fn show(&mut self, status: &RunStatus) {
        if self
            .generation
            .replace(status.generation)
            .is_some_and(|before| before != status.generation)
        {
            let champion = page::champion(status);
            self.note(&format!("generation {}: {champion} is champion", status.generation));
        }
        let elapsed = self.elapsed();
        match &mut self.style {
            Style::Bars(bars) => bars.show(status, &elapsed),
            Style::Lines { last } => {
                if last.is_none_or(|last| last.elapsed() >= LINE_EVERY) {
                    *last = Some(Instant::now());
                    print_line(&format!("[{elapsed}] {}", page::line(status)));
                }
            }
        }
    }

    pub(crate) fn finish(&self) {
        self.note("stopped");
        if let Style::Bars(bars) = &self.style {
            for bar in [
                &bars.iteration,
                &bars.window,
                &bars.learner,
                &bars.gate,
                &bars.simulations,
                &bars.rates,
            ] {
                bar.finish_and_clear();
            }
        }
    }

    fn elapsed(&self) -> String {
        clock(self.started.elapsed())
    }
}

/// A time as hours, minutes and seconds.
fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

impl Bars {
    fn new() -> Bars {
        let all = MultiProgress::with_draw_target(ProgressDrawTarget::stdout());
        let bar = |template: &str| {
            let style = ProgressStyle::with_template(template).expect("templates are constants that parse");
            all.add(ProgressBar::new(1).with_style(style.progress_chars("=> ")))
        };
        Bars {
            iteration: bar("iteration {prefix:>4} [{bar:30}] {pos}/{len} games  {msg}"),
            window: bar("window         [{bar:30}] {pos}/{len} positions"),
            learner: bar("learner        [{bar:30}] {pos}/{len} steps  {msg}"),
            gate: bar("gate           [{bar:30}] {pos}/{len} pairs  {msg}"),
            simulations: bar("simulations     {msg}"),
            rates: bar("{msg}"),
            all,
        }
    }

    fn show(&self, status: &RunStatus, elapsed: &str) {
        let set = |bar: &ProgressBar, position: u64, length: u64| {
            bar.set_length(length.max(1));
            bar.set_position(position.min(length));
        };
        self.iteration.set_prefix(status.iteration.to_string());
        set(
            &self.iteration,
            status.iteration_games.into(),
            status.iteration_games_target.into(),
        );
        self.iteration.set_message(format!(
            "{} games in all, generation {}",
            status.games, status.generation
        ));
        set(&self.window, status.window_positions, status.window_capacity);
        if let Some(learner) = &status.learner {
            set(&self.learner, learner.step, learner.step_limit.max(learner.step));
            self.learner
                .set_message(format!("{} ({})", page::losses(learner), learner.activity));
        }
        match &status.gate {
            Some(gate) => {
                set(&self.gate, gate.pairs.into(), gate.pairs_target.into());
                self.gate.set_message(page::tally(gate));
            }
            None => {
                set(&self.gate, 0, 1);
                self.gate.set_message("none open");
            }
        }
        let simulations = processes::simulations(status).unwrap_or_else(|| "none yet".to_owned());
        self.simulations.set_message(simulations);
        self.rates
            .set_message(format!("{elapsed}  {}  {}", page::rates(status), status.waiting));
    }
}

/// Prints a line, also into a pipe that nobody reads any more: the cluster's drain must not die of it.
fn print_line(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_shown_as_a_clock_shows_it() {
        let shown = |hours: u64, minutes, seconds| clock(Duration::from_secs((hours * 60 + minutes) * 60 + seconds));
        assert_eq!(shown(0, 0, 9), "00:00:09");
        assert_eq!(shown(1, 59, 59), "01:59:59");
        assert_eq!(shown(100, 2, 30), "100:02:30");
    }
}
