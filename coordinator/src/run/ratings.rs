//! Rating matches in the run: who takes part, what they play, and their results.

use std::collections::BTreeMap;
use std::ops::Range;

use rusqlite::Connection;
use tengen_control::rating::{Pair, PlayerId, RatingState};
use tengen_control::{Event, GameScore, Leg, Work};
use tengen_games::Opening;
use tengen_records::{LeaseId, ModelId, NetworkPlay, Player, networks_of};
use tengen_selfplay::{MatchGame, Plan};

use super::owner::{Now, Outbox};
use super::request::WorkAsk;
use super::state::{State, control_id};
use crate::store::ratings::{self, MatchKind, as_gated};
use crate::store::{StoreError, models};

/// Players by the number that the state machine knows them by.
#[derive(Clone, Debug, Default)]
pub(super) struct PlayerBook {
    players: Vec<Player>,
    numbers: BTreeMap<Player, PlayerId>,
}

impl PlayerBook {
    /// The number of a player, a new one if it has none yet.
    pub(super) fn number(&mut self, player: &Player) -> PlayerId {
        if let Some(&number) = self.numbers.get(player) {
            return number;
        }
        let number = PlayerId(self.players.len() as u32);
        self.players.push(player.clone());
        self.numbers.insert(player.clone(), number);
        number
    }

    /// Both players of a pairing; `None` when a number was never given.
    fn players(&self, pair: Pair) -> Option<[Player; 2]> {
        let player = |id: PlayerId| self.players.get(id.0 as usize).cloned();
        Some([player(pair.low())?, player(pair.high())?])
    }
}

/// Every match game so far.
pub(super) fn load(connection: &Connection, book: &mut PlayerBook) -> Result<RatingState, StoreError> {
    let mut state = RatingState {
        anchor: models::of_generation(connection, 0)?.map(|model| book.number(&as_gated(model.id))),
        ..RatingState::default()
    };
    for row in ratings::pairings(connection)? {
        let (first, second) = (book.number(&row.first), book.number(&row.second));
        state.results.add_counts(first, second, row.counts);
        state
            .used
            .extend(Pair::new(first, second).map(|pair| (pair, row.openings)));
    }
    Ok(state)
}

