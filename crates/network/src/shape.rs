//! The shape of a network: everything that fixes its tensors, and nothing about their values.
//!
//! A shape follows from a game's spec and a [`Config`]. It is fixed for a run; [`Shape::fingerprint`] tells two shapes
//! apart and [`Shape::describe`] shows a person what differs.

use std::fmt::Write;

use serde::{Deserialize, Serialize};
use tengen_games::{ActionBlock, Spec};

/// Greatest number of residual blocks (twice the deepest published AlphaZero tower).
const BLOCKS_MAX: usize = 80;
/// Greatest width of any layer (eight times the widest published AlphaZero tower).
const WIDTH_MAX: usize = 2048;

/// The free choices of a network's shape, as configuration names them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Number of residual blocks, 1 to 80.
    pub blocks: usize,
    /// Feature maps of the tower, 1 to 2048.
    pub channels: usize,
    /// Feature maps of the value head before pooling, 1 to 2048.
    pub value_channels: usize,
    /// Hidden units of the value head, 1 to 2048.
    pub value_hidden: usize,
}

impl Default for Config {
    /// A tower for small boards on a CPU; the value head's widths are those of KataGo's smallest published networks.
    fn default() -> Config {
        Config {
            blocks: 4,
            channels: 64,
            value_channels: 32,
            value_hidden: 64,
        }
    }
}

impl Config {
    /// Checks every width against its range.
    pub fn validate(&self) -> Result<(), ShapeError> {
        let within = |field, value, max| match value {
            1.. if value <= max => Ok(()),
            _ => Err(ShapeError::OutOfRange { field, value, max }),
        };
        within("blocks", self.blocks, BLOCKS_MAX)?;
        within("channels", self.channels, WIDTH_MAX)?;
        within("value_channels", self.value_channels, WIDTH_MAX)?;
        within("value_hidden", self.value_hidden, WIDTH_MAX)
    }
}

/// Why there is no network of this shape.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ShapeError {
    /// A width outside its range.
    #[error("network {field} = {value} is not within 1..={max}")]
    OutOfRange {
        /// The key of [`Config`].
        field: &'static str,
        /// The refused value.
        value: usize,
        /// The greatest allowed value.
        max: usize,
    },
    /// A spec without cells, planes or actions.
    #[error(
        "a network needs at least one row, column, plane and action, and the game has {rows}, {cols}, {planes} and {actions}"
    )]
    Empty {
        /// Height of the board.
        rows: usize,
        /// Width of the board.
        cols: usize,
        /// Number of planes.
        planes: usize,
        /// Number of actions.
        actions: usize,
    },
    /// A block of the action layout without actions.
    #[error("block {index} of the action layout has no action")]
    EmptyBlock {
        /// Index of the block.
        index: usize,
    },
    /// A triangle of actions on a board that is no square.
    #[error("actions on a triangle need a square board, not {rows}x{cols}")]
    Triangle {
        /// Height of the board.
        rows: usize,
        /// Width of the board.
        cols: usize,
    },
    /// A plane whose scale is not a positive finite number.
    #[error("plane {plane} has the scale {scale}, which is not a positive finite number")]
    Scale {
        /// Index of the plane.
        plane: usize,
        /// Its scale.
        scale: f32,
    },
}

/// Everything that fixes the tensors of a network; see [`architecture`](crate::architecture) for what they compute.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// Number of residual blocks.
    pub blocks: usize,
    /// Feature maps of the tower.
    pub channels: usize,
    /// Feature maps of the value head before pooling.
    pub value_channels: usize,
    /// Hidden units of the value head.
    pub value_hidden: usize,
    /// Number of feature planes (`C`).
    pub planes: usize,
    /// Height of the board (`H`).
    pub rows: usize,
    /// Width of the board (`W`).
    pub cols: usize,
    /// What each plane's bytes are multiplied by, length `C`.
    pub plane_scales: Vec<f32>,
    /// The action space's blocks in order; the policy head has one part for each.
    pub action_blocks: Vec<ActionBlock>,
}

