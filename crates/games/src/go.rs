//! `go` by the Tromp-Taylor rules: area scoring, positional superko, suicide of several stones legal.
//!
//! Every point on the board at the end counts for its colour; dead stones are not taken off, so games are played out.
//! Two passes in a row end the game, and so does its move limit, which the rules do not know: the board is then scored
//! as it stands and the reason says so.

mod chains;

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use crate::draw;
use crate::game::{Action, Game, IllegalAction, Outcome, Reason, Roles, Seat, State};
use crate::hash::Mixer;
use crate::params::{Params, ParseGameError};
use crate::registry::Family;
use crate::spec::{ActionBlock, ActionLayout, OpeningRule, Plane, Spec, Symmetry};
use crate::symmetry;
use chains::{Board, Chains, Change, Effect};

/// `go` in the registry.
pub const FAMILY: Family<Go> = Family {
    name: "go",
    summary: "Tromp-Taylor rules: area scoring, positional superko",
    rules: "Tromp-Taylor rules. Seats alternate placing a stone on an empty point or passing, seat 0 (Black) first. \
            Then the opponent's strings without a liberty are taken off, and after them the mover's own, so suicide \
            is legal. No stone may bring back any earlier arrangement of the board (positional superko); passing is \
            always legal. Two passes in a row end the game: a side has its stones and the empty points that reach \
            only them, White (seat 1) `komi` besides, and equal points are a draw. Dead stones are not taken off. A \
            game that reaches twice the points of the board and 64 actions, passes counted, ends there and is scored \
            as it stands. Columns leave out the letter i.",
    parameters: "size=1..19 (19), komi=0..361 in halves (7.5)",
    samples: &[
        "go?size=1",
        "go?size=2&komi=0",
        "go?size=3",
        "go?size=5&komi=0.5",
        "go?size=9",
    ],
    build,
};

const SIDE_MAX: usize = 19;
const KOMI_HALVES: u16 = 15;
const KOMI_HALVES_MAX: u16 = 2 * (SIDE_MAX * SIDE_MAX) as u16;
/// Plies beyond twice the number of points that a game may last (AlphaGo Zero ended its games at twice the points); the
/// addition leaves small boards room for their kos.
const PLIES_SPARE: usize = 64;
const PASS: &str = "pass";

const PLANES: [Plane; 8] = [
    Plane::binary("stones of the acting seat"),
    Plane::binary("stones of the other seat"),
    Plane::binary("stones with one liberty"),
    Plane::binary("stones with two liberties"),
    Plane::binary("empty points that superko forbids"),
    Plane::binary("the last ply was a pass"),
    Plane::binary("the acting seat is Black"),
    Plane::binary("ones: where the board is"),
];

/// The game. Actions are points, written `d4` without the letter i as Go players do, and `pass`.
#[derive(Clone, Debug)]
pub struct Go {
    spec: Arc<Spec>,
    komi_halves: u16,
}

fn build(mut params: Params) -> Result<Go, ParseGameError> {
    let side = params.number("size", SIDE_MAX, 1..=SIDE_MAX)?;
    let komi_halves = params.halves("komi", KOMI_HALVES, 0..=KOMI_HALVES_MAX)?;
    let blocks = vec![ActionBlock::Cells { planes: 1 }, ActionBlock::Global { count: 1 }];
    let actions = ActionLayout::new(blocks, side, side);
    let symmetries = symmetry::of_board(side, side, &actions);
    let spec = Spec {
        id: params.finish()?,
        rows: side,
        cols: side,
        planes: PLANES.to_vec(),
        actions,
        symmetries,
        opening: OpeningRule::None,
        plies_max: 2 * side * side + PLIES_SPARE,
    };
    Ok(Go {
        spec: Arc::new(spec),
        komi_halves,
    })
}

impl Game for Go {
    type State = GoState;

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn start(&self) -> GoState {
        GoState::new(self.spec.rows, self.komi_halves, self.spec.plies_max)
    }

    fn action_text(&self, action: Action) -> String {
        let side = self.spec.rows;
        match action.index() {
            cell if cell < side * side => format!("{}{}", letter(cell % side), side - cell / side),
            _ => PASS.to_owned(),
        }
    }

