//! The network in training form: the tower that [`tengen_network::architecture`] describes, with batch norm.
//!
//! It begins from weights in inference form (those of generation 0) and folds back into them; in between only its
//! [`Parameters`] change.

use tch::{Device, Kind, TchError, Tensor};
use tengen_games::{ActionBlock, triangle_cells};
use tengen_network::{
    Activation, BATCH_NORM_EPSILON, BatchNorm, FoldError, Layer, LayerKind, Role, Shape, Weights, WeightsError,
    fold_batch_norm,
};

use crate::parameters::{Decay, Draft, Parameters, channels_last, read_values};
use crate::transfer::Transfer;

/// Share of a batch's mean and variance that goes into the running ones (PyTorch's default).
const STATISTICS_MOMENTUM: f64 = 0.1;

/// A network could not be made, run or folded.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// The weights to begin from are not this shape's.
    #[error("the weights to begin from do not fit: {0}")]
    Weights(#[from] WeightsError),
    /// Batch norm could not be folded.
    #[error("failed to fold batch norm of {layer}: {source}")]
    Fold {
        /// The layer.
        layer: String,
        /// What is wrong.
        #[source]
        source: FoldError,
    },
    /// libtorch refused.
    #[error("libtorch: {0}")]
    Torch(#[from] TchError),
}

/// Whether batch norm uses the batch's statistics or the running ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The batch's, and the running ones move towards them.
    Train,
    /// The running ones, as the exported network will.
    Evaluate,
}

/// What the network answers for a batch of `B` positions.
#[derive(Debug)]
pub struct Logits {
    /// `f32 [B, A]` over all actions.
    pub policy: Tensor,
    /// `f32 [B, 3]`: win, draw, loss of the acting seat.
    pub wdl: Tensor,
}

/// A network in training form on one device.
#[derive(Debug)]
pub struct Network {
    shape: Shape,
    parameters: Parameters,
    /// `f32 [1, C, 1, 1]`.
    scales: Tensor,
    tower: Tower,
}

#[derive(Debug)]
struct Tower {
    stem: TrainedLayer,
    blocks: Vec<[TrainedLayer; 2]>,
    policy: Vec<PolicyPart>,
    value_conv: TrainedLayer,
    value_hidden: TrainedLayer,
    value_out: TrainedLayer,
}

/// The logits of one block of actions.
#[derive(Debug)]
struct PolicyPart {
    layer: TrainedLayer,
    reading: Reading,
}

/// How the logits of actions are read from a layer's outputs.
#[derive(Debug)]
enum Reading {
    /// One for each cell of each map.
    Cells,
    /// One map, averaged over the rows.
    Columns,
    /// These cells of one map, `i64` on the device.
    Triangle(Tensor),
    /// Those of a linear layer on what was pooled from the tower.
    Global,
}

/// One layer's tensors; they share their storage with the network's [`Parameters`].
#[derive(Debug)]
struct TrainedLayer {
    layer: Layer,
    weight: Tensor,
    after: After,
}

/// What follows the product with the weight.
#[derive(Debug)]
enum After {
    Bias(Tensor),
    Norm(Norm),
}

#[derive(Debug)]
struct Norm {
    gamma: Tensor,
    beta: Tensor,
    mean: Tensor,
    variance: Tensor,
}

impl Network {
    /// The network of `shape` beginning from `weights`; batch norm begins as the identity, so that folding gives the
    /// same weights back.
    pub fn new(shape: &Shape, weights: &Weights, device: Device) -> Result<Network, NetworkError> {
        weights.check(shape)?;
        let mut draft = Draft::new(device);
        let tower = Tower::new(shape, weights, &mut draft)?;
        let planes = shape.planes as i64;
        let scales = Tensor::f_from_slice(&shape.plane_scales)?
            .f_view([1, planes, 1, 1])?
            .f_to_device(device)?;
        Ok(Network {
            shape: shape.clone(),
            parameters: draft.pack()?,
            scales,
            tower,
        })
    }

    /// The shape.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Every tensor that training changes.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Planes `u8 [B, C, H, W]`, given as bytes, on the network's device.
    pub fn planes(&self, bytes: &[u8]) -> Result<Tensor, TchError> {
        self.planes_by(&mut Transfer::to(self.parameters.device()), bytes)
    }

    /// The same, sent by `transfer`, which goes to the network's device.
    pub fn planes_by(&self, transfer: &mut Transfer, bytes: &[u8]) -> Result<Tensor, TchError> {
        let shape = &self.shape;
        let [planes, rows, cols] = [shape.planes, shape.rows, shape.cols].map(|size| size as i64);
        channels_last(&transfer.send(bytes, &[-1, planes, rows, cols])?)
    }

    /// Answers for planes `u8 [B, C, H, W]` on the network's device.
    pub fn forward(&self, planes: &Tensor, mode: Mode) -> Result<Logits, TchError> {
        self.forward_observed(planes, mode, |_, _| Ok(()))
    }

