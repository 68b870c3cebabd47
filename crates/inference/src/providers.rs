//! Execution providers: what ONNX Runtime is told of each, so that it computes what the file says and nothing less.
//!
//! Whatever is named is registered or an error; no provider is replaced by another in silence.

use ort::ep::{ArbitrarilyConfigurableExecutionProvider, ExecutionProvider, ExecutionProviderDispatch, OpenVINO};

use crate::session::SessionOptions;

/// Name of ONNX Runtime's CPU provider.
pub(crate) const CPU_PROVIDER: &str = "CPUExecutionProvider";

/// What OpenVINO is told beyond the options that its provider has names for. Sessions know nothing of each other: if each
/// pinned its thread, several might get the same core.
const OPENVINO_CONFIG: &str = r#"{"CPU": {"ENABLE_CPU_PINNING": false}}"#;

/// Who computes what a provider does not take of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// ONNX Runtime's own kernels for the CPU.
    Cpu,
    /// Nobody: a graph that is not taken whole does not load.
    Nobody,
}

/// Who computes the graph of a session.
pub(crate) struct Provider {
    /// As ONNX Runtime names it.
    pub(crate) name: &'static str,
    /// What is registered, in this order of preference; nothing is the CPU provider.
    pub(crate) registered: Vec<ExecutionProviderDispatch>,
    pub(crate) rest: Rest,
    /// Which GPU, as CUDA counts them; `None` on the CPU.
    pub(crate) cuda: Option<u32>,
}

/// ONNX Runtime's own kernels for the CPU.
pub(crate) fn cpu() -> Provider {
    Provider {
        name: CPU_PROVIDER,
        registered: Vec::new(),
        rest: Rest::Cpu,
        cuda: None,
    }
}

/// OpenVINO's plugin for the CPU.
pub(crate) fn openvino(options: &SessionOptions) -> Result<Provider, String> {
    require::<OpenVINO>("scripts/fetch-runtimes --openvino lays out one that has")?;
    let provider = OpenVINO::default()
        .with_device_type("CPU")
        // fp32 means fp32: where the CPU multiplies in bf16, OpenVINO would. int8 is in the file and stays what it is.
        .with_precision("FP32")
        .with_num_threads(options.intra_threads)
        .with_num_streams(1)
        .with_arbitrary_config("load_config", OPENVINO_CONFIG)
        .build()
        .error_on_failure();
    Ok(Provider {
        name: OpenVINO::NAME,
        registered: vec![provider],
        // It takes every network of the contract whole, and the session says so by loading.
        rest: Rest::Nobody,
        cuda: None,
    })
}

/// The GPU `index`.
#[cfg(feature = "cuda")]
pub(crate) fn cuda(index: i32) -> Result<Provider, String> {
    use ort::ep::CUDA;
    use ort::ep::cuda::ConvAlgorithmSearch;

    let provider = CUDA::default()
        .with_device_id(index)
        // Exhaustive search would repeat for every batch size; the default choice can be many times slower.
        .with_conv_algorithm_search(ConvAlgorithmSearch::Heuristic)
        // fp32 means fp32: products rounded to 10 bits would fail the probes and the audits, which allow 1e-3.
        .with_tf32(false)
        .build()
        .error_on_failure();
    Ok(Provider {
        name: CUDA::NAME,
        registered: vec![provider],
        rest: Rest::Cpu,
        cuda: u32::try_from(index).ok(),
    })
}

#[cfg(not(feature = "cuda"))]
pub(crate) fn cuda(_: i32) -> Result<Provider, String> {
    Err("this build has no CUDA support (cargo feature `cuda` of tengen-inference)".to_owned())
}

/// The GPU `index` through TensorRT, for batches of up to `batch_max` positions of `planes`, `[C, H, W]`.
///
/// **Never run on a GPU**: neither these options nor whether TensorRT takes our networks in any precision.
#[cfg(feature = "tensorrt")]
pub(crate) fn tensorrt(
    index: i32,
    precision: tengen_network::Precision,
    planes: [usize; 3],
    batch_max: usize,
) -> Result<Provider, String> {
    use ort::ep::TensorRT;
    use tengen_network::{INPUT_NAME, Precision};

    require::<TensorRT>("the Python package onnxruntime-gpu holds one that has")?;
    // TensorRT rounds the products of fp32 to 10 bits unless this variable forbids it; its provider has no option for that.
    if std::env::var_os("NVIDIA_TF32_OVERRIDE").is_none_or(|value| value != "0") {
        return Err("TensorRT would compute fp32 in TF32: set NVIDIA_TF32_OVERRIDE=0 in the environment".to_owned());
    }
    let [channels, rows, cols] = planes;
    let shape = |batch: usize| format!("{INPUT_NAME}:{batch}x{channels}x{rows}x{cols}");
    let provider = TensorRT::default()
        .with_device_id(index)
        // Else a file in fp16 or int8 would be computed in fp32.
        .with_fp16(precision == Precision::Fp16)
        .with_int8(precision == Precision::Int8)
        // One engine for all sizes of batch. Unless told the sizes, TensorRT builds another whenever a batch is larger or
        // smaller than all before.
        .with_profile_min_shapes(shape(1))
        .with_profile_opt_shapes(shape(batch_max))
        .with_profile_max_shapes(shape(batch_max))
        .build()
        .error_on_failure();
    Ok(Provider {
        name: TensorRT::NAME,
        registered: vec![provider],
        // Not CUDA's kernels either: nobody would see that TensorRT took little or nothing.
        rest: Rest::Nobody,
        cuda: u32::try_from(index).ok(),
    })
}

#[cfg(not(feature = "tensorrt"))]
pub(crate) fn tensorrt(_: i32, _: tengen_network::Precision, _: [usize; 3], _: usize) -> Result<Provider, String> {
    Err("this build has no TensorRT support (cargo feature `tensorrt` of tengen-inference)".to_owned())
}

/// An error unless the runtime that is loaded was built with the provider `P`; `remedy` leads to one that was.
fn require<P: ExecutionProvider>(remedy: &str) -> Result<(), String> {
    match P::is_available() {
        Ok(true) => Ok(()),
        Ok(false) => {
            let loaded = crate::runtime::runtime().map(|info| info.path.display().to_string());
            Err(format!(
                "the ONNX Runtime that is loaded, {}, has no {}; {remedy}",
                loaded.unwrap_or_default(),
                P::NAME
            ))
        }
        Err(error) => Err(error.to_string()),
    }
}
