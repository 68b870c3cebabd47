//! `tengen games list`.

use clap::Args;
use tengen_proto::v1;
use tengen_records::{ModelId, Player, players_from_wire};

use super::source::{Extent, FilterArgs, Pages, id_of};
use crate::client::CoordinatorArgs;
use crate::json;
use crate::models::short_id;

#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    filter: FilterArgs,
    /// Most games to list; 0 lists all
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: u64,
    /// Print a JSON object a line instead of words
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    coordinator: CoordinatorArgs,
}

pub(crate) async fn run(args: ListArgs) -> anyhow::Result<()> {
    let run = args.coordinator.reach().await?;
    let mut left = if args.limit == 0 { u64::MAX } else { args.limit };
    let mut pages = Pages::of(&run, &args.filter, Extent::Headings)
        .await?
        .with_page_size(left);
    if !args.json {
        println!("{}", HEAD);
    }
    while let Some(games) = pages.next().await? {
        for game in games {
            if args.json {
                println!("{}", as_json(&game)?);
            } else {
                println!("{}", row(&game));
            }
            left -= 1;
            if left == 0 {
                return Ok(());
            }
        }
    }
    Ok(())
}

const HEAD: &str = "game                                 iteration kind      result                plies positions  networks or players";

fn row(game: &v1::StoredGame) -> String {
    format!(
        "{:<36} {:>9} {:<9} {:<21} {:>5} {:>9}  {}{}",
        id_of(game),
        game.iteration,
        kind_name(game.kind()),
        result(game),
        game.plies,
        game.positions,
        who(game),
        if game.purged { "  (purged)" } else { "" }
    )
}

/// `seat 0 (line)` or `draw (board-full)`.
pub(super) fn result(game: &v1::StoredGame) -> String {
    match game.winner {
        Some(seat) => format!("seat {seat} ({})", game.reason),
        None => format!("draw ({})", game.reason),
    }
}

pub(super) fn kind_name(kind: v1::GameKind) -> &'static str {
    match kind {
        v1::GameKind::Unspecified => "unknown",
        v1::GameKind::SelfPlay => "self-play",
        v1::GameKind::Gate => "gate",
        v1::GameKind::Rating => "rating",
    }
}

/// Networks by the first digits of their ids, or players.
fn who(game: &v1::StoredGame) -> String {
    let networks = || {
        game.model_ids
            .iter()
            .map(|id| short_id(id))
            .collect::<Vec<_>>()
            .join(" ")
    };
    if game.players.is_empty() {
        return networks();
    }
    let models = game.model_ids.iter().map(|id| ModelId::from_bytes(id));
    let models: Result<Vec<_>, _> = models.collect();
    let players = models
        .ok()
        .and_then(|models| players_from_wire(&game.players, &models).ok().flatten());
    match players {
        Some([first, second]) => {
            let short = |player: &Player| match player.network() {
                Some(network) => player.to_string().replace(&network.to_string(), &short_id(&network.0)),
                None => player.to_string(),
            };
            format!("{} {}", short(&first), short(&second))
        }
        None => networks(),
    }
}

/// The game as its message says it, without what was not asked for.
pub(super) fn as_json(game: &v1::StoredGame) -> anyhow::Result<serde_json::Value> {
    let mut value = json::of(game, "StoredGame")?;
    if let Some(fields) = value.as_object_mut() {
        for field in ["record", "work_order", "damaged"] {
            fields.remove(field);
        }
        fields.insert("game".to_owned(), id_of(game).into());
    }
    Ok(value)
}