impl Shape {
    /// The shape of `config`'s network for the game of `spec`.
    pub fn new(spec: &Spec, config: &Config) -> Result<Shape, ShapeError> {
        config.validate()?;
        let (rows, cols, planes, actions) = (spec.rows, spec.cols, spec.planes.len(), spec.actions.len());
        if [rows, cols, planes, actions].contains(&0) {
            return Err(ShapeError::Empty {
                rows,
                cols,
                planes,
                actions,
            });
        }
        let action_blocks = spec.actions.blocks().to_vec();
        if let Some(index) = action_blocks.iter().position(|block| block.len(rows, cols) == 0) {
            return Err(ShapeError::EmptyBlock { index });
        }
        if action_blocks.contains(&ActionBlock::Triangle) && rows != cols {
            return Err(ShapeError::Triangle { rows, cols });
        }
        let plane_scales: Vec<f32> = spec.planes.iter().map(|plane| plane.scale).collect();
        if let Some(plane) = plane_scales
            .iter()
            .position(|scale| !scale.is_finite() || *scale <= 0.0)
        {
            return Err(ShapeError::Scale {
                plane,
                scale: plane_scales[plane],
            });
        }
        Ok(Shape {
            blocks: config.blocks,
            channels: config.channels,
            value_channels: config.value_channels,
            value_hidden: config.value_hidden,
            planes,
            rows,
            cols,
            plane_scales,
            action_blocks,
        })
    }

    /// Number of bytes of one position's planes, `C * H * W`.
    pub fn planes_len(&self) -> usize {
        self.planes * self.rows * self.cols
    }

    /// Number of actions (`A`).
    pub fn actions(&self) -> usize {
        self.action_blocks
            .iter()
            .map(|block| block.len(self.rows, self.cols))
            .sum()
    }

    /// Number of trained numbers of the inference form.
    pub fn parameters(&self) -> usize {
        self.layers()
            .iter()
            .map(|layer| layer.weight_len() + layer.outputs)
            .sum()
    }

    /// The heads in a few words, for example `conv policy columns, global:2; value 32>64`.
    pub fn heads(&self) -> String {
        let policy: Vec<String> = self
            .action_blocks
            .iter()
            .map(|block| match block {
                ActionBlock::Cells { planes } => format!("cells:{planes}"),
                ActionBlock::Columns => "columns".to_owned(),
                ActionBlock::Triangle => "triangle".to_owned(),
                ActionBlock::Global { count } => format!("global:{count}"),
            })
            .collect();
        format!(
            "conv policy {}; value {}>{}",
            policy.join(", "),
            self.value_channels,
            self.value_hidden
        )
    }

    /// The whole shape in one line. Two shapes are equal exactly when their descriptions are.
    pub fn describe(&self) -> String {
        let mut text = format!(
            "{} blocks of {} channels; {}; planes {}x{}x{}",
            self.blocks,
            self.channels,
            self.heads(),
            self.planes,
            self.rows,
            self.cols,
        );
        // Most planes are binary, so only the other scales are worth a reader's time.
        for (plane, scale) in self.plane_scales.iter().enumerate().filter(|(_, scale)| **scale != 1.0) {
            // Writing to a string cannot fail; Rust prints the shortest text that reads back as the same float.
            let _ = write!(text, ", plane {plane} times {scale}");
        }
        text
    }

    /// The hash by which a run knows its shape.
    pub fn fingerprint(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"tengen network shape 1\n");
        hasher.update(self.describe().as_bytes());
        *hasher.finalize().as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use tengen_games::{ActionLayout, OpeningRule, Plane};

    use super::*;

    fn spec(scales: &[f32], blocks: &[ActionBlock]) -> Spec {
        Spec {
            id: "test".to_owned(),
            rows: 6,
            cols: 7,
            planes: scales
                .iter()
                .map(|scale| Plane {
                    name: "test",
                    scale: *scale,
                })
                .collect(),
            actions: ActionLayout::new(blocks.to_vec(), 6, 7),
            symmetries: Vec::new(),
            opening: OpeningRule::None,
            plies_max: 42,
        }
    }

