//! `tengen rules check`: the verification checklist of a rules integration, each line with what was measured.
//!
//! Every line is printed as soon as it is measured. Training is a short run of the whole system in a folder that is thrown
//! away.

mod laws;
mod replay;
mod selfplay;
mod survey;
mod training;

use clap::Args;
use indicatif::ProgressBar;
use serde_json::{Value, json};
use tengen_service::args::LogArgs;

use super::{AnyGameArg, Output};

#[derive(Args, Debug)]
pub(crate) struct CheckArgs {
    /// Game, for example `hex?size=9`; `tengen rules list` names them
    game: AnyGameArg,
    /// Games of self-play with a random network
    #[arg(long, value_name = "N", default_value_t = 10)]
    games: u32,
    /// Root visits of each search of those games, and of the games that are trained on
    #[arg(long, value_name = "S", default_value_t = 4)]
    simulations: u32,
    /// Leave out the short run of the whole system that measures training
    #[arg(long)]
    without_training: bool,
    #[command(flatten)]
    output: Output,
}

/// The seed of everything random here.
const SEED: u64 = 1;

/// The result of an item that training measures, where there was none.
const NOT_TRAINED: &str = "not measured, as asked (--without-training)";

/// What the items of the checklist belong to.
#[derive(Clone, Copy, Debug)]
enum Group {
    Rules,
    Training,
    Reproducibility,
}

impl Group {
    const fn name(self) -> &'static str {
        match self {
            Group::Rules => "rules",
            Group::Training => "training",
            Group::Reproducibility => "reproducibility",
        }
    }
}

/// The checklist as far as it was measured.
struct Report {
    json: bool,
    lines: Vec<Value>,
    busy: ProgressBar,
}

impl Report {
    fn new(output: Output) -> Report {
        Report {
            json: output.json,
            lines: Vec::new(),
            // On standard error, and only where that is a terminal.
            busy: ProgressBar::new_spinner(),
        }
    }

    /// Says what is being measured.
    fn begin(&self, doing: impl Into<String>) {
        self.busy.enable_steady_tick(std::time::Duration::from_millis(100));
        self.busy.set_message(doing.into());
    }

    /// Adds an item with its result.
    fn line(&mut self, group: Group, item: &'static str, measured: String) {
        if self.json {
            self.lines
                .push(json!({ "group": group.name(), "item": item, "measured": measured }));
        } else {
            self.busy
                .suspend(|| println!("{:<15} {item}\n{:16}{measured}", group.name(), ""));
        }
    }
}

pub(super) async fn run(args: &CheckArgs, log: &LogArgs) -> anyhow::Result<()> {
    let game = &args.game.0;
    let mut report = Report::new(args.output);
    report.begin("playing random games");
    let survey = game.visit(survey::Take);
    game.visit(laws::Laws {
        report: &mut report,
        survey: &survey,
    })?;
    let played = selfplay::measure(args, &mut report)?;
    let trained = if args.without_training {
        None
    } else {
        Some(training::train(args, &survey, &report, log).await?)
    };
    training::tell(trained.as_ref(), &survey, &mut report);
    game.visit(replay::Replay {
        report: &mut report,
        survey: &survey,
        played: &played,
        trained: trained.as_ref(),
    })?;
    report.busy.finish_and_clear();
    if args.output.json {
        println!("{}", json!({ "game": game.spec().id, "lines": report.lines }));
    }
    Ok(())
}
