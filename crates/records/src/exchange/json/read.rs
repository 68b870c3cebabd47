//! Documents as records.

use tengen_games::swap2::Decision;
use tengen_games::{Action, AnyGame, Fingerprint, Game, GameVisitor, Outcome, Reason, Roles, Seat, State};

use super::super::delimited::check_record;
use super::super::stones::Board;
use super::super::{
    ImportError, Imported, LineCounter, Names, Reader, Stated, SyntaxError, Transcript, seat_names, shown,
};
use super::document::{Document, Heading, Mcts};
use super::search::{self, Place};
use super::write::{decision_word, document};
use super::{FORMAT, SCHEMA_VERSION, TIME_MS_MAX, conflict, named_by_fields, unix_ms};
use crate::ids::{ModelId, RecordId, RunId};
use crate::player::Player;
use crate::record::{Kind as RecordKind, ModelIndex, PlyRecord, Record};
use crate::rejection::{ReasonCode, Rejection};

type Parsed<T> = Result<T, Rejection>;

pub(in super::super) fn import(reader: &mut Reader, bytes: &[u8]) -> Vec<Imported> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let error = SyntaxError::at(bytes, error.valid_up_to(), "no UTF-8");
            return vec![Imported {
                label: "the file".to_owned(),
                line: error.line,
                record: Err(error.into()),
            }];
        }
    };
    let mut lines = LineCounter::new(bytes);
    let documents = documents(text);
    let numbered = documents.into_iter().enumerate();
    numbered
        .map(|(n, (offset, document))| {
            let label = match &document {
                Ok(document) => format!("game {}", shown(&document.id)),
                Err(_) => format!("game {}", n + 1),
            };
            Imported {
                label,
                line: lines.line(offset),
                record: document
                    .map_err(ImportError::from)
                    .and_then(|document| record(reader, &document)),
            }
        })
        .collect()
}

/// The objects of a file with where they begin. After one that is broken the next line that begins with `{` is the next.
fn documents(text: &str) -> Vec<(usize, Result<Document, SyntaxError>)> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(begin) = text[at..].find(|letter: char| !letter.is_whitespace()) {
        at += begin;
        let mut stream = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Document>();
        let Some(next) = stream.next() else { break };
        match next {
            Ok(document) => {
                found.push((at, Ok(document)));
                at += stream.byte_offset();
            }
            Err(error) => {
                let fault = at + offset_of(&text[at..], error.line(), error.column());
                found.push((at, Err(SyntaxError::at(text.as_bytes(), fault, plain(&error)))));
                // The fault may be the brace itself, with which the next object begins.
                let from = fault.saturating_sub(1).max(at);
                let rest = text.as_bytes().get(from..).unwrap_or_default();
                match rest.windows(2).position(|pair| pair == b"\n{") {
                    Some(next) => at = from + next + 1,
                    None => break,
                }
            }
        }
    }
    found
}

/// What is wrong, without where: that is said apart.
fn plain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or(&text).to_owned()
}

fn offset_of(text: &str, line: usize, column: usize) -> usize {
    let mut starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1));
    let start = starts.nth(line.saturating_sub(1)).unwrap_or(text.len());
    (start + column.saturating_sub(1)).min(text.len())
}

fn record(reader: &mut Reader, document: &Document) -> Result<Record, ImportError> {
    if document.schema_version != SCHEMA_VERSION {
        let detail = format!(
            "schemaVersion {}, this build reads {SCHEMA_VERSION}",
            document.schema_version
        );
        return Err(Rejection::new(ReasonCode::SchemaVersion, detail).into());
    }
    let game = game_of(reader, document)?;
    let board = Board::of(&game, FORMAT)?;
    let script = Script::of(document, &board)?;
    let (record, names) = match &document.tengen {
        Some(heading) => {
            let record = own_record(document, heading, &game, &board, &script)?;
            check_record(reader, &record)?;
            let names = seat_names(&record);
            (record, names)
        }
        None => {
            let record = reader.record(&game, &transcript(document, &game, &script)?)?;
            let names = [
                document.bots.opener_bot_id.clone(),
                document.bots.chooser_bot_id.clone(),
            ];
            (record, names)
        }
    };
    search::check(&game, &board, &script.places)?;
    conflict::check(document, &self::document(&record, &game, &board, &names)?)?;
    Ok(record)
}

fn game_of(reader: &Reader, document: &Document) -> Result<AnyGame, ImportError> {
    let rules = &document.rules;
    match &rules.game {
        Some(game) => Ok(reader.game_or(game)?),
        None if rules.no_overlines => Ok(reader.game_or(&named_by_fields(rules))?),
        None => reader
            .given
            .clone()
            .ok_or_else(|| ImportError::NoGame("for example gomoku-freestyle?opening=swap2".to_owned())),
    }
}

