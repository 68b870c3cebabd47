//! `tengen ratings`: how strong everybody is who played a match game, and who scored what against whom.

use std::collections::BTreeMap;
use std::fmt::Write;

use clap::Args;
use serde_json::{Value, json};
use tengen_proto::v1::run_service_client::RunServiceClient;
use tengen_proto::v1::{ListPairingsRequest, ListRatingsRequest, Pairing, PlayerRating};
use tengen_service::channel::Channel;

use crate::client::{CoordinatorArgs, explain, goes_on};

/// Entries of a page.
const PAGE: i32 = 1_000;

#[derive(Args, Debug)]
pub(crate) struct RatingsArgs {
    /// Show who scored what against whom instead
    #[arg(long)]
    matrix: bool,
    /// Show networks too that never became champion
    #[arg(long)]
    all: bool,
    /// Print one JSON object, with ratings and matrix of everybody, instead of a table
    #[arg(long, conflicts_with_all = ["matrix", "all"])]
    json: bool,
    #[command(flatten)]
    coordinator: CoordinatorArgs,
}

pub(crate) async fn run(args: RatingsArgs) -> anyhow::Result<()> {
    let reached = args.coordinator.reach().await?;
    let mut client = reached.runs()?;
    let ratings = ratings(&mut client).await?;
    if args.json {
        let pairings = pairings(&mut client).await?;
        println!("{}", serde_json::to_string_pretty(&as_json(&ratings, &pairings))?);
        return Ok(());
    }
    let (shown, left_out): (Vec<PlayerRating>, Vec<PlayerRating>) =
        ratings.into_iter().partition(|rating| args.all || is_standing(rating));
    if args.matrix {
        print!("{}", matrix(&shown, &pairings(&mut client).await?));
    } else {
        print!("{}", table(&shown));
    }
    if !left_out.is_empty() {
        println!(
            "and {} networks that never became champion (--all shows them)",
            left_out.len()
        );
    }
    Ok(())
}

/// Champions of then and now, and players without a network.
fn is_standing(rating: &PlayerRating) -> bool {
    rating.generation.is_some() || rating.model_id.is_empty()
}

async fn ratings(client: &mut RunServiceClient<Channel>) -> anyhow::Result<Vec<PlayerRating>> {
    let mut request = ListRatingsRequest {
        page_size: PAGE,
        page_token: String::new(),
    };
    let mut all = Vec::new();
    loop {
        let answer = client.list_ratings(request.clone()).await;
        let page = answer.map_err(|status| explain(&status))?.into_inner();
        all.extend(page.ratings);
        if !goes_on(&mut request.page_token, page.next_page_token)? {
            return Ok(all);
        }
    }
}

async fn pairings(client: &mut RunServiceClient<Channel>) -> anyhow::Result<Vec<Pairing>> {
    let mut request = ListPairingsRequest {
        page_size: PAGE,
        page_token: String::new(),
    };
    let mut all = Vec::new();
    loop {
        let answer = client.list_pairings(request.clone()).await;
        let page = answer.map_err(|status| explain(&status))?.into_inner();
        all.extend(page.pairings);
        if !goes_on(&mut request.page_token, page.next_page_token)? {
            return Ok(all);
        }
    }
}

fn table(ratings: &[PlayerRating]) -> String {
    let width = name_width(ratings);
    let mut text = format!(
        "{:>4}  {:<width$}  {:>6}  {:>6}  {:>7}  {:>6}  {:>7} {:>7} {:>7}\n",
        "RANK", "PLAYER", "ELO", "±95 %", "GAMES", "SCORE", "WON", "DRAWN", "LOST"
    );
    for (rank, rating) in ratings.iter().enumerate() {
        let (place, elo, error) = match (rating.elo, rating.elo_error) {
            (Some(elo), Some(error)) => (
                (rank + 1).to_string(),
                // Adding 0 turns a -0 that rounding left into a plain 0.
                format!("{:.0}", elo.round() + 0.0),
                format!("{:.0}", error.round() + 0.0),
            ),
            // Nothing joins it to generation 0: it is not even known on which side of it it stands.
            _ => ("-".to_owned(), "none".to_owned(), "-".to_owned()),
        };
        let PlayerRating {
            player,
            games,
            wins,
            draws,
            losses,
            ..
        } = rating;
        let score = percent(*wins, *draws, *games);
        // Writing to a text cannot fail.
        let _ = writeln!(
            text,
            "{place:>4}  {player:<width$}  {elo:>6}  {error:>6}  {games:>7}  {score:>6}  {wins:>7} {draws:>7} {losses:>7}"
        );
    }
    if ratings.iter().any(|rating| rating.elo.is_none()) {
        text.push_str("none: no chain of games joins the player to generation 0, whose rating is 0\n");
    }
    text
}

