//! The run's ratings, computed from its match games when somebody asks.

use std::collections::BTreeMap;

use rusqlite::Connection;
use tengen_control::rating::{Counts, Fit, PlayerId, Rating, Results, expected_score};
use tengen_proto::v1;
use tengen_records::{ModelId, Player};

use crate::store::ratings::{self, PairingRow, as_gated};
use crate::store::{StoreError, models};

/// Everybody who played a match game, and who played whom.
pub(super) struct Table {
    /// The strongest first, then those without a rating, by name.
    pub(super) ratings: Vec<v1::PlayerRating>,
    /// By name.
    pub(super) pairings: Vec<v1::Pairing>,
}

/// Computes the table. A run without match games has generation 0 alone.
pub(super) fn read(connection: &Connection) -> Result<Table, StoreError> {
    let generations = models::generations(connection)?;
    let games = ratings::pairings(connection)?;
    let games: Vec<PairingRow> = games.into_iter().filter(|row| row.counts.games() > 0).collect();
    let start = generations.iter().find(|(_, generation)| **generation == 0);
    let start = start.map(|(&network, _)| as_gated(network));
    let mut numbers: BTreeMap<&Player, PlayerId> = BTreeMap::new();
    let players = games.iter().flat_map(|row| [&row.first, &row.second]);
    for player in start.iter().chain(players) {
        let next = PlayerId(numbers.len() as u32);
        numbers.entry(player).or_insert(next);
    }
    let mut results = Results::default();
    for row in &games {
        results.add_counts(numbers[&row.first], numbers[&row.second], row.counts);
    }
    // Generation 0 came first and has number 0.
    let fit = Fit::new(&results, PlayerId(0));
    let rating = |player: &Player| start.as_ref().and_then(|_| fit.rating(numbers[player]));
    let totals = totals(&games);
    let mut ratings: Vec<v1::PlayerRating> = numbers
        .keys()
        .map(|&player| {
            let total = totals.get(player).copied().unwrap_or_default();
            player_rating(player, &generations, rating(player), total)
        })
        .collect();
    let strongest_first = |one: &v1::PlayerRating, other: &v1::PlayerRating| {
        let by_rating = other
            .elo
            .unwrap_or(f64::NEG_INFINITY)
            .total_cmp(&one.elo.unwrap_or(f64::NEG_INFINITY));
        by_rating.then_with(|| one.player.cmp(&other.player))
    };
    ratings.sort_by(strongest_first);
    let pairings = games.iter().map(|row| v1::Pairing {
        first: name(&row.first, &generations),
        second: name(&row.second, &generations),
        wins: row.counts.wins,
        draws: row.counts.draws,
        losses: row.counts.losses,
        expected_score: rating(&row.first)
            .zip(rating(&row.second))
            .map(|(first, second)| expected_score(first.elo - second.elo)),
    });
    Ok(Table {
        ratings,
        pairings: pairings.collect(),
    })
}

/// Everybody's games against everybody.
fn totals(games: &[PairingRow]) -> BTreeMap<&Player, Counts> {
    let mut totals: BTreeMap<&Player, Counts> = BTreeMap::new();
    for row in games {
        *totals.entry(&row.first).or_default() += row.counts;
        *totals.entry(&row.second).or_default() += row.counts.reversed();
    }
    totals
}

fn player_rating(
    player: &Player,
    generations: &BTreeMap<ModelId, u32>,
    rating: Option<Rating>,
    total: Counts,
) -> v1::PlayerRating {
    let network = player.network();
    v1::PlayerRating {
        player: name(player, generations),
        model_id: network.map(|network| network.0.to_vec()).unwrap_or_default(),
        generation: network.and_then(|network| generations.get(network).copied()),
        elo: rating.map(|rating| rating.elo),
        elo_error: rating.map(Rating::error),
        games: total.games(),
        wins: total.wins,
        draws: total.draws,
        losses: total.losses,
    }
}

/// A player for people: its network by its generation, or by as many digits of its id as every command takes.
fn name(player: &Player, generations: &BTreeMap<ModelId, u32>) -> String {
    let short = |network: ModelId| -> Result<String, std::convert::Infallible> {
        Ok(match generations.get(&network) {
            Some(generation) => format!("gen:{generation}"),
            None => network.short(),
        })
    };
    let Ok(named) = player.clone().try_map(short);
    named.to_string()
}
