//! A position of Black Hole. Tiles are placed in the order of their numbers, so a tile's number and its owner are the
//! ply at which it was placed: that is all a position holds.

use super::CELLS_MAX;
use super::triangle::Triangle;
use crate::draw;
use crate::game::{Action, IllegalAction, Outcome, Reason, Roles, Seat, State};
use crate::hash::Mixer;
use crate::spec::Symmetry;

/// Stands for an empty cell.
const EMPTY: u8 = u8::MAX;

/// A position.
#[derive(Clone, Debug, PartialEq)]
pub struct BlackHoleState {
    triangle: Triangle,
    history: u8,
    /// The ply at which each cell was filled, 0 for the first.
    filled_at: [u8; CELLS_MAX],
    plies: u8,
    outcome: Option<Outcome>,
}

impl BlackHoleState {
    pub(super) fn start(triangle: Triangle, history: u8) -> BlackHoleState {
        BlackHoleState {
            triangle,
            history,
            filled_at: [EMPTY; CELLS_MAX],
            plies: 0,
            outcome: None,
        }
    }

    /// Owner and number of the tile on `cell`.
    pub fn tile(&self, cell: usize) -> Option<(Seat, u8)> {
        let ply = self.filled_at[cell];
        (ply != EMPTY).then(|| (seat_of(ply), ply / 2 + 1))
    }

    /// The black hole: the only empty cell, once the game is over.
    pub fn hole(&self) -> Option<usize> {
        self.outcome?;
        (0..self.triangle.cells()).find(|&cell| self.filled_at[cell] == EMPTY)
    }

    /// For each ring around `hole`, from the nearest, the sum of either seat's tiles.
    pub fn rings(&self, hole: usize) -> Vec<[u32; 2]> {
        let mut sums = vec![[0; 2]; self.triangle.rows()];
        for cell in 0..self.triangle.cells() {
            if let Some((seat, number)) = self.tile(cell) {
                sums[self.triangle.distance(hole, cell)][seat.index()] += u32::from(number);
            }
        }
        // The hole itself is at distance 0. The far rings of a cell in the middle are empty.
        let kept = sums.iter().rposition(|ring| *ring != [0, 0]).unwrap_or(0);
        sums.drain(1..=kept).collect()
    }

    /// The lower sum in the first ring in which the sums differ wins.
    fn score(&self) -> Outcome {
        let hole = (0..self.triangle.cells()).find(|&cell| self.filled_at[cell] == EMPTY);
        let rings = hole.map(|hole| self.rings(hole)).unwrap_or_default();
        match rings.into_iter().find(|[first, second]| first != second) {
            Some([first, second]) if first < second => Outcome::win(Seat::FIRST, Reason::Score),
            Some(_) => Outcome::win(Seat::SECOND, Reason::Score),
            None => Outcome::draw(Reason::Score),
        }
    }

    fn check(&self, action: Action) -> Result<usize, &'static str> {
        if self.outcome.is_some() {
            return Err("the game is over");
        }
        if action.index() >= self.triangle.cells() {
            return Err("there is no such action");
        }
        if self.filled_at[action.index()] != EMPTY {
            return Err("the cell is taken");
        }
        Ok(action.index())
    }

    /// Fills two planes with the tiles that lay after `plies` plies, those of the acting seat first.
    fn fill_tiles(&self, plies: u8, out: &mut [u8]) {
        let (own, their) = out.split_at_mut(out.len() / 2);
        for cell in 0..self.triangle.cells() {
            match self.tile(cell) {
                Some((seat, number)) if self.filled_at[cell] < plies => {
                    let plane = if seat == self.seat() { &mut *own } else { &mut *their };
                    plane[self.triangle.in_plane(cell)] = number;
                }
                _ => {}
            }
        }
    }
}

/// Who places the tile of this ply.
fn seat_of(ply: u8) -> Seat {
    if ply.is_multiple_of(2) {
        Seat::FIRST
    } else {
        Seat::SECOND
    }
}

impl State for BlackHoleState {
    fn seat(&self) -> Seat {
        seat_of(self.plies)
    }

    fn stage(&self) -> u8 {
        0
    }

    fn turn(&self) -> u32 {
        u32::from(self.plies)
    }

    fn legal(&self, out: &mut Vec<Action>) {
        out.clear();
        if self.outcome.is_some() {
            return;
        }
        let empty = (0..self.triangle.cells()).filter(|&cell| self.filled_at[cell] == EMPTY);
        out.extend(empty.map(|cell| Action(cell as u16)));
    }

    fn is_legal(&self, action: Action) -> bool {
        self.check(action).is_ok()
    }

    fn apply(&mut self, action: Action) -> Result<(), IllegalAction> {
        let cell = self.check(action).map_err(|why| IllegalAction { action, why })?;
        self.filled_at[cell] = self.plies;
        self.plies += 1;
        if self.plies as usize + 1 == self.triangle.cells() {
            self.outcome = Some(self.score());
        }
        Ok(())
    }

    fn outcome(&self) -> Option<Outcome> {
        self.outcome
    }

    fn planes(&self, out: &mut [u8]) {
        out.fill(0);
        let cells = self.triangle.rows() * self.triangle.rows();
        // Either seat has placed half of the plies before its turn, rounded down.
        let to_come = self.triangle.tiles() as u8 - self.plies / 2;
        let (tiles, rest) = out.split_at_mut(2 * cells);
        let (marks, earlier) = rest.split_at_mut(3 * cells);
        self.fill_tiles(self.plies, tiles);
        for cell in 0..self.triangle.cells() {
            let at = self.triangle.in_plane(cell);
            marks[at] = u8::from(self.filled_at[cell] == EMPTY);
            marks[cells + at] = to_come;
            marks[2 * cells + at] = 1;
        }
        for (planes, back) in earlier.chunks_exact_mut(2 * cells).zip(1..=self.history) {
            self.fill_tiles(self.plies.saturating_sub(back), planes);
        }
    }

    fn hash(&self) -> u64 {
        let mut mixer = Mixer::new(u64::from(self.plies));
        for chunk in self.filled_at[..self.triangle.cells()].chunks(8) {
            mixer = mixer.with(chunk.iter().fold(0, |word, &ply| word << 8 | u64::from(ply)));
        }
        mixer.finish()
    }

    fn transform(&self, symmetry: &Symmetry) -> BlackHoleState {
        let mut image = self.clone();
        for cell in 0..self.triangle.cells() {
            image.filled_at[symmetry.actions[cell] as usize] = self.filled_at[cell];
        }
        image
    }

    fn roles(&self) -> Roles {
        Roles {
            first_colour: Some(Seat::FIRST),
            ..Roles::default()
        }
    }

    /// Rows from the tip, tiles as `X` or `O` with their number.
    fn draw(&self) -> String {
        let rows = self.triangle.rows();
        let mut text = String::new();
        for row in 0..rows {
            text.push_str(&format!(
                "{:>3} {}",
                draw::column_letter(row),
                "  ".repeat(rows - 1 - row)
            ));
            for col in 0..=row {
                let cell = row * (row + 1) / 2 + col;
                let shown = match self.tile(cell) {
                    Some((Seat::FIRST, number)) => format!("X{number}"),
                    Some((_, number)) => format!("O{number}"),
                    None => ".".to_owned(),
                };
                text.push_str(&format!("{shown:<4}"));
            }
            text.truncate(text.trim_end().len());
            text.push('\n');
        }
        text.push_str(&match self.outcome {
            Some(outcome) => draw::outcome_text(outcome),
            None => format!("{} to place {}\n", self.seat(), self.plies / 2 + 1),
        });
        text
    }
}
