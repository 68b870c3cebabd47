//! Games of stones in a line: one generic game and state for every rules family that places stones on a rectangular
//! board, with or without the Swap2 opening.
//!
//! A family says by [`StoneRules`] which line wins and what its planes are; everything else is here.

use std::fmt;
use std::sync::Arc;

use crate::draw;
use crate::game::{Action, Game, IllegalAction, Outcome, Reason, Roles, Seat, State};
use crate::hash::Mixer;
use crate::line::{Board, Colour, LineRule};
use crate::spec::{ActionBlock, ActionLayout, OpeningRule, Plane, Spec, Symmetry};
use crate::swap2::{self, Decision, Phase, Swap2};
use crate::symmetry;

/// What makes one family of stone games differ from another.
pub trait StoneRules: Copy + fmt::Debug + PartialEq + Send + Sync + 'static {
    /// Which lines of `colour` win.
    fn line_rule(&self, colour: Colour) -> LineRule;

    /// The family's planes under this opening rule.
    fn plane_list(&self, opening: OpeningRule) -> Vec<Plane>;

    /// Fills `out` (`[C, H, W]`, already zero) with the planes of [`StoneRules::plane_list`].
    fn fill_planes(&self, state: &StoneState<Self>, out: &mut [u8]);
}

/// A family with its parameters fixed.
#[derive(Clone, Debug)]
pub struct StoneGame<R> {
    spec: Arc<Spec>,
    rules: R,
}

impl<R: StoneRules> StoneGame<R> {
    /// The game `id` on a board of `rows` x `cols`; with Swap2 the board has more than five cells.
    pub fn new(id: String, rules: R, rows: usize, cols: usize, opening: OpeningRule) -> StoneGame<R> {
        let mut blocks = vec![ActionBlock::Cells { planes: 1 }];
        let mut plies_max = rows * cols;
        if opening == OpeningRule::Swap2 {
            blocks.push(ActionBlock::Global {
                count: Decision::ALL.len(),
            });
            plies_max += 2;
        }
        let actions = ActionLayout::new(blocks, rows, cols);
        let symmetries = symmetry::of_board(rows, cols, &actions);
        let planes = rules.plane_list(opening);
        let spec = Arc::new(Spec {
            id,
            rows,
            cols,
            planes,
            actions,
            symmetries,
            opening,
            plies_max,
        });
        StoneGame { spec, rules }
    }

    /// The family's own rules.
    pub fn rules(&self) -> &R {
        &self.rules
    }
}

impl<R: StoneRules> Game for StoneGame<R> {
    type State = StoneState<R>;

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn start(&self) -> StoneState<R> {
        StoneState {
            rules: self.rules,
            board: Board::new(self.spec.rows, self.spec.cols),
            swap2: match self.spec.opening {
                OpeningRule::None => Swap2::without_opening(),
                OpeningRule::Swap2 => Swap2::Placing,
            },
            opening: OpeningStones::default(),
            last: NO_CELL,
            outcome: None,
        }
    }

    fn action_text(&self, action: Action) -> String {
        let cells = self.spec.cells();
        match action.index().checked_sub(cells) {
            None => draw::cell_text(action.index(), self.spec.rows, self.spec.cols),
            Some(index) => match Decision::ALL.get(index) {
                Some(decision) => decision.text().to_owned(),
                None => action.to_string(),
            },
        }
    }
}

/// Stands for "no cell" where an `Option` would double the size.
const NO_CELL: u16 = u16::MAX;

/// The stones of a Swap2 opening: black, white, black, then the offered white and black. The first two black ones
/// are kept in ascending order, so that the order of placing them leaves no trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OpeningStones([u16; swap2::OFFERED_STONES as usize]);

impl Default for OpeningStones {
    fn default() -> OpeningStones {
        OpeningStones([NO_CELL; swap2::OFFERED_STONES as usize])
    }
}

impl OpeningStones {
    /// Notes the stone of this 0-based number.
    fn note(&mut self, number: usize, cell: usize) {
        self.0[number] = cell as u16;
        self.sort();
    }

    fn permute(self, cells: &[u16]) -> OpeningStones {
        let mut image = OpeningStones(self.0.map(|cell| cells.get(cell as usize).copied().unwrap_or(NO_CELL)));
        image.sort();
        image
    }

    fn sort(&mut self) {
        if self.0[0] > self.0[2] {
            self.0.swap(0, 2);
        }
    }

    /// Cells of the stones with these numbers, as far as they lie.
    fn cells(&self, numbers: std::ops::Range<usize>) -> impl Iterator<Item = usize> {
        self.0[numbers]
            .iter()
            .filter(|&&cell| cell != NO_CELL)
            .map(|&cell| cell as usize)
    }
}

