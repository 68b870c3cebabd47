//! What the network computes: the layers of a [`Shape`], in order, and how they are joined.
//!
//! `N` is the batch, `C, H, W` planes, rows and columns, `F` = `channels`, `V` = `value_channels`, `U` =
//! `value_hidden`, `A` the number of actions. Convolutions have stride 1 and zero padding that keeps `H` and `W`.
//! Every layer has a weight and a bias, named as below with `.weight` and `.bias` appended; convolution weights are
//! `[out, in, k, k]`, linear weights `[out, in]` (`y = x * weight^T + bias`), biases `[out]`.
//!
//! ```text
//! x = f32(planes) * scale                                          [N, C, H, W]   scale per plane
//! x = relu(conv3x3(x, "stem"))                                     [N, F, H, W]
//! for i in 0..blocks:
//!     y = relu(conv3x3(x, "blocks.{i}.conv1"))                     [N, F, H, W]
//!     y = conv3x3(y, "blocks.{i}.conv2")                           [N, F, H, W]
//!     x = relu(y + x)
//!
//! policy = concatenation over the action blocks b, in order, of    [N, A]
//!     Cells{planes}:  flatten(conv1x1(x, "policy.{b}"))            [N, planes * H * W], order [planes, H, W]
//!     Columns:        mean over H of conv1x1(x, "policy.{b}")      [N, W], one map
//!     Triangle:       conv1x1(x, "policy.{b}") on and below the    [N, H (H + 1) / 2], one map, H = W
//!                     main diagonal
//!     Global{count}:  linear(pool(x), "policy.{b}")                [N, count], in = 2 F
//!
//! v = relu(conv1x1(x, "value.conv"))                               [N, V, H, W]
//! v = relu(linear(pool(v), "value.hidden"))                        [N, U], in = 2 V
//! wdl = linear(v, "value.out")                                     [N, 3]: win, draw, loss of the acting seat
//!
//! pool(z) = concatenation of mean over H, W and max over H, W      [N, 2 * channels of z], means first
//! ```
//!
//! No tensor depends on `H` or `W`, so the weights of a game are also weights of the same game on a board of another size,
//! as long as its planes and action blocks are the same. The scales of planes are constants of the graph and no weights.
//!
//! **Training form.** The convolutions of stem, blocks and `value.conv` ([`Layer::batch_norm`]) are trained without a
//! bias and followed by batch norm (before the addition and the ReLU);
//! [`fold_batch_norm`](crate::fold_batch_norm) turns each into the weight and bias of the inference form. Policy
//! layers and linear layers have a bias and no batch norm. To train on from an inference form, set gamma to 1, beta
//! to the bias, the running mean to 0 and the running variance to 1.

use tengen_games::ActionBlock;

use crate::shape::Shape;

/// What kind of layer the weights are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayerKind {
    /// A square convolution, stride 1, zero padding of `kernel / 2`.
    Conv {
        /// Height and width of the kernel: 1 or 3.
        kernel: usize,
    },
    /// A linear layer.
    Linear,
}

/// Where in the network a layer stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The first convolution.
    Stem,
    /// The first convolution of a block.
    BlockFirst,
    /// The second convolution of a block, whose output is added to the block's input.
    BlockSecond,
    /// A part of the policy head.
    Policy,
    /// The convolution of the value head.
    ValueConv,
    /// The hidden layer of the value head.
    ValueHidden,
    /// The last layer of the value head.
    ValueOut,
}

/// One layer with weights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// Name without `.weight` or `.bias`, for example `blocks.0.conv1`.
    pub name: String,
    /// Where it stands.
    pub role: Role,
    /// What it is.
    pub kind: LayerKind,
    /// Input channels or features.
    pub inputs: usize,
    /// Output channels or features.
    pub outputs: usize,
}

impl Layer {
    /// Name of the weight tensor.
    pub fn weight_name(&self) -> String {
        format!("{}.weight", self.name)
    }

    /// Name of the bias tensor.
    pub fn bias_name(&self) -> String {
        format!("{}.bias", self.name)
    }

    /// Shape of the weight tensor: `[out, in, k, k]` or `[out, in]`.
    pub fn weight_shape(&self) -> Vec<usize> {
        match self.kind {
            LayerKind::Conv { kernel } => vec![self.outputs, self.inputs, kernel, kernel],
            LayerKind::Linear => vec![self.outputs, self.inputs],
        }
    }

    /// Number of elements of the weight tensor.
    pub fn weight_len(&self) -> usize {
        self.outputs * self.fan_in()
    }

    /// Number of inputs that one output sums over.
    pub fn fan_in(&self) -> usize {
        match self.kind {
            LayerKind::Conv { kernel } => self.inputs * kernel * kernel,
            LayerKind::Linear => self.inputs,
        }
    }

    /// Whether the layer belongs to the tower, which the heads build on.
    pub fn in_tower(&self) -> bool {
        match self.role {
            Role::Stem | Role::BlockFirst | Role::BlockSecond => true,
            Role::Policy | Role::ValueConv | Role::ValueHidden | Role::ValueOut => false,
        }
    }

    /// Whether batch norm follows the layer in the training form (which then has no bias of its own).
    pub fn batch_norm(&self) -> bool {
        match self.role {
            Role::Stem | Role::BlockFirst | Role::BlockSecond | Role::ValueConv => true,
            Role::Policy | Role::ValueHidden | Role::ValueOut => false,
        }
    }
}

impl Shape {
    /// Every layer of the network, in the order in which it is computed.
    pub fn layers(&self) -> Vec<Layer> {
        let layer = |name: String, role, kind, inputs, outputs| Layer {
            name,
            role,
            kind,
            inputs,
            outputs,
        };
        let conv3 = LayerKind::Conv { kernel: 3 };
        let conv1 = LayerKind::Conv { kernel: 1 };
        let width = self.channels;

        let mut layers = vec![layer("stem".to_owned(), Role::Stem, conv3, self.planes, width)];
        for block in 0..self.blocks {
            layers.push(layer(
                format!("blocks.{block}.conv1"),
                Role::BlockFirst,
                conv3,
                width,
                width,
            ));
            layers.push(layer(
                format!("blocks.{block}.conv2"),
                Role::BlockSecond,
                conv3,
                width,
                width,
            ));
        }
        for (index, block) in self.action_blocks.iter().enumerate() {
            let (kind, inputs, outputs) = match *block {
                ActionBlock::Cells { planes } => (conv1, width, planes),
                ActionBlock::Columns | ActionBlock::Triangle => (conv1, width, 1),
                ActionBlock::Global { count } => (LayerKind::Linear, 2 * width, count),
            };
            layers.push(layer(format!("policy.{index}"), Role::Policy, kind, inputs, outputs));
        }
        let (maps, hidden) = (self.value_channels, self.value_hidden);
        layers.push(layer("value.conv".to_owned(), Role::ValueConv, conv1, width, maps));
        layers.push(layer(
            "value.hidden".to_owned(),
            Role::ValueHidden,
            LayerKind::Linear,
            2 * maps,
            hidden,
        ));
        layers.push(layer(
            "value.out".to_owned(),
            Role::ValueOut,
            LayerKind::Linear,
            hidden,
            3,
        ));
        layers
    }
}
