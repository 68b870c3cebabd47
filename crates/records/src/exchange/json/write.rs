//! Records as documents.

use tengen_games::swap2::Decision;
use tengen_games::{Action, AnyGame, Game, GameVisitor, Roles, Seat, State};

use super::super::stones::{Board, Kind};
use super::super::{Colour, ExportError, game_of, seat_names};
use super::document::{
    Bots, Document, Heading, Mcts, Move, Opening, OpeningStone, Placement, PolicyTarget, Rules, Search, SpecialActions,
};
use super::{FORMAT, SCHEMA_VERSION, TIME_MS_MAX, line_rules, named_by_fields, time};
use crate::record::{Record, SearchBlock};
use crate::rejection::{ReasonCode, Rejection};

/// The record's document, with everything a record holds.
///
/// # Errors
/// For games of other families, and for records that do not replay.
pub fn export(record: &Record) -> Result<Document, ExportError> {
    let game = game_of(record)?;
    let board = Board::of(&game, FORMAT)?;
    let mut document = document(record, &game, &board, &seat_names(record))?;
    document.tengen = Some(heading(record));
    Ok(document)
}

/// What the record says in the words of the document, without what is ours.
pub(super) fn document(
    record: &Record,
    game: &AnyGame,
    board: &Board,
    names: &[String; 2],
) -> Result<Document, Rejection> {
    let steps = game.visit(Steps(record))?;
    let (opening, moves) = Writer { record, board, names }.parts(&steps);
    let name = |seat: Seat| names[seat.index()].clone();
    let [black, white] = [Colour::First, Colour::Second].map(|colour| name(colour.seat(record.roles)));
    Ok(Document {
        schema_version: SCHEMA_VERSION,
        id: record.id.to_string(),
        seed: record.seed.into(),
        rules: rules(game, board),
        bots: Bots {
            opener_bot_id: name(Seat::FIRST),
            chooser_bot_id: name(Seat::SECOND),
            black_bot_id: black,
            white_bot_id: white,
        },
        result: if record.outcome.winner.is_some() { "win" } else { "draw" }.to_owned(),
        winner: record.outcome.winner.map(|seat| seat.index() as u8),
        move_count: opening.stones.len() + moves.len(),
        opening,
        moves,
        duration_ms: record.duration_ms.into(),
        created_at: time(record.created_unix_ms.clamp(0, TIME_MS_MAX)).unwrap_or_default(),
        tengen: None,
    })
}

fn rules(game: &AnyGame, board: &Board) -> Rules {
    let (no_overlines, edge_open) = line_rules(game);
    let mut rules = Rules {
        board_size: board.size,
        swap2: board.swap2,
        no_overlines,
        edge_closes: edge_open.then_some(false),
        game: None,
    };
    if named_by_fields(&rules) != game.spec().id {
        rules.game = Some(game.spec().id.clone());
    }
    rules
}

/// An action with the seat that took it, and whether colours were fixed before.
struct Step {
    action: Action,
    seat: Seat,
    fixed: bool,
}

/// Replays a record.
struct Steps<'a>(&'a Record);

impl GameVisitor for Steps<'_> {
    type Output = Result<Vec<Step>, Rejection>;

    fn visit<G: Game>(self, game: G) -> Self::Output {
        let mut state = game.start();
        let mut steps = Vec::new();
        for (n, action) in self.0.actions().enumerate() {
            steps.push(Step {
                action,
                seat: state.seat(),
                fixed: state.roles().first_colour.is_some(),
            });
            state
                .apply(action)
                .map_err(|error| Rejection::new(ReasonCode::IllegalAction, format!("ply {n}: {error}")))?;
        }
        Ok(steps)
    }
}

struct Writer<'a> {
    record: &'a Record,
    board: &'a Board,
    names: &'a [String; 2],
}

