//! What SGF files say beside moves on cells: stones that are set up, and the words of Hex.

use tengen_games::{Outcome, Reason, Seat};
use tengen_records::exchange::{Format, ImportError, Reader};
use tengen_records::{ReasonCode, Record};

fn read(text: &str) -> Result<Record, ImportError> {
    let mut games = Reader::new(None).read(Format::Sgf, text.as_bytes());
    assert_eq!(games.len(), 1, "{text}");
    games.remove(0).record
}

fn good(text: &str) -> Record {
    read(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Expects this code, and this part of what is said.
fn refused(text: &str, code: ReasonCode, part: &str) {
    match read(text) {
        Err(ImportError::Rejected(rejection)) => {
            assert_eq!(rejection.code, code, "{text}: {rejection}");
            assert!(rejection.detail.contains(part), "{text}: {rejection}");
        }
        other => panic!("{text}: {other:?}"),
    }
}

/// A record begins at the start of its game, so a position that is set up is none, whether black or white goes on.
#[test]
fn set_up_stones_are_refused_whoever_plays_next() {
    for (root, stones) in [
        ("GM[4]SZ[9]RU[gomoku-freestyle]RE[B+]", "AB[ee]"),
        ("GM[4]SZ[9]RU[gomoku-freestyle]RE[B+]", "AB[ee][ef]AW[dd]"),
        ("GM[1]SZ[9]RU[Tromp-Taylor]KM[6.5]RE[B+]", "HA[2]AB[cc][gg]"),
        ("GM[11]SZ[5]RE[B+]", "AB[c3]"),
    ] {
        let played = if root.contains("GM[11]") { "a1" } else { "aa" };
        for colour in ["B", "W"] {
            let at_the_root = format!("(;FF[4]{root}{stones};{colour}[{played}])");
            refused(&at_the_root, ReasonCode::Opening, "line 1: AB sets up a position");
            let behind_it = format!("(;FF[4]{root}\n;{stones}\n;{colour}[{played}])");
            refused(&behind_it, ReasonCode::Opening, "line 2: AB sets up a position");
        }
    }
    let removed = "(;FF[4]GM[4]SZ[9]RU[gomoku-freestyle]RE[B+];B[ee];AE[ee];W[aa])";
    refused(removed, ReasonCode::Opening, "AE sets up a position");
}

const HEAD: &str = "FF[4]GM[11]SZ[3]PB[ann]PW[bert]";

/// Black's b1 is taken over. With the pieces swapped it lies on a2 and is white; with the sides swapped it stays, and
/// everything behind it lies mirrored on the other side of the diagonal.
#[test]
fn both_swaps_of_hex_are_the_same_game() {
    let pieces = format!("(;{HEAD}RE[B+];B[b1];W[swap-pieces];B[b2];W[a1];B[c1];W[c2];B[b3])");
    let record = good(&pieces);
    let actions: Vec<u16> = record.actions().map(|action| action.0).collect();
    assert_eq!(actions, [1, 9, 4, 0, 2, 5, 7]);
    assert_eq!(record.outcome, Outcome::win(Seat::FIRST, Reason::Connection));
    // Colours that have changed sides, and colours that stand for who held them first.
    let sides = format!("(;{HEAD}RE[W+];B[b1];W[swap-sides];W[b2];B[a1];W[a3];B[b3];W[c2])");
    assert_eq!(good(&sides), record);
    let players = format!("(;{HEAD}RE[B+];B[b1];W[Swap-Sides];B[B2];W[A1];B[A3];W[B3];B[C2])");
    assert_eq!(good(&players), record);
    let names = record.players.expect("two people").map(|player| player.to_string());
    assert_eq!(names, ["human:ann", "human:bert"], "PB began");

    let late = format!("(;{HEAD}RE[B+];B[b1];W[b2];B[swap-sides])");
    refused(
        &late,
        ReasonCode::IllegalAction,
        "swapping is legal only as the second ply",
    );
    let wrong_turn = format!("(;{HEAD}RE[W+];B[b1];W[swap-sides];W[b2];W[a1])");
    let told = read(&wrong_turn).expect_err("white has played");
    assert!(
        told.to_string().contains("white plays where it is black's turn"),
        "{told}"
    );
}

#[test]
fn who_resigns_or_forfeits_a_game_of_hex_has_lost_it() {
    let won = |moves: &str| good(&format!("(;{HEAD}{moves})")).outcome;
    let by = |seat| Outcome::win(seat, Reason::Resignation);
    assert_eq!(won(";B[b2];W[a1];B[resign]"), by(Seat::SECOND));
    assert_eq!(won(";B[b2];W[Forfeit]"), by(Seat::FIRST));
    assert_eq!(won("RE[W+Resign];B[b2];W[a1];B[resign]"), by(Seat::SECOND));
    // Whoever is black by then, the one to move behind the swap is who began.
    assert_eq!(won("RE[B+];B[b1];W[swap-sides];W[resign]"), by(Seat::SECOND));
    assert_eq!(won(";B[b1];W[swap-sides];B[resign]"), by(Seat::SECOND));
    assert_eq!(won("RE[B+];B[b1];W[swap-sides];W[b2]"), by(Seat::SECOND));
    assert_eq!(won("RE[B+];B[b1];W[swap-sides];B[b2]"), by(Seat::FIRST));

    let contradiction = format!("(;{HEAD}RE[B+];B[b2];W[a1];B[resign])");
    refused(&contradiction, ReasonCode::WrongResult, "RE says another winner");
    let more = format!("(;{HEAD};B[b2];W[resign];B[a1])");
    let told = read(&more).expect_err("the game is over");
    assert!(told.to_string().contains("the game was given up before"), "{told}");
}
