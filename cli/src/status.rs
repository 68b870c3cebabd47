//! `tengen status`: the run's status as a page, as JSON, as a line again and again, or as a full-screen view.

mod follow;
mod history;
pub(crate) mod page;
pub(crate) mod processes;
mod screen;
mod view;

use std::io::{IsTerminal, Write};
use std::time::Duration;

use clap::Args;
use tengen_proto::v1::{GetStatusRequest, RunStatus};
use tengen_service::shutdown;
use tokio::sync::mpsc;

use crate::client::{CoordinatorArgs, Reached, explain};
use crate::json;
use follow::News;

/// Statuses that wait to be shown; more make the watch wait.
const NEWS_MAX: usize = 16;

#[derive(Args, Debug)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    coordinator: CoordinatorArgs,
    /// Go on: a full-screen view in a terminal (q or Ctrl-C ends it), else a line each interval
    #[arg(long)]
    watch: bool,
    /// Print JSON, names as in the .proto files; with --watch one object a line
    #[arg(long)]
    json: bool,
    /// With --watch: time between two looks
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_interval, requires = "watch")]
    interval: Duration,
}

fn parse_interval(text: &str) -> Result<Duration, String> {
    let interval = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    match (Duration::from_millis(100)..=Duration::from_secs(60)).contains(&interval) {
        true => Ok(interval),
        false => Err("it is not between 100ms and 1m".to_owned()),
    }
}

pub(crate) async fn run(args: StatusArgs) -> anyhow::Result<()> {
    let run = args.coordinator.reach().await?;
    if args.watch {
        return watch(&args, run).await;
    }
    let answer = run.runs()?.get_status(GetStatusRequest {}).await;
    let status = answer.map_err(|status| explain(&status))?.into_inner();
    if args.json {
        println!("{}", serde_json::to_string_pretty(&json::of(&status, "RunStatus")?)?);
    } else {
        print!("{}", page::page(&status));
    }
    Ok(())
}

async fn watch(args: &StatusArgs, run: Reached) -> anyhow::Result<()> {
    let stop = shutdown::on_signals()?;
    // The first answer comes before the screen: a wrong address is told in a sentence.
    let first = run.runs()?.get_status(GetStatusRequest {}).await;
    let first = first.map_err(|status| explain(&status))?.into_inner();
    let (sender, news) = mpsc::channel(NEWS_MAX);
    let following = tokio::spawn(follow::follow(args.coordinator.clone(), run, args.interval, sender));
    let shown = if args.json || !std::io::stdout().is_terminal() {
        let line = if args.json { json_line } else { plain_line };
        tokio::select! {
            () = stop.cancelled() => Ok(()),
            printed = print_lines(news, line) => printed,
        }
    } else {
        screen::run(first, news, &stop).await
    };
    following.abort();
    shown
}

/// Prints a line for each status until nobody reads them.
async fn print_lines(
    mut news: mpsc::Receiver<News>,
    line: fn(&RunStatus) -> anyhow::Result<String>,
) -> anyhow::Result<()> {
    while let Some(news) = news.recv().await {
        match news {
            News::Status(status) => {
                if writeln!(std::io::stdout(), "{}", line(&status)?).is_err() {
                    return Ok(());
                }
            }
            News::Lost(reason) => tracing::warn!(reason, "the coordinator is away, trying on"),
            News::Refused(error) => return Err(error),
        }
    }
    Ok(())
}

fn json_line(status: &RunStatus) -> anyhow::Result<String> {
    Ok(json::of(status, "RunStatus")?.to_string())
}

fn plain_line(status: &RunStatus) -> anyhow::Result<String> {
    Ok(page::line(status))
}
