//! The JSON document, field by field. `docs/records.md` says where each comes from.
//!
//! What stands under `tengen` is ours: with it a record comes back exactly. Fields that are not known are passed over.

use serde::{Deserialize, Serialize};

/// One game.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Document {
    /// 1.
    pub schema_version: u32,
    /// The game's name.
    pub id: String,
    /// Seed of its random choices.
    pub seed: serde_json::Number,
    /// The rules.
    pub rules: Rules,
    /// Who played.
    pub bots: Bots,
    /// Everything before colours were fixed.
    pub opening: Opening,
    /// `win` or `draw`.
    pub result: String,
    /// The winning seat; null for a draw.
    pub winner: Option<u8>,
    /// Stones in all.
    pub move_count: usize,
    /// The stones behind the opening.
    pub moves: Vec<Move>,
    /// How long it took, milliseconds.
    pub duration_ms: u64,
    /// When it ended, RFC 3339 in UTC.
    pub created_at: String,
    /// What a record holds beyond that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tengen: Option<Heading>,
}

/// The rules.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Rules {
    /// Cells of a side.
    pub board_size: usize,
    /// Whether the game began with Swap2.
    pub swap2: bool,
    /// Whether six or more in a row win nothing for black.
    pub no_overlines: bool,
    /// Whether the edge of the board closes a line; left out where it does, as is the rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edge_closes: Option<bool>,
    /// The game's id, where the fields above do not name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub game: Option<String>,
}

/// Who played.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Bots {
    /// Seat 0, which places the opening.
    pub opener_bot_id: String,
    /// Seat 1, which chooses.
    pub chooser_bot_id: String,
    /// Who held black.
    pub black_bot_id: String,
    /// Who held white.
    pub white_bot_id: String,
}

/// The opening.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Opening {
    /// What the chooser chose: `black`, `white` or `offer`; null without Swap2, and in a game that ended before.
    pub phase1_decision: Option<String>,
    /// What the opener chose after an offer: `black` or `white`.
    pub phase2_decision: Option<String>,
    /// Its stones.
    pub stones: Vec<OpeningStone>,
    /// The search of the first choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase1_mcts: Option<Mcts>,
    /// The search of the second choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase2_mcts: Option<Mcts>,
}

/// A stone of the opening.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct OpeningStone {
    /// From 1.
    pub move_number: usize,
    /// Column from the left, from 0.
    pub x: usize,
    /// Row from the top, from 0.
    pub y: usize,
    /// The seat that held its colour in the end.
    pub player: u8,
    /// Who put it there.
    pub placed_by_bot_id: String,
    /// The search that found it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcts: Option<Mcts>,
}

/// A stone behind the opening.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Move {
    /// Goes on from the opening's.
    pub move_number: usize,
    /// Column from the left, from 0.
    pub x: usize,
    /// Row from the top, from 0.
    pub y: usize,
    /// The seat that played it.
    pub player: u8,
    /// Who played it.
    pub bot_id: String,
    /// The search that found it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcts: Option<Mcts>,
}

/// A search.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Mcts {
    /// The policy that is trained; left out where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_target: Option<PolicyTarget>,
    /// Value of the root from the acting seat's view, -1 to 1.
    pub mcts_value: f32,
    /// Temperature the action was drawn with.
    pub temperature: f32,
    /// What a search block holds beyond that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tengen: Option<Search>,
}

/// The policy of a search: stones in one place, choices in the other.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct PolicyTarget {
    /// Stones; empty where a choice is due.
    pub placements: Vec<Placement>,
    /// Choices; left out where a stone is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub special_actions: Option<SpecialActions>,
}

/// A stone with its probability.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq)]
pub struct Placement {
    /// Column from the left, from 0.
    pub x: usize,
    /// Row from the top, from 0.
    pub y: usize,
    /// 0 to 1.
    pub probability: f32,
}

/// The choices with their probabilities; one that is left out has none.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct SpecialActions {
    /// Action 225 on 15x15.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choose_black: Option<f32>,
    /// Action 226.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choose_white: Option<f32>,
    /// Action 227, which some call `offerTwoMore`.
    #[serde(default, alias = "offerTwoMore", skip_serializing_if = "Option::is_none")]
    pub offer_two: Option<f32>,
}

/// The heading of a record.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Heading {
    /// The run.
    pub run: String,
    /// `self-play` or `match`.
    pub kind: String,
    /// Hexadecimal digits.
    pub rules_fingerprint: String,
    /// Hexadecimal digits of each model.
    pub models: Vec<String>,
    /// The players of a rating game.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub players: Option<[String; 2]>,
    /// Whose index each seat has.
    pub seat_models: [u8; 2],
    /// Revision of the run's settings.
    pub settings_revision: u32,
    /// Actions at the beginning that were given.
    pub opening_plies: usize,
    /// Why the game ended.
    pub reason: String,
    /// Pair of the match.
    pub match_pair: u32,
    /// When it ended, milliseconds since the Unix epoch.
    pub created_unix_ms: i64,
}

/// The rest of a search block. Actions are indexes.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Search {
    /// Visits by action.
    pub visits: Vec<(u16, u32)>,
    /// Weight in training.
    pub weight: f32,
    /// Win, draw, loss after the search.
    pub root_wdl: [f32; 3],
    /// Win, draw, loss as the network saw them.
    pub net_wdl: [f32; 3],
    /// The largest priors.
    pub net_policy_top: Vec<(u16, f32)>,
    /// Divergence of the target from the prior, nats.
    pub prior_kl: f32,
    /// Root visits.
    pub visits_total: u32,
    /// Root visits that came from an earlier ply.
    pub visits_reused: u32,
    /// `fp32`, `fp16` or `int8`.
    pub precision: String,
    /// Symmetry the root was evaluated under.
    pub symmetry: u16,
}