/// Scores of the row's player against the column's, in per cent, and their games below.
fn matrix(ratings: &[PlayerRating], pairings: &[Pairing]) -> String {
    let mut scores: BTreeMap<(&str, &str), (u64, u64, u64)> = BTreeMap::new();
    for pairing in pairings {
        let games = pairing.wins + pairing.draws + pairing.losses;
        let (first, second) = (pairing.first.as_str(), pairing.second.as_str());
        scores.insert((first, second), (pairing.wins, pairing.draws, games));
        scores.insert((second, first), (pairing.losses, pairing.draws, games));
    }
    let width = name_width(ratings);
    let column = width.max(6);
    let mut text = format!("{:<width$}", "");
    for rating in ratings {
        let _ = write!(text, "  {:>column$}", rating.player);
    }
    text.push('\n');
    for row in ratings {
        let mut lines = [format!("{:<width$}", row.player), format!("{:<width$}", "")];
        for other in ratings {
            let (score, games) = match scores.get(&(row.player.as_str(), other.player.as_str())) {
                Some(&(wins, draws, games)) => (percent(wins, draws, games), games.to_string()),
                None => ("·".to_owned(), String::new()),
            };
            let _ = write!(lines[0], "  {score:>column$}");
            let _ = write!(lines[1], "  {games:>column$}");
        }
        for line in lines {
            text.push_str(line.trim_end());
            text.push('\n');
        }
    }
    text.push_str("each cell: the score of the row's player against the column's, and their games below\n");
    text
}

fn name_width(ratings: &[PlayerRating]) -> usize {
    ratings
        .iter()
        .map(|rating| rating.player.len())
        .max()
        .unwrap_or(0)
        .max(6)
}

fn percent(wins: u64, draws: u64, games: u64) -> String {
    if games == 0 {
        return "-".to_owned();
    }
    format!("{:.1} %", (wins as f64 + draws as f64 / 2.0) / games as f64 * 100.0)
}

fn as_json(ratings: &[PlayerRating], pairings: &[Pairing]) -> Value {
    let rating = |rating: &PlayerRating| {
        json!({
            "player": rating.player,
            "model_id": (!rating.model_id.is_empty()).then(|| hex::encode(&rating.model_id)),
            "generation": rating.generation,
            "elo": rating.elo,
            "elo_error": rating.elo_error,
            "games": rating.games,
            "wins": rating.wins,
            "draws": rating.draws,
            "losses": rating.losses,
        })
    };
    let pairing = |pairing: &Pairing| {
        json!({
            "first": pairing.first,
            "second": pairing.second,
            "wins": pairing.wins,
            "draws": pairing.draws,
            "losses": pairing.losses,
            "expected_score": pairing.expected_score,
        })
    };
    json!({
        "ratings": ratings.iter().map(rating).collect::<Vec<_>>(),
        "pairings": pairings.iter().map(pairing).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rated(player: &str, elo: Option<f64>, wins: u64, losses: u64) -> PlayerRating {
        PlayerRating {
            player: player.to_owned(),
            elo,
            elo_error: elo.map(|_| 12.3),
            games: wins + losses,
            wins,
            losses,
            ..PlayerRating::default()
        }
    }

    #[test]
    fn a_table_ranks_who_has_a_rating_and_says_who_has_none() {
        let ratings = [
            rated("gen:1", Some(151.6), 7, 3),
            rated("gen:0", Some(-0.0), 3, 7),
            rated("human:anna", None, 0, 0),
        ];
        let text = table(&ratings);
        let lines: Vec<&str> = text.lines().collect();
        let words = |line: usize| lines[line].split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(words(1), "1 gen:1 152 12 10 70.0 % 7 0 3");
        assert_eq!(words(2), "2 gen:0 0 12 10 30.0 % 3 0 7");
        assert_eq!(words(3), "- human:anna none - 0 - 0 0 0");
        assert!(lines[4].contains("joins the player to generation 0"));
        assert!(!table(&ratings[..2]).contains("none"));
    }

    #[test]
    fn a_matrix_shows_every_score_from_both_sides() {
        let ratings = [rated("gen:1", Some(1.0), 0, 0), rated("random", Some(-1.0), 0, 0)];
        let pairing = Pairing {
            first: "random".to_owned(),
            second: "gen:1".to_owned(),
            wins: 1,
            draws: 2,
            losses: 5,
            ..Pairing::default()
        };
        let text = matrix(&ratings, &[pairing]);
        let words = |line: usize| {
            text.lines()
                .nth(line)
                .unwrap()
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(words(0), "gen:1 random");
        assert_eq!(words(1), "gen:1 · 75.0 %");
        assert_eq!(words(2), "8");
        assert_eq!(words(3), "random 25.0 % ·");
    }
}
