//! Points and moves as SGF writes them, for each kind of game.

use tengen_games::{Action, Spec};

use super::Kind;

/// The letter of a column or row from the left or the top: `a` to `z`, then `A` to `Z`.
fn letter(number: usize) -> char {
    let letter = match number {
        0..26 => b'a' + number as u8,
        _ => b'A' + (number - 26).min(25) as u8,
    };
    char::from(letter)
}

fn number(letter: char) -> Option<usize> {
    match letter {
        'a'..='z' => Some(letter as usize - 'a' as usize),
        'A'..='Z' => Some(letter as usize - 'A' as usize + 26),
        _ => None,
    }
}

/// Two letters, column and row from the top left.
pub(super) fn point(cell: usize, cols: usize) -> String {
    [letter(cell % cols), letter(cell / cols)].iter().collect()
}

/// The cell that two letters name.
pub(super) fn cell(text: &str, spec: &Spec) -> Option<usize> {
    let mut letters = text.chars();
    let (col, row) = (number(letters.next()?)?, number(letters.next()?)?);
    let inside = letters.next().is_none() && col < spec.cols && row < spec.rows;
    inside.then_some(row * spec.cols + col)
}

/// One move: the actions of a turn.
pub(super) fn text(kind: Kind, actions: &[Action], spec: &Spec) -> String {
    let cells = spec.cells();
    let one = |action: &Action| match (kind, action.index()) {
        (Kind::Hex, cell) if cell >= cells => "swap-pieces".to_owned(),
        (Kind::Hex, cell) => format!("{}{}", letter(cell % spec.cols), cell / spec.cols + 1),
        // A pass is no point.
        (Kind::Go, cell) if cell >= cells => String::new(),
        (_, cell) => point(cell, spec.cols),
    };
    actions.iter().map(one).collect()
}

/// The actions that a move names; `None` when it names none.
pub(super) fn actions(kind: Kind, text: &str, spec: &Spec) -> Option<Vec<Action>> {
    let cells = spec.cells();
    let action = |index: usize| Action(index as u16);
    match kind {
        Kind::Go if text.is_empty() || (text == "tt" && spec.cols <= 19) => Some(vec![action(cells)]),
        Kind::Go | Kind::Stones => cell(text, spec).map(|cell| vec![action(cell)]),
        Kind::Hex => hex(&text.to_ascii_lowercase(), spec).map(|index| vec![action(index)]),
        Kind::Amazons => {
            let points = [text.get(0..2)?, text.get(2..4)?, text.get(4..)?];
            points.into_iter().map(|point| cell(point, spec).map(action)).collect()
        }
    }
}

/// What a move of Hex may be beside a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// The stone on the board changes its colour and goes to the mirrored cell; the same play as [`Word::SwapSides`].
    SwapPieces,
    /// The players change their colours, and the stone stays.
    SwapSides,
    /// `resign` or `forfeit`: the game is lost.
    GivesUp,
}

/// The word that a move of Hex is, in any case of letters.
pub(super) fn word(text: &str) -> Option<Word> {
    match &text.to_ascii_lowercase()[..] {
        "swap-pieces" => Some(Word::SwapPieces),
        "swap-sides" => Some(Word::SwapSides),
        "resign" | "forfeit" => Some(Word::GivesUp),
        _ => None,
    }
}

/// The cell mirrored at the main diagonal of a square board; what is no cell stays.
pub(super) fn mirrored(action: Action, spec: &Spec) -> Action {
    let (cell, side) = (action.index(), spec.cols);
    if cell < spec.cells() {
        Action((cell % side * side + cell / side) as u16)
    } else {
        action
    }
}

/// `a1`, counted from the top left, or a swap. Either way of swapping is the one action that swaps pieces.
fn hex(text: &str, spec: &Spec) -> Option<usize> {
    match word(text) {
        Some(Word::SwapPieces | Word::SwapSides) => {
            return (spec.actions.len() > spec.cells()).then_some(spec.cells());
        }
        Some(Word::GivesUp) => return None,
        None => {}
    }
    let mut letters = text.chars();
    let col = number(letters.next()?)?;
    let digits = letters.as_str();
    let row: usize = digits
        .parse()
        .ok()
        .filter(|_| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
    let row = row.checked_sub(1)?;
    (col < spec.cols && row < spec.rows).then_some(row * spec.cols + col)
}

#[cfg(test)]
mod tests {
    use tengen_games::AnyGame;

    use super::*;

    #[test]
    fn every_action_reads_back_its_own_text() {
        for (kind, id) in [
            (Kind::Stones, "gomoku-freestyle"),
            (Kind::Go, "go?size=9"),
            (Kind::Hex, "hex"),
            (Kind::Hex, "hex?size=4&cols=7"),
        ] {
            let game = AnyGame::parse(id).unwrap();
            let spec = game.spec();
            for index in 0..spec.actions.len() as u16 {
                let text = text(kind, &[Action(index)], spec);
                assert_eq!(actions(kind, &text, spec), Some(vec![Action(index)]), "{id} {text}");
            }
        }
    }

    #[test]
    fn either_swap_of_hex_is_the_action_in_any_case_of_letters() {
        let game = AnyGame::parse("hex?size=4").unwrap();
        for text in ["swap-pieces", "swap-sides", "Swap-Sides", "SWAP-PIECES"] {
            assert_eq!(actions(Kind::Hex, text, game.spec()), Some(vec![Action(16)]), "{text}");
        }
        let mirrored = |cell| mirrored(Action(cell), game.spec()).0;
        assert_eq!([mirrored(0), mirrored(1), mirrored(14), mirrored(16)], [0, 4, 11, 16]);
    }

    #[test]
    fn what_is_no_point_is_none() {
        let game = AnyGame::parse("go?size=9").unwrap();
        for text in ["a", "aaa", "ja", "aj", "a1", "ö", "öö"] {
            assert_eq!(actions(Kind::Go, text, game.spec()), None, "{text}");
        }
        let game = AnyGame::parse("hex?size=4&cols=7").unwrap();
        for text in [
            "",
            "a",
            "a0",
            "a5",
            "h1",
            "a+1",
            "swap-pieces",
            "swap-sides",
            "resign",
            "ö1",
        ] {
            assert_eq!(actions(Kind::Hex, text, game.spec()), None, "{text}");
        }
        let game = AnyGame::parse("amazons?size=6").unwrap();
        for text in ["", "aa", "aabb", "aabbc", "aabbccd", "aöbbcc"] {
            assert_eq!(actions(Kind::Amazons, text, game.spec()), None, "{text}");
        }
    }
}