/// The actions of a document in playing order, each with its search.
struct Script<'a> {
    places: Vec<Place<'a>>,
}

impl<'a> Script<'a> {
    fn of(document: &'a Document, board: &Board) -> Parsed<Script<'a>> {
        let opening = &document.opening;
        let mut script = Script { places: Vec::new() };
        let decisions = [
            ("phase1", &opening.phase1_decision, &opening.phase1_mcts),
            ("phase2", &opening.phase2_decision, &opening.phase2_mcts),
        ];
        let [first, second] = decisions.map(|(phase, word, mcts)| {
            let name = format!("opening.{phase}Decision");
            let decision = word.as_deref().map(|word| decision(&name, word)).transpose()?;
            let mcts_name = format!("opening.{phase}Mcts");
            match (decision, mcts) {
                (None, Some(_)) => Err(Rejection::new(
                    ReasonCode::Opening,
                    format!("{mcts_name} is there and {name} is not"),
                )),
                (decision, mcts) => Ok(decision.map(|decision| (decision, mcts_name, mcts.as_ref()))),
            }
        });
        let (first, second) = (first?, second?);
        let offered = matches!(first, Some((Decision::Offer, ..)));
        if second.is_some() && !offered {
            let detail = "opening.phase2Decision is there although opening.phase1Decision is not \"offer\"";
            return Err(Rejection::new(ReasonCode::Opening, detail));
        }
        let stones = opening.stones.iter().enumerate().map(|(n, stone)| {
            let name = format!("opening.stones[{n}]");
            stone_at(
                board,
                name,
                stone.move_number,
                n + 1,
                (stone.x, stone.y),
                stone.mcts.as_ref(),
            )
        });
        let mut stones = stones.collect::<Parsed<Vec<_>>>()?.into_iter();
        script.places.extend(stones.by_ref().take(3));
        let place = |(decision, name, mcts): (Decision, String, Option<&'a Mcts>)| Place {
            name,
            action: board.decision(decision),
            mcts,
        };
        script.places.extend(first.map(place));
        script.places.extend(stones);
        script.places.extend(second.map(place));
        let before = opening.stones.len();
        for (n, stone) in document.moves.iter().enumerate() {
            let name = format!("moves[{n}]");
            let place = (stone.x, stone.y);
            let number = before + n + 1;
            script.places.push(stone_at(
                board,
                name,
                stone.move_number,
                number,
                place,
                stone.mcts.as_ref(),
            )?);
        }
        Ok(script)
    }

    fn actions(&self) -> Vec<Action> {
        self.places.iter().map(|place| place.action).collect()
    }
}

fn decision(name: &str, word: &str) -> Parsed<Decision> {
    let found = Decision::ALL
        .into_iter()
        .find(|&decision| decision_word(decision) == word);
    found.ok_or_else(|| {
        Rejection::new(
            ReasonCode::Opening,
            format!("{name} is \"black\", \"white\" or \"offer\", not {:?}", shown(word)),
        )
    })
}

fn stone_at<'a>(
    board: &Board,
    name: String,
    number: usize,
    due: usize,
    (x, y): (usize, usize),
    mcts: Option<&'a Mcts>,
) -> Parsed<Place<'a>> {
    if number != due {
        let detail = format!("{name}.moveNumber is {number}, the stones before it make it {due}");
        return Err(Rejection::new(ReasonCode::Decode, detail));
    }
    let Some(action) = board.stone(x, y) else {
        let size = board.size;
        let detail = format!("{name} is at x {x}, y {y}: not on a board of {size}x{size}");
        return Err(Rejection::new(ReasonCode::IllegalAction, detail));
    };
    Ok(Place { name, action, mcts })
}

/// What a document of another program tells.
fn transcript(document: &Document, game: &AnyGame, script: &Script<'_>) -> Parsed<Transcript> {
    let bots = &document.bots;
    Ok(Transcript {
        game_id: game.spec().id.clone(),
        opening_plies: 0,
        actions: script.actions(),
        stated: Some(match winner(document)? {
            None => Stated::Draw,
            Some(seat) => Stated::Seat(seat),
        }),
        names: Names::Seats([bots.opener_bot_id.clone(), bots.chooser_bot_id.clone()]),
        seed: document.seed.as_u64().unwrap_or(0),
        created_unix_ms: created(document)?,
        duration_ms: duration(document)?,
    })
}

fn created(document: &Document) -> Parsed<i64> {
    unix_ms(&document.created_at).ok_or_else(|| {
        let text = shown(&document.created_at);
        Rejection::new(
            ReasonCode::Decode,
            format!("createdAt is {text:?}, no time in RFC 3339 and UTC"),
        )
    })
}

