//! Games of stones in a line: one game and state for every rules family that places stones on a rectangular board, with
//! or without the Swap2 opening.
//!
//! A family says by [`StoneRules`] which line wins, what is a foul and what its planes are; everything else is here.

use std::sync::Arc;

use crate::draw;
use crate::fouls;
use crate::game::{Action, Game, IllegalAction, Outcome, Reason, Roles, Seat, State};
use crate::hash::Mixer;
use crate::line::{Board, Colour, LineRule};
use crate::opening_stones::{NO_CELL, OpeningStones};
use crate::spec::{ActionBlock, ActionLayout, OpeningRule, Spec, Symmetry};
use crate::stone_planes::{HISTORY_DEPTH_MAX, StonePlanes};
use crate::swap2::{self, Decision, Phase, Swap2};
use crate::symmetry;

/// Stones that lose at once for the seat that places them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fouls {
    /// There are none.
    None,
    /// Black's overlines, double fours and double threes.
    Renju,
}

/// What makes one family of stone games differ from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoneRules {
    /// Which lines win, for black and for white.
    pub lines: [LineRule; 2],
    /// Which stones lose.
    pub fouls: Fouls,
    /// The feature planes.
    pub planes: StonePlanes,
}

/// A family with its parameters fixed.
#[derive(Clone, Debug)]
pub struct StoneGame {
    spec: Arc<Spec>,
    rules: StoneRules,
}

impl StoneGame {
    /// The game `id` on a board of `rows` x `cols`; with Swap2 the board has more than five cells.
    pub fn new(id: String, rules: StoneRules, rows: usize, cols: usize, opening: OpeningRule) -> StoneGame {
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
        let spec = Arc::new(Spec {
            id,
            rows,
            cols,
            planes: rules.planes.list(opening),
            actions,
            symmetries,
            opening,
            plies_max,
        });
        StoneGame { spec, rules }
    }

    /// The family's own rules.
    pub fn rules(&self) -> &StoneRules {
        &self.rules
    }
}

impl Game for StoneGame {
    type State = StoneState;

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn start(&self) -> StoneState {
        StoneState {
            rules: self.rules,
            board: Board::new(self.spec.rows, self.spec.cols),
            swap2: match self.spec.opening {
                OpeningRule::None => Swap2::without_opening(),
                OpeningRule::Swap2 => Swap2::Placing,
            },
            opening: OpeningStones::default(),
            recent: [NO_CELL; RECENT_MAX],
            recent_len: self.rules.planes.recent_len(self.spec.opening) as u8,
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

/// The most last stones that a state remembers.
const RECENT_MAX: usize = HISTORY_DEPTH_MAX - 2;

/// A position of a stone game.
#[derive(Clone, Debug, PartialEq)]
pub struct StoneState {
    rules: StoneRules,
    board: Board,
    swap2: Swap2,
    opening: OpeningStones,
    /// The last placed stones, newest first: `recent_len` of them, as many as the planes show. Where that is none,
    /// transpositions stay equal.
    recent: [u16; RECENT_MAX],
    recent_len: u8,
    outcome: Option<Outcome>,
}

impl StoneState {
    /// The family's rules.
    pub fn rules(&self) -> &StoneRules {
        &self.rules
    }

    /// The stones.
    pub fn board(&self) -> &Board {
        &self.board
    }

    /// How far the opening has come.
    pub fn swap2(&self) -> Swap2 {
        self.swap2
    }

    /// The colour of the next stone, also while a decision is due.
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

    /// The last placed stones, newest first, as far as the planes need them.
    pub fn recent_stones(&self) -> impl Iterator<Item = usize> {
        self.recent
            .iter()
            .take_while(|&&cell| cell != NO_CELL)
            .map(|&cell| cell as usize)
    }

    /// The last placed stone, where the planes need it.
    pub fn last_stone(&self) -> Option<usize> {
        self.recent_stones().next()
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
        let foul = self.foul_at(cell);
        self.board.place(cell, colour);
        let recent = &mut self.recent[..self.recent_len as usize];
        recent.rotate_right(usize::from(!recent.is_empty()));
        if let Some(newest) = recent.first_mut() {
            *newest = cell as u16;
        }
        if self.swap2.phase() != Phase::Normal {
            self.opening.note(number, cell);
        }
        self.swap2 = self.swap2.after_stone(self.board.stones_len());
        self.outcome = self.outcome_after(cell, colour, foul);
    }

    /// The result that a stone just placed brings. The win test runs before the draw test: a win by the last stone is a
    /// win.
    fn outcome_after(&self, cell: usize, colour: Colour, foul: Option<fouls::Foul>) -> Option<Outcome> {
        if self.rules.lines[colour.index()].wins_at(&self.board, cell, colour) {
            return Some(Outcome::win(self.line_winner(colour), Reason::Line));
        }
        if let Some(foul) = foul {
            return Some(Outcome::win(self.seat(), foul.reason()));
        }
        if self.board.is_full() {
            return Some(Outcome::draw(Reason::BoardFull));
        }
        // A seat that could only commit fouls has lost.
        let stuck = self.watches_fouls() && !self.board.any_empty(|cell| self.foul_at(cell).is_none());
        stuck.then(|| Outcome::win(self.seat().other(), Reason::NoMoves))
    }

    /// Whether the next stone can be a foul. The stones of an opening are too few for one.
    fn watches_fouls(&self) -> bool {
        self.rules.fouls == Fouls::Renju && self.colour() == Colour::Black && self.swap2.phase() == Phase::Normal
    }

    /// The foul that the next stone would be on `cell`.
    fn foul_at(&self, cell: usize) -> Option<fouls::Foul> {
        if !self.watches_fouls() {
            return None;
        }
        fouls::foul(&self.board, cell)
    }

    /// The seat that wins by a line of `colour`. Lines of three can appear before colours are fixed, by the offered
    /// black stone. Black then wins at once, and the opener, whose choice of colour would have been next,
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

impl State for StoneState {
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

    fn playable(&self, out: &mut Vec<Action>) {
        self.legal(out);
        if self.watches_fouls() {
            out.retain(|action| self.foul_at(action.index()).is_none());
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
        self.rules.planes.fill(self, out);
    }

    fn hash(&self) -> u64 {
        let [a, b, c, d, e] = self.opening.words();
        let [last, earlier @ ..] = &self.recent;
        let mut mixer = Mixer::new(self.swap2.code())
            .with(u64::from(*last) | a << 16 | b << 32 | c << 48)
            .with(d | e << 16);
        for &cell in &earlier[..self.recent_len.saturating_sub(1) as usize] {
            mixer = mixer.with(u64::from(cell));
        }
        for word in self.board.words() {
            mixer = mixer.with(word);
        }
        mixer.finish()
    }

    fn transform(&self, symmetry: &Symmetry) -> StoneState {
        StoneState {
            board: self.board.permute(&symmetry.cells),
            opening: self.opening.permute(&symmetry.cells),
            recent: self
                .recent
                .map(|cell| symmetry.cells.get(cell as usize).copied().unwrap_or(NO_CELL)),
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

impl StoneState {
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
