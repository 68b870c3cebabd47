//! Keeps ONNX Runtime from reporting to its makers.
//!
//! Since 1.30 the Linux build creates a device id under `~/.cache` and an upload queue as soon as its environment exists,
//! before the API can switch that off. Only a variable that is set before the library is loaded prevents it.

/// The variable ONNX Runtime looks for.
const VARIABLE: &str = "ORT_DISABLE_TELEMETRY";

/// Forbids ONNX Runtime's telemetry for this process and its children. **Call it first thing in `main`**, while the
/// process has one thread; [`init`](crate::init) refuses to load the library otherwise.
#[allow(
    unsafe_code,
    reason = "setting a variable is sound while no other thread can read the environment, which the caller ensures"
)]
pub fn forbid_telemetry() {
    // SAFETY: called first thing in `main`, before any thread is started.
    unsafe { std::env::set_var(VARIABLE, "1") };
}

/// Whether telemetry is forbidden.
pub(crate) fn is_forbidden() -> bool {
    std::env::var_os(VARIABLE).is_some_and(|value| value == "1")
}
