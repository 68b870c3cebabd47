//! What is written is read again, and is what it was.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use sgf_parse::{GameTree, SgfNode, SgfProp};
use tengen_games::{Action, Seat};
use tengen_records::exchange::psq::{self, LineEnd, Psq, Stone};
use tengen_records::exchange::{ExportError, Format, Reader, datapoints, delimited, json, positions, sgf};
use tengen_records::{Record, encode};

use super::{FIVE, game, records};

fn actions(record: &Record) -> Vec<Action> {
    record.actions().collect()
}

/// The only game of a file.
fn one(reader: &mut Reader, format: Format, text: &str) -> Record {
    let mut games = reader.read(format, text.as_bytes());
    assert_eq!(games.len(), 1, "{text}");
    let game = games.remove(0);
    game.record.unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn a_record_survives_json_to_the_byte() {
    let mut reader = Reader::new(None);
    for id in FIVE {
        for record in records(id, 6, 1) {
            let document = json::export(&record).expect("a game of five in a row");
            let line = serde_json::to_string(&document).expect("a document");
            let pretty = serde_json::to_string_pretty(&document).expect("a document");
            for text in [line, pretty] {
                let again = one(&mut reader, Format::Json, &text);
                assert!(encode(&again) == encode(&record), "{id}: {text}");
            }
        }
    }
}

#[test]
fn many_objects_of_one_file_are_read_and_a_broken_one_is_passed_over() {
    let records = records("caro5?size=9", 2, 3);
    let lines: Vec<String> = records
        .iter()
        .map(|record| serde_json::to_string(&json::export(record).expect("it fits")).expect("a document"))
        .collect();
    let broken = &lines[1][..lines[1].len() / 2];
    let text = format!("{}\n{broken}\n{}\n{}\n", lines[0], lines[2], lines[3]);
    let read = Reader::new(None).read(Format::Json, text.as_bytes());
    let good: Vec<bool> = read.iter().map(|game| game.record.is_ok()).collect();
    assert_eq!(good, [true, false, true, true]);
    assert_eq!(read.iter().map(|game| game.line).collect::<Vec<_>>(), [1, 2, 3, 4]);
    let fault = read[1].record.as_ref().expect_err("it is cut");
    assert!(
        fault.to_string().starts_with("line 3, column 1") || fault.to_string().starts_with("line 2"),
        "{fault}"
    );
}

#[test]
fn a_record_survives_as_it_is() {
    let games = [
        "caro5?size=9",
        "hex?size=4",
        "amazons?size=4",
        "black-hole?rows=5",
        "ataxx",
    ];
    let records: Vec<Record> = games.iter().flat_map(|id| records(id, 2, 4)).collect();
    let mut bytes = Vec::new();
    records.iter().for_each(|record| delimited::append(record, &mut bytes));
    let read = Reader::new(None).read(Format::Protobuf, &bytes);
    let again: Vec<Record> = read
        .into_iter()
        .map(|game| game.record.expect("a good record"))
        .collect();
    assert!(again == records);
}

#[test]
fn the_moves_of_a_record_survive_sgf() {
    let others = [
        "go?size=5",
        "go?size=9&komi=6.5",
        "hex?size=5",
        "hex?size=4&cols=7",
        "hex?size=6&swap=no",
        "amazons?size=4",
        "amazons?size=6",
        "amazons",
    ];
    let mut reader = Reader::new(None);
    for id in FIVE.into_iter().chain(others) {
        for record in records(id, 4, 5) {
            let text = sgf::export(&record).expect("it fits");
            // Where the file names no swap the game has to be told.
            let again = if id.contains("swap=no") || id.contains("history") {
                one(&mut Reader::new(Some(game(id))), Format::Sgf, &text)
            } else {
                one(&mut reader, Format::Sgf, &text)
            };
            assert_eq!(actions(&again), actions(&record), "{id}: {text}");
            assert_eq!(again.outcome, record.outcome, "{id}");
            assert_eq!(again.roles, record.roles, "{id}");
            assert_eq!(again.game_id, record.game_id);
        }
    }
}

fn identifiers<P: SgfProp>(root: &SgfNode<P>) -> Vec<String> {
    let nodes = root.main_variation();
    nodes
        .flat_map(|node| node.properties().map(SgfProp::identifier).collect::<Vec<_>>())
        .collect()
}

#[test]
fn another_reader_of_sgf_sees_the_same_properties() {
    for id in ["caro5?size=9", "hex?size=5", "amazons?size=6", "go?size=9"] {
        for record in records(id, 3, 6) {
            let text = sgf::export(&record).expect("it fits");
            let ours = sgf::tree::parse(text.as_bytes()).expect("our own text");
            let properties = ours[0].nodes.iter().flat_map(|node| &node.properties);
            let names: Vec<String> = properties.map(|property| property.name.clone()).collect();
            let theirs = sgf_parse::parse(&text).expect("a collection");
            let theirs = match &theirs[0] {
                GameTree::GoGame(root) => identifiers(root),
                GameTree::Unknown(root) => identifiers(root),
            };
            assert_eq!(names, theirs, "{text}");
        }
    }
}

#[test]
fn the_stones_of_a_record_survive_psq() {
    for id in FIVE {
        for record in records(id, 4, 7) {
            let text = psq::export(&record).expect("it fits");
            let cells = game(id).spec().cells();
            let stones: Vec<Action> = record.actions().filter(|action| action.index() < cells).collect();
            let size = game(id).spec().cols;
            let file = psq::parse(text.as_bytes()).expect("our own text");
            let read: Vec<Action> = file
                .stones
                .iter()
                .map(|stone| Action(((stone.y as usize - 1) * size + stone.x as usize - 1) as u16))
                .collect();
            assert_eq!(read, stones);
            assert_eq!(file.to_string(), text);
            if !id.contains("swap2") && (!id.starts_with("caro5") || id.contains("opening=none")) {
                let again = one(&mut Reader::new(Some(game(id))), Format::Psq, &text);
                assert_eq!((actions(&again), again.outcome), (actions(&record), record.outcome));
            }
        }
    }
}

#[test]
fn any_psq_file_comes_back_to_the_byte() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(8);
    for _ in 0..2_000 {
        let (width, height) = (rng.random_range(1..30), rng.random_range(1..30));
        let mut stones = Vec::new();
        for _ in 0..rng.random_range(0..40) {
            stones.push(Stone {
                x: rng.random_range(1..=width),
                y: rng.random_range(1..=height),
                time_ms: rng.random_bool(0.7).then(|| rng.random_range(-5..100_000)),
            });
        }
        let file = Psq {
            width,
            height,
            levels: [rng.random_range(-1..20), rng.random_range(-1..20)],
            begins: rng.random_range(0..2),
            stones,
            names: (0..rng.random_range(0..3))
                .map(|n| format!("engine {n}, of 2"))
                .collect(),
            code: rng.random_bool(0.5).then(|| rng.random_range(-1..20)),
            line_end: if rng.random_bool(0.5) {
                LineEnd::Lf
            } else {
                LineEnd::CrLf
            },
        };
        let text = file.to_string();
        assert_eq!(psq::parse(text.as_bytes()), Ok(file), "{text}");
    }
}

