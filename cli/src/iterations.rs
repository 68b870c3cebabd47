//! `tengen iterations`: the rounds of the schedule that ended, with their games and times.

use std::time::Duration;

use clap::Args;
use tengen_proto::v1::{Iteration, ListIterationsRequest};

use crate::client::{CoordinatorArgs, explain, goes_on};
use crate::json;
use crate::token::time;

#[derive(Args, Debug)]
pub(crate) struct IterationsArgs {
    /// Show at most so many, the newest; 0 shows all
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: u32,
    /// Print a JSON object a line instead of a table
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    coordinator: CoordinatorArgs,
}

pub(crate) async fn run(args: IterationsArgs) -> anyhow::Result<()> {
    let run = args.coordinator.reach().await?;
    let mut client = run.runs()?;
    let mut left = if args.limit == 0 { u32::MAX } else { args.limit };
    let mut request = ListIterationsRequest::default();
    if !args.json {
        print!("{}", head());
    }
    loop {
        request.page_size = i32::try_from(left).unwrap_or(i32::MAX);
        let answer = client.list_iterations(request.clone()).await;
        let page = answer.map_err(|status| explain(&status))?.into_inner();
        for iteration in &page.iterations {
            if args.json {
                println!("{}", json::of(iteration, "Iteration")?);
            } else {
                print!("{}", row(iteration));
            }
        }
        left = left.saturating_sub(page.iterations.len() as u32);
        if left == 0 || !goes_on(&mut request.page_token, page.next_page_token)? {
            return Ok(());
        }
    }
}

fn head() -> String {
    format!(
        "{:>9}  {:>7}  {:>12}  {:<20}  {:<9}  TOOK\n",
        "ITERATION", "GAMES", "POSITIONS", "ENDED", "CANDIDATE"
    )
}

/// An iteration in a line; its positions are those of the run when it ended.
fn row(iteration: &Iteration) -> String {
    let took_ms = iteration.ended_unix_ms.saturating_sub(iteration.began_unix_ms);
    let took = Duration::from_secs(u64::try_from(took_ms).unwrap_or(0) / 1_000);
    format!(
        "{:>9}  {:>7}  {:>12}  {:<20}  {:<9}  {}\n",
        iteration.iteration,
        iteration.games,
        iteration.positions,
        time(iteration.ended_unix_ms),
        if iteration.candidate_due { "due" } else { "none" },
        humantime::format_duration(took)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_iteration_is_a_line_under_the_head() {
        let iteration = Iteration {
            iteration: 12,
            games: 500,
            positions: 41_234,
            candidate_due: true,
            began_unix_ms: 1_700_000_000_000 - 95_500,
            ended_unix_ms: 1_700_000_000_000,
        };
        assert_eq!(
            head() + &row(&iteration),
            "ITERATION    GAMES     POSITIONS  ENDED                 CANDIDATE  TOOK\n       12      500         41234  2023-11-14T22:13:20Z  \
             due        1m 35s\n"
        );
    }
}
