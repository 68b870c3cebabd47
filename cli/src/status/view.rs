//! The full-screen view, drawn from what is known alone: it asks nobody and keeps no time.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Cell, Paragraph, Row, Sparkline, Table, Wrap};
use tengen_proto::v1::{ActorStatus, RunStatus};

use super::history::{History, Series};
use super::{page, processes};

/// Width of a bar, cells.
const BAR_WIDTH: usize = 24;
/// Height of the charts, cells.
const CHART_HEIGHT: u16 = 5;
/// Height of the bars and the facts among them, cells.
const BARS_HEIGHT: u16 = 6;
/// Events shown.
const EVENTS: usize = 3;

/// What is drawn.
#[derive(Clone, Debug)]
pub(super) struct View {
    status: RunStatus,
    history: History,
    /// Why the coordinator is away; empty while it answers.
    lost: String,
}

impl View {
    /// A view that begins with this status.
    pub(super) fn new(status: RunStatus) -> View {
        let mut view = View {
            status: RunStatus::default(),
            history: History::default(),
            lost: String::new(),
        };
        view.take(status);
        view
    }

    /// Takes in a newer status.
    pub(super) fn take(&mut self, status: RunStatus) {
        self.history.note(&status);
        self.status = status;
        self.lost.clear();
    }

    /// Notes that the coordinator is away.
    pub(super) fn lose(&mut self, reason: String) {
        self.lost = reason;
    }

    /// Draws everything.
    pub(super) fn draw(&self, frame: &mut Frame<'_>) {
        let rows = [
            Constraint::Length(1),
            Constraint::Length(BARS_HEIGHT),
            Constraint::Length(CHART_HEIGHT),
            Constraint::Min(3),
            Constraint::Length(5),
            Constraint::Length(1),
        ];
        let [head, bars, charts, actors, words, foot] = Layout::vertical(rows).areas(frame.area());
        frame.render_widget(self.head(), head);
        frame.render_widget(Paragraph::new(self.bars()), bars);
        self.draw_charts(frame, charts);
        frame.render_widget(self.actors(), actors);
        frame.render_widget(self.words(), words);
        frame.render_widget(self.foot(), foot);
    }

    fn head(&self) -> Paragraph<'_> {
        let status = &self.status;
        let text = format!(
            " {}  {}  generation {} ({})  up {}",
            status.run_id,
            status.game,
            status.generation,
            page::champion(status),
            page::duration(status.uptime_ms),
        );
        Paragraph::new(text).style(Style::new().add_modifier(Modifier::REVERSED | Modifier::BOLD))
    }

    fn bars(&self) -> Vec<Line<'_>> {
        let status = &self.status;
        let gate = match &status.gate {
            Some(gate) => bar(
                "gate",
                gate.pairs.into(),
                gate.pairs_target.into(),
                &format!("pairs  {}", page::gate_in_short(gate)),
            ),
            None => fact("gate", &format!("none open, {} decided", status.gates_decided)),
        };
        let learner = match &status.learner {
            Some(learner) => bar(
                "learner",
                learner.step,
                learner.step_limit.max(learner.step),
                &format!("steps  {}  {}", page::losses(learner), learner.activity),
            ),
            None => fact("learner", "not seen yet"),
        };
        let simulations = processes::simulations(status);
        vec![
            bar(
                "iteration",
                status.iteration_games.into(),
                status.iteration_games_target.into(),
                &format!("games of iteration {}", status.iteration),
            ),
            bar(
                "window",
                status.window_positions,
                status.window_capacity,
                &format!("positions  {} games stored", status.games),
            ),
            learner,
            fact("replay", &page::replay(status)),
            gate,
            fact("simulated", simulations.as_deref().unwrap_or("nothing yet")),
        ]
    }

    fn draw_charts(&self, frame: &mut Frame<'_>, area: Rect) {
        let history = &self.history;
        let charts = [
            ("positions/min", &history.positions_per_minute, 0),
            ("evaluations/s", &history.evaluations_per_second, 0),
            ("steps/s", &history.steps_per_second, 1),
            ("policy loss", &history.policy_loss, 3),
        ];
        let areas = Layout::horizontal([Constraint::Fill(1); 4]).split(area);
        for ((name, series, digits), area) in charts.into_iter().zip(areas.iter()) {
            draw_chart(frame, *area, name, series, digits);
        }
    }

    fn actors(&self) -> Table<'_> {
        let names = [
            "actor",
            "host",
            "computes on",
            "eval/s",
            "games/min",
            "cores",
            "waits",
            "strikes",
            "heard",
        ];
        let widths = [
            Constraint::Length(8),
            Constraint::Fill(1),
            Constraint::Fill(1),
            Constraint::Length(8),
            Constraint::Length(9),
            Constraint::Length(7),
            Constraint::Length(6),
            Constraint::Length(7),
            Constraint::Length(9),
        ];
        let head = Row::new(names).style(Style::new().add_modifier(Modifier::BOLD));
        let rows = self.status.actors.iter().map(actor_row);
        Table::new(rows, widths).header(head).block(
            Block::new()
                .borders(Borders::TOP)
                .title(format!(" {} actors ", self.status.actors.len())),
        )
    }

    fn words(&self) -> Paragraph<'_> {
        let alarm = Style::new().fg(Color::Yellow);
        let mut lines = Vec::new();
        if !self.lost.is_empty() {
            let text = format!("the coordinator is away, this is what it said last: {}", self.lost);
            lines.push(Line::styled(text, alarm));
        }
        if !self.status.waiting.is_empty() {
            lines.push(Line::styled(self.status.waiting.as_str(), alarm));
        }
        lines.extend(self.history.events(EVENTS).into_iter().map(Line::from));
        Paragraph::new(lines)
            .wrap(Wrap { trim: true })
            .block(Block::new().borders(Borders::TOP))
    }

    fn foot(&self) -> Line<'_> {
        let disk = self.status.disk.as_ref();
        let disk = disk.map_or_else(String::new, |disk| format!("disk {}", page::disk(disk)));
        Line::from(vec![
            Span::styled(" q quits  ", Style::new().add_modifier(Modifier::DIM)),
            Span::from(disk),
        ])
    }
}

