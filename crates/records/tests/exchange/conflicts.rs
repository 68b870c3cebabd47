//! A document that contradicts itself is refused, each ruling by its field.

use serde_json::{Value, json};
use tengen_games::{Reason, Seat};
use tengen_records::exchange::{Format, ImportError, Reader, json as format};
use tengen_records::{ReasonCode, Record};

use super::records;

/// A game with an offer.
fn sample() -> Value {
    let stones = [
        (7, 7, 1, "a"),
        (8, 7, 0, "a"),
        (9, 9, 1, "a"),
        (8, 8, 0, "b"),
        (8, 6, 1, "b"),
    ];
    let moves = [(6, 8), (9, 6), (0, 0), (10, 6), (2, 0), (11, 6), (4, 0), (12, 6)];
    let stone = |(n, &(x, y, player, bot)): (usize, &(u8, u8, u8, &str))| json!({ "moveNumber": n + 1, "x": x, "y": y, "player": player, "placedByBotId": bot });
    let played = |(n, &(x, y)): (usize, &(u8, u8))| json!({ "moveNumber": n + 6, "x": x, "y": y, "player": n % 2, "botId": if n % 2 == 0 { "a" } else { "b" } });
    json!({
        "schemaVersion": 1, "id": "g-0001", "seed": 7,
        "rules": { "boardSize": 15, "swap2": true, "noOverlines": true },
        "bots": { "openerBotId": "a", "chooserBotId": "b", "blackBotId": "b", "whiteBotId": "a" },
        "opening": {
            "phase1Decision": "offer", "phase2Decision": "white",
            "stones": stones.iter().enumerate().map(stone).collect::<Vec<_>>(),
        },
        "result": "win", "winner": 1, "moveCount": 13,
        "moves": moves.iter().enumerate().map(played).collect::<Vec<_>>(),
        "durationMs": 0, "createdAt": "2026-11-29T00:00:00Z",
    })
}

fn read(document: &Value) -> Result<Record, ImportError> {
    let text = document.to_string();
    Reader::new(None).read(Format::Json, text.as_bytes()).remove(0).record
}

/// Reads the sample with the value at `pointer` replaced, and expects this code.
fn refused(pointer: &str, value: Value, code: ReasonCode) {
    let mut document = sample();
    *document
        .pointer_mut(pointer)
        .unwrap_or_else(|| panic!("there is no {pointer}")) = value;
    expect(&document, pointer, code);
}

fn expect(document: &Value, what: &str, code: ReasonCode) {
    match read(document) {
        Err(ImportError::Rejected(rejection)) => assert_eq!(rejection.code, code, "{what}: {rejection}"),
        other => panic!("{what}: {other:?}"),
    }
}

#[test]
fn the_sample_is_the_game_it_says() {
    let record = read(&sample()).expect("a good game");
    assert_eq!(record.outcome.winner, Some(Seat::SECOND));
    assert_eq!(record.outcome.reason, Reason::Line);
    assert_eq!(record.game_id, "caro5");
    assert_eq!(record.roles.first_colour, Some(Seat::SECOND));
    assert_eq!((record.seed, record.created_unix_ms), (7, 1_795_910_400_000));
    let actions: Vec<u16> = record.actions().map(|action| action.0).collect();
    assert_eq!(
        actions,
        [112, 113, 144, 227, 128, 98, 226, 126, 99, 0, 100, 2, 101, 4, 102]
    );
    let again = serde_json::to_value(format::export(&record).expect("it fits")).expect("a document");
    for part in ["rules", "bots", "opening", "result", "winner", "moveCount", "moves"] {
        assert_eq!(again[part], sample()[part], "{part}");
    }
}

#[test]
fn unknown_fields_are_passed_over_and_both_names_of_an_offer_are_read() {
    let mut document = sample();
    document["comment"] = "x".into();
    document["moves"][0]["thought"] = json!([1, 2]);
    for name in ["offerTwo", "offerTwoMore"] {
        document["opening"]["phase1Mcts"] = json!({
            "policyTarget": { "placements": [], "specialActions": { "chooseBlack": 0.25, name: 0.75 } },
            "mctsValue": 0.5, "temperature": 0,
        });
        let record = read(&document).expect("a good game");
        assert!(
            record.plies.iter().all(|ply| ply.search.is_none()),
            "a foreign search is not a search block"
        );
    }
}

#[test]
fn colours_and_seats_must_agree() {
    use ReasonCode::{Opening, WrongResult, WrongRoles, WrongSeat};
    refused("/bots/blackBotId", "a".into(), WrongRoles);
    refused("/bots/whiteBotId", "b".into(), WrongRoles);
    refused("/opening/stones/0/player", 0.into(), WrongRoles);
    refused("/opening/stones/3/player", 1.into(), WrongRoles);
    refused("/opening/stones/3/placedByBotId", "a".into(), WrongSeat);
    refused("/moves/0/player", 1.into(), WrongSeat);
    refused("/moves/1/botId", "a".into(), WrongSeat);
    refused("/winner", 0.into(), WrongResult);
    refused("/winner", Value::Null, WrongResult);
    refused("/winner", 2.into(), WrongResult);
    refused("/result", "draw".into(), WrongResult);
    // With the other choice of the opener the same stones belong to the others.
    refused("/opening/phase2Decision", "black".into(), WrongResult);
    refused("/opening/phase2Decision", "offer".into(), ReasonCode::IllegalAction);
    refused("/opening/phase2Decision", "green".into(), Opening);
    refused("/opening/phase1Decision", "black".into(), Opening);
    refused("/opening/phase1Decision", Value::Null, Opening);
}