    /// Letters of either case.
    fn parse_action(&self, text: &str) -> Option<Action> {
        let text = text.to_ascii_lowercase();
        let by_index = text.parse::<u16>().ok().map(Action);
        (0..self.spec.actions.len() as u16)
            .map(Action)
            .find(|&action| self.action_text(action) == text)
            .or(by_index.filter(|action| action.index() < self.spec.actions.len()))
    }
}

/// The letter of a column; Go leaves out i.
fn letter(col: usize) -> char {
    draw::column_letter(if col < 8 { col } else { col + 1 })
}

/// A position with all that superko remembers.
#[derive(Clone, Debug, PartialEq)]
pub struct GoState {
    board: Board,
    /// The strings of `board`.
    chains: Arc<Chains>,
    /// Every colouring so far, this one included.
    past: Arc<Past>,
    plies: u16,
    plies_max: u16,
    komi_halves: u16,
    passes: u8,
    outcome: Option<Outcome>,
}

/// The set of colourings of a game so far, by their hashes. Two colourings of one game share a hash with a chance below
/// 2^-40.
#[derive(Clone, Debug)]
struct Past {
    hashes: HashSet<u64, BuildHasherDefault<Verbatim>>,
    /// Depends on the set alone, not on the order in which it grew.
    digest: u64,
    /// The stones that came and went, in order, from which the hashes of an image are made again.
    changes: Vec<Change>,
}

/// Two games with the same colourings have the same past, in whatever order those came.
impl PartialEq for Past {
    fn eq(&self, other: &Past) -> bool {
        self.digest == other.digest && self.hashes == other.hashes
    }
}

/// With it, a past that two states share is not compared with itself.
impl Eq for Past {}

impl Past {
    /// The past of a game that begins: the empty board.
    fn new() -> Past {
        let mut past = Past {
            hashes: HashSet::default(),
            digest: 0,
            changes: Vec::new(),
        };
        past.note(chains::EMPTY_HASH);
        past
    }

    /// Adds the colouring that the changes so far lead to.
    fn note(&mut self, hash: u64) {
        if self.hashes.insert(hash) {
            self.digest = self.digest.wrapping_add(Mixer::new(1).with(hash).finish());
        }
        if let Some(change) = self.changes.last_mut() {
            change.finish_colouring();
        }
    }

    fn permute(&self, cells: &[u16]) -> Past {
        let mut image = Past::new();
        let mut hash = chains::EMPTY_HASH;
        for change in &self.changes {
            let moved = change.permute(cells);
            hash ^= moved.key();
            image.changes.push(moved);
            if moved.finishes_colouring() {
                image.note(hash);
            }
        }
        image
    }
}

/// The hash of a number that is a hash already.
#[derive(Clone, Copy, Debug, Default)]
struct Verbatim(u64);

impl Hasher for Verbatim {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes
            .iter()
            .fold(self.0, |hash, &byte| hash.rotate_left(8) ^ u64::from(byte));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}

/// A checked action.
enum Ply {
    Stone(usize, Effect),
    Pass,
}

impl GoState {
    fn new(side: usize, komi_halves: u16, plies_max: usize) -> GoState {
        let board = Board::new(side);
        GoState {
            chains: Arc::new(Chains::of(&board)),
            past: Arc::new(Past::new()),
            plies: 0,
            plies_max: plies_max as u16,
            komi_halves,
            passes: 0,
            outcome: None,
            board,
        }
    }

    /// Points of Black and White as the board stands, without komi.
    pub fn area(&self) -> [u32; 2] {
        self.board.area()
    }

    /// What a stone of the acting seat on the empty `point` does, unless superko forbids it.
    fn effect(&self, point: usize) -> Option<Effect> {
        let effect = self.chains.effect(&self.board, point, self.seat());
        (!self.past.hashes.contains(&effect.hash)).then_some(effect)
    }

    fn check(&self, action: Action) -> Result<Ply, &'static str> {
        if self.outcome.is_some() {
            return Err("the game is over");
        }
        match action.index() {
            point if point < self.board.points() => {
                if !self.board.is_empty(point) {
                    return Err("the point is taken");
                }
                let effect = self.effect(point).ok_or("superko: the board was like this before")?;
                Ok(Ply::Stone(point, effect))
            }
            index if index == self.board.points() => Ok(Ply::Pass),
            _ => Err("there is no such action"),
        }
    }

    fn place(&mut self, point: usize, effect: Effect) {
        let seat = self.seat();
        let past = Arc::make_mut(&mut self.past);
        self.chains
            .play(&mut self.board, point, seat, effect, &mut past.changes);
        past.note(self.board.hash());
        self.chains = Arc::new(Chains::of(&self.board));
    }

    /// The winner by area, Black giving komi.
    fn winner(&self) -> Option<Seat> {
        let [black, white] = self.area();
        match (2 * black).cmp(&(2 * white + u32::from(self.komi_halves))) {
            std::cmp::Ordering::Greater => Some(Seat::FIRST),
            std::cmp::Ordering::Less => Some(Seat::SECOND),
            std::cmp::Ordering::Equal => None,
        }
    }
}

