//! Game texts, canonical ids and the names of actions.

use tengen_games::{Action, AnyGame, Game, ParseGameError, registry};

use crate::game;

#[track_caller]
fn check_id(text: &str, id: &str) {
    assert_eq!(
        AnyGame::parse(text).map(|game| game.spec().id.clone()),
        Ok(id.to_owned()),
        "{text}"
    );
}

#[track_caller]
fn check_refused(text: &str, message: &str) {
    let error = AnyGame::parse(text).expect_err(text).to_string();
    assert!(error.contains(message), "{text}: {error}");
}

#[test]
fn ids_leave_out_defaults_and_have_one_order() {
    check_id("caro5", "caro5");
    check_id("caro5?size=15&edge=closed", "caro5");
    check_id("caro5?edge=open&size=9", "caro5?size=9&edge=open");
    check_id("caro5-gomocup", "caro5?edge=open");
    check_id("caro5-gomocup?size=20", "caro5?size=20&edge=open");
    check_id("caro5?opening=swap2&history=4", "caro5?history=4");
    check_id("caro5?opening=none", "caro5?opening=none");
    check_id("gomoku-standard?opening=none&threat_planes=true", "gomoku-standard");
    check_id(
        "renju?threat_planes=false&opening=swap2&history=16",
        "renju?opening=swap2&history=16&threat_planes=false",
    );
    check_id("mnk?k=3&n=3&m=3", "mnk?m=3&n=3&k=3");
    check_id("mnk?m=4&n=4&k=3&opening=swap2", "mnk?m=4&n=4&k=3&opening=swap2");
    check_id("black-hole?history=0&rows=6", "black-hole?rows=6");
    check_id("tic-tac-toe", "tic-tac-toe");
    check_id("connect-four", "connect-four");
}

#[test]
fn bad_texts_are_refused_with_the_reason() {
    check_refused(
        "caro6",
        "unknown game `caro6`; known: tic-tac-toe, connect-four, mnk, gomoku-freestyle,",
    );
    check_refused("", "unknown game ``");
    check_refused("caro5?", "malformed");
    check_refused("caro5?size", "malformed");
    check_refused("caro5?size=9,edge=open", "`size=9,edge=open` is not allowed");
    check_refused("caro5?size=4", "a whole number from 5 to 20");
    check_refused("caro5?size=+9", "a whole number from 5 to 20");
    check_refused("caro5?size=9&size=9", "given twice");
    check_refused("caro5?edge=half", "one of closed, open");
    check_refused("caro5?rows=9", "no parameter `rows`; known: size, edge");
    check_refused(
        "caro?edge=open",
        "no parameter `edge`; known: size, opening, history, threat_planes",
    );
    check_refused("gomoku-freestyle?size=21", "a whole number from 5 to 20");
    check_refused("gomoku-freestyle?history=3", "an even number");
    check_refused("gomoku-freestyle?history=0", "a whole number from 2 to 16");
    check_refused("renju?threat_planes=no", "one of true, false");
    check_refused("caro5-gomocup?edge=closed", "fixed by the preset");
    check_refused("tic-tac-toe?size=4", "no parameter `size`; known: none");
    check_refused("mnk?m=3&n=3&k=4", "no line of 4 fits on 3x3");
    check_refused("mnk?m=5&n=1&k=3&opening=swap2", "more than five cells");
    check_refused("mnk?m=3&n=3&k=2&opening=swap2", "at least 3");
    check_refused(&format!("mnk?m={}", "1".repeat(300)), "malformed");
}

#[test]
fn unknown_games_name_the_known_ones() {
    let Err(ParseGameError::UnknownGame { known, .. }) = AnyGame::parse("chess") else {
        panic!("chess is no game here");
    };
    assert_eq!(known.split(", ").collect::<Vec<_>>(), registry::names());
    assert_eq!(registry::entries().len(), registry::names().len());
}

#[test]
fn actions_are_written_as_people_write_them() {
    let caro5 = game!(Caro5, "caro5");
    let texts = [
        (112, "h8"),
        (0, "a15"),
        (210, "a1"),
        (224, "o1"),
        (225, "take-black"),
        (226, "take-white"),
        (227, "offer"),
    ];
    for (action, text) in texts {
        assert_eq!(caro5.action_text(Action(action)), text);
        assert_eq!(caro5.parse_action(text), Some(Action(action)));
    }
    assert_eq!(caro5.parse_action("227"), Some(Action(227)));
    assert_eq!(caro5.parse_action("228"), None);
    assert_eq!(caro5.parse_action("p1"), None);
    let connect_four = game!(ConnectFour, "connect-four");
    assert_eq!(connect_four.action_text(Action(6)), "g");
    assert_eq!(connect_four.parse_action("d"), Some(Action(3)));
}