impl State {
    /// Who may play the next rating match; empty while none is due, and for an actor that would not know its order.
    pub(super) fn rating_players(
        &mut self,
        connection: &Connection,
        ask: &WorkAsk,
    ) -> Result<Vec<PlayerId>, StoreError> {
        if !ask.takes_players || !self.control.rating_is_due() {
            return Ok(Vec::new());
        }
        let mut players = Vec::new();
        let champions = self.facts.config.ratings.champions;
        for network in models::newest_champions(connection, champions)? {
            players.push(as_gated(network));
        }
        let baselines: Vec<Player<String>> = self.facts.baselines().collect();
        for baseline in baselines {
            players.extend(self.resolve(connection, baseline)?);
        }
        let mut numbers: Vec<PlayerId> = players.iter().map(|player| self.players.number(player)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        Ok(numbers)
    }

    /// A baseline as it is now; `None` while its network does not exist or is no longer kept.
    fn resolve(&self, connection: &Connection, baseline: Player<String>) -> Result<Option<Player>, StoreError> {
        let find = |name: String| -> Result<ModelId, Option<StoreError>> {
            let row = match name.strip_prefix("gen:").map(str::parse) {
                Some(Ok(generation)) => models::of_generation(connection, generation)?,
                _ => models::champion(connection)?,
            };
            row.filter(|row| row.removed_ms.is_none()).map(|row| row.id).ok_or(None)
        };
        match baseline.try_map(find) {
            Ok(player) => Ok(Some(player)),
            Err(None) => Ok(None),
            Err(Some(error)) => Err(error),
        }
    }

    /// The models and games of a rating match, its openings noted as handed out.
    pub(super) fn rating_plan(
        &self,
        connection: &Connection,
        pair: Pair,
        openings: &Range<u32>,
    ) -> Result<(Vec<ModelId>, Plan), StoreError> {
        let unknown = || StoreError::corrupt("rating match", format!("{pair:?} names a player nobody knows"));
        let players = self.players.players(pair).ok_or_else(unknown)?;
        ratings::set_openings(connection, &players, openings.end)?;
        let drawn = self.facts.rating_openings();
        let games = openings
            .clone()
            .zip(drawn.iter().skip(openings.start as usize))
            .flat_map(|(number, opening)| Leg::BOTH.map(|leg| rating_game(number, opening, leg)));
        Ok((
            networks_of(&players),
            Plan::Rating {
                games: games.collect(),
                players,
            },
        ))
    }

    /// Counts a stored match game for the ratings; what else it means is told apart.
    pub(super) fn rate(
        &mut self,
        connection: &Connection,
        players: &[Player; 2],
        score: GameScore,
        kind: MatchKind,
        now: Now,
    ) -> Result<(), StoreError> {
        ratings::add_game(connection, players, score, kind)?;
        let [first, second] = [&players[0], &players[1]].map(|player| self.players.number(player));
        let effects = self.control.step(Event::GameRated { first, second, score }, now.ms);
        debug_assert!(effects.is_empty(), "a rating changes nothing else");
        Ok(())
    }

    /// Counts a stored game of a rating match.
    pub(super) fn count_rating_game(
        &mut self,
        connection: &Connection,
        lease: LeaseId,
        now: Now,
        out: &mut Outbox,
    ) -> Result<(), StoreError> {
        self.rating_games += 1;
        self.step(connection, Event::RatingStored(control_id(lease)), now, out)
    }
}

/// The work of a rating lease that is still out.
pub(super) fn work_of(book: &mut PlayerBook, plan: &Plan) -> Option<Work> {
    let Plan::Rating { players, games } = plan else {
        return None;
    };
    let pair = Pair::new(book.number(&players[0]), book.number(&players[1]))?;
    let (first, last) = (games.first()?.pair, games.last()?.pair);
    Some(Work::Rating {
        pair,
        openings: first..last + 1,
    })
}

fn rating_game(number: u32, opening: &Opening, leg: Leg) -> MatchGame {
    MatchGame {
        pair: number,
        opening: opening.plies.clone(),
        sampled_plies: opening.sampled_plies,
        seat0_model: usize::from(leg == Leg::ChampionFirst),
    }
}

/// Whether this can be a baseline: it plays by itself, and its network is named by its place in the run.
pub(crate) fn parse_baseline(text: &str) -> Result<Player<String>, String> {
    let player: Player<String> = text
        .parse()
        .map_err(|error: tengen_records::ParsePlayerError| error.to_string())?;
    match &player {
        Player::Human(_) => Err(format!("{text:?} is a person: people play when they want to")),
        Player::Network { network, play } => {
            let generation = network.strip_prefix("gen:").map(str::parse::<u32>);
            let known = network == "champion" || matches!(generation, Some(Ok(_)));
            let itself = network == "champion" && *play == NetworkPlay::AsOrdered;
            if !known {
                Err(format!(
                    "{text:?} is no baseline: use random, one-ply, rollout:N, or champion or gen:N with a search behind it"
                ))
            } else if itself {
                Err(format!(
                    "{text:?} takes part anyway: say with which search, for example champion:policy"
                ))
            } else {
                Ok(player)
            }
        }
        Player::Random | Player::OnePly | Player::Rollout { .. } => Ok(player),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn baselines_are_players_that_play_by_themselves() {
        for good in [
            "random",
            "one-ply",
            "rollout:50",
            "gen:0",
            "gen:3:policy",
            "champion:200",
        ] {
            assert_eq!(parse_baseline(good).unwrap().to_string(), good);
        }
        for (bad, says) in [
            ("human:anna", "person"),
            ("latest", "no baseline"),
            ("model.onnx", "no baseline"),
            ("gen:x", "no baseline"),
            ("champion", "champion:policy"),
            ("rollout:0", "from 1"),
        ] {
            let refused = parse_baseline(bad).unwrap_err();
            assert!(refused.contains(says), "{bad}: {refused}");
        }
    }
}
