//! Who plays: one notation and one type for all players, whatever stands for their network.
//!
//! This says who a player is; how it plays is `tengen-selfplay`'s business.

use std::fmt;
use std::str::FromStr;

use crate::ids::ModelId;

/// Most playouts a move or root visits a search that a player may have.
pub const PLAYER_SIMULATIONS_MAX: u32 = 100_000;
/// Longest name of a person, bytes.
pub const HUMAN_NAME_LEN_MAX: usize = 40;

/// A player. `N` is what is known of its network: its id in records, its name where people write it, or the network.
///
/// The text form is `random`, `one-ply`, `rollout:N`, `human:NAME`, or the network with, if need be, `:policy` or
/// `:VISITS` behind it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Player<N = ModelId> {
    /// Any legal action with equal probability.
    Random,
    /// Takes a win, blocks a loss, else as random.
    OnePly,
    /// Monte Carlo tree search with random playouts and UCB1.
    Rollout {
        /// Playouts a move, `1..=PLAYER_SIMULATIONS_MAX`.
        simulations: u32,
    },
    /// A network.
    Network {
        /// Which.
        network: N,
        /// With which search.
        play: NetworkPlay,
    },
    /// A person.
    Human(HumanName),
}

/// How a network finds its moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NetworkPlay {
    /// With the root visits that the match's settings give.
    AsOrdered,
    /// Its most probable action, without search.
    Policy,
    /// With so many root visits, `2..=PLAYER_SIMULATIONS_MAX`.
    Visits(u32),
}

impl NetworkPlay {
    /// With so many root visits, if a search can have them.
    pub fn visits(visits: u32) -> Result<NetworkPlay, ParsePlayerError> {
        let visits = simulations(&visits.to_string(), &visits.to_string(), VISITS, 2)?;
        Ok(NetworkPlay::Visits(visits))
    }
}

/// A person's name: 1 to [`HUMAN_NAME_LEN_MAX`] letters, digits, `-`, `_` or `.`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HumanName(String);

impl HumanName {
    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A text that names no player.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParsePlayerError {
    /// No number, or one out of range.
    #[error("{text:?} is no player: {what} must be a number from {least} to {PLAYER_SIMULATIONS_MAX}")]
    Simulations {
        /// The text.
        text: String,
        /// What the number counts.
        what: &'static str,
        /// The smallest that makes sense.
        least: u32,
    },
    /// Not a person's name.
    #[error("{0:?} is no player: a person's name has 1 to {HUMAN_NAME_LEN_MAX} letters, digits, `-`, `_` or `.`")]
    Human(String),
    /// Nothing at all.
    #[error(
        "an empty text names no player: write random, one-ply, rollout:N, or a network such as champion or gen:3:policy"
    )]
    Empty,
    /// Not the id of a network.
    #[error("{0:?} is no player: its network is not given by its 64 hexadecimal digits")]
    Network(String),
}

impl<N> Player<N> {
    /// Its network, if it has one.
    pub fn network(&self) -> Option<&N> {
        match self {
            Player::Network { network, .. } => Some(network),
            Player::Random | Player::OnePly | Player::Rollout { .. } | Player::Human(_) => None,
        }
    }

    /// The same player with its network put in another way.
    pub fn try_map<M, E>(self, map: impl FnOnce(N) -> Result<M, E>) -> Result<Player<M>, E> {
        Ok(match self {
            Player::Random => Player::Random,
            Player::OnePly => Player::OnePly,
            Player::Rollout { simulations } => Player::Rollout { simulations },
            Player::Network { network, play } => Player::Network {
                network: map(network)?,
                play,
            },
            Player::Human(name) => Player::Human(name),
        })
    }
}

impl<N: fmt::Display> fmt::Display for Player<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Player::Random => f.write_str("random"),
            Player::OnePly => f.write_str("one-ply"),
            Player::Rollout { simulations } => write!(f, "rollout:{simulations}"),
            Player::Network { network, play } => match play {
                NetworkPlay::AsOrdered => write!(f, "{network}"),
                NetworkPlay::Policy => write!(f, "{network}:policy"),
                NetworkPlay::Visits(visits) => write!(f, "{network}:{visits}"),
            },
            Player::Human(name) => write!(f, "human:{}", name.0),
        }
    }
}

/// What the number behind a network's last colon counts.
const VISITS: &str = "the root visits behind the last colon";

