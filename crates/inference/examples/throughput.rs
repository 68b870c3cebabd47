//! Measures evaluations per second of random networks of Connect Four's sizes.
//!
//! `cargo run --release -p tengen-inference --example throughput -- [DEVICE] [THREADS] [BATCH] [SIZE...]`
//!
//! A device is `cpu` (the default), `openvino`, `cuda:N` or `tensorrt:N` (`docs/devices.md`).
//! A size is `BLOCKSxCHANNELS` or `BLOCKSxCHANNELS:PRECISION`, for example `4x32` and `4x32:int8`.
//! Precisions are `fp32` (the default), `fp16` and `int8`; how fast the latter is does not depend on its ranges, so they are
//! made up.

use std::time::{Duration, Instant};

use tengen_games::ActionBlock;
use tengen_inference::{Device, Outputs, Session, SessionOptions};
use tengen_network::{
    ActivationRange, ActivationRanges, Metadata, Precision, Shape, WriteError, random_weights, write_onnx,
    write_onnx_fp16, write_onnx_int8,
};

/// How long each network is run; long enough for a stable figure.
const MEASURED: Duration = Duration::from_secs(3);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let device: Device = arguments.next().unwrap_or("cpu".to_owned()).parse()?;
    let intra_threads: usize = arguments.next().unwrap_or("1".to_owned()).parse()?;
    let batch_max: usize = arguments.next().unwrap_or("32".to_owned()).parse()?;
    let mut sizes: Vec<String> = arguments.collect();
    if sizes.is_empty() {
        sizes = ["4x32", "3x64", "6x64", "10x128"].map(str::to_owned).to_vec();
    }

    tengen_inference::init_for(&device.into(), None)?;
    let options = SessionOptions {
        device,
        intra_threads,
        batch_max,
    };
    for size in sizes {
        let (plain, precision) = size.split_once(':').unwrap_or((size.as_str(), "fp32"));
        let (blocks, channels) = plain
            .split_once('x')
            .ok_or("a size is BLOCKSxCHANNELS, for example 4x32 or 4x32:int8")?;
        let shape = connect_four(blocks.parse()?, channels.parse()?);
        let model = model(&shape, Precision::parse(precision).ok_or("no such precision")?)?;
        let started = Instant::now();
        let mut session = Session::load(&model, &options)?;
        let loaded = started.elapsed();
        let rate = rate(&mut session, batch_max)?;
        let bytes = model.len();
        println!(
            "{size}: {rate:.0} evaluations/s on {}, loads in {loaded:.1?}, {bytes} bytes",
            session.provider()
        );
    }
    Ok(())
}

/// The random network of this shape as a file.
fn model(shape: &Shape, precision: Precision) -> Result<Vec<u8>, WriteError> {
    let (weights, metadata) = (random_weights(shape, 1), Metadata::of_shape(shape));
    let reduced = metadata.in_precision(precision, [0; 32]);
    match precision {
        Precision::Int8 => write_onnx_int8(shape, &weights, &ranges(shape), &reduced),
        Precision::Fp16 => write_onnx_fp16(shape, &weights, &reduced),
        _ => write_onnx(shape, &weights, &metadata),
    }
}

fn ranges(shape: &Shape) -> ActivationRanges {
    let mut ranges = ActivationRanges::new();
    for activation in shape.activations() {
        let min = if activation.is_signed() { -4.0 } else { 0.0 };
        ranges.include(activation, ActivationRange { min, max: 4.0 });
    }
    ranges
}

fn connect_four(blocks: usize, channels: usize) -> Shape {
    Shape {
        blocks,
        channels,
        value_channels: 32,
        value_hidden: 64,
        planes: 3,
        rows: 6,
        cols: 7,
        plane_scales: vec![1.0; 3],
        action_blocks: vec![ActionBlock::Columns],
    }
}

/// Positions per second, after as many batches to warm up as fit in a tenth of the time.
fn rate(session: &mut Session, batch: usize) -> Result<f64, tengen_inference::InferenceError> {
    let planes: Vec<u8> = (0..batch * session.planes_len())
        .map(|index| u8::from(index % 3 == 0))
        .collect();
    let mut outputs = Outputs::default();
    let mut run_for = |time: Duration| {
        let (started, mut batches) = (Instant::now(), 0);
        while started.elapsed() < time {
            session.run(&planes, batch, &mut outputs)?;
            batches += 1;
        }
        Ok(f64::from(batches) * batch as f64 / started.elapsed().as_secs_f64())
    };
    run_for(MEASURED / 10)?;
    run_for(MEASURED)
}
