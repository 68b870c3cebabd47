//! ONNX Runtime alone, as fast as it goes: what self-play is held against.

use std::time::{Duration, Instant};

use tengen_inference::{Device, Outputs, Session, SessionOptions};

/// How long it is measured, and before that runs to get warm.
const MEASURED: Duration = Duration::from_secs(8);
const WARM_UP: Duration = Duration::from_secs(1);

/// Evaluations a second on so many threads of the CPU, each with its session, as in the product.
pub(crate) fn evaluations_per_second(network: &[u8], batch_max: usize, threads: usize) -> anyhow::Result<f64> {
    std::thread::scope(|scope| {
        let started: Vec<_> = (0..threads)
            .map(|_| scope.spawn(|| one_thread(network, batch_max)))
            .collect();
        let rates = started
            .into_iter()
            .map(|thread| thread.join().map_err(|_| anyhow::anyhow!("a thread panicked"))?);
        rates.sum()
    })
}

fn one_thread(network: &[u8], batch_max: usize) -> anyhow::Result<f64> {
    let options = SessionOptions {
        device: Device::Cpu,
        batch_max,
        ..SessionOptions::default()
    };
    let mut session = Session::load(network, &options)?;
    let planes: Vec<u8> = (0..batch_max * session.planes_len())
        .map(|index| u8::from(index % 3 == 0))
        .collect();
    let mut outputs = Outputs::default();
    let mut run_for = |time: Duration| -> anyhow::Result<f64> {
        let (begun, mut batches) = (Instant::now(), 0u32);
        while begun.elapsed() < time {
            session.run(&planes, batch_max, &mut outputs)?;
            batches += 1;
        }
        Ok(f64::from(batches) * batch_max as f64 / begun.elapsed().as_secs_f64())
    };
    run_for(WARM_UP)?;
    run_for(MEASURED)
}
