//! `tengen rules` as a program: what it prints and how it ends.

use std::process::Command;

use serde_json::{Value, json};

/// Exit status, standard output and standard error of `tengen rules ARGS...`.
fn rules(args: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_tengen"))
        .arg("rules")
        .args(args)
        .output()
        .expect("the program starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    let status = output.status.code().expect("an exit status");
    (status, text(output.stdout), text(output.stderr))
}

fn answer(args: &[&str]) -> Value {
    let (status, out, error) = rules(args);
    assert_eq!(status, 0, "{args:?}: {error}");
    serde_json::from_str(&out).unwrap_or_else(|_| panic!("{args:?} printed {out}"))
}

#[test]
fn judge_prints_one_object() {
    let judged = answer(&["judge", "tic-tac-toe", "a1", "b2", "0", "b1", "--json"]);
    let text = judged["text"].as_str().expect("a drawing");
    assert!(text.contains("seat 0 to play X"), "{text}");
    let expected = json!({
        "game": "tic-tac-toe", "fingerprint": judged["fingerprint"], "plies": 4, "seat": 0, "stage": 0,
        "legal_count": 5, "result": null, "winner_seat": null, "reason": null, "text": text,
    });
    assert_eq!(judged, expected);
    assert_eq!(judged["fingerprint"].as_str().map(str::len), Some(64));
    let won = answer(&["judge", "tic-tac-toe", "a1 a2 b1 b2 c1", "--json"]);
    let seen = [&won["result"], &won["winner_seat"], &won["reason"], &won["legal_count"]];
    assert_eq!(seen, [&json!("win"), &json!(0), &json!("line"), &json!(0)]);
    let drawn = answer(&["judge", "go?size=3&komi=0", "pass", "pass", "--json"]);
    assert_eq!(
        (&drawn["result"], &drawn["winner_seat"]),
        (&json!("draw"), &Value::Null)
    );
    let staged = answer(&["judge", "amazons", "d1-d7-g7", "a7-", "--json"]);
    assert_eq!([&staged["plies"], &staged["seat"], &staged["stage"]], [4, 1, 1]);
}

#[test]
fn an_illegal_action_is_exit_status_2_with_ply_action_and_why() {
    let (status, out, error) = rules(&["judge", "tic-tac-toe", "a1", "a1"]);
    assert_eq!((status, out.as_str()), (2, ""));
    assert_eq!(error, "tengen: ply 1: a1: the cell is taken\n");
    let (status, out, _) = rules(&["judge", "tic-tac-toe", "a1", "a1", "--json"]);
    assert_eq!(status, 2);
    let refused: Value = serde_json::from_str(&out).expect("an object");
    assert_eq!([&refused["ply"], &refused["action"]], [1, 6]);
    assert_eq!(refused["why"], "the cell is taken");
    let (status, _, error) = rules(&["legal", "hex", "zz"]);
    assert_eq!(status, 2);
    assert!(
        error.contains("ply 0: zz: no move of this position: expected one like a1"),
        "{error}"
    );
}

#[test]
fn perft_counts_plies_and_whole_moves() {
    let count = |args: &[&str]| answer(args)["count"].as_u64().expect("a count");
    assert_eq!(count(&["perft", "amazons", "1", "--json"]), 4);
    assert_eq!(count(&["perft", "amazons", "1", "--moves", "--json"]), 2176);
    assert_eq!(count(&["perft", "connect-four", "2", "--moves", "--json"]), 49);
    let fen = "7/7/7/7/ooooooo/ooooooo/xxxxxxx x";
    assert_eq!(count(&["perft", "ataxx", "2", "--moves", "--json", "--from", fen]), 75);
    assert_eq!(count(&["perft", "hex", "1", "a1", "--json"]), 121);
    let (status, out, _) = rules(&["perft", "tic-tac-toe", "3"]);
    assert_eq!((status, out.as_str()), (0, "504\n"));
    let (status, _, error) = rules(&["perft", "amazons", "1", "--moves", "d1-"]);
    assert_eq!(status, 2);
    assert!(error.contains("inside a move"), "{error}");
}

#[test]
fn from_takes_a_position_or_a_list_of_moves() {
    let fen = answer(&["judge", "ataxx", "--from", "7/7/7/7/4ooo/4ooo/4oox x", "0000", "--json"]);
    assert_eq!([&fen["plies"], &fen["seat"]], [1, 1]);
    let moves = answer(&["judge", "ataxx", "--from", "b6 f6", "a7a5", "--json"]);
    assert_eq!([&moves["plies"], &moves["seat"]], [6, 1]);
    let (status, _, error) = rules(&["judge", "hex", "--from", "nothing"]);
    assert_eq!(status, 2);
    assert!(error.contains("--from is neither a position"), "{error}");
}

#[test]
fn listings_name_every_game_and_plane() {
    let games = answer(&["list", "--json"]);
    let names: Vec<&str> = games
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|game| game["name"].as_str())
        .collect();
    for name in ["tic-tac-toe", "connect-four", "hex", "go", "amazons", "ataxx"] {
        assert!(names.contains(&name), "{names:?}");
    }
    let shown = answer(&["show", "go?size=9", "--json"]);
    assert_eq!([&shown["actions"], &shown["rows"]], [82, 9]);
    let planes = answer(&["planes", "tic-tac-toe", "a1", "--json"]);
    let shape = (
        planes["planes"].as_array().map(Vec::len),
        planes["planes"][1]["rows"][2][0].as_u64(),
    );
    assert_eq!(shape, (Some(4), Some(1)));
    let legal = answer(&["legal", "tic-tac-toe", "b2", "--json"]);
    assert_eq!(legal["actions"], json!([0, 1, 2, 3, 5, 6, 7, 8]));
    for args in [["list", ""], ["show", "ataxx"], ["planes", "amazons?size=6"]] {
        let args: Vec<&str> = args.into_iter().filter(|arg| !arg.is_empty()).collect();
        let (status, out, error) = rules(&args);
        assert!(status == 0 && out.lines().count() > 5, "{args:?}: {out}{error}");
    }
}

#[test]
fn check_measures_every_line_of_the_checklist() {
    let args = [
        "check",
        "ataxx",
        "--games",
        "4",
        "--simulations",
        "2",
        "--without-training",
        "--json",
    ];
    let checked = answer(&args);
    let lines = checked["lines"].as_array().expect("lines");
    let groups: Vec<&str> = lines.iter().filter_map(|line| line["group"].as_str()).collect();
    let expected = [&["rules"; 3][..], &["training"; 3], &["reproducibility"; 4]];
    assert_eq!(groups, expected.concat());
    let measured = |line: usize| lines[line]["measured"].as_str().expect("words");
    assert!(measured(3).starts_with("4 games of "), "{}", measured(3));
    let saved = measured(6);
    assert!(saved.contains("4 records") && saved.contains("`ataxx`"), "{saved}");
    assert!(measured(7).starts_with("not measured"), "{}", measured(7));
    let refused = measured(9);
    assert!(refused.contains("record rejected (wrong-rules)"), "{refused}");
    let (status, out, error) = rules(&args[..args.len() - 1]);
    assert_eq!(status, 0, "{error}");
    assert!(
        lines
            .iter()
            .all(|line| out.contains(line["item"].as_str().expect("words"))),
        "{out}"
    );
}
