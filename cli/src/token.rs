//! `tengen token`: the tokens of a run, over its coordinator's AdminService; the first ones by its coordinator's `init`.

use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use tengen_proto::v1::{CreateTokenRequest, ListTokensRequest, RevokeTokenRequest, Token};
use tengen_service::args::LogArgs;
use tengen_service::files::write_private;

use crate::client::{CoordinatorArgs, explain, goes_on};
use crate::programs;

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Make the first tokens of a run whose coordinator is stopped: one private file for each role
    Init(InitArgs),
    /// Make a token (needs the role admin) and print it; it is shown this once
    Create(CreateArgs),
    /// List the tokens (needs the role admin)
    List(CoordinatorArgs),
    /// End a token and everything that goes on with it (needs the role admin)
    Revoke(RevokeArgs),
}

#[derive(Args, Debug)]
pub(crate) struct InitArgs {
    /// The run's data folder; created when missing
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Where to write viewer.token, actor.token, learner.token and admin.token; files that are there are never overwritten
    #[arg(long, value_name = "DIR")]
    tokens: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct CreateArgs {
    /// What it is for: viewer, actor, learner or admin
    #[arg(long, value_name = "ROLE", value_parser = ["viewer", "actor", "learner", "admin"])]
    role: String,
    /// What to call it in lists
    #[arg(long, value_name = "NAME", default_value = "")]
    name: String,
    /// For how long it is good, for example `30d` [default: until it is revoked]
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    expires: Option<Duration>,
    /// Write it to this new file, which nobody but its owner may read, instead of printing it
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    coordinator: CoordinatorArgs,
}

#[derive(Args, Debug)]
pub(crate) struct RevokeArgs {
    /// The token's id, as `tengen token list` shows it
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    coordinator: CoordinatorArgs,
}

pub(crate) async fn run(command: TokenCommand, log: &LogArgs) -> anyhow::Result<()> {
    match command {
        TokenCommand::Init(args) => init(&args, log).await,
        TokenCommand::Create(args) => create(args).await,
        TokenCommand::List(args) => list(&args).await,
        TokenCommand::Revoke(args) => revoke(args).await,
    }
}

/// The data folder is the coordinator's: it does the work.
async fn init(args: &InitArgs, log: &LogArgs) -> anyhow::Result<()> {
    let program = programs::find("tengen-coordinator")?;
    let status = tokio::process::Command::new(&program)
        .arg("init")
        .arg("--data")
        .arg(&args.data)
        .arg("--tokens")
        .arg(&args.tokens)
        .args(log.to_arguments())
        .status()
        .await
        .with_context(|| format!("failed to start {}", program.display()))?;
    if !status.success() {
        bail!("no token was made ({status})");
    }
    Ok(())
}

async fn create(args: CreateArgs) -> anyhow::Result<()> {
    if args.out.as_ref().is_some_and(|path| path.exists()) {
        bail!(
            "--out: {:?} is there already, and tokens are never overwritten",
            args.out.unwrap_or_default()
        );
    }
    // Less than a second would be no time at all, and 0 means for ever.
    let valid_seconds = args.expires.map_or(0, |time| time.as_secs().max(1));
    let mut client = args.coordinator.admin()?;
    let request = CreateTokenRequest {
        role: args.role,
        name: args.name,
        valid_seconds,
    };
    let made = client.create_token(request).await.map_err(|status| explain(&status))?;
    let made = made.into_inner();
    let id = made.token.map(|token| token.token_id).unwrap_or_default();
    match args.out {
        None => println!("{}", made.secret),
        Some(path) => {
            let text = format!("{}\n", made.secret);
            write_private(&path, text.as_bytes()).with_context(|| {
                format!("token {id} was made and is lost; revoke it with `tengen token revoke {id}`")
            })?;
        }
    }
    eprintln!("token {id}: keep it secret; `tengen token revoke {id}` ends it");
    Ok(())
}

async fn list(args: &CoordinatorArgs) -> anyhow::Result<()> {
    let mut client = args.admin()?;
    let mut request = ListTokensRequest::default();
    let mut tokens = Vec::new();
    loop {
        let answer = client.list_tokens(request.clone()).await;
        let page = answer.map_err(|status| explain(&status))?.into_inner();
        tokens.extend(page.tokens);
        if !goes_on(&mut request.page_token, page.next_page_token)? {
            break;
        }
    }
    if tokens.is_empty() {
        println!(
            "this coordinator runs without tokens and serves its own machine only; to make the first ones stop it and run\n  \
             tengen token init --data DIR --tokens DIR"
        );
        return Ok(());
    }
    print!("{}", table(&tokens));
    Ok(())
}

async fn revoke(args: RevokeArgs) -> anyhow::Result<()> {
    let request = RevokeTokenRequest { token_id: args.id };
    let answer = args.coordinator.admin()?.revoke_token(request).await;
    let token = answer.map_err(|status| explain(&status))?.into_inner();
    println!("token {} ({} {:?}) is revoked", token.token_id, token.role, token.name);
    Ok(())
}

fn table(tokens: &[Token]) -> String {
    let row = |token: &Token| {
        let standing = match (token.revoked_unix_ms, token.expires_unix_ms) {
            (0, 0) => "good".to_owned(),
            (0, expires) => format!("until {}", time(expires)),
            (revoked, _) => format!("revoked {}", time(revoked)),
        };
        format!(
            "{:<12}  {:<7}  {:<28}  {}  {}\n",
            token.token_id,
            token.role,
            standing,
            time(token.created_unix_ms),
            token.name
        )
    };
    let head = format!(
        "{:<12}  {:<7}  {:<28}  {:<20}  NAME\n",
        "ID", "ROLE", "STANDING", "MADE"
    );
    std::iter::once(head).chain(tokens.iter().map(row)).collect()
}

/// A time of the wire for people, UTC.
pub(crate) fn time(unix_ms: i64) -> String {
    let since = Duration::from_millis(u64::try_from(unix_ms).unwrap_or_default());
    humantime::format_rfc3339_seconds(UNIX_EPOCH + since).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_shows_who_may_come_and_until_when() {
        let token = Token {
            token_id: "0123456789ab".to_owned(),
            role: "viewer".to_owned(),
            name: "the wall screen".to_owned(),
            created_unix_ms: 1_700_000_000_000,
            ..Token::default()
        };
        let brief = Token {
            expires_unix_ms: 1_700_000_060_000,
            ..token.clone()
        };
        let gone = Token {
            revoked_unix_ms: 1_700_000_030_000,
            ..brief.clone()
        };
        let text = table(&[token, brief, gone]);
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[1].contains("good") && lines[1].ends_with("the wall screen"),
            "{text}"
        );
        assert!(lines[2].contains("until 2023-11-14T22:14:20Z"), "{text}");
        assert!(lines[3].contains("revoked 2023-11-14T22:13:50Z"), "{text}");
    }
}
