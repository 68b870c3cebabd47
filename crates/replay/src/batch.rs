//! A minibatch: flat arrays that a tensor library takes as they are.

use tengen_games::Spec;

/// `B` positions with their targets. Buffers are kept and reused between batches.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// Number of positions, `B`.
    pub len: usize,
    /// Feature planes, raw bytes, `[B, C, H, W]`.
    pub planes: Vec<u8>,
    /// Policy targets, probabilities, `[B, A]`.
    pub policy: Vec<f32>,
    /// The game's result from the acting seat's view, one of win, draw, loss is 1: `[B, 3]`.
    pub wdl: Vec<f32>,
    /// Weights, `[B]`.
    pub weight: Vec<f32>,
}

/// One position's place in a batch.
pub(crate) struct Row<'a> {
    /// `[C, H, W]`.
    pub planes: &'a mut [u8],
    /// `[A]`, zeros.
    pub policy: &'a mut [f32],
    /// `[3]`, zeros.
    pub wdl: &'a mut [f32],
    pub weight: &'a mut f32,
}

impl Batch {
    /// Gives the arrays the lengths for `len` positions of this game, targets all zero.
    pub(crate) fn clear_to(&mut self, spec: &Spec, len: usize) {
        self.len = len;
        self.planes.resize(len * spec.planes_len(), 0);
        for (array, width) in [
            (&mut self.policy, spec.actions.len()),
            (&mut self.wdl, 3),
            (&mut self.weight, 1),
        ] {
            array.clear();
            array.resize(len * width, 0.0);
        }
    }

    pub(crate) fn rows(&mut self, spec: &Spec) -> impl Iterator<Item = Row<'_>> {
        let planes = self.planes.chunks_exact_mut(spec.planes_len());
        let policy = self.policy.chunks_exact_mut(spec.actions.len());
        let rest = self.wdl.chunks_exact_mut(3).zip(&mut self.weight);
        let rows = planes.zip(policy).zip(rest);
        rows.map(|((planes, policy), (wdl, weight))| Row {
            planes,
            policy,
            wdl,
            weight,
        })
    }
}
