//! `tengen actors`: who plays, who is suspended, and whose games count.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::{Args, Subcommand};
use tengen_proto::v1::{Actor, ListActorsRequest, PurgeActorRequest, ResumeActorRequest, SuspendActorRequest};

use crate::client::{CoordinatorArgs, explain, goes_on};
use crate::token::time;

#[derive(Debug, Subcommand)]
pub(crate) enum ActorsCommand {
    /// List every actor that ever registered
    List(CoordinatorArgs),
    /// Serve an actor no more: no work, and no game of it is taken (needs the role admin)
    Suspend(SuspendArgs),
    /// Serve a suspended actor again, with no strikes against it (needs the role admin)
    Resume(ResumeArgs),
    /// Take an actor's self-play games out of the window; they stay stored (needs the role admin)
    Purge(PurgeArgs),
}

#[derive(Args, Debug)]
pub(crate) struct SuspendArgs {
    /// The actor, as `tengen actors list` shows it
    #[arg(value_name = "ID")]
    id: String,
    /// Why, for the audit
    #[arg(long, value_name = "TEXT", default_value = "by hand")]
    reason: String,
    #[command(flatten)]
    coordinator: CoordinatorArgs,
}

#[derive(Args, Debug)]
pub(crate) struct ResumeArgs {
    /// The actor, as `tengen actors list` shows it
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    coordinator: CoordinatorArgs,
}

#[derive(Args, Debug)]
pub(crate) struct PurgeArgs {
    /// The actor, as `tengen actors list` shows it
    #[arg(value_name = "ID")]
    id: String,
    /// Games stored since then: a time such as 2026-01-31T12:00:00Z, a duration back from now such as `2h`, or `ever`
    #[arg(long, value_name = "TIME", value_parser = parse_since)]
    since: Since,
    #[command(flatten)]
    coordinator: CoordinatorArgs,
}

/// The beginning of a purge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Since {
    At(SystemTime),
    Back(Duration),
}

fn parse_since(text: &str) -> Result<Since, String> {
    if text == "ever" {
        return Ok(Since::At(UNIX_EPOCH));
    }
    if let Ok(duration) = humantime::parse_duration(text) {
        return Ok(Since::Back(duration));
    }
    humantime::parse_rfc3339_weak(text).map(Since::At).map_err(|_| {
        "it is neither a time such as 2026-01-31T12:00:00Z, nor a duration such as 2h, nor `ever`".to_owned()
    })
}

impl Since {
    /// Milliseconds since the Unix epoch.
    fn unix_ms(self, now: SystemTime) -> i64 {
        let at = match self {
            Since::At(at) => at,
            Since::Back(duration) => now.checked_sub(duration).unwrap_or(UNIX_EPOCH),
        };
        let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }
}

pub(crate) async fn run(command: ActorsCommand) -> anyhow::Result<()> {
    match command {
        ActorsCommand::List(args) => list(&args).await,
        ActorsCommand::Suspend(args) => {
            let request = SuspendActorRequest {
                actor_id: args.id,
                reason: args.reason,
            };
            let answer = args.coordinator.admin()?.suspend_actor(request).await;
            let actor = answer.map_err(|status| explain(&status))?.into_inner();
            println!(
                "actor {} is suspended since {}",
                actor.actor_id,
                time(actor.suspended_unix_ms)
            );
            Ok(())
        }
        ActorsCommand::Resume(args) => {
            let request = ResumeActorRequest { actor_id: args.id };
            let answer = args.coordinator.admin()?.resume_actor(request).await;
            let actor = answer.map_err(|status| explain(&status))?.into_inner();
            println!("actor {} is served again", actor.actor_id);
            Ok(())
        }
        ActorsCommand::Purge(args) => purge(args).await,
    }
}

async fn list(args: &CoordinatorArgs) -> anyhow::Result<()> {
    let reached = args.reach().await?;
    let mut client = reached.runs()?;
    let mut request = ListActorsRequest {
        page_size: 1_000,
        page_token: String::new(),
    };
    print!("{}", head());
    loop {
        let answer = client.list_actors(request.clone()).await;
        let page = answer.map_err(|status| explain(&status))?.into_inner();
        page.actors.iter().for_each(|actor| print!("{}", row(actor)));
        if !goes_on(&mut request.page_token, page.next_page_token)? {
            return Ok(());
        }
    }
}

async fn purge(args: PurgeArgs) -> anyhow::Result<()> {
    let since_unix_ms = args.since.unix_ms(SystemTime::now());
    let request = PurgeActorRequest {
        actor_id: args.id,
        since_unix_ms,
    };
    let answer = args.coordinator.admin()?.purge_actor(request).await;
    let purged = answer.map_err(|status| explain(&status))?.into_inner();
    println!(
        "{} self-play games with {} positions stored since {} are out of the window (epoch {})",
        purged.games,
        purged.positions,
        time(since_unix_ms),
        purged.window_epoch
    );
    if purged.match_games > 0 {
        println!(
            "{} match games stay counted: decided gates stay decided",
            purged.match_games
        );
    }
    Ok(())
}

fn head() -> String {
    format!(
        "{:<36}  {:<30}  {:>7}  {:<12}  {:<20}  HOST\n",
        "ID", "STANDING", "STRIKES", "TOKEN", "REGISTERED"
    )
}

fn row(actor: &Actor) -> String {
    let standing = match actor.suspended_unix_ms {
        0 => "served".to_owned(),
        since => format!("suspended {}", time(since)),
    };
    let token = if actor.token_id.is_empty() {
        "none"
    } else {
        &actor.token_id
    };
    format!(
        "{:<36}  {standing:<30}  {:>7}  {token:<12}  {}  {}\n",
        actor.actor_id,
        actor.strikes,
        time(actor.registered_unix_ms),
        actor.host
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_purge_begins_at_a_time_or_so_long_ago() {
        let now = UNIX_EPOCH + Duration::from_secs(10_000);
        let check = |text: &str, unix_ms: i64| assert_eq!(parse_since(text).unwrap().unix_ms(now), unix_ms, "{text}");
        check("ever", 0);
        check("1h", 6_400_000);
        check("1000h", 0);
        check("1970-01-01T00:01:00Z", 60_000);
        check("1970-01-02 00:00:00", 86_400_000);
        assert!(parse_since("yesterday").unwrap_err().contains("2h"));
    }

    #[test]
    fn a_row_tells_whether_the_actor_is_served() {
        let actor = Actor {
            actor_id: "a".to_owned(),
            strikes: 7,
            suspended_unix_ms: 1_700_000_000_000,
            ..Actor::default()
        };
        let text = row(&actor);
        assert!(
            text.contains("suspended 2023-11-14T22:13:20Z") && text.contains("none"),
            "{text}"
        );
    }
}