impl State for GoState {
    fn seat(&self) -> Seat {
        if self.plies.is_multiple_of(2) {
            Seat::FIRST
        } else {
            Seat::SECOND
        }
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
        let points = self.board.points();
        let open = (0..points).filter(|&point| self.board.is_empty(point) && self.effect(point).is_some());
        out.extend(open.map(|point| Action(point as u16)));
        out.push(Action(points as u16));
    }

    fn is_legal(&self, action: Action) -> bool {
        self.check(action).is_ok()
    }

    fn apply(&mut self, action: Action) -> Result<(), IllegalAction> {
        match self.check(action).map_err(|why| IllegalAction { action, why })? {
            Ply::Stone(point, effect) => {
                self.place(point, effect);
                self.passes = 0;
            }
            Ply::Pass => self.passes += 1,
        }
        self.plies += 1;
        let reason = match (self.passes, self.plies >= self.plies_max) {
            (2, _) => Some(Reason::Score),
            (_, true) => Some(Reason::MoveLimit),
            _ => None,
        };
        self.outcome = reason.map(|reason| Outcome {
            winner: self.winner(),
            reason,
        });
        Ok(())
    }

    fn outcome(&self) -> Option<Outcome> {
        self.outcome
    }

    fn planes(&self, out: &mut [u8]) {
        let points = self.board.points();
        let (stones, constant) = out.split_at_mut(5 * points);
        stones.fill(0);
        for point in 0..points {
            match self.board.stone(point) {
                Some(seat) => {
                    stones[usize::from(seat != self.seat()) * points + point] = 1;
                    if let liberties @ 1..=2 = self.chains.liberties(point) {
                        stones[(1 + liberties) * points + point] = 1;
                    }
                }
                None => stones[4 * points + point] = u8::from(self.effect(point).is_none()),
            }
        }
        constant[..points].fill(u8::from(self.passes > 0));
        constant[points..2 * points].fill(u8::from(self.seat() == Seat::FIRST));
        constant[2 * points..].fill(1);
    }

    /// Covers the number of plies, for the move limit, and the set of earlier colourings, for superko: the same board
    /// with another past is another position.
    fn hash(&self) -> u64 {
        Mixer::new(self.board.points() as u64)
            .with(self.board.hash())
            .with(self.past.digest)
            .with(u64::from(self.plies) | u64::from(self.passes) << 32)
            .finish()
    }

    fn transform(&self, symmetry: &Symmetry) -> GoState {
        let board = self.board.permute(&symmetry.cells);
        GoState {
            chains: Arc::new(Chains::of(&board)),
            board,
            past: Arc::new(self.past.permute(&symmetry.cells)),
            ..self.clone()
        }
    }

    fn roles(&self) -> Roles {
        Roles {
            opener: None,
            chooser: None,
            first_colour: Some(Seat::FIRST),
        }
    }

    fn draw(&self) -> String {
        let side = self.board.side();
        let mut text = String::new();
        for row in 0..side {
            text.push_str(&format!("{:>3}", side - row));
            for col in 0..side {
                text.push(' ');
                text.push(match self.board.stone(row * side + col) {
                    Some(Seat::FIRST) => 'X',
                    Some(_) => 'O',
                    None => '.',
                });
            }
            text.push('\n');
        }
        text.push_str("   ");
        text.extend((0..side).flat_map(|col| [' ', letter(col)]));
        text.push('\n');
        let [black, white] = self.area();
        text.push_str(&match (self.outcome, self.seat()) {
            (Some(outcome), _) => format!("area {black} to {white}: {}", draw::outcome_text(outcome)),
            (None, Seat::FIRST) => format!("{} to play X\n", Seat::FIRST),
            (None, _) => format!("{} to play O\n", Seat::SECOND),
        });
        text
    }
}
