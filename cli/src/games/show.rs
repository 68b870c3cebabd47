//! `tengen games show`: one game in words, or whole as JSON.

use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Context, ensure};
use clap::Args;
use prost::Message;
use serde_json::json;
use tengen_games::{Action, Game, GameVisitor, State, notation};
use tengen_proto::v1;
use tengen_records::exchange::{game_of, seat_names};
use tengen_records::{Record, encode};

use super::list::{as_json, kind_name};
use super::source::{Found, OneGameArgs};
use crate::json;

#[derive(Args, Debug)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    game: OneGameArgs,
    /// Show the position after this many plies instead of the last one
    #[arg(long, value_name = "PLIES")]
    ply: Option<usize>,
    /// Print the whole record as one JSON object instead of words
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: ShowArgs) -> anyhow::Result<()> {
    let Found { record, stored } = args.game.find().await?;
    let board = game_of(&record)?.visit(Board {
        record: &record,
        plies: args.ply,
    })?;
    if args.json {
        let message = v1::GameRecord::decode(&encode(&record)[..])?;
        let shown = json!({
            "stored": stored.as_ref().map(as_json).transpose()?,
            "record": json::of(&message, "GameRecord")?,
            "moves": board.moves,
            "plies_shown": board.plies,
            "text": board.text,
        });
        println!("{shown}");
        return Ok(());
    }
    print!(
        "{}{}\n{}",
        heading(&record, stored.as_ref()),
        moves(&board.moves),
        board.text
    );
    Ok(())
}

/// Who played what, and when.
pub(super) fn heading(record: &Record, stored: Option<&v1::StoredGame>) -> String {
    let [first, second] = seat_names(record);
    let mut text = format!("game {} of {}, run {}\n", record.id, record.game_id, record.run_id);
    if let Some(stored) = stored {
        text += &format!(
            "{} of iteration {}, stored {} by actor {}{}\n",
            kind_name(stored.kind()),
            stored.iteration,
            time(stored.stored_unix_ms),
            stored.actor,
            if stored.purged { ", purged" } else { "" }
        );
    }
    text += &format!("seat 0 {first}\nseat 1 {second}\n");
    let roles = record.roles;
    if let (Some(opener), Some(black)) = (roles.opener, roles.first_colour) {
        text += &format!("{opener} opened, {black} held the first colour\n");
    }
    let outcome = record.outcome;
    let winner = outcome
        .winner
        .map_or_else(|| "draw".to_owned(), |seat| format!("{seat} won"));
    text += &format!(
        "{winner} ({}) after {} plies, {} of them given, {} trained on; {} ms\n",
        outcome.reason.as_str(),
        record.opening.len() + record.plies.len(),
        record.opening.len(),
        record.positions(),
        record.duration_ms
    );
    text
}

fn time(unix_ms: i64) -> String {
    // Later than this no calendar goes.
    const MS_MAX: u64 = 253_402_300_799_999;
    let since = u64::try_from(unix_ms).unwrap_or(0).min(MS_MAX);
    humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_millis(since)).to_string()
}

/// The moves, numbered from 1, several a line.
fn moves(words: &[String]) -> String {
    const LINE_CHARS_MAX: usize = 100;
    let mut text = String::new();
    let mut line = 0;
    for (n, word) in words.iter().enumerate() {
        let item = format!("{}. {word}", n + 1);
        if line > 0 && line + item.len() + 2 > LINE_CHARS_MAX {
            text.push('\n');
            line = 0;
        }
        if line > 0 {
            text += "  ";
        }
        line += item.len() + 2;
        text += &item;
    }
    text.push('\n');
    text
}

/// What is shown of the board.
struct Shown {
    moves: Vec<String>,
    plies: usize,
    text: String,
}

struct Board<'a> {
    record: &'a Record,
    plies: Option<usize>,
}

impl GameVisitor for Board<'_> {
    type Output = anyhow::Result<Shown>;

    fn visit<G: Game>(self, game: G) -> Self::Output {
        let actions: Vec<Action> = self.record.actions().collect();
        let plies = self.plies.unwrap_or(actions.len());
        ensure!(
            plies <= actions.len(),
            "the game has {} plies, not {plies}",
            actions.len()
        );
        let mut state = game.start();
        for (n, &action) in actions[..plies].iter().enumerate() {
            let refused = || format!("ply {n} of the record is not legal: `tengen games verify` says more");
            state.apply(action).with_context(refused)?;
        }
        Ok(Shown {
            moves: notation::words(&game, &game.start(), &actions),
            plies,
            text: state.draw(),
        })
    }
}
