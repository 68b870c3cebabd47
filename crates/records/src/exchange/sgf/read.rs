//! SGF as records.

use tengen_games::swap2::Decision;
use tengen_games::{Action, AnyGame, Game, GameVisitor, OpeningRule};

use super::super::{
    Colour, ImportError, Imported, LineCounter, Names, Reader, Stated, SyntaxError, Transcript, Unfit, shown, stones,
};
use super::tree::{self, Node, Property};
use super::{DECISION, FORMAT, Kind, TROMP_TAYLOR, points, with_parameter, without_opening, write};
use crate::rejection::{ReasonCode, Rejection};

/// Properties that put or remove stones without playing them.
const SETUP: [&str; 4] = ["AB", "AW", "AE", "AA"];

pub(in super::super) fn import(reader: &mut Reader, bytes: &[u8]) -> Vec<Imported> {
    let games = match tree::parse(bytes) {
        Ok(games) => games,
        Err(error) => {
            return vec![Imported {
                label: "the file".to_owned(),
                line: error.line,
                record: Err(error.into()),
            }];
        }
    };
    let mut lines = LineCounter::new(bytes);
    let numbered = games.iter().enumerate();
    numbered
        .map(|(n, game)| {
            let root = &game.nodes[0];
            let transcript = game_of(root, reader.given.as_ref())
                .and_then(|named| Ok((transcript(&game.nodes, &named, bytes)?, named)));
            Imported {
                label: root.value("GN").map_or_else(|| format!("game {}", n + 1), shown),
                line: lines.line(game.offset),
                record: transcript.and_then(|(transcript, named)| reader.record(&named, &transcript)),
            }
        })
        .collect()
}

fn refused<T>(code: ReasonCode, detail: String) -> Result<T, ImportError> {
    Err(Rejection::new(code, detail).into())
}

/// The game: the given one, or the one that `RU`, `GM`, `SZ` and `KM` name together. A given one must fit them.
fn game_of(root: &Node, given: Option<&AnyGame>) -> Result<AnyGame, ImportError> {
    let number = root.value("GM").map_or(Some(1), |text| text.trim().parse().ok());
    let Some(kind) = number.and_then(Kind::of_number) else {
        let number = shown(root.value("GM").unwrap_or_default());
        return refused(ReasonCode::WrongGame, format!("GM[{number}] is no game of ours"));
    };
    let game = match given {
        Some(given) => given.clone(),
        None => AnyGame::parse(&named(root, kind)?)?,
    };
    let id = &game.spec().id;
    if Kind::of(id) != Some(kind) {
        let unfit = Unfit {
            format: FORMAT,
            game: id.clone(),
            why: "the file's GM is that of another game",
        };
        return Err(unfit.into());
    }
    if let Some(size) = root.value("SZ") {
        let (cols, rows) = size.split_once(':').unwrap_or((size, size));
        let side = |text: &str| text.trim().parse::<usize>().ok();
        if (side(cols), side(rows)) != (Some(game.spec().cols), Some(game.spec().rows)) {
            return refused(
                ReasonCode::WrongGame,
                format!("SZ[{}] is not the board of {id}", shown(size)),
            );
        }
    }
    Ok(game)
}

/// The id that the file's own words make.
fn named(root: &Node, kind: Kind) -> Result<String, ImportError> {
    let rules = root.value("RU").unwrap_or_default().trim().to_ascii_lowercase();
    let size = root.value("SZ").map(|size| size.trim().to_owned());
    let (cols, rows) = match size.as_deref().map(|size| size.split_once(':').unwrap_or((size, size))) {
        Some((cols, rows)) => (Some(cols), Some(rows)),
        None => (None, None),
    };
    let family = match kind {
        Kind::Hex => "hex",
        Kind::Amazons => "amazons",
        Kind::Go if rules == TROMP_TAYLOR.to_ascii_lowercase() => "go",
        Kind::Go => return Err(ImportError::NoGame("for example go?size=9&komi=6.5".to_owned())),
        Kind::Stones => "",
    };
    // `RU` holds a whole id where we wrote it.
    let by_rules = AnyGame::parse(&rules)
        .ok()
        .filter(|game| Kind::of(&game.spec().id) == Some(kind));
    if let Some(game) = by_rules {
        let spec = game.spec();
        // `Caro5` alone says nothing of the size.
        let other_size = rows.filter(|_| rows == cols && !rules.contains("size="));
        return Ok(match other_size {
            Some(size) if size != spec.rows.to_string() => with_parameter(&spec.id, "size", Some(size)),
            _ => spec.id.clone(),
        });
    }
    if family.is_empty() {
        return Err(ImportError::NoGame(
            "for example renju or caro5?opening=none".to_owned(),
        ));
    }
    let mut id = family.to_owned();
    if let Some(rows) = rows {
        id = with_parameter(&id, "size", Some(rows));
    }
    if let Some(cols) = cols.filter(|_| cols != rows) {
        id = with_parameter(&id, "cols", Some(cols));
    }
    if let (Kind::Go, Some(komi)) = (kind, root.value("KM")) {
        id = with_parameter(&id, "komi", Some(komi.trim()));
    }
    Ok(id)
}

