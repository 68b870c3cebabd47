//! `tengen audit`: who changed what in a run, and what it was before. (Audits of *games* are in the status.)

use clap::Args;
use tengen_proto::v1::{AuditEntry, ListAuditRequest};

use crate::client::{CoordinatorArgs, explain, goes_on};
use crate::token::time;

#[derive(Args, Debug)]
pub(crate) struct AuditArgs {
    /// Show at most so many, the newest; 0 shows all
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: u32,
    #[command(flatten)]
    coordinator: CoordinatorArgs,
}

pub(crate) async fn run(args: AuditArgs) -> anyhow::Result<()> {
    let mut client = args.coordinator.admin()?;
    let mut left = if args.limit == 0 { u32::MAX } else { args.limit };
    let mut request = ListAuditRequest::default();
    loop {
        request.page_size = i32::try_from(left).unwrap_or(i32::MAX);
        let answer = client.list_audit(request.clone()).await;
        let page = answer.map_err(|status| explain(&status))?.into_inner();
        for entry in &page.entries {
            print!("{}", row(entry));
        }
        left = left.saturating_sub(page.entries.len() as u32);
        if left == 0 || !goes_on(&mut request.page_token, page.next_page_token)? {
            return Ok(());
        }
    }
}

/// A change in a line, and one each for before and after.
fn row(entry: &AuditEntry) -> String {
    let mut text = format!(
        "{}  {:<16}  {}  ({})\n",
        time(entry.at_unix_ms),
        entry.action,
        entry.detail,
        entry.who
    );
    for (sign, value) in [('-', &entry.old), ('+', &entry.new)] {
        if !value.is_empty() {
            text.push_str(&format!("    {sign} {value}\n"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_shows_who_what_and_both_sides() {
        let entry = AuditEntry {
            at_unix_ms: 1_700_000_000_000,
            who: "token 0123456789ab (ann, admin)".to_owned(),
            action: "pause".to_owned(),
            detail: "self-play: moving house".to_owned(),
            old: "goes on".to_owned(),
            new: "paused".to_owned(),
        };
        assert_eq!(
            row(&entry),
            "2023-11-14T22:13:20Z  pause             self-play: moving house  (token 0123456789ab (ann, admin))\n    \
             - goes on\n    + paused\n"
        );
    }
}