/// ` replay     3.50 of 4.00 samples a position`
fn fact(name: &str, text: &str) -> Line<'static> {
    Line::from(format!(" {name:<10} {text}"))
}

/// ` window     [##########              ] 2212/60000 positions`
fn bar(name: &str, done: u64, of: u64, text: &str) -> Line<'static> {
    let share = if of == 0 {
        0.0
    } else {
        (done as f64 / of as f64).min(1.0)
    };
    let filled = (share * BAR_WIDTH as f64) as usize;
    Line::from(vec![
        Span::from(format!(" {name:<10} ")),
        Span::styled("█".repeat(filled), Style::new().fg(Color::Cyan)),
        Span::styled("░".repeat(BAR_WIDTH - filled), Style::new().add_modifier(Modifier::DIM)),
        Span::from(format!(" {done}/{of} {text}")),
    ])
}

fn draw_chart(frame: &mut Frame<'_>, area: Rect, name: &str, series: &Series, digits: usize) {
    let block = Block::bordered().title(format!(" {name} {:.digits$} ", series.last()));
    let width = usize::from(block.inner(area).width);
    let chart = Sparkline::default()
        .data(series.thousandths(width))
        .max(1_000)
        .style(Style::new().fg(Color::Cyan))
        .block(block);
    frame.render_widget(chart, area);
}

