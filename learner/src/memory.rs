//! How this process gets its memory.
//!
//! A step makes and lets go of activations and gradients of tens of megabytes each. By default the C library gives much of
//! that back to the system at once, which zeroes it, page by page, for the next step: 6 % of the time of training Caro5 with
//! 4 blocks of 64 channels on two cores (docs/benchmarks.md).

/// Keeps what was used once for the next step instead of giving it back to the system. **Call it first thing in `main`**. Does
/// nothing where the C library is not GNU's.
#[allow(
    unsafe_code,
    reason = "the C library has no safe way to be told; the numbers are its own, and a refusal changes nothing"
)]
pub fn keep() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        /// The greatest that glibc takes: half of a heap, 32 MiB. What is greater comes from the system each time.
        const MMAP_THRESHOLD: libc::c_int = 32 << 20;
        // SAFETY: called first thing in `main`, before any other thread could allocate.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, MMAP_THRESHOLD);
            libc::mallopt(libc::M_TRIM_THRESHOLD, libc::c_int::MAX);
            // The heaps of other threads are unmapped as soon as they are empty, whatever the threshold; training is a thread.
            libc::mallopt(libc::M_ARENA_MAX, 1);
        }
    }
}
