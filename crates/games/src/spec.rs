//! The description of a game from which sizes, network shape, records and drawing follow.
//!
//! A spec holds no rules: it names shapes, planes, actions and symmetries.

/// Everything about a game that is not a position.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Canonical name with every parameter that differs from its default, for example `caro5?size=9`.
    pub id: String,
    /// Height of board and planes (`H`).
    pub rows: usize,
    /// Width of board and planes (`W`).
    pub cols: usize,
    /// The feature planes in order (`C` of them).
    pub planes: Vec<Plane>,
    /// How the flat action space is laid out over the board.
    pub actions: ActionLayout,
    /// The symmetries of the rules; the first is the identity.
    pub symmetries: Vec<Symmetry>,
    /// The opening protocol, which match openings follow.
    pub opening: OpeningRule,
    /// No game has more plies than this.
    pub plies_max: usize,
}

impl Spec {
    /// Number of cells, `H * W`.
    pub fn cells(&self) -> usize {
        self.rows * self.cols
    }

    /// Number of bytes of one position's planes, `C * H * W`.
    pub fn planes_len(&self) -> usize {
        self.planes.len() * self.cells()
    }
}

/// One feature plane.
#[derive(Clone, Debug, PartialEq)]
pub struct Plane {
    /// What the plane shows, in a few words.
    pub name: &'static str,
    /// The network's input is `byte * scale`.
    pub scale: f32,
}

impl Plane {
    /// A plane of zeros and ones.
    pub const fn binary(name: &'static str) -> Plane {
        Plane { name, scale: 1.0 }
    }
}

/// The flat action space as consecutive blocks. A policy head is built from the same blocks in the same order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionLayout {
    blocks: Vec<ActionBlock>,
    len: usize,
}

/// A run of actions that share one meaning on the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionBlock {
    /// `planes * H * W` actions in the order `[planes, H, W]`: one action per plane and cell.
    Cells {
        /// Number of cell planes.
        planes: usize,
    },
    /// `W` actions: one per column.
    Columns,
    /// `H (H + 1) / 2` actions on a square board: one per cell on and below the main diagonal, row by row
    /// ([`triangle_cells`]).
    Triangle,
    /// `count` actions that belong to no place on the board.
    Global {
        /// How many.
        count: usize,
    },
}

impl ActionBlock {
    /// Number of actions of the block on a board of `rows` x `cols`.
    pub const fn len(self, rows: usize, cols: usize) -> usize {
        match self {
            ActionBlock::Cells { planes } => planes * rows * cols,
            ActionBlock::Columns => cols,
            ActionBlock::Triangle => rows * (rows + 1) / 2,
            ActionBlock::Global { count } => count,
        }
    }
}

/// The cells of [`ActionBlock::Triangle`] on a board of `side` x `side`, in the order of its actions.
pub fn triangle_cells(side: usize) -> impl Iterator<Item = usize> {
    (0..side).flat_map(move |row| (0..=row).map(move |col| row * side + col))
}

impl ActionLayout {
    /// The layout of these blocks, in order, on a board of `rows` x `cols`.
    pub fn new(blocks: Vec<ActionBlock>, rows: usize, cols: usize) -> ActionLayout {
        let len = blocks.iter().map(|block| block.len(rows, cols)).sum();
        ActionLayout { blocks, len }
    }

    /// Number of actions (`A`).
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no action at all.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The blocks in order.
    pub fn blocks(&self) -> &[ActionBlock] {
        &self.blocks
    }
}

/// A symmetry of the rules as permutations: `cells[i]` is where cell `i` goes, `actions[a]` is the image of action `a`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symmetry {
    /// A few words, for example `rotate 90` or `mirror left-right`.
    pub name: &'static str,
    /// Images of the cells, length `H * W`.
    pub cells: Vec<u16>,
    /// Images of the actions, length `A`.
    pub actions: Vec<u16>,
}

/// The opening protocol of a game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpeningRule {
    /// Play starts on the empty board.
    None,
    /// Swap2: the first seat places three stones, the second chooses.
    Swap2,
}
