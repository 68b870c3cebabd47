//! The two players of a rating game, as records and work orders say them.

use tengen_proto::v1;

use crate::ids::ModelId;
use crate::player::{NetworkPlay, ParsePlayerError, Player};

/// Players that make no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlayersError {
    /// Neither none nor two.
    #[error("{0} players are named instead of none or 2")]
    Count(usize),
    /// A kind that is not set or not known.
    #[error("{0} is no kind of player this build knows")]
    Kind(i32),
    /// A network that is not named.
    #[error("a player has network number {model} of {models}")]
    Model {
        /// The number.
        model: u32,
        /// Networks named.
        models: usize,
    },
    /// A number or a name out of range.
    #[error(transparent)]
    Player(#[from] ParsePlayerError),
}

/// The players' networks, each once, in the order of the players.
pub fn networks_of(players: &[Player; 2]) -> Vec<ModelId> {
    let mut networks: Vec<ModelId> = players.iter().filter_map(|player| player.network().copied()).collect();
    networks.dedup();
    networks
}

/// The players as a message beside `models`, which must hold their networks.
pub fn players_to_wire(players: &[Player; 2], models: &[ModelId]) -> Vec<v1::Player> {
    players.iter().map(|player| to_wire(player, models)).collect()
}

fn to_wire(player: &Player, models: &[ModelId]) -> v1::Player {
    let mut wire = v1::Player::default();
    let kind = match player {
        Player::Random => v1::PlayerKind::Random,
        Player::OnePly => v1::PlayerKind::OnePly,
        Player::Rollout { simulations } => {
            wire.simulations = *simulations;
            v1::PlayerKind::Rollout
        }
        Player::Network { network, play } => {
            let at = models.iter().position(|model| model == network);
            // A network that is missing gets a number that nobody takes.
            wire.model = at.map_or(u32::MAX, |at| at as u32);
            match play {
                NetworkPlay::AsOrdered => v1::PlayerKind::Network,
                NetworkPlay::Policy => v1::PlayerKind::Policy,
                NetworkPlay::Visits(visits) => {
                    wire.simulations = *visits;
                    v1::PlayerKind::Network
                }
            }
        }
        Player::Human(name) => {
            name.as_str().clone_into(&mut wire.name);
            v1::PlayerKind::Human
        }
    };
    wire.set_kind(kind);
    wire
}

/// The players that a message names beside `models`; `None` when it names none.
pub fn players_from_wire(wire: &[v1::Player], models: &[ModelId]) -> Result<Option<[Player; 2]>, PlayersError> {
    match wire {
        [] => Ok(None),
        [first, second] => Ok(Some([from_wire(first, models)?, from_wire(second, models)?])),
        _ => Err(PlayersError::Count(wire.len())),
    }
}

fn from_wire(wire: &v1::Player, models: &[ModelId]) -> Result<Player, PlayersError> {
    let network = |play| {
        let network = models.get(wire.model as usize).copied();
        let network = network.ok_or(PlayersError::Model {
            model: wire.model,
            models: models.len(),
        })?;
        Ok(Player::Network { network, play })
    };
    // Numbers and names have one place where their ranges are: the notation.
    let named = |text: String| Ok(text.parse::<Player>()?);
    match wire.kind() {
        v1::PlayerKind::Unspecified => Err(PlayersError::Kind(wire.kind)),
        v1::PlayerKind::Random => Ok(Player::Random),
        v1::PlayerKind::OnePly => Ok(Player::OnePly),
        v1::PlayerKind::Rollout => named(format!("rollout:{}", wire.simulations)),
        v1::PlayerKind::Human => named(format!("human:{}", wire.name)),
        v1::PlayerKind::Policy => network(NetworkPlay::Policy),
        v1::PlayerKind::Network if wire.simulations == 0 => network(NetworkPlay::AsOrdered),
        v1::PlayerKind::Network => {
            NetworkPlay::visits(wire.simulations).map_or_else(|error| Err(error.into()), network)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODELS: [ModelId; 2] = [ModelId([1; 32]), ModelId([2; 32])];

    #[test]
    fn players_survive_the_wire() {
        let texts = [
            "random".to_owned(),
            "one-ply".to_owned(),
            "rollout:50".to_owned(),
            "human:anna".to_owned(),
            MODELS[0].to_string(),
            format!("{}:policy", MODELS[1]),
            format!("{}:40", MODELS[1]),
        ];
        let players: Vec<Player> = texts.iter().map(|text| text.parse().unwrap()).collect();
        for first in &players {
            for second in &players {
                let pair = [first.clone(), second.clone()];
                let models = networks_of(&pair);
                let wire = players_to_wire(&pair, &models);
                assert_eq!(players_from_wire(&wire, &models), Ok(Some(pair)));
            }
        }
        assert_eq!(players_from_wire(&[], &MODELS), Ok(None));
    }

    #[test]
    fn nonsense_is_refused_with_the_value() {
        let refused = |change: fn(&mut Vec<v1::Player>)| {
            let mut wire = players_to_wire(&[Player::Random, Player::OnePly], &MODELS);
            change(&mut wire);
            players_from_wire(&wire, &MODELS).unwrap_err().to_string()
        };
        assert!(refused(|wire| wire.truncate(1)).contains("1 players"));
        assert!(refused(|wire| wire[0].kind = 99).contains("no kind of player"));
        assert!(refused(|wire| wire[0].set_kind(v1::PlayerKind::Rollout)).contains("rollout:0"));
        assert!(refused(|wire| wire[1].set_kind(v1::PlayerKind::Human)).contains("human:"));
        assert!(
            refused(|wire| {
                wire[1].set_kind(v1::PlayerKind::Policy);
                wire[1].model = 2;
            })
            .contains("number 2 of 2")
        );
        assert!(
            refused(|wire| {
                wire[1].set_kind(v1::PlayerKind::Network);
                wire[1].simulations = 1;
            })
            .contains("from 2")
        );
    }
}
