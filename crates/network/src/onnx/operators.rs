//! The operators that the network is made of, each named after its layer.

use super::graph::{Attribute, GraphBuilder};

impl GraphBuilder {
    /// A square convolution of `layer` that keeps rows and columns, over input, weight and bias.
    pub(super) fn conv(&mut self, layer: &str, inputs: [&str; 3], kernel: i64) -> String {
        let pad = kernel / 2;
        let attributes = [
            Attribute::Ints("kernel_shape", &[kernel, kernel]),
            Attribute::Ints("pads", &[pad, pad, pad, pad]),
        ];
        self.node("Conv", &format!("{layer}.conv"), &inputs, &attributes)
    }

    /// The linear layer `layer`, whose result bears the name `output`.
    pub(super) fn linear(&mut self, layer: &str, output: &str, input: &str) -> String {
        let (weight, bias) = (format!("{layer}.weight"), format!("{layer}.bias"));
        // Weights are [out, in].
        self.node("Gemm", output, &[input, &weight, &bias], &[Attribute::Int("transB", 1)])
    }

    /// What is not negative of `input`.
    pub(super) fn relu(&mut self, name: &str, input: &str) -> String {
        self.node("Relu", &format!("{name}.relu"), &[input], &[])
    }

    /// `[N, ...]` to `[N, X]`.
    pub(super) fn flatten(&mut self, name: &str, input: &str) -> String {
        self.node(
            "Flatten",
            &format!("{name}.flat"),
            &[input],
            &[Attribute::Int("axis", 1)],
        )
    }

    /// Mean and max over the board, means first: `[N, X, H, W]` to `[N, 2 X]`.
    pub(super) fn pool(&mut self, name: &str, input: &str) -> String {
        let mean = self.node("GlobalAveragePool", &format!("{name}.mean"), &[input], &[]);
        let max = self.node("GlobalMaxPool", &format!("{name}.max"), &[input], &[]);
        let both = self.node(
            "Concat",
            &format!("{name}.pool"),
            &[&mean, &max],
            &[Attribute::Int("axis", 1)],
        );
        self.flatten(&format!("{name}.pool"), &both)
    }
}
