//! Batch sizes: every batch is padded to one of a few buckets, each with its own reused tensors.
//!
//! A few sizes keep memory plans, convolution choices and results the same from run to run, whatever the number of
//! positions that happen to be ready.

use ort::memory::{AllocationDevice, Allocator, AllocatorType, MemoryInfo, MemoryType};
use ort::session::{HasSelectedOutputs, OutputSelector, RunOptions};
use ort::value::Tensor;
use tengen_network::{POLICY_NAME, WDL_NAME};

use crate::session::Signature;

/// One batch size with its input, and its outputs held by the run options.
pub(crate) struct Bucket {
    /// The input, `[size, C, H, W]`.
    pub(crate) planes: Tensor<u8>,
    /// Tells the runtime to write into tensors `[size, A]` and `[size, 3]` made once.
    pub(crate) options: RunOptions<HasSelectedOutputs>,
}

impl Bucket {
    /// Tensors for `size` positions, all in `memory`.
    pub(crate) fn new(size: usize, signature: Signature, memory: &Allocator) -> ort::Result<Bucket> {
        let [planes, rows, cols] = signature.planes;
        let planes = Tensor::<u8>::new(memory, [size, planes, rows, cols])?;
        let outputs = OutputSelector::no_default()
            .with(POLICY_NAME)
            .preallocate(POLICY_NAME, Tensor::<f32>::new(memory, [size, signature.actions])?)
            .with(WDL_NAME)
            .preallocate(WDL_NAME, Tensor::<f32>::new(memory, [size, 3])?);
        Ok(Bucket {
            planes,
            options: RunOptions::new()?.with_outputs(outputs),
        })
    }

    /// Copies the planes of at most `size` positions and zeroes the rest.
    pub(crate) fn fill(&mut self, planes: &[u8]) {
        let (_, input) = self.planes.extract_tensor_mut();
        let (used, padding) = input.split_at_mut(planes.len());
        used.copy_from_slice(planes);
        padding.fill(0);
    }
}

/// Memory of the host for the planes and answers of a session on the GPU `cuda`, or on the CPU.
///
/// For a GPU it is page-locked: it fetches planes from there and writes answers there without a copy in between. **Never run
/// on a GPU.** Where the runtime has no such memory to give, it is ordinary memory, as on a CPU.
pub(crate) fn host_memory(session: &ort::session::Session, cuda: Option<u32>) -> Allocator {
    let Some(index) = cuda.and_then(|index| i32::try_from(index).ok()) else {
        return Allocator::default();
    };
    let pinned = MemoryInfo::new(
        AllocationDevice::CUDA_PINNED,
        index,
        AllocatorType::Device,
        MemoryType::CPUInput,
    )
    .and_then(|info| Allocator::new(session, info));
    match pinned {
        Ok(memory) if memory.memory_info().is_cpu_accessible() => memory,
        Ok(_) => Allocator::default(),
        Err(error) => {
            tracing::debug!(%error, "planes and answers lie in ordinary memory");
            Allocator::default()
        }
    }
}

/// The sizes that batches of up to `batch_max` positions are padded to, ascending: the powers of two below it, then
/// `batch_max` itself.
pub fn bucket_sizes(batch_max: usize) -> Vec<usize> {
    let powers = std::iter::successors(Some(1usize), |size| size.checked_mul(2));
    powers.take_while(|size| *size < batch_max).chain([batch_max]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_two_up_to_the_greatest_batch() {
        assert_eq!(bucket_sizes(1), [1]);
        assert_eq!(bucket_sizes(2), [1, 2]);
        assert_eq!(bucket_sizes(32), [1, 2, 4, 8, 16, 32]);
        assert_eq!(bucket_sizes(48), [1, 2, 4, 8, 16, 32, 48]);
    }
}