fn transcript(nodes: &[Node], game: &AnyGame, bytes: &[u8]) -> Result<Transcript, ImportError> {
    let root = &nodes[0];
    let kind = Kind::of(&game.spec().id).unwrap_or(Kind::Go);
    check_setup(nodes, game, kind, bytes)?;
    let mut moves = MoveReader {
        game,
        kind,
        actions: Vec::new(),
        moves: 0,
        decisions: 0,
        swapped: Swapped::No,
        given_up: None,
    };
    for property in nodes.iter().flat_map(|node| &node.properties) {
        moves
            .property(property)
            .map_err(|what| SyntaxError::at(bytes, property.offset, what))?;
    }
    if game.spec().opening == OpeningRule::Swap2 && moves.decisions == 0 && moves.moves > 3 {
        let other = without_opening(&game.spec().id);
        let detail = format!(
            "the file does not say who chose which colour: with --game '{other}' it is read without an opening"
        );
        return refused(ReasonCode::Opening, detail);
    }
    let stated = moves.result(root.value("RE").and_then(stated))?;
    let name = |name: &str| root.value(name).unwrap_or_default().to_owned();
    Ok(Transcript {
        game_id: game.spec().id.clone(),
        opening_plies: 0,
        actions: moves.actions,
        stated,
        names: Names::Colours([name("PB"), name("PW")]),
        seed: 0,
        created_unix_ms: root.value("DT").and_then(day).unwrap_or(0),
        duration_ms: 0,
    })
}

/// What is set up must be the start: our games are played from there.
fn check_setup(nodes: &[Node], game: &AnyGame, kind: Kind, bytes: &[u8]) -> Result<(), ImportError> {
    let mut properties = nodes.iter().flat_map(|node| &node.properties);
    let Some(setup) = properties.find(|property| SETUP.contains(&&property.name[..])) else {
        return Ok(());
    };
    let root = &nodes[0];
    let only_root = nodes[1..]
        .iter()
        .all(|node| SETUP.iter().all(|name| node.values(name).is_empty()));
    if kind == Kind::Amazons && only_root && root.values("AE").is_empty() && root.values("AA").is_empty() {
        let start = game.visit(Start);
        let placed = ["AB", "AW"].map(|name| {
            let cells = root.values(name).iter().map(|text| points::cell(text, game.spec()));
            let mut cells: Vec<Option<usize>> = cells.collect();
            cells.sort_unstable();
            cells
        });
        if placed == start.map(|cells| cells.into_iter().map(Some).collect::<Vec<_>>()) {
            return Ok(());
        }
    }
    let line = SyntaxError::at(bytes, setup.offset, "").line;
    let detail = format!(
        "line {line}: {} sets up a position: a record begins at the start of its game",
        setup.name
    );
    refused(ReasonCode::Opening, detail)
}

struct Start;

impl GameVisitor for Start {
    type Output = [Vec<usize>; 2];
    fn visit<G: Game>(self, game: G) -> Self::Output {
        write::pieces(&game)
    }
}

/// Gathers the actions of a main line.
struct MoveReader<'a> {
    game: &'a AnyGame,
    kind: Kind,
    actions: Vec<Action>,
    moves: usize,
    decisions: usize,
    swapped: Swapped,
    /// The winner, once the other side has resigned or forfeited the game.
    given_up: Option<Colour>,
}