/// The number in `digits`, within its range.
fn simulations(text: &str, digits: &str, what: &'static str, least: u32) -> Result<u32, ParsePlayerError> {
    let refused = || ParsePlayerError::Simulations {
        text: text.to_owned(),
        what,
        least,
    };
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.parse().ok().filter(|_| plain);
    number
        .filter(|number| (least..=PLAYER_SIMULATIONS_MAX).contains(number))
        .ok_or_else(refused)
}

/// A network with the search that its end may name. `gen:3` is a network's whole name.
fn network(text: &str) -> Result<Player<String>, ParsePlayerError> {
    let with = |network: &str, play| {
        Ok(Player::Network {
            network: network.to_owned(),
            play,
        })
    };
    match text.rsplit_once(':') {
        Some((network, "policy")) if !network.is_empty() => with(network, NetworkPlay::Policy),
        Some((network, visits))
            if !matches!(network, "" | "gen") && visits.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            with(network, NetworkPlay::Visits(simulations(text, visits, VISITS, 2)?))
        }
        _ => with(text, NetworkPlay::AsOrdered),
    }
}

impl FromStr for Player<String> {
    type Err = ParsePlayerError;

    fn from_str(text: &str) -> Result<Player<String>, ParsePlayerError> {
        match text.split_once(':') {
            None if text.is_empty() => Err(ParsePlayerError::Empty),
            None if text == "random" => Ok(Player::Random),
            None if text == "one-ply" => Ok(Player::OnePly),
            None if text == "rollout" => rollout(text, ""),
            Some(("rollout", digits)) => rollout(text, digits),
            Some(("human", name)) => human(name).ok_or_else(|| ParsePlayerError::Human(text.to_owned())),
            _ => network(text),
        }
    }
}

impl FromStr for Player<ModelId> {
    type Err = ParsePlayerError;

    fn from_str(text: &str) -> Result<Player<ModelId>, ParsePlayerError> {
        let named: Player<String> = text.parse()?;
        named.try_map(|id| id.parse().map_err(|_| ParsePlayerError::Network(text.to_owned())))
    }
}

fn rollout<N>(text: &str, digits: &str) -> Result<Player<N>, ParsePlayerError> {
    let simulations = simulations(text, digits, "the playouts behind `rollout:`", 1)?;
    Ok(Player::Rollout { simulations })
}

fn human<N>(name: &str) -> Option<Player<N>> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let fits = (1..=HUMAN_NAME_LEN_MAX).contains(&name.len()) && name.chars().all(plain);
    fits.then(|| Player::Human(HumanName(name.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Player<String> {
        text.parse().unwrap()
    }

    #[test]
    fn every_player_reads_back_its_own_text() {
        for text in [
            "random",
            "one-ply",
            "rollout:200",
            "champion",
            "champion:policy",
            "gen:3",
            "gen:3:policy",
            "gen:3:400",
            "abcdef01:50",
            "./a:b/model.onnx:policy",
            "human:anna.b",
        ] {
            assert_eq!(parse(text).to_string(), text);
        }
        let id = "a5".repeat(32);
        let player: Player = format!("{id}:policy").parse().unwrap();
        assert_eq!(player.network().unwrap().to_string(), id);
        assert_eq!(player.to_string(), format!("{id}:policy"));
    }

    #[test]
    fn the_end_of_a_network_names_its_search() {
        let network = |name: &str, play| Player::Network {
            network: name.to_owned(),
            play,
        };
        assert_eq!(parse("gen:12"), network("gen:12", NetworkPlay::AsOrdered));
        assert_eq!(parse("gen:12:64"), network("gen:12", NetworkPlay::Visits(64)));
        assert_eq!(parse("latest:policy"), network("latest", NetworkPlay::Policy));
        assert_eq!(parse("x:y"), network("x:y", NetworkPlay::AsOrdered));
    }

    #[test]
    fn what_is_no_player_is_refused_with_what_to_write() {
        let refused = |text: &str| text.parse::<Player<String>>().unwrap_err().to_string();
        assert!(refused("").contains("rollout:N"));
        for text in [
            "rollout",
            "rollout:",
            "rollout:0",
            "rollout:many",
            "rollout:100001",
            "rollout:+5",
        ] {
            assert!(refused(text).contains("from 1 to 100000"), "{text}");
        }
        assert!(refused("champion:1").contains("from 2 to 100000"));
        assert!(refused("human:").contains("letters"));
        assert!(refused("human:a b").contains("letters"));
        assert!(
            "champion"
                .parse::<Player>()
                .unwrap_err()
                .to_string()
                .contains("64 hexadecimal")
        );
    }
}