#[test]
fn numbers_count_stones_and_nothing_else() {
    use ReasonCode::{Decode, IllegalAction, WrongGame};
    refused("/opening/stones/2/moveNumber", 4.into(), Decode);
    refused("/moves/0/moveNumber", 4.into(), Decode);
    refused("/moveCount", 12.into(), Decode);
    refused("/moves/2/x", 15.into(), IllegalAction);
    refused("/moves/2/x", 2.into(), IllegalAction);
    refused(
        "/moves/2",
        json!({ "moveNumber": 8, "x": 7, "y": 7, "player": 0, "botId": "a" }),
        IllegalAction,
    );
    refused("/createdAt", "yesterday".into(), Decode);
    refused("/durationMs", (1_u64 << 40).into(), Decode);
    refused("/schemaVersion", 2.into(), ReasonCode::SchemaVersion);
    refused("/rules/boardSize", 12.into(), IllegalAction);
    refused("/rules/swap2", false.into(), IllegalAction);
    let mut document = sample();
    document["rules"]["game"] = "caro5?edge=open".into();
    expect(&document, "edgeCloses", WrongGame);
    document["rules"]["edgeCloses"] = false.into();
    read(&document).expect("the game is won under either edge");
}

#[test]
fn a_search_fits_its_position() {
    use ReasonCode::{PolicyIllegal, PolicyOrder, PolicyRange, PolicySum, Temperature, Wdl};
    let with = |place: &str, mcts: Value| {
        let mut document = sample();
        document.pointer_mut(place).expect("a move")["mcts"] = mcts;
        document
    };
    let policy =
        |placements: Value| json!({ "policyTarget": { "placements": placements }, "mctsValue": 0.1, "temperature": 1 });
    let at = |x: u8, y: u8, probability: f32| json!({ "x": x, "y": y, "probability": probability });
    read(&with("/moves/0", policy(json!([at(6, 8, 0.5), at(1, 1, 0.5)])))).expect("a good search");
    expect(&with("/moves/0", policy(json!([at(6, 8, 0.5)]))), "sum", PolicySum);
    expect(
        &with("/moves/0", policy(json!([at(7, 7, 1.0)]))),
        "taken",
        PolicyIllegal,
    );
    expect(&with("/moves/0", policy(json!([at(15, 7, 1.0)]))), "off", PolicyIllegal);
    expect(
        &with("/moves/0", policy(json!([at(6, 8, -1.0), at(1, 1, 2.0)]))),
        "range",
        PolicyRange,
    );
    expect(
        &with("/moves/0", policy(json!([at(6, 8, 0.5), at(6, 8, 0.5)]))),
        "twice",
        PolicyOrder,
    );
    let mut mixed = policy(json!([at(6, 8, 1.0)]));
    mixed["policyTarget"]["specialActions"] = json!({});
    expect(&with("/moves/0", mixed), "a stone is due", PolicyIllegal);
    let mut loud = policy(json!([at(6, 8, 1.0)]));
    loud["mctsValue"] = 1.5.into();
    expect(&with("/moves/0", loud), "value", Wdl);
    let mut cold = policy(json!([at(6, 8, 1.0)]));
    cold["temperature"] = (-1).into();
    expect(&with("/moves/0", cold), "temperature", Temperature);
    let mut document = sample();
    document["opening"]["phase2Mcts"] = policy(json!([at(6, 8, 1.0)]));
    expect(&document, "a choice is due", PolicyIllegal);
}

#[test]
fn a_game_that_stops_counts_as_the_document_says() {
    let mut document = sample();
    document["moves"].as_array_mut().expect("moves").truncate(4);
    document["moveCount"] = 9.into();
    assert_eq!(
        read(&document).expect("a good game").outcome.reason,
        Reason::Resignation
    );
    document["result"] = "draw".into();
    document["winner"] = Value::Null;
    assert_eq!(read(&document).expect("a good game").outcome.reason, Reason::MoveLimit);
}

#[test]
fn what_is_ours_must_agree_with_the_rest() {
    use ReasonCode::{Decode, UnknownLease, Wdl, WrongModel, WrongPlayers, WrongReason, WrongRules};
    let record = &records("caro5?size=9", 1, 1)[0];
    let honest = serde_json::to_value(format::export(record).expect("it fits")).expect("a document");
    read(&honest).expect("a good game");
    let searched = honest["moves"]
        .as_array()
        .expect("moves")
        .iter()
        .position(|played| !played["mcts"].is_null())
        .expect("a search");
    let search = format!("/moves/{searched}/mcts");
    for (pointer, value, code) in [
        ("/id".to_owned(), json!("g-1"), UnknownLease),
        ("/createdAt".to_owned(), json!("2026-11-29T00:00:00Z"), Decode),
        ("/bots/openerBotId".to_owned(), json!("x"), WrongPlayers),
        ("/tengen/rulesFingerprint".to_owned(), json!("00"), WrongRules),
        ("/tengen/models".to_owned(), json!(["7"]), WrongModel),
        ("/tengen/seatModels".to_owned(), json!([0, 7]), WrongModel),
        ("/tengen/reason".to_owned(), json!("boredom"), WrongReason),
        (format!("{search}/mctsValue"), json!(1.0), Wdl),
        (format!("{search}/tengen"), Value::Null, Decode),
    ] {
        let mut document = honest.clone();
        *document
            .pointer_mut(&pointer)
            .unwrap_or_else(|| panic!("there is no {pointer}")) = value;
        expect(&document, &pointer, code);
    }
}
