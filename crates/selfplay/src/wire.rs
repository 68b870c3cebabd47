//! Work orders, search settings and what files answered between the wire and the types of play. Parsed at the border: what
//! leaves here is whole.

use tengen_games::Action;
use tengen_inference::Probe;
use tengen_proto::v1;
use tengen_records::{LeaseId, ModelId, ParseIdError, Player, PlayersError, players_from_wire, players_to_wire};
use tengen_search::{Settings, SettingsError};

use crate::order::{MatchGame, Order, Plan};

/// A message that makes no sense.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// A field that must be there is not.
    #[error("the work order has no {0}")]
    Missing(&'static str),
    /// An id of the wrong length.
    #[error(transparent)]
    Id(#[from] ParseIdError),
    /// A number outside its range.
    #[error("{field} is {value}, which is out of range")]
    Range {
        /// Which field.
        field: &'static str,
        /// What it says.
        value: u64,
    },
    /// The wrong number of models.
    #[error("the work order names {named} models where {needed} are needed")]
    Models {
        /// How many it names.
        named: usize,
        /// How many its kind needs.
        needed: usize,
    },
    /// The players make no sense.
    #[error(transparent)]
    Players(#[from] PlayersError),
    /// A person is asked to play.
    #[error("the work order asks {0} to play, who is a person")]
    Person(String),
    /// The search settings are outside their ranges.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The answers that came with a file are not one for each probe of its network.
    #[error("the file comes with {answers} answers to {probes} probes")]
    Answers {
        /// How many there are.
        answers: usize,
        /// How many there should be.
        probes: usize,
    },
    /// An answer that is none.
    #[error("an answer to a probe has {values} values instead of win, draw and loss")]
    Answer {
        /// How many it has.
        values: usize,
    },
}

/// The settings that the message carries, checked.
pub fn settings_from_wire(wire: &v1::SearchSettings) -> Result<Settings, WireError> {
    let settings = Settings {
        simulations: wire.simulations,
        cpuct_init: wire.cpuct_init,
        cpuct_base: wire.cpuct_base,
        fpu_reduction: wire.fpu_reduction,
        dirichlet_alpha: wire.dirichlet_alpha,
        noise_fraction: wire.noise_fraction,
        temperature: wire.temperature,
        temperature_turns: wire.temperature_turns,
        tree_reuse: wire.tree_reuse,
        random_symmetry: wire.random_symmetry,
    };
    settings.validate()?;
    Ok(settings)
}

/// The message that carries these settings.
pub fn settings_to_wire(settings: &Settings) -> v1::SearchSettings {
    v1::SearchSettings {
        simulations: settings.simulations,
        cpuct_init: settings.cpuct_init,
        cpuct_base: settings.cpuct_base,
        fpu_reduction: settings.fpu_reduction,
        dirichlet_alpha: settings.dirichlet_alpha,
        noise_fraction: settings.noise_fraction,
        temperature: settings.temperature,
        temperature_turns: settings.temperature_turns,
        tree_reuse: settings.tree_reuse,
        random_symmetry: settings.random_symmetry,
    }
}

/// What a file in a reduced precision answered where it was made, as probes of its own: on the positions of its network's
/// probes, whose planes these are in their order. None where the file was published without answers, as older builds do.
pub fn own_probes<'a>(
    planes: impl ExactSizeIterator<Item = &'a [u8]>,
    answers: &[v1::ProbeAnswer],
) -> Result<Vec<Probe>, WireError> {
    if answers.is_empty() {
        return Ok(Vec::new());
    }
    if answers.len() != planes.len() {
        return Err(WireError::Answers {
            answers: answers.len(),
            probes: planes.len(),
        });
    }
    let probe = |(planes, answer): (&[u8], &v1::ProbeAnswer)| {
        let values = answer.wdl.len();
        let wdl = <[f32; 3]>::try_from(answer.wdl.as_slice()).map_err(|_| WireError::Answer { values })?;
        Ok::<_, WireError>(Probe {
            planes: planes.to_vec(),
            policy: answer.policy.clone(),
            wdl,
        })
    };
    planes.zip(answers).map(probe).collect()
}

/// The order that the message carries.
pub fn order_from_wire(wire: &v1::WorkOrder) -> Result<Order, WireError> {
    let settings = settings_from_wire(wire.search.as_ref().ok_or(WireError::Missing("search settings"))?)?;
    let models = wire
        .model_ids
        .iter()
        .map(|id| ModelId::from_bytes(id))
        .collect::<Result<Vec<_>, _>>()?;
    let plan = match wire.kind() {
        v1::WorkKind::Unspecified => return Err(WireError::Missing("kind")),
        v1::WorkKind::SelfPlay => Plan::SelfPlay {
            games: wire.games,
            random_plies_max: wire.random_plies_max,
        },
        v1::WorkKind::Match => {
            let games = wire.match_games.iter().map(match_game).collect::<Result<Vec<_>, _>>()?;
            match players_from_wire(&wire.players, &models)? {
                None => Plan::Match { games },
                Some(players) => Plan::Rating {
                    players: playable(players)?,
                    games,
                },
            }
        }
    };
    if models.len() != plan.models() {
        return Err(WireError::Models {
            named: models.len(),
            needed: plan.models(),
        });
    }
    if plan.games() == 0 {
        return Err(WireError::Range {
            field: "games",
            value: 0,
        });
    }
    Ok(Order {
        lease: LeaseId::from_bytes(&wire.lease_id)?,
        models,
        settings,
        settings_revision: wire.settings_revision,
        seed: wire.seed,
        plan,
    })
}

/// The message that carries this order.
pub fn order_to_wire(order: &Order) -> v1::WorkOrder {
    let mut wire = v1::WorkOrder {
        lease_id: order.lease.to_bytes().to_vec(),
        model_ids: order.models.iter().map(|id| id.0.to_vec()).collect(),
        search: Some(settings_to_wire(&order.settings)),
        settings_revision: order.settings_revision,
        seed: order.seed,
        ..v1::WorkOrder::default()
    };
    match &order.plan {
        Plan::SelfPlay {
            games,
            random_plies_max,
        } => {
            wire.set_kind(v1::WorkKind::SelfPlay);
            wire.games = *games;
            wire.random_plies_max = *random_plies_max;
        }
        Plan::Match { games } => {
            wire.set_kind(v1::WorkKind::Match);
            wire.match_games = games.iter().map(match_game_to_wire).collect();
        }
        Plan::Rating { players, games } => {
            wire.set_kind(v1::WorkKind::Match);
            wire.match_games = games.iter().map(match_game_to_wire).collect();
            wire.players = players_to_wire(players, &order.models);
        }
    }
    wire
}

/// Players that can play by themselves.
fn playable(players: [Player; 2]) -> Result<[Player; 2], WireError> {
    let person = players.iter().find_map(|player| match player {
        Player::Human(name) => Some(name.as_str().to_owned()),
        _ => None,
    });
    person.map_or(Ok(players), |name| Err(WireError::Person(name)))
}

fn match_game_to_wire(game: &MatchGame) -> v1::MatchGame {
    v1::MatchGame {
        pair: game.pair,
        opening: game.opening.iter().map(|action| u32::from(action.0)).collect(),
        sampled_plies: game.sampled_plies,
        seat0_model: game.seat0_model as u32,
    }
}

fn match_game(wire: &v1::MatchGame) -> Result<MatchGame, WireError> {
    let action = |&index: &u32| {
        u16::try_from(index).map(Action).map_err(|_| WireError::Range {
            field: "opening",
            value: u64::from(index),
        })
    };
    if wire.seat0_model > 1 {
        return Err(WireError::Range {
            field: "seat0_model",
            value: u64::from(wire.seat0_model),
        });
    }
    Ok(MatchGame {
        pair: wire.pair,
        opening: wire.opening.iter().map(action).collect::<Result<Vec<_>, _>>()?,
        sampled_plies: wire.sampled_plies,
        seat0_model: wire.seat0_model as usize,
    })
}

#[cfg(test)]
mod tests {
    use tengen_records::NetworkPlay;

    use super::*;

    fn order(plan: Plan) -> Order {
        Order {
            lease: LeaseId(7),
            models: (0..plan.models() as u8).map(|byte| ModelId([byte; 32])).collect(),
            settings: Settings {
                simulations: 32,
                tree_reuse: false,
                random_symmetry: true,
                ..Settings::default()
            },
            settings_revision: 3,
            seed: u64::MAX,
            plan,
        }
    }

    fn network(play: NetworkPlay) -> Player {
        Player::Network {
            network: ModelId([0; 32]),
            play,
        }
    }

    #[test]
    fn orders_survive_the_wire() {
        let game = MatchGame {
            pair: 4,
            opening: vec![Action(3), Action(9)],
            sampled_plies: 2,
            seat0_model: 1,
        };
        for plan in [
            Plan::SelfPlay {
                games: 5,
                random_plies_max: 2,
            },
            Plan::Match {
                games: vec![game.clone()],
            },
            Plan::Rating {
                players: [Player::Random, Player::Rollout { simulations: 7 }],
                games: vec![game.clone()],
            },
            Plan::Rating {
                players: [Player::OnePly, network(NetworkPlay::Policy)],
                games: vec![game.clone()],
            },
            Plan::Rating {
                players: [network(NetworkPlay::AsOrdered), network(NetworkPlay::Visits(9))],
                games: vec![game],
            },
        ] {
            let order = order(plan);
            assert_eq!(order_from_wire(&order_to_wire(&order)).unwrap(), order);
        }
    }

    #[test]
    fn answers_belong_to_the_probes_in_their_order_or_are_refused() {
        let planes: [&[u8]; 2] = [&[1, 2], &[3, 4]];
        let answer = |first: f32| v1::ProbeAnswer {
            policy: vec![first, 1.0 - first],
            wdl: vec![first, 0.5, 0.5 - first],
        };
        let own = |answers: &[v1::ProbeAnswer]| own_probes(planes.into_iter(), answers);
        let both = own(&[answer(0.25), answer(0.125)]).unwrap();
        let expected = Probe {
            planes: vec![3, 4],
            policy: vec![0.125, 0.875],
            wdl: [0.125, 0.5, 0.375],
        };
        assert_eq!((both.len(), &both[1]), (2, &expected));
        assert!(own(&[]).unwrap().is_empty(), "published without");
        let refused = |answers: &[v1::ProbeAnswer]| own(answers).unwrap_err().to_string();
        assert_eq!(refused(&[answer(0.25)]), "the file comes with 1 answers to 2 probes");
        let short = v1::ProbeAnswer {
            wdl: vec![0.5; 2],
            ..answer(0.25)
        };
        assert!(refused(&[answer(0.25), short]).contains("has 2 values"));
    }

    #[test]
    fn orders_that_make_no_sense_are_refused_with_the_value() {
        let good = order_to_wire(&order(Plan::SelfPlay {
            games: 5,
            random_plies_max: 2,
        }));
        let refused = |change: fn(&mut v1::WorkOrder)| {
            let mut wire = good.clone();
            change(&mut wire);
            order_from_wire(&wire).unwrap_err().to_string()
        };
        assert!(refused(|wire| wire.lease_id.truncate(3)).contains("has 3 bytes"));
        assert!(refused(|wire| wire.model_ids.clear()).contains("names 0 models"));
        assert!(refused(|wire| wire.kind = 0).contains("no kind"));
        assert!(refused(|wire| wire.search = None).contains("search settings"));
        assert!(refused(|wire| wire.games = 0).contains("games is 0"));
        let rated = |players: [v1::PlayerKind; 2]| {
            let mut wire = good.clone();
            wire.set_kind(v1::WorkKind::Match);
            wire.players = players
                .map(|kind| v1::Player {
                    kind: kind.into(),
                    name: "anna".to_owned(),
                    ..v1::Player::default()
                })
                .into();
            order_from_wire(&wire).unwrap_err().to_string()
        };
        let [random, human] = [v1::PlayerKind::Random, v1::PlayerKind::Human];
        assert!(rated([random, human]).contains("anna to play, who is a person"));
        assert!(rated([random, random]).contains("names 1 models where 0 are needed"));
    }
}