    fn shape() -> Shape {
        let spec = spec(
            &[1.0, 0.1, 1.0],
            &[ActionBlock::Columns, ActionBlock::Global { count: 2 }],
        );
        Shape::new(
            &spec,
            &Config {
                blocks: 2,
                channels: 8,
                value_channels: 4,
                value_hidden: 6,
            },
        )
        .expect("valid")
    }

    #[test]
    fn the_description_tells_everything() {
        let text = "2 blocks of 8 channels; conv policy columns, global:2; value 4>6; planes 3x6x7, plane 1 times 0.1";
        assert_eq!(shape().describe(), text);
        assert_eq!(shape().actions(), 9);
        assert_eq!(shape().planes_len(), 126);
    }

    #[test]
    fn parameters_are_counted() {
        // stem, four convolutions of the blocks, both policy parts, and the value head's three layers.
        let counted =
            (27 * 8 + 8) + 4 * (72 * 8 + 8) + (8 + 1) + (16 * 2 + 2) + (8 * 4 + 4) + (8 * 6 + 6) + (6 * 3 + 3);
        assert_eq!(shape().parameters(), counted);
    }

    #[test]
    fn every_change_of_shape_changes_the_fingerprint() {
        let changes: [fn(&mut Shape); 10] = [
            |shape| shape.blocks += 1,
            |shape| shape.channels += 1,
            |shape| shape.value_channels += 1,
            |shape| shape.value_hidden += 1,
            |shape| shape.planes += 1,
            |shape| shape.rows += 1,
            |shape| shape.cols += 1,
            |shape| shape.plane_scales[1] = 0.100_000_01,
            |shape| shape.action_blocks[1] = ActionBlock::Global { count: 3 },
            |shape| shape.action_blocks.swap(0, 1),
        ];
        let mut seen = vec![shape().fingerprint()];
        for change in changes {
            let mut shape = shape();
            change(&mut shape);
            assert!(!seen.contains(&shape.fingerprint()), "{}", shape.describe());
            seen.push(shape.fingerprint());
        }
        assert_eq!(shape().fingerprint(), seen[0]);
    }

    #[test]
    fn configurations_out_of_range_and_unknown_keys_are_refused() {
        let error = Config {
            channels: 0,
            ..Config::default()
        }
        .validate()
        .expect_err("no channel");
        assert_eq!(error.to_string(), "network channels = 0 is not within 1..=2048");
        let error = Config {
            blocks: 81,
            ..Config::default()
        }
        .validate()
        .expect_err("too deep");
        assert_eq!(
            error,
            ShapeError::OutOfRange {
                field: "blocks",
                value: 81,
                max: 80
            }
        );
        assert_eq!(Config::default().validate(), Ok(()));
        assert_eq!(serde_json::from_str(r#"{"blocks": 4}"#).ok(), Some(Config::default()));
        assert!(serde_json::from_str::<Config>(r#"{"depth": 4}"#).is_err());
    }

    #[test]
    fn games_without_a_network_are_refused() {
        let new = |scales: &[f32], blocks: &[ActionBlock]| Shape::new(&spec(scales, blocks), &Config::default());
        let columns = ActionBlock::Columns;
        assert!(matches!(new(&[], &[columns]), Err(ShapeError::Empty { planes: 0, .. })));
        assert!(matches!(new(&[1.0], &[]), Err(ShapeError::Empty { actions: 0, .. })));
        assert_eq!(
            new(&[1.0], &[ActionBlock::Triangle]),
            Err(ShapeError::Triangle { rows: 6, cols: 7 })
        );
        let empty = ActionBlock::Cells { planes: 0 };
        assert_eq!(new(&[1.0], &[columns, empty]), Err(ShapeError::EmptyBlock { index: 1 }));
        assert_eq!(
            new(&[1.0, 0.0], &[columns]),
            Err(ShapeError::Scale { plane: 1, scale: 0.0 })
        );
    }
}
