//! Whether a document says what is so: every field that follows from the moves, against the same field made anew.

use super::document::{Bots, Document, Move, OpeningStone, Rules};
use crate::rejection::{ReasonCode, Rejection};

type Verdict = Result<(), Rejection>;

/// Compares what `stated` says with what `made` says of the same moves.
///
/// # Errors
/// The first field that contradicts the game, with both values.
pub(super) fn check(stated: &Document, made: &Document) -> Verdict {
    rules(&stated.rules, &made.rules)?;
    bots(&stated.bots, &made.bots)?;
    let (stones, made_stones) = (&stated.opening.stones, &made.opening.stones);
    let name = "the number of opening.stones";
    field(name, ReasonCode::Opening, &stones.len(), &made_stones.len())?;
    for (n, (stone, made)) in stones.iter().zip(made_stones).enumerate() {
        opening_stone(n, stone, made)?;
    }
    for (n, (stone, made)) in stated.moves.iter().zip(&made.moves).enumerate() {
        played(n, stone, made)?;
    }
    field("moveCount", ReasonCode::Decode, &stated.move_count, &made.move_count)?;
    field("result", ReasonCode::WrongResult, &stated.result, &made.result)?;
    let word = |winner: Option<u8>| winner.map_or_else(|| "null".to_owned(), |seat| seat.to_string());
    let code = ReasonCode::WrongResult;
    field("winner", code, &word(stated.winner), &word(made.winner))
}

fn rules(stated: &Rules, made: &Rules) -> Verdict {
    let code = ReasonCode::WrongGame;
    field("rules.swap2", code, &stated.swap2, &made.swap2)?;
    field("rules.boardSize", code, &stated.board_size, &made.board_size)?;
    field("rules.noOverlines", code, &stated.no_overlines, &made.no_overlines)?;
    let closes = |rules: &Rules| rules.edge_closes.unwrap_or(true);
    field("rules.edgeCloses", code, &closes(stated), &closes(made))
}

fn bots(stated: &Bots, made: &Bots) -> Verdict {
    let code = ReasonCode::WrongPlayers;
    field("bots.openerBotId", code, &stated.opener_bot_id, &made.opener_bot_id)?;
    field("bots.chooserBotId", code, &stated.chooser_bot_id, &made.chooser_bot_id)?;
    let code = ReasonCode::WrongRoles;
    field("bots.blackBotId", code, &stated.black_bot_id, &made.black_bot_id)?;
    field("bots.whiteBotId", code, &stated.white_bot_id, &made.white_bot_id)
}

fn opening_stone(n: usize, stone: &OpeningStone, made: &OpeningStone) -> Verdict {
    let name = |field: &str| format!("opening.stones[{n}].{field}");
    field(&name("player"), ReasonCode::WrongRoles, &stone.player, &made.player)?;
    field(
        &name("placedByBotId"),
        ReasonCode::WrongSeat,
        &stone.placed_by_bot_id,
        &made.placed_by_bot_id,
    )
}

fn played(n: usize, stone: &Move, made: &Move) -> Verdict {
    let name = |field: &str| format!("moves[{n}].{field}");
    field(&name("player"), ReasonCode::WrongSeat, &stone.player, &made.player)?;
    field(&name("botId"), ReasonCode::WrongSeat, &stone.bot_id, &made.bot_id)
}

fn field<T: PartialEq + std::fmt::Display>(name: &str, code: ReasonCode, stated: &T, made: &T) -> Verdict {
    if stated == made {
        return Ok(());
    }
    let stated = super::super::shown(stated);
    Err(Rejection::new(
        code,
        format!("{name} is {stated}, the moves say {made}"),
    ))
}