#[test]
fn datapoints_hold_the_positions_of_normal_play_from_the_movers_side_of_colours() {
    for id in ["gomoku-freestyle?size=9", "caro5?size=9"] {
        for record in records(id, 3, 9) {
            let text = datapoints::export(&record).expect("it fits");
            let size = game(id).spec().cols as u16;
            let black = record.roles.first_colour.unwrap_or(Seat::FIRST);
            let winner = match record.outcome.winner {
                None => 2,
                Some(seat) => usize::from(seat != black),
            };
            for line in text.lines() {
                let datapoint = datapoints::parse_line(line).expect("our own line");
                assert!(!datapoint.moves.is_empty());
                assert!(datapoint.moves.iter().all(|&cell| cell < size * size));
                assert!(line.ends_with(&format!(";{winner}")));
            }
            let trained = record.plies.iter().filter(|ply| ply.is_position()).count();
            assert!(text.lines().count() <= trained + record.plies.iter().filter(|ply| ply.search.is_none()).count());
        }
    }
}

#[test]
fn what_has_no_place_in_a_format_is_refused_by_name() {
    let record = &records("black-hole?rows=5", 1, 10)[0];
    let unfit = |refused: Option<ExportError>| {
        let refused = refused.expect("it does not fit");
        assert!(matches!(refused, ExportError::Unfit(_)));
        refused.to_string()
    };
    assert!(unfit(json::export(record).err()).contains("json has no place for a game of black-hole?rows=5"));
    assert!(unfit(sgf::export(record).err()).contains("sgf has no place"));
    assert!(unfit(psq::export(record).err()).contains("psq has no place"));
    assert!(unfit(datapoints::export(record).err()).contains("datapoints has no place"));
}

#[test]
fn positions_are_planes_policy_and_the_result_of_the_acting_seat() {
    use tengen_games::{Game, GameVisitor, State};
    use tengen_records::Rejection;
    struct Compare<'a>(&'a Record);
    impl GameVisitor for Compare<'_> {
        type Output = ();
        fn visit<G: Game>(self, game: G) {
            let record = self.0;
            let mut found = Vec::new();
            positions::each(&game, record, |position| {
                found.push(position);
                Ok::<_, Rejection>(())
            })
            .expect("an honest record");
            let mut state = game.start();
            record
                .opening
                .iter()
                .for_each(|&action| state.apply(action).expect("legal"));
            let mut found = found.into_iter();
            for ply in &record.plies {
                if let Some(search) = ply.search.as_ref().filter(|search| search.weight > 0.0) {
                    let position = found.next().expect("a position");
                    let mut planes = vec![0; game.spec().planes_len()];
                    state.planes(&mut planes);
                    assert_eq!(position.planes, planes);
                    assert_eq!(position.policy.len(), game.spec().actions.len());
                    for &(action, probability) in &search.policy_target {
                        assert_eq!(position.policy[action.index()], probability);
                    }
                    assert_eq!(position.value, record.outcome.value_for(ply.seat));
                    assert_eq!(position.weight, search.weight);
                }
                state.apply(ply.action).expect("legal");
            }
            assert_eq!(found.next(), None);
        }
    }
    let self_play = records("hex?size=4", 2, 11);
    self_play
        .iter()
        .take(4)
        .for_each(|record| game("hex?size=4").visit(Compare(record)));
}
