//! Loading a model: on the device that was asked for, and only if it keeps the network contract (`docs/networks.md`).

use ort::environment::Environment;
use ort::session::builder::{GraphOptimizationLevel, SessionBuilder};
use ort::value::{Outlet, TensorElementType};
use tengen_network::{INPUT_NAME, POLICY_NAME, WDL_NAME, read_metadata};

use crate::Result;
use crate::device::Device;
use crate::error::InferenceError;
use crate::providers::{self, Provider, Rest};
use crate::session::{SessionOptions, Signature};

/// What ONNX Runtime may make of a graph before it runs it. Everything, wherever the network is played; less is for measuring
/// how far the same network is from itself in other arithmetic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Optimisations {
    /// Nothing: one node after the other, and no integer sums, since these come from fused nodes.
    None,
    /// What means the same, such as constants computed ahead.
    Basic,
    /// Fused nodes as well: an int8 file adds integers from here on.
    Extended,
    /// Other memory layouts as well.
    #[default]
    All,
}

impl Optimisations {
    fn level(self) -> GraphOptimizationLevel {
        match self {
            Optimisations::None => GraphOptimizationLevel::Disable,
            Optimisations::Basic => GraphOptimizationLevel::Level1,
            Optimisations::Extended => GraphOptimizationLevel::Level2,
            Optimisations::All => GraphOptimizationLevel::All,
        }
    }
}

/// The runtime's session, and where it computes.
pub(crate) struct Opened {
    pub(crate) session: ort::session::Session,
    /// The execution provider.
    pub(crate) provider: &'static str,
    /// Which GPU, as CUDA counts them; `None` on the CPU.
    pub(crate) cuda: Option<u32>,
}

/// Loads the model on the device that the options ask for.
pub(crate) fn open(
    environment: &Environment,
    model: &[u8],
    options: &SessionOptions,
    optimisations: Optimisations,
) -> Result<Opened> {
    let on = |device| open_on(device, environment, model, options, optimisations);
    match options.device {
        Device::Cpu => on(Device::Cpu).map_err(InferenceError::Load),
        Device::Auto => on(Device::Cuda(0))
            .or_else(|message| {
                tracing::debug!(message, "no gpu is used");
                on(Device::Cpu)
            })
            .map_err(InferenceError::Load),
        device => on(device).map_err(|message| InferenceError::Device { device, message }),
    }
}

fn open_on(
    device: Device,
    environment: &Environment,
    model: &[u8],
    options: &SessionOptions,
    optimisations: Optimisations,
) -> std::result::Result<Opened, String> {
    let provider = match device {
        Device::Auto | Device::Cpu => providers::cpu(),
        Device::OpenVino => providers::openvino(options)?,
        Device::Cuda(index) => providers::cuda(index)?,
        Device::TensorRt(index) => tensorrt(index, environment, model, options)?,
    };
    let session = commit(environment, model, options, optimisations, &provider).map_err(|error| error.to_string())?;
    Ok(Opened {
        session,
        provider: provider.name,
        cuda: provider.cuda,
    })
}

/// TensorRT wants to know beforehand what the file is.
fn tensorrt(
    index: i32,
    environment: &Environment,
    model: &[u8],
    options: &SessionOptions,
) -> std::result::Result<Provider, String> {
    let metadata = read_metadata(model).map_err(|error| error.to_string())?;
    let plain = commit(environment, model, options, Optimisations::All, &providers::cpu())
        .map_err(|error| error.to_string())?;
    let planes = signature(&plain).map_err(|error| error.to_string())?.planes;
    providers::tensorrt(index, metadata.precision, planes, options.batch_max)
}

/// Builds the session. Apart, because the builder's errors carry the builder and cannot leave the thread.
fn commit(
    environment: &Environment,
    model: &[u8],
    options: &SessionOptions,
    optimisations: Optimisations,
    provider: &Provider,
) -> ort::Result<ort::session::Session> {
    let mut builder = SessionBuilder::new(environment)?
        .with_optimization_level(optimisations.level())?
        .with_intra_threads(options.intra_threads)?
        .with_inter_threads(1)?
        // Cores belong to search between two batches.
        .with_intra_op_spinning(false)?
        .with_inter_op_spinning(false)?
        .with_execution_providers(&provider.registered)?;
    if provider.rest == Rest::Nobody {
        builder = builder.with_disable_cpu_fallback()?;
    }
    builder.commit_from_memory(model)
}

/// The sizes of a model that keeps the contract.
pub(crate) fn signature(session: &ort::session::Session) -> Result<Signature> {
    let input = only(session.inputs(), "inputs", &[INPUT_NAME])?;
    let outputs = only(session.outputs(), "outputs", &[POLICY_NAME, WDL_NAME])?;
    let planes = fixed_dims(input[0], "input", TensorElementType::Uint8, "u8 [N, C, H, W]")?;
    let actions = fixed_dims(outputs[0], "output", TensorElementType::Float32, "f32 [N, A]")?;
    let wdl = fixed_dims(outputs[1], "output", TensorElementType::Float32, "f32 [N, 3]")?;
    match (planes.as_slice(), actions.as_slice(), wdl.as_slice()) {
        (&[planes, rows, cols], &[actions], &[3]) => Ok(Signature {
            planes: [planes, rows, cols],
            actions,
        }),
        _ => Err(InferenceError::Contract {
            name: "shape".to_owned(),
            expected: "planes [N, C, H, W], policy [N, A], wdl [N, 3]".to_owned(),
            actual: format!("planes [N, {planes:?}], policy [N, {actions:?}], wdl [N, {wdl:?}]"),
        }),
    }
}

/// The inputs or outputs of these names, which must be all there are.
fn only<'a>(outlets: &'a [Outlet], what: &str, names: &[&str]) -> Result<Vec<&'a Outlet>> {
    let found: Vec<&Outlet> = names
        .iter()
        .filter_map(|name| outlets.iter().find(|outlet| outlet.name() == *name))
        .collect();
    if found.len() == names.len() && outlets.len() == names.len() {
        return Ok(found);
    }
    let actual: Vec<&str> = outlets.iter().map(Outlet::name).collect();
    Err(InferenceError::Contract {
        name: what.to_owned(),
        expected: names.join(", "),
        actual: actual.join(", "),
    })
}

/// The dimensions after a dynamic first one, all fixed.
fn fixed_dims(outlet: &Outlet, what: &str, kind: TensorElementType, expected: &str) -> Result<Vec<usize>> {
    let dims = || {
        if outlet.dtype().tensor_type() != Some(kind) {
            return None;
        }
        let (batch, fixed) = outlet.dtype().tensor_shape()?.split_first()?;
        let fixed: Option<Vec<usize>> = fixed
            .iter()
            .map(|dim| usize::try_from(*dim).ok().filter(|dim| *dim > 0))
            .collect();
        // A dynamic dimension reads as -1.
        fixed.filter(|_| *batch == -1)
    };
    dims().ok_or_else(|| InferenceError::Contract {
        name: format!("{what} {}", outlet.name()),
        expected: expected.to_owned(),
        actual: outlet.dtype().to_string(),
    })
}