    /// The same, and shows each activation of the tower, `f32 [B, X, H, W]`, as soon as it is computed.
    pub fn forward_observed(
        &self,
        planes: &Tensor,
        mode: Mode,
        mut observe: impl FnMut(Activation, &Tensor) -> Result<(), TchError>,
    ) -> Result<Logits, TchError> {
        let tower = &self.tower;
        let mut x = planes.f_to_kind(Kind::Float)?.f_mul(&self.scales)?;
        observe(Activation::Input, &x)?;
        x = tower.stem.forward(&x, mode)?.f_relu_()?;
        observe(Activation::Stem, &x)?;
        for (block, [first, second]) in tower.blocks.iter().enumerate() {
            let inner = first.forward(&x, mode)?.f_relu_()?;
            observe(Activation::BlockFirst(block), &inner)?;
            let outer = second.forward(&inner, mode)?;
            observe(Activation::BlockSecond(block), &outer)?;
            x = outer.f_add(&x)?.f_relu_()?;
            observe(Activation::Block(block), &x)?;
        }
        Ok(Logits {
            policy: tower.policy(&x, mode)?,
            wdl: tower.value(&x, mode)?,
        })
    }

    /// The same network on another device; neither follows the other's training.
    pub fn copy_to(&self, device: Device) -> Result<Network, NetworkError> {
        // Any weights of the shape will do: every tensor is overwritten.
        let copy = Network::new(&self.shape, &self.fold()?, device)?;
        copy.parameters.copy_from(&self.parameters)?;
        Ok(copy)
    }

    /// The weights in inference form, batch norm folded.
    pub fn fold(&self) -> Result<Weights, NetworkError> {
        let mut weights = Weights::new();
        for trained in self.tower.layers() {
            let layer = &trained.layer;
            let weight = tengen_network::Tensor::new(layer.weight_shape(), read_values(&trained.weight)?)?;
            let (weight, bias) = match &trained.after {
                After::Bias(bias) => (
                    weight,
                    tengen_network::Tensor::new(vec![layer.outputs], read_values(bias)?)?,
                ),
                After::Norm(norm) => norm.fold(layer, &weight)?,
            };
            weights.insert(layer.weight_name(), weight);
            weights.insert(layer.bias_name(), bias);
        }
        Ok(weights)
    }
}

impl Tower {
    fn new(shape: &Shape, weights: &Weights, draft: &mut Draft) -> Result<Tower, NetworkError> {
        let mut singles = Vec::new();
        let mut firsts = Vec::new();
        let mut seconds = Vec::new();
        let mut policy = Vec::new();
        for layer in shape.layers() {
            let role = layer.role;
            let trained = TrainedLayer::new(layer, weights, draft)?;
            match role {
                Role::BlockFirst => firsts.push(trained),
                Role::BlockSecond => seconds.push(trained),
                Role::Policy => policy.push(trained),
                Role::Stem | Role::ValueConv | Role::ValueHidden | Role::ValueOut => singles.push(trained),
            }
        }
        // A shape lists its single layers once each, in this order.
        let [stem, value_conv, value_hidden, value_out] =
            singles.try_into().expect("every shape has one stem and one value head");
        let blocks = firsts.into_iter().zip(seconds).map(<[TrainedLayer; 2]>::from).collect();
        let parts = shape.action_blocks.iter().zip(policy).map(|(&block, layer)| {
            let reading = Reading::new(block, shape.rows, draft.device());
            reading.map(|reading| PolicyPart { layer, reading })
        });
        let policy = parts.collect::<Result<Vec<PolicyPart>, TchError>>()?;
        Ok(Tower {
            stem,
            blocks,
            policy,
            value_conv,
            value_hidden,
            value_out,
        })
    }

    fn layers(&self) -> impl Iterator<Item = &TrainedLayer> {
        let value = [&self.value_conv, &self.value_hidden, &self.value_out];
        let policy = self.policy.iter().map(|part| &part.layer);
        std::iter::once(&self.stem)
            .chain(self.blocks.iter().flatten())
            .chain(policy)
            .chain(value)
    }

    fn policy(&self, x: &Tensor, mode: Mode) -> Result<Tensor, TchError> {
        let mut parts = Vec::with_capacity(self.policy.len());
        for PolicyPart { layer, reading } in &self.policy {
            parts.push(match reading {
                Reading::Cells => layer.forward(x, mode)?.f_flatten(1, -1)?,
                // [B, 1, H, W] to [B, W].
                Reading::Columns => layer
                    .forward(x, mode)?
                    .f_mean_dim([1i64, 2].as_slice(), false, Kind::Float)?,
                Reading::Triangle(cells) => layer.forward(x, mode)?.f_flatten(1, -1)?.f_index_select(1, cells)?,
                Reading::Global => layer.forward(&pool(x)?, mode)?,
            });
        }
        Tensor::f_cat(&parts, 1)
    }