fn actor_row(actor: &ActorStatus) -> Row<'_> {
    let short: String = actor.actor_id.chars().take(8).collect();
    let cores = actor.usage.as_ref().map_or_else(String::new, |usage| {
        format!("{:.1}/{}", usage.cpu_cores, usage.cpu_cores_available)
    });
    let waits = actor.usage.as_ref().and_then(processes::core_wait);
    let row = Row::new([
        Cell::from(short),
        Cell::from(actor.host.as_str()),
        Cell::from(processes::provider(actor)),
        Cell::from(format!("{:.0}", actor.evaluations_per_second)),
        Cell::from(format!("{:.0}", actor.games_per_minute)),
        Cell::from(cores),
        Cell::from(waits.unwrap_or_default()),
        Cell::from(actor.strikes.to_string()),
        Cell::from(page::duration(actor.silent_ms)),
    ]);
    if actor.alive {
        row
    } else {
        row.style(Style::new().fg(Color::Yellow).add_modifier(Modifier::DIM))
    }
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use tengen_proto::v1::run_event::Event;
    use tengen_proto::v1::{DiskStatus, Gate, IterationEnded, LearnerStatus, Model, RunEvent, Usage};

    use super::*;

    /// One that plays, and one that is not heard any more.
    fn actors() -> Vec<ActorStatus> {
        vec![
            ActorStatus {
                actor_id: "0f1e2d3c-aaaa".to_owned(),
                host: "box".to_owned(),
                provider: "CPU".to_owned(),
                precision: "fp32".to_owned(),
                evaluations_per_second: 18_000.0,
                games_per_minute: 1_600.0,
                evaluations: 620_000,
                cache_hits: 200_000,
                terminal_visits: 30_000,
                reused_visits: 150_000,
                alive: true,
                usage: Some(Usage {
                    cpu_cores: 1.9,
                    cpu_cores_available: 2,
                    cpu_cores_lacking: Some(1.0),
                    ..Usage::default()
                }),
                ..ActorStatus::default()
            },
            ActorStatus {
                actor_id: "gone".to_owned(),
                host: "other".to_owned(),
                silent_ms: 60_000,
                ..ActorStatus::default()
            },
        ]
    }

    /// The status of a run in full swing, `second` seconds after it began.
    fn status(second: u32) -> RunStatus {
        RunStatus {
            run_id: "quickstart".to_owned(),
            game: "connect-four".to_owned(),
            uptime_ms: u64::from(second) * 1_000,
            iteration: 3,
            iteration_games: 120,
            iteration_games_target: 400,
            generation: 2,
            champion: Some(Model {
                model_id: vec![0xab; 32],
                ..Model::default()
            }),
            gate: Some(Gate {
                pairs: 10,
                pairs_target: 40,
                wins: 12,
                draws: 1,
                losses: 7,
                score: 0.625,
                threshold: 0.55,
                seconds_left_max: Some(90.0),
                ..Gate::default()
            }),
            games: 1_020,
            window_positions: 15_000,
            window_capacity: 60_000,
            samples_per_position: 3.5,
            samples_per_position_max: 4.0,
            steps_behind: 12,
            learner: Some(LearnerStatus {
                step: 469,
                step_limit: 481,
                policy_loss: 1.9,
                value_loss: 0.75,
                steps_per_second: 8.0,
                activity: "training".to_owned(),
                ..LearnerStatus::default()
            }),
            positions_per_minute: (second * 100) as f32,
            evaluations_per_second: 18_000.0,
            waiting: "self-play waits for the learner, which is 140 steps behind".to_owned(),
            actors: actors(),
            disk: Some(DiskStatus {
                data_bytes: 3 << 20,
                free_bytes: 5 << 30,
                ..DiskStatus::default()
            }),
            events: vec![RunEvent {
                at_unix_ms: 1_700_000_000_000 + i64::from(second) * 1_000,
                event: Some(Event::IterationEnded(IterationEnded {
                    iteration: 2,
                    games: 300,
                    positions: 15_000,
                })),
            }],
            ..RunStatus::default()
        }
    }

    fn drawn(view: &View, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| view.draw(frame)).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn the_view_of_a_run_in_full_swing() {
        let mut view = View::new(status(1));
        (2..=30).for_each(|second| view.take(status(second)));
        insta::assert_snapshot!(drawn(&view, 100, 28));
    }

    #[test]
    fn a_coordinator_that_is_away_is_said_and_forgotten_when_it_is_back() {
        let mut view = View::new(status(1));
        view.lose("connection refused".to_owned());
        assert!(drawn(&view, 100, 28).contains("the coordinator is away"));
        view.take(status(2));
        assert!(!drawn(&view, 100, 28).contains("the coordinator is away"));
    }

    #[test]
    fn no_size_of_a_terminal_and_no_status_is_too_small() {
        for (width, height) in [(1, 1), (10, 3), (40, 12), (300, 100)] {
            let _ = drawn(&View::new(RunStatus::default()), width, height);
            let _ = drawn(&View::new(status(3)), width, height);
        }
    }
}
