//! The network's forward pass in plain loops, after the description in `tengen_network::architecture` and in nothing
//! else shared with the ONNX writer.

use tengen_games::{ActionBlock, triangle_cells};
use tengen_network::{Activation, Shape, Weights};

/// Feature maps of one position, `[channels, rows, cols]`.
struct Maps {
    channels: usize,
    rows: usize,
    cols: usize,
    data: Vec<f64>,
}

impl Maps {
    fn at(&self, channel: usize, row: isize, col: isize) -> f64 {
        let inside = (0..self.rows as isize).contains(&row) && (0..self.cols as isize).contains(&col);
        if inside {
            self.data[(channel * self.rows + row as usize) * self.cols + col as usize]
        } else {
            0.0
        }
    }

    fn relu(mut self) -> Maps {
        relu(&mut self.data);
        self
    }

    fn plus(mut self, other: &Maps) -> Maps {
        self.data
            .iter_mut()
            .zip(&other.data)
            .for_each(|(one, other)| *one += other);
        self
    }

    /// Means of all channels, then their maxima.
    fn pool(&self) -> Vec<f64> {
        let cells = self.rows * self.cols;
        let means = self
            .data
            .chunks(cells)
            .map(|map| map.iter().sum::<f64>() / cells as f64);
        let maxima = self
            .data
            .chunks(cells)
            .map(|map| map.iter().copied().fold(f64::NEG_INFINITY, f64::max));
        means.chain(maxima).collect()
    }
}

fn relu(values: &mut [f64]) {
    values.iter_mut().for_each(|value| *value = value.max(0.0));
}

fn tensor<'a>(weights: &'a Weights, layer: &str, part: &str) -> (&'a [usize], &'a [f32]) {
    let tensor = weights.get(&format!("{layer}.{part}")).expect("the tensor is there");
    (tensor.shape(), tensor.data())
}

fn conv(weights: &Weights, layer: &str, input: &Maps) -> Maps {
    let (shape, weight) = tensor(weights, layer, "weight");
    let (_, bias) = tensor(weights, layer, "bias");
    let [outputs, inputs, kernel, _] = *shape else {
        panic!("{layer} is no convolution")
    };
    assert_eq!(inputs, input.channels);
    let pad = kernel as isize / 2;
    let mut data = Vec::new();
    for output in 0..outputs {
        for row in 0..input.rows as isize {
            for col in 0..input.cols as isize {
                let mut sum = f64::from(bias[output]);
                for channel in 0..inputs {
                    for y in 0..kernel {
                        for x in 0..kernel {
                            let factor = weight[((output * inputs + channel) * kernel + y) * kernel + x];
                            let (row, col) = (row + y as isize - pad, col + x as isize - pad);
                            sum += f64::from(factor) * input.at(channel, row, col);
                        }
                    }
                }
                data.push(sum);
            }
        }
    }
    Maps {
        channels: outputs,
        rows: input.rows,
        cols: input.cols,
        data,
    }
}

fn linear(weights: &Weights, layer: &str, input: &[f64]) -> Vec<f64> {
    let (shape, weight) = tensor(weights, layer, "weight");
    let (_, bias) = tensor(weights, layer, "bias");
    assert_eq!(shape, [bias.len(), input.len()]);
    let product = |row: &[f32]| row.iter().zip(input).map(|(w, x)| f64::from(*w) * x).sum::<f64>();
    weight
        .chunks(input.len())
        .zip(bias)
        .map(|(row, bias)| product(row) + f64::from(*bias))
        .collect()
}

/// Policy logits `[A]` and wdl logits of one position.
pub(crate) fn forward(shape: &Shape, weights: &Weights, planes: &[u8]) -> (Vec<f64>, Vec<f64>) {
    observed(shape, weights, planes, |_, _| {})
}

/// The same, and shows the values of every activation.
pub(crate) fn observed(
    shape: &Shape,
    weights: &Weights,
    planes: &[u8],
    mut observe: impl FnMut(Activation, &[f64]),
) -> (Vec<f64>, Vec<f64>) {
    let cells = shape.rows * shape.cols;
    let scaled = |(index, byte): (usize, &u8)| f64::from(*byte) * f64::from(shape.plane_scales[index / cells]);
    let data = planes.iter().enumerate().map(scaled).collect();
    let input = Maps {
        channels: shape.planes,
        rows: shape.rows,
        cols: shape.cols,
        data,
    };

    observe(Activation::Input, &input.data);
    let mut tower = conv(weights, "stem", &input).relu();
    observe(Activation::Stem, &tower.data);
    for block in 0..shape.blocks {
        let first = conv(weights, &format!("blocks.{block}.conv1"), &tower).relu();
        observe(Activation::BlockFirst(block), &first.data);
        let second = conv(weights, &format!("blocks.{block}.conv2"), &first);
        observe(Activation::BlockSecond(block), &second.data);
        tower = second.plus(&tower).relu();
        observe(Activation::Block(block), &tower.data);
    }

    let mut policy = Vec::new();
    for (index, block) in shape.action_blocks.iter().enumerate() {
        let layer = format!("policy.{index}");
        match block {
            ActionBlock::Cells { .. } => policy.extend(conv(weights, &layer, &tower).data),
            ActionBlock::Columns => {
                let map = conv(weights, &layer, &tower);
                let column = |col: usize| {
                    (0..shape.rows as isize)
                        .map(|row| map.at(0, row, col as isize))
                        .sum::<f64>()
                };
                policy.extend((0..shape.cols).map(|col| column(col) / shape.rows as f64));
            }
            ActionBlock::Triangle => {
                let map = conv(weights, &layer, &tower);
                policy.extend(triangle_cells(shape.rows).map(|cell| map.data[cell]));
            }
            ActionBlock::Global { .. } => policy.extend(linear(weights, &layer, &tower.pool())),
        }
    }

    let mut hidden = linear(
        weights,
        "value.hidden",
        &conv(weights, "value.conv", &tower).relu().pool(),
    );
    relu(&mut hidden);
    (policy, linear(weights, "value.out", &hidden))
}