/// A position of a stone game.
#[derive(Clone, Debug, PartialEq)]
pub struct StoneState<R> {
    rules: R,
    board: Board,
    swap2: Swap2,
    opening: OpeningStones,
    /// The last placed stone; kept only with Swap2, whose planes show it. Without, transpositions stay equal.
    last: u16,
    outcome: Option<Outcome>,
}

impl<R: StoneRules> StoneState<R> {
    /// The stones.
    pub fn board(&self) -> &Board {
        &self.board
    }

    /// How far the opening has come.
    pub fn swap2(&self) -> Swap2 {
        self.swap2
    }

    /// The colour of the next stone, also while a decision is due (RULES R8).
    pub fn colour(&self) -> Colour {
        swap2::next_colour(self.board.stones_len())
    }

    /// The stones of the opener's first phase, as far as they lie.
    pub fn first_stones(&self) -> impl Iterator<Item = usize> {
        self.opening.cells(0..swap2::FIRST_STONES as usize)
    }

    /// The offered stones, as far as they lie.
    pub fn offered_stones(&self) -> impl Iterator<Item = usize> {
        self.opening
            .cells(swap2::FIRST_STONES as usize..swap2::OFFERED_STONES as usize)
    }

    /// The last placed stone, in games with Swap2.
    pub fn last_stone(&self) -> Option<usize> {
        (self.last != NO_CELL).then_some(self.last as usize)
    }

    fn check(&self, action: Action) -> Result<Ply, &'static str> {
        if self.outcome.is_some() {
            return Err("the game is over");
        }
        let cells = self.board.cells();
        if let Some(index) = action.index().checked_sub(cells) {
            let decision = Decision::ALL
                .get(index)
                .filter(|_| self.swap2.has_opening())
                .ok_or("there is no such action")?;
            return match self.swap2.after_decision(*decision) {
                Some(next) => Ok(Ply::Decision(next)),
                None if self.swap2.decisions().is_empty() => Err("no decision is due"),
                None => Err("two stones were offered already"),
            };
        }
        if !self.swap2.decisions().is_empty() {
            return Err("a decision is due, not a stone");
        }
        if !self.board.is_empty(action.index()) {
            return Err("the cell is taken");
        }
        Ok(Ply::Stone(action.index()))
    }

    fn place(&mut self, cell: usize) {
        let colour = self.colour();
        let number = self.board.stones_len();
        self.board.place(cell, colour);
        if self.swap2.has_opening() {
            self.last = cell as u16;
        }
        if self.swap2.phase() != Phase::Normal {
            self.opening.note(number, cell);
        }
        self.swap2 = self.swap2.after_stone(self.board.stones_len());
        // The win test runs before the draw test: a win by the last stone is a win (RULES R13).
        if self.rules.line_rule(colour).wins_at(&self.board, cell, colour) {
            self.outcome = Some(Outcome::win(self.line_winner(colour), Reason::Line));
        } else if self.board.is_full() {
            self.outcome = Some(Outcome::draw(Reason::BoardFull));
        }
    }

    /// The seat that wins by a line of `colour`. Lines of three can appear before colours are fixed, by the offered
    /// black stone. Black then wins at once (RULES R6), and the opener, whose choice of colour would have been next,
    /// is given black: so offering a line never pays, and the value of the game is as if it were not allowed.
    fn line_winner(&self, colour: Colour) -> Seat {
        match (self.swap2.black(), colour) {
            (Some(black), Colour::Black) => black,
            (Some(black), Colour::White) => black.other(),
            (None, _) => swap2::OPENER,
        }
    }
}

/// A checked action.
enum Ply {
    Stone(usize),
    Decision(Swap2),
}

impl<R: StoneRules> State for StoneState<R> {
    fn seat(&self) -> Seat {
        self.swap2.actor(self.board.stones_len())
    }

    fn stage(&self) -> u8 {
        self.swap2.turn_and_stage(self.board.stones_len()).1
    }

    fn turn(&self) -> u32 {
        self.swap2.turn_and_stage(self.board.stones_len()).0
    }

    fn legal(&self, out: &mut Vec<Action>) {
        out.clear();
        if self.outcome.is_some() {
            return;
        }
        let decisions = self.swap2.decisions();
        if decisions.is_empty() {
            out.reserve(self.board.cells());
            self.board.for_each_empty(|cell| out.push(Action(cell as u16)));
        } else {
            let first = self.board.cells() as u16;
            out.extend(decisions.iter().map(|&decision| Action(first + decision as u16)));
        }
    }

    fn is_legal(&self, action: Action) -> bool {
        self.check(action).is_ok()
    }