    fn value(&self, x: &Tensor, mode: Mode) -> Result<Tensor, TchError> {
        let maps = self.value_conv.forward(x, mode)?.f_relu_()?;
        let hidden = self.value_hidden.forward(&pool(&maps)?, mode)?.f_relu_()?;
        self.value_out.forward(&hidden, mode)
    }
}

impl Reading {
    /// How the logits of this block are read on a board of so many rows.
    fn new(block: ActionBlock, rows: usize, device: Device) -> Result<Reading, TchError> {
        Ok(match block {
            ActionBlock::Cells { .. } => Reading::Cells,
            ActionBlock::Columns => Reading::Columns,
            ActionBlock::Triangle => {
                let cells: Vec<i64> = triangle_cells(rows).map(|cell| cell as i64).collect();
                Reading::Triangle(Tensor::f_from_slice(&cells)?.f_to_device(device)?)
            }
            ActionBlock::Global { .. } => Reading::Global,
        })
    }
}

impl TrainedLayer {
    fn new(layer: Layer, weights: &Weights, draft: &mut Draft) -> Result<TrainedLayer, NetworkError> {
        let inference = |name: String| weights.get(&name).ok_or(WeightsError::Missing { name });
        let weight = inference(layer.weight_name())?;
        let bias = inference(layer.bias_name())?.data();
        let shape: Vec<i64> = layer.weight_shape().iter().map(|&size| size as i64).collect();
        let weight = draft.train(&layer.weight_name(), &shape, weight.data(), Decay::Weight)?;
        let after = if layer.batch_norm() {
            After::Norm(Norm::identity(&layer, bias, draft)?)
        } else {
            let width = [layer.outputs as i64];
            After::Bias(draft.train(&layer.bias_name(), &width, bias, Decay::Exempt)?)
        };
        Ok(TrainedLayer { layer, weight, after })
    }

    fn forward(&self, x: &Tensor, mode: Mode) -> Result<Tensor, TchError> {
        let bias = match &self.after {
            After::Bias(bias) => Some(bias),
            After::Norm(_) => None,
        };
        let product = match self.layer.kind {
            LayerKind::Linear => x.f_linear(&self.weight, bias)?,
            LayerKind::Conv { kernel } => {
                let padding = (kernel / 2) as i64;
                x.f_conv2d(&self.weight, bias, [1i64, 1], [padding, padding], [1i64, 1], 1)?
            }
        };
        match &self.after {
            After::Bias(_) => Ok(product),
            After::Norm(norm) => norm.forward(&product, mode),
        }
    }
}

impl Norm {
    /// Adds nothing but the bias: the identity up to epsilon.
    fn identity(layer: &Layer, bias: &[f32], draft: &mut Draft) -> Result<Norm, TchError> {
        let width = [layer.outputs as i64];
        let name = |part: &str| format!("{}.norm.{part}", layer.name);
        let ones = vec![1.0; layer.outputs];
        // With epsilon added it is 1 as nearly as a float can be, so that the function really begins as the parent's.
        let variance = vec![1.0 - BATCH_NORM_EPSILON; layer.outputs];
        Ok(Norm {
            gamma: draft.train(&name("gamma"), &width, &ones, Decay::Exempt)?,
            beta: draft.train(&name("beta"), &width, bias, Decay::Exempt)?,
            mean: draft.statistic(&name("mean"), &width, &vec![0.0; layer.outputs])?,
            variance: draft.statistic(&name("variance"), &width, &variance)?,
        })
    }

    fn forward(&self, x: &Tensor, mode: Mode) -> Result<Tensor, TchError> {
        x.f_batch_norm(
            Some(&self.gamma),
            Some(&self.beta),
            Some(&self.mean),
            Some(&self.variance),
            mode == Mode::Train,
            STATISTICS_MOMENTUM,
            f64::from(BATCH_NORM_EPSILON),
            true,
        )
    }

    fn fold(
        &self,
        layer: &Layer,
        weight: &tengen_network::Tensor,
    ) -> Result<(tengen_network::Tensor, tengen_network::Tensor), NetworkError> {
        let [gamma, beta, mean, variance] = [
            read_values(&self.gamma)?,
            read_values(&self.beta)?,
            read_values(&self.mean)?,
            read_values(&self.variance)?,
        ];
        let norm = BatchNorm {
            gamma: &gamma,
            beta: &beta,
            mean: &mean,
            variance: &variance,
            epsilon: BATCH_NORM_EPSILON,
        };
        fold_batch_norm(weight, &norm).map_err(|source| NetworkError::Fold {
            layer: layer.name.clone(),
            source,
        })
    }
}

/// Means, then greatest values, of each map: `[B, F, H, W]` to `[B, 2 F]`.
fn pool(x: &Tensor) -> Result<Tensor, TchError> {
    let means = x.f_mean_dim([2i64, 3].as_slice(), false, Kind::Float)?;
    let greatest = x.f_flatten(2, -1)?.f_max_dim(2, false)?.0;
    Tensor::f_cat(&[means, greatest], 1)
}
