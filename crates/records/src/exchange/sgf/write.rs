//! Records as SGF.

use tengen_games::{AnyGame, Game, GameVisitor, Moves, Reason, Seat, State, notation, params};

use super::super::{Colour, ExportError, Unfit, game_of, seat_names};
use super::tree::escaped;
use super::{DECISION, FORMAT, Kind, TROMP_TAYLOR, points};
use crate::record::Record;
use crate::rejection::{ReasonCode, Rejection};

/// The record as one game of a collection, on one line.
///
/// # Errors
/// For games that the format has no number for, and for records that do not replay.
pub fn export(record: &Record) -> Result<String, ExportError> {
    let game = game_of(record)?;
    let kind = Kind::of(&game.spec().id).ok_or_else(|| Unfit {
        format: FORMAT,
        game: game.spec().id.clone(),
        why: "it has numbers for five in a row, go, hex and amazons",
    })?;
    let mut text = root(record, &game, kind);
    text += &game.visit(MoveList { record, kind })?;
    text += ")\n";
    Ok(text)
}

/// The first node.
fn root(record: &Record, game: &AnyGame, kind: Kind) -> String {
    let spec = game.spec();
    let size = if spec.rows == spec.cols {
        spec.rows.to_string()
    } else {
        format!("{}:{}", spec.cols, spec.rows)
    };
    let names = seat_names(record);
    let name = |colour: Colour| escaped(&names[colour.seat(record.roles).index()]);
    let mut text = format!(
        "(;FF[4]CA[UTF-8]GM[{}]SZ[{size}]RU[{}]GN[{}]",
        kind.number(),
        escaped(&rules(game, kind)),
        record.id
    );
    if kind == Kind::Go {
        text += &format!("KM[{}]", komi(&spec.id));
    }
    if let Some(date) = date(record.created_unix_ms) {
        text += &format!("DT[{date}]");
    }
    text += &format!(
        "PB[{}]PW[{}]RE[{}]",
        name(Colour::First),
        name(Colour::Second),
        result(record)
    );
    text + &game.visit(Setup(kind))
}

/// What `RU` says: a name people use where it says everything, else the game's id.
fn rules(game: &AnyGame, kind: Kind) -> String {
    let id = &game.spec().id;
    match kind {
        Kind::Go => TROMP_TAYLOR.to_owned(),
        _ if id == "caro5" => "Caro5".to_owned(),
        _ => id.clone(),
    }
}

fn komi(id: &str) -> String {
    let given = params::split(id).map(|(_, given)| given).unwrap_or_default();
    let komi = given.into_iter().find(|(key, _)| key == "komi");
    komi.map_or_else(|| "7.5".to_owned(), |(_, komi)| komi)
}

/// The day, where the clock that told it can be believed to know one.
fn date(unix_ms: i64) -> Option<String> {
    let time = super::super::json::time(unix_ms).filter(|_| unix_ms > 0)?;
    time.get(..10).map(str::to_owned)
}

fn result(record: &Record) -> String {
    let Some(winner) = record.outcome.winner else {
        return "Draw".to_owned();
    };
    let letter = if winner == Colour::First.seat(record.roles) {
        "B"
    } else {
        "W"
    };
    let how = match record.outcome.reason {
        Reason::Line => "Five",
        Reason::Resignation => "Resign",
        Reason::Overline | Reason::DoubleFour | Reason::DoubleThree => "Forfeit",
        _ => "",
    };
    format!("{letter}+{how}")
}

/// Where the pieces stand at the start, where the format assumes otherwise.
struct Setup(Kind);

impl GameVisitor for Setup {
    type Output = String;

    fn visit<G: Game>(self, game: G) -> String {
        if self.0 != Kind::Amazons || game.spec().rows == AMAZONS_SIDE {
            return String::new();
        }
        let list = |name: &str, cells: &[usize]| {
            let points: String = cells
                .iter()
                .map(|&cell| format!("[{}]", points::point(cell, game.spec().cols)))
                .collect();
            format!("{name}{points}")
        };
        let [first, second] = pieces(&game);
        list("AB", &first) + &list("AW", &second)
    }
}

/// The board whose start the format knows.
pub(super) const AMAZONS_SIDE: usize = 10;

/// The amazons of both seats at the start, from the game's own position text.
pub(super) fn pieces<G: Game>(game: &G) -> [Vec<usize>; 2] {
    let text = game.position_text(&game.start()).unwrap_or_default();
    let board = text.split(' ').next().unwrap_or_default();
    let mut found = [Vec::new(), Vec::new()];
    for (row, line) in board.split('/').enumerate() {
        let (mut col, mut empty) = (0, 0);
        for letter in line.chars() {
            if let Some(digit) = letter.to_digit(10) {
                empty = empty * 10 + digit as usize;
                continue;
            }
            col += std::mem::take(&mut empty);
            let seat = usize::from(letter.is_ascii_lowercase());
            found[seat].push(row * game.spec().cols + col);
            col += 1;
        }
    }
    found
}

/// The nodes behind the root.
struct MoveList<'a> {
    record: &'a Record,
    kind: Kind,
}

impl GameVisitor for MoveList<'_> {
    type Output = Result<String, Rejection>;

    fn visit<G: Game>(self, game: G) -> Self::Output {
        let mut state = game.start();
        let (mut text, mut stones) = (String::new(), 0);
        let (mut decisions, mut begun) = (String::new(), Vec::new());
        for (n, action) in self.record.actions().enumerate() {
            let (seat, turn) = (state.seat(), state.turn());
            state
                .apply(action)
                .map_err(|error| Rejection::new(ReasonCode::IllegalAction, format!("ply {n}: {error}")))?;
            if self.kind == Kind::Stones && action.index() >= game.spec().cells() {
                decisions += &format!("[{}]", game.action_text(action));
                continue;
            }
            begun.push(action);
            if game.moves() == Moves::Staged && state.turn() == turn && state.outcome().is_none() {
                continue;
            }
            let colour = match self.kind {
                Kind::Stones => super::super::stones::colour_after(stones),
                _ if seat == Seat::FIRST => Colour::First,
                _ => Colour::Second,
            };
            stones += 1;
            text.push(';');
            if !decisions.is_empty() {
                text += &format!("{DECISION}{}", std::mem::take(&mut decisions));
            }
            let letter = if colour == Colour::First { "B" } else { "W" };
            text += &format!("{letter}[{}]", points::text(self.kind, &begun, game.spec()));
            begun.clear();
        }
        if !decisions.is_empty() {
            text += &format!(";{DECISION}{decisions}");
        }
        if let Some(left) = (!begun.is_empty()).then(|| notation::words(&game, &game.start(), &begun)) {
            let detail = format!("the game ends inside a move ({})", left.join(" "));
            return Err(Rejection::new(ReasonCode::Unfinished, detail));
        }
        Ok(text)
    }
}
