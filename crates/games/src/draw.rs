//! Boards as text with coordinates, and the names of cells. Columns are letters from `a`, rows count from the bottom.

use crate::game::Outcome;

/// The letter of a column, `a` for the first. Boards have at most 26 columns.
pub(crate) fn column_letter(col: usize) -> char {
    char::from(b'a' + (col % 26) as u8)
}

/// The name of a cell, for example `h8`: column letter and row number from the bottom.
pub(crate) fn cell_text(cell: usize, rows: usize, cols: usize) -> String {
    format!("{}{}", column_letter(cell % cols), rows - cell / cols)
}

/// The cell whose name `text` begins with, and what follows the name.
pub(crate) fn split_cell(text: &str, rows: usize, cols: usize) -> Option<(usize, &str)> {
    // A letter of this board is one byte long, so the name can be cut behind it.
    let col = usize::from(text.bytes().next()?.checked_sub(b'a')?);
    if col >= cols {
        return None;
    }
    let digits = text[1..].bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text[1..].split_at(digits);
    let from_bottom: usize = number.parse().ok().filter(|_| !number.starts_with('0'))?;
    let row = rows.checked_sub(from_bottom)?;
    Some((row * cols + col, rest))
}

/// Draws a board top row first; `symbol` gives the character of a cell and `marked` the cell to put in brackets.
pub(crate) fn board(rows: usize, cols: usize, marked: Option<usize>, symbol: impl Fn(usize) -> char) -> String {
    let mut text = String::with_capacity((rows + 1) * (2 * cols + 5));
    for row in 0..rows {
        text.push_str(&format!("{:>3}", rows - row));
        for col in 0..cols {
            let cell = row * cols + col;
            text.push(match marked {
                Some(mark) if mark == cell => '(',
                Some(mark) if col > 0 && mark + 1 == cell => ')',
                _ => ' ',
            });
            text.push(symbol(cell));
        }
        if marked == Some(row * cols + cols - 1) {
            text.push(')');
        }
        text.push('\n');
    }
    text.push_str("   ");
    for col in 0..cols {
        text.push(' ');
        text.push(column_letter(col));
    }
    text.push('\n');
    text
}

/// How a game ended, as one line.
pub(crate) fn outcome_text(outcome: Outcome) -> String {
    match outcome.winner {
        Some(winner) => format!("{winner} wins ({})\n", outcome.reason.as_str()),
        None => format!("draw ({})\n", outcome.reason.as_str()),
    }
}
