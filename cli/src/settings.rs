//! `tengen settings`: what a run goes by, changed while it goes on, and how it came to be so.

use clap::{Args, Subcommand};
use tengen_proto::v1::{
    ChangeSettingsRequest, GetSettingsRequest, ListSettingsRequest, SettingAssignment, SettingChange, Settings,
};

use crate::client::{CoordinatorArgs, explain, goes_on};
use crate::token::time;

#[derive(Debug, Subcommand)]
pub(crate) enum SettingsCommand {
    /// Show the settings in force, as a run file
    Show(CoordinatorArgs),
    /// Change settings while the run goes on, all of them or none (needs the role admin)
    Set(SetArgs),
    /// List every revision with what it changed, newest first
    History(CoordinatorArgs),
}

#[derive(Args, Debug)]
pub(crate) struct SetArgs {
    /// A key by its dotted name and its value as TOML: `learner.learning_rate=0.005`, `gate.kind=none`,
    /// `schedule.0.simulations=64`; the number after the last row of the schedule adds one
    #[arg(value_name = "KEY=VALUE", required = true, value_parser = parse)]
    assignments: Vec<SettingAssignment>,
    /// Check and compare, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Refuse unless this revision is in force [default: the one that is in force now]
    #[arg(long, value_name = "N")]
    expect_revision: Option<u32>,
    /// Why, for the audit
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
    #[command(flatten)]
    coordinator: CoordinatorArgs,
}

fn parse(text: &str) -> Result<SettingAssignment, String> {
    let (key, value) = text.split_once('=').ok_or_else(|| "it is not KEY=VALUE".to_owned())?;
    Ok(SettingAssignment {
        key: key.trim().to_owned(),
        value: value.trim().to_owned(),
    })
}

pub(crate) async fn run(command: SettingsCommand) -> anyhow::Result<()> {
    match command {
        SettingsCommand::Show(args) => show(&args).await,
        SettingsCommand::Set(args) => set(args).await,
        SettingsCommand::History(args) => history(&args).await,
    }
}

async fn newest(args: &CoordinatorArgs) -> anyhow::Result<Settings> {
    let run = args.reach().await?;
    let answer = run.runs()?.get_settings(GetSettingsRequest {}).await;
    Ok(answer.map_err(|status| explain(&status))?.into_inner())
}

async fn show(args: &CoordinatorArgs) -> anyhow::Result<()> {
    let settings = newest(args).await?;
    print!("{}", page(&settings));
    Ok(())
}

fn page(settings: &Settings) -> String {
    let mut text = format!("{}\n", head(settings, "# "));
    for key in &settings.live_keys {
        text.push_str(&format!(
            "# {key} was changed while the run went on and wins over the run file until `--apply`\n"
        ));
    }
    text + "\n" + &settings.run_toml
}

async fn set(args: SetArgs) -> anyhow::Result<()> {
    let expected_revision = match args.expect_revision {
        Some(revision) => revision,
        None => newest(&args.coordinator).await?.revision,
    };
    let request = ChangeSettingsRequest {
        assignments: args.assignments,
        expected_revision,
        validate_only: args.dry_run,
        reason: args.reason,
    };
    let answer = args.coordinator.admin()?.change_settings(request).await;
    let answer = answer.map_err(|status| explain(&status))?.into_inner();
    print!("{}", diff(&answer.changes));
    match (answer.changes.is_empty(), args.dry_run) {
        (true, _) => println!("nothing changes: revision {} stays", answer.revision),
        (false, true) => println!("nothing was changed: revision {} stays (--dry-run)", answer.revision),
        (false, false) => println!("revision {}", answer.revision),
    }
    Ok(())
}

async fn history(args: &CoordinatorArgs) -> anyhow::Result<()> {
    let run = args.reach().await?;
    let mut client = run.runs()?;
    let mut request = ListSettingsRequest::default();
    loop {
        let answer = client.list_settings(request.clone()).await;
        let page = answer.map_err(|status| explain(&status))?.into_inner();
        for settings in &page.settings {
            println!("{}", head(settings, ""));
            print!("{}", diff(&settings.changes));
        }
        if !goes_on(&mut request.page_token, page.next_page_token)? {
            return Ok(());
        }
    }
}

fn head(settings: &Settings, prefix: &str) -> String {
    format!(
        "{prefix}revision {}, {} by {}",
        settings.revision,
        time(settings.created_unix_ms),
        settings.who
    )
}

/// Before and after, a key at a time.
fn diff(changes: &[SettingChange]) -> String {
    let lines = changes
        .iter()
        .map(|change| format!("- {key} = {}\n+ {key} = {}\n", change.old, change.new, key = change.key));
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_assignment_has_a_key_and_a_value_and_a_diff_shows_both_sides() {
        let assignment = parse("learner.learning_rate = 0.005").unwrap();
        assert_eq!(
            (assignment.key.as_str(), assignment.value.as_str()),
            ("learner.learning_rate", "0.005")
        );
        let rows = parse("schedule=[{games=1, simulations=2}]").unwrap();
        assert_eq!(rows.value, "[{games=1, simulations=2}]");
        assert!(parse("learner").unwrap_err().contains("KEY=VALUE"));
        let change = SettingChange {
            key: "gate.games".to_owned(),
            old: "80".to_owned(),
            new: "200".to_owned(),
        };
        assert_eq!(diff(&[change]), "- gate.games = 80\n+ gate.games = 200\n");
    }

    #[test]
    fn the_page_is_a_run_file_that_says_which_keys_win_over_the_file() {
        let settings = Settings {
            revision: 3,
            who: "local".to_owned(),
            run_toml: "[gate]\ngames = 200\n".to_owned(),
            live_keys: vec!["gate.games".to_owned()],
            ..Settings::default()
        };
        let text = page(&settings);
        assert!(
            text.starts_with("# revision 3, ") && text.contains("# gate.games was changed"),
            "{text}"
        );
        assert!(text.parse::<toml::Table>().unwrap().contains_key("gate"));
    }
}