impl Writer<'_> {
    fn parts(&self, steps: &[Step]) -> (Opening, Vec<Move>) {
        let mut opening = Opening {
            phase1_decision: None,
            phase2_decision: None,
            stones: Vec::new(),
            phase1_mcts: None,
            phase2_mcts: None,
        };
        let mut moves: Vec<Move> = Vec::new();
        for (n, step) in steps.iter().enumerate() {
            let mcts = self.mcts(n);
            let bot = self.names[step.seat.index()].clone();
            match self.board.kind(step.action) {
                Some(Kind::Decision(decision)) => {
                    let word = decision_word(decision).to_owned();
                    if opening.phase1_decision.is_none() {
                        (opening.phase1_decision, opening.phase1_mcts) = (Some(word), mcts);
                    } else {
                        (opening.phase2_decision, opening.phase2_mcts) = (Some(word), mcts);
                    }
                }
                Some(Kind::Stone { x, y }) if self.board.swap2 && !step.fixed => {
                    let number = opening.stones.len();
                    opening.stones.push(OpeningStone {
                        move_number: number + 1,
                        x,
                        y,
                        player: owner(number, self.record.roles),
                        placed_by_bot_id: bot,
                        mcts,
                    });
                }
                Some(Kind::Stone { x, y }) => moves.push(Move {
                    move_number: opening.stones.len() + moves.len() + 1,
                    x,
                    y,
                    player: step.seat.index() as u8,
                    bot_id: bot,
                    mcts,
                }),
                None => {}
            }
        }
        (opening, moves)
    }

    fn mcts(&self, step: usize) -> Option<Mcts> {
        let ply = &self.record.plies[step.checked_sub(self.record.opening.len())?];
        let search = ply.search.as_ref()?;
        Some(Mcts {
            policy_target: self.policy(&search.policy_target),
            mcts_value: search.root_wdl[0] - search.root_wdl[2],
            temperature: search.temperature,
            tengen: Some(extra(search)),
        })
    }

    fn policy(&self, target: &[(Action, f32)]) -> Option<PolicyTarget> {
        let mut policy = PolicyTarget::default();
        for &(action, probability) in target {
            match self.board.kind(action)? {
                Kind::Stone { x, y } => policy.placements.push(Placement { x, y, probability }),
                Kind::Decision(decision) => {
                    let special = policy.special_actions.get_or_insert_default();
                    *slot(special, decision) = Some(probability);
                }
            }
        }
        (!target.is_empty()).then_some(policy)
    }
}

/// Where a choice has its probability.
pub(super) fn slot(special: &mut SpecialActions, decision: Decision) -> &mut Option<f32> {
    match decision {
        Decision::TakeBlack => &mut special.choose_black,
        Decision::TakeWhite => &mut special.choose_white,
        Decision::Offer => &mut special.offer_two,
    }
}

/// How the document says a choice.
pub(super) const fn decision_word(decision: Decision) -> &'static str {
    match decision {
        Decision::TakeBlack => "black",
        Decision::TakeWhite => "white",
        Decision::Offer => "offer",
    }
}

/// The seat that holds the colour of the stone that follows `stones` others.
fn owner(stones: usize, roles: Roles) -> u8 {
    super::super::stones::colour_after(stones).seat(roles).index() as u8
}

fn heading(record: &Record) -> Heading {
    Heading {
        run: record.run_id.to_string(),
        kind: record.kind.as_str().to_owned(),
        rules_fingerprint: hex::encode(record.rules_fingerprint.0),
        models: record.models.iter().map(ToString::to_string).collect(),
        players: record
            .players
            .as_ref()
            .map(|players| players.each_ref().map(ToString::to_string)),
        seat_models: record.seat_models.map(|index| index.0),
        settings_revision: record.settings_revision,
        opening_plies: record.opening.len(),
        reason: record.outcome.reason.as_str().to_owned(),
        match_pair: record.match_pair,
        created_unix_ms: record.created_unix_ms,
    }
}

fn extra(search: &SearchBlock) -> Search {
    Search {
        visits: search
            .visits
            .iter()
            .map(|&(action, visits)| (action.0, visits))
            .collect(),
        weight: search.weight,
        root_wdl: search.root_wdl,
        net_wdl: search.net_wdl,
        net_policy_top: search
            .net_policy_top
            .iter()
            .map(|&(action, prior)| (action.0, prior))
            .collect(),
        prior_kl: search.prior_kl,
        visits_total: search.visits_total,
        visits_reused: search.visits_reused,
        precision: search.precision.as_str().to_owned(),
        symmetry: search.symmetry,
    }
}
