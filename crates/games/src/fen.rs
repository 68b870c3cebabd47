//! The board part of FEN-like position texts: rows from the top, divided by `/`, with numbers for runs of empty points.

/// The characters of all points, `.` for an empty one.
///
/// # Errors
/// What is wrong: the number of rows, a row's length or a character outside `pieces`.
pub fn parse_board(text: &str, rows: usize, cols: usize, pieces: &str) -> Result<Vec<char>, String> {
    let lines: Vec<&str> = text.split('/').collect();
    if lines.len() != rows {
        return Err(format!("{} rows, the board has {rows}", lines.len()));
    }
    let mut points = Vec::with_capacity(rows * cols);
    for (line, number) in lines.into_iter().zip((1..=rows).rev()) {
        let row = parse_row(line, cols, pieces).map_err(|why| format!("row {number}: {why}"))?;
        points.extend(row);
    }
    Ok(points)
}

fn parse_row(line: &str, cols: usize, pieces: &str) -> Result<Vec<char>, String> {
    let mut row = Vec::with_capacity(cols);
    let mut rest = line.chars().peekable();
    while let Some(symbol) = rest.next() {
        if let Some(digit) = symbol.to_digit(10) {
            let mut empties = digit as usize;
            while let Some(digit) = rest.peek().and_then(|next| next.to_digit(10)) {
                empties = (empties * 10 + digit as usize).min(cols + 1);
                rest.next();
            }
            row.resize(row.len() + empties.min(cols + 1), '.');
        } else if pieces.contains(symbol) {
            row.push(symbol);
        } else {
            return Err(format!("`{symbol}` is none of {pieces}"));
        }
        if row.len() > cols {
            return Err(format!("more than {cols} points"));
        }
    }
    if row.len() < cols {
        return Err(format!("{} points, the board has {cols}", row.len()));
    }
    Ok(row)
}

/// The board part of a position text; `symbol` gives `.` for an empty point.
pub fn board_text(rows: usize, cols: usize, symbol: impl Fn(usize) -> char) -> String {
    let mut text = String::new();
    for row in 0..rows {
        if row > 0 {
            text.push('/');
        }
        let mut empties = 0;
        for col in 0..cols {
            match symbol(row * cols + col) {
                '.' => empties += 1,
                piece => {
                    push_number(&mut text, empties);
                    empties = 0;
                    text.push(piece);
                }
            }
        }
        push_number(&mut text, empties);
    }
    text
}

fn push_number(text: &mut String, number: usize) {
    if number > 0 {
        text.push_str(&number.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_board_is_written_as_it_is_read() {
        for text in ["3q2q3/10/q8q", "10/10/10", "Q9/9Q/QqQqQqQqQq"] {
            let points = parse_board(text, 3, 10, "Qq").expect(text);
            assert_eq!(board_text(3, 10, |point| points[point]), text);
        }
    }

    #[test]
    fn a_bad_board_is_refused_with_its_row() {
        let why = |text| parse_board(text, 2, 10, "Qq").expect_err(text);
        assert_eq!(why("10"), "1 rows, the board has 2");
        assert_eq!(why("10/9"), "row 1: 9 points, the board has 10");
        assert_eq!(why("11/10"), "row 2: more than 10 points");
        assert_eq!(why("999999999999999999999999/10"), "row 2: more than 10 points");
        assert_eq!(why("9x/10"), "row 2: `x` is none of Qq");
    }
}