    fn apply(&mut self, action: Action) -> Result<(), IllegalAction> {
        match self.check(action).map_err(|why| IllegalAction { action, why })? {
            Ply::Stone(cell) => self.place(cell),
            Ply::Decision(next) => self.swap2 = next,
        }
        Ok(())
    }

    fn outcome(&self) -> Option<Outcome> {
        self.outcome
    }

    fn planes(&self, out: &mut [u8]) {
        out.fill(0);
        self.rules.fill_planes(self, out);
    }

    fn hash(&self) -> u64 {
        let [a, b, c, d, e] = self.opening.0.map(u64::from);
        let mut mixer = Mixer::new(self.swap2.code())
            .with(u64::from(self.last) | a << 16 | b << 32 | c << 48)
            .with(d | e << 16);
        for word in self.board.words() {
            mixer = mixer.with(word);
        }
        mixer.finish()
    }

    fn transform(&self, symmetry: &Symmetry) -> StoneState<R> {
        StoneState {
            board: self.board.permute(&symmetry.cells),
            opening: self.opening.permute(&symmetry.cells),
            last: symmetry.cells.get(self.last as usize).copied().unwrap_or(NO_CELL),
            ..self.clone()
        }
    }

    fn roles(&self) -> Roles {
        let (opener, chooser) = if self.swap2.has_opening() {
            (Some(swap2::OPENER), Some(swap2::CHOOSER))
        } else {
            (None, None)
        };
        // A line by the offered stone fixes black before anyone chose it.
        let first_colour = self.swap2.black().or(self.outcome.and_then(|outcome| outcome.winner));
        Roles {
            opener,
            chooser,
            first_colour,
        }
    }

    fn draw(&self) -> String {
        let mut text = draw::board(
            self.board.rows(),
            self.board.cols(),
            self.last_stone(),
            |cell| match self.board.get(cell) {
                Some(Colour::Black) => 'X',
                Some(Colour::White) => 'O',
                None => '.',
            },
        );
        text.push_str(&self.status());
        text
    }
}

impl<R: StoneRules> StoneState<R> {
    /// One line that says what is due or how the game ended.
    fn status(&self) -> String {
        if let Some(outcome) = self.outcome {
            return draw::outcome_text(outcome);
        }
        let seat = self.seat();
        match (self.swap2.phase(), self.swap2.decisions().is_empty(), self.colour()) {
            (_, false, _) => format!("{seat} chooses a colour\n"),
            (Phase::Normal, true, Colour::Black) => format!("{seat} to play X\n"),
            (Phase::Normal, true, Colour::White) => format!("{seat} to play O\n"),
            (_, true, Colour::Black) => format!("{seat} to place X (Swap2)\n"),
            (_, true, Colour::White) => format!("{seat} to place O (Swap2)\n"),
        }
    }
}

/// The ten planes that every game with Swap2 begins with (RULES 1.4, planes 0 to 9).
pub const SWAP2_PLANES: [Plane; 10] = [
    Plane::binary("stones of the colour to place"),
    Plane::binary("stones of the other colour"),
    Plane::binary("last stone"),
    Plane::binary("phase: opener places three stones"),
    Plane::binary("phase: chooser decides"),
    Plane::binary("phase: offer"),
    Plane::binary("phase: normal play"),
    Plane::binary("the colour to place is black"),
    Plane::binary("opener's three stones"),
    Plane::binary("offered stones"),
];

/// Fills the planes of [`SWAP2_PLANES`] into `out`, which is zero and begins with them.
pub fn fill_swap2_planes<R: StoneRules>(state: &StoneState<R>, out: &mut [u8]) {
    let cells = state.board.cells();
    fill_stones(state, out);
    if let Some(last) = state.last_stone() {
        out[2 * cells + last] = 1;
    }
    let phase = match state.swap2.phase() {
        Phase::Opening => 3,
        Phase::Choice => 4,
        Phase::Offer => 5,
        Phase::Normal => 6,
    };
    out[phase * cells..(phase + 1) * cells].fill(1);
    if state.colour() == Colour::Black {
        out[7 * cells..8 * cells].fill(1);
    }
    state.first_stones().for_each(|cell| out[8 * cells + cell] = 1);
    state.offered_stones().for_each(|cell| out[9 * cells + cell] = 1);
}

/// Fills plane 0 with the stones of the colour to place and plane 1 with the other ones.
pub fn fill_stones<R: StoneRules>(state: &StoneState<R>, out: &mut [u8]) {
    let (mine, rest) = out.split_at_mut(state.board.cells());
    state.board.for_each_stone(state.colour(), |cell| mine[cell] = 1);
    state
        .board
        .for_each_stone(state.colour().other(), |cell| rest[cell] = 1);
}
