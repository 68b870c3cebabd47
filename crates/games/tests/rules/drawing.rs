//! Drawings for people.

use tengen_games::{Game, State};

use crate::{game, play};

#[test]
fn tic_tac_toe_is_drawn_with_coordinates() {
    let state = play(&game!(TicTacToe, "tic-tac-toe"), &[4, 0]);
    assert_eq!(
        state.draw(),
        "  3 O . .\n  2 . X .\n  1 . . .\n    a b c\nseat 0 to play X\n"
    );
}

#[test]
fn swap2_marks_the_last_stone_and_says_what_is_due() {
    let game = game!(Caro5, "caro5?size=5");
    assert_eq!(
        play(&game, &[0, 24, 12]).draw(),
        "  5 X . . . .\n  4 . . . . .\n  3 . .(X). .\n  2 . . . . .\n  1 . . . . O\n    a b c d e\nseat 1 chooses a colour\n"
    );
    let after_offer = play(&game, &[0, 24, 12, 27, 4]).draw();
    assert!(after_offer.starts_with("  5 X . . .(O)\n"), "{after_offer}");
    assert!(after_offer.ends_with("seat 1 to place X (Swap2)\n"), "{after_offer}");
}

#[test]
fn connect_four_is_drawn_with_its_result() {
    let state = play(&game!(ConnectFour, "connect-four"), &[0, 1, 0, 1, 0, 1, 0]);
    let drawn = state.draw();
    assert!(
        drawn.starts_with("  6 . . . . . . .\n  5 . . . . . . .\n  4 X . . . . . .\n  3 X O"),
        "{drawn}"
    );
    assert!(drawn.ends_with("    a b c d e f g\nseat 0 wins (line)\n"), "{drawn}");
    assert!(
        game!(ConnectFour, "connect-four")
            .start()
            .draw()
            .ends_with("seat 0 to play X\n")
    );
}