fn duration(document: &Document) -> Parsed<u32> {
    u32::try_from(document.duration_ms).map_err(|_| {
        Rejection::new(
            ReasonCode::Decode,
            format!(
                "durationMs is {}, at most {} is possible",
                document.duration_ms,
                u32::MAX
            ),
        )
    })
}

fn winner(document: &Document) -> Parsed<Option<Seat>> {
    let seat = |number| {
        Seat::new(number)
            .ok_or_else(|| Rejection::new(ReasonCode::WrongResult, format!("winner: there is no seat {number}")))
    };
    document.winner.map(seat).transpose()
}

/// The record that a document of ours tells, whole.
fn own_record(
    document: &Document,
    heading: &Heading,
    game: &AnyGame,
    board: &Board,
    script: &Script<'_>,
) -> Parsed<Record> {
    let wrong =
        |code, name: &str, value: &str| Rejection::new(code, format!("tengen.{name}: {:?} is none", shown(value)));
    let fingerprint = hex::decode(&heading.rules_fingerprint).ok();
    let fingerprint = fingerprint.and_then(|bytes| bytes.try_into().ok().map(Fingerprint));
    let models = heading.models.iter().map(|text| {
        let id: Result<ModelId, _> = text.parse();
        id.map_err(|_| wrong(ReasonCode::WrongModel, "models", text))
    });
    let players = heading.players.as_ref().map(|players| {
        let player = |text: &String| {
            let player: Result<Player, _> = text.parse();
            player.map_err(|_| wrong(ReasonCode::WrongPlayers, "players", text))
        };
        Ok([player(&players[0])?, player(&players[1])?])
    });
    let reason =
        Reason::parse(&heading.reason).ok_or_else(|| wrong(ReasonCode::WrongReason, "reason", &heading.reason))?;
    if unix_ms(&document.created_at) != Some(heading.created_unix_ms.clamp(0, TIME_MS_MAX)) {
        let (stated, ours) = (shown(&document.created_at), heading.created_unix_ms);
        let detail = format!("createdAt is {stated:?}, tengen.createdUnixMs is {ours}");
        return Err(Rejection::new(ReasonCode::Decode, detail));
    }
    let actions = script.actions();
    let opening_plies = heading.opening_plies.min(actions.len());
    let replayed = game.visit(Replay(&actions))?;
    let plies = script
        .places
        .iter()
        .zip(&replayed.seats)
        .skip(opening_plies)
        .map(|(place, &seat)| {
            Ok(PlyRecord {
                seat,
                action: place.action,
                model: ModelIndex(heading.seat_models[seat.index()]),
                search: search::block(place, board)?,
            })
        });
    Ok(Record {
        id: document
            .id
            .parse::<RecordId>()
            .map_err(|error| Rejection::new(ReasonCode::UnknownLease, error.to_string()))?,
        run_id: RunId::new(heading.run.clone())
            .map_err(|error| Rejection::new(ReasonCode::WrongRun, error.to_string()))?,
        game_id: game.spec().id.clone(),
        rules_fingerprint: fingerprint
            .ok_or_else(|| wrong(ReasonCode::WrongRules, "rulesFingerprint", &heading.rules_fingerprint))?,
        kind: RecordKind::parse(&heading.kind).ok_or_else(|| wrong(ReasonCode::WrongKind, "kind", &heading.kind))?,
        models: models.collect::<Parsed<_>>()?,
        players: players.transpose()?,
        seat_models: heading.seat_models.map(ModelIndex),
        settings_revision: heading.settings_revision,
        seed: document
            .seed
            .as_u64()
            .ok_or_else(|| Rejection::new(ReasonCode::WrongSeed, format!("seed {} is none", document.seed)))?,
        opening: actions[..opening_plies].to_vec(),
        plies: plies.collect::<Parsed<_>>()?,
        outcome: Outcome {
            winner: winner(document)?,
            reason,
        },
        roles: replayed.roles,
        created_unix_ms: heading.created_unix_ms,
        duration_ms: duration(document)?,
        match_pair: heading.match_pair,
    })
}

/// Who acted at each action, and who held what in the end.
struct Replayed {
    seats: Vec<Seat>,
    roles: Roles,
}

struct Replay<'a>(&'a [Action]);

impl GameVisitor for Replay<'_> {
    type Output = Parsed<Replayed>;

    fn visit<G: Game>(self, game: G) -> Self::Output {
        let mut state = game.start();
        let mut seats = Vec::with_capacity(self.0.len());
        for (n, &action) in self.0.iter().enumerate() {
            seats.push(state.seat());
            let text = || game.action_text(action);
            state.apply(action).map_err(|error| {
                Rejection::new(
                    ReasonCode::IllegalAction,
                    format!("ply {n} ({}): {}", text(), error.why),
                )
            })?;
        }
        Ok(Replayed {
            seats,
            roles: state.roles(),
        })
    }
}