/// Whether the players of Hex have changed their colours, which our rules never do: from there on the cells of the file are
/// mirrored here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Swapped {
    No,
    /// They have, and nobody has played since.
    Now,
    /// They have, and `B` and `W` name the colours that they have since.
    Colours,
    /// They have, and `B` and `W` still name the players by the colours that they had.
    Players,
}

impl MoveReader<'_> {
    /// Takes up a property; what is wrong with it.
    fn property(&mut self, property: &Property) -> Result<(), String> {
        let named = match &property.name[..] {
            "B" => Colour::First,
            "W" => Colour::Second,
            DECISION if self.kind == Kind::Stones => {
                return property.values.iter().try_for_each(|text| self.decision(text));
            }
            _ => return Ok(()),
        };
        let [text] = &property.values[..] else {
            return Err(format!("{} has {} values", property.name, property.values.len()));
        };
        if self.given_up.is_some() {
            return Err("the game was given up before".to_owned());
        }
        let due = match self.kind {
            Kind::Stones => stones::colour_after(self.moves),
            _ if self.moves.is_multiple_of(2) => Colour::First,
            _ => Colour::Second,
        };
        if self.swapped == Swapped::Now {
            // The turn is known, so the first move behind the swap tells which of the two the file means.
            self.swapped = if named == due {
                Swapped::Players
            } else {
                Swapped::Colours
            };
        }
        let colour = self.colour(named);
        let word = if self.kind == Kind::Hex {
            points::word(text)
        } else {
            None
        };
        if word == Some(points::Word::GivesUp) {
            self.given_up = Some(colour.other());
            return Ok(());
        }
        if colour != due {
            return Err(format!(
                "{} plays where it is {}'s turn",
                named.word(),
                named.other().word()
            ));
        }
        let actions = points::actions(self.kind, text, self.game.spec());
        let mut actions = actions.ok_or_else(|| format!("{:?} is no move of {}", shown(text), self.game.spec().id))?;
        if self.swapped != Swapped::No {
            let mirrored = |action: &mut Action| *action = points::mirrored(*action, self.game.spec());
            actions.iter_mut().for_each(mirrored);
        }
        if word == Some(points::Word::SwapSides) {
            self.swapped = Swapped::Now;
        }
        self.actions.extend(actions);
        self.moves += 1;
        Ok(())
    }

    /// The colour here of the one that the file names.
    fn colour(&self, named: Colour) -> Colour {
        match self.swapped {
            Swapped::No | Swapped::Players => named,
            Swapped::Now | Swapped::Colours => named.other(),
        }
    }

    /// How the game ended, from what `RE` says and from who gave it up.
    fn result(&self, stated: Option<Stated>) -> Result<Option<Stated>, Rejection> {
        let stated = stated.map(|stated| match stated {
            Stated::Colour(named) => Stated::Colour(self.colour(named)),
            other => other,
        });
        let given_up = self.given_up.map(Stated::Colour);
        match (stated, given_up) {
            (Some(stated), Some(given_up)) if stated != given_up => Err(Rejection::new(
                ReasonCode::WrongResult,
                "RE says another winner than the move that gives the game up",
            )),
            (stated, given_up) => Ok(given_up.or(stated)),
        }
    }

    fn decision(&mut self, text: &str) -> Result<(), String> {
        let place = Decision::ALL.iter().position(|decision| decision.text() == text);
        let place = place.ok_or_else(|| format!("{:?} is no choice of colours", shown(text)))?;
        self.actions.push(Action((self.game.spec().cells() + place) as u16));
        self.decisions += 1;
        Ok(())
    }
}

/// What `RE` says; nothing where it says that nothing is known.
fn stated(text: &str) -> Option<Stated> {
    match text.trim().to_ascii_lowercase() {
        text if text == "0" || text.starts_with('d') => Some(Stated::Draw),
        text if text.starts_with("b+") => Some(Stated::Colour(Colour::First)),
        text if text.starts_with("w+") => Some(Stated::Colour(Colour::Second)),
        _ => None,
    }
}

/// The beginning of the day in `YYYY-MM-DD`, milliseconds since the Unix epoch.
fn day(text: &str) -> Option<i64> {
    let day = text.trim().get(..10)?;
    super::super::json::unix_ms(&format!("{day}T00:00:00Z"))
}
