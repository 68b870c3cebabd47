//! How fast this machine evaluates: found out with the first network, once, and told in the log.

use std::sync::Arc;

use tengen_selfplay::ModelBytes;
use tengen_selfplay::feeding::{Batch, Division, Feeding, Measured};
use tokio::task::spawn_blocking;

/// Measures the first network that comes, which settles the size of a batch unless somebody has. A network that cannot be
/// measured is played with all the same, in the largest batches there may be.
pub(crate) async fn settle(feeding: &Arc<Feeding>, model: &Arc<ModelBytes>) {
    let (measuring, network) = (Arc::clone(feeding), Arc::clone(model));
    match spawn_blocking(move || measuring.measure(&network)).await {
        Ok(Ok(None)) => {}
        Ok(Ok(Some(measured))) => tell(feeding.division(), &measured),
        Ok(Err(error)) => tracing::warn!(%error, "how fast networks are evaluated here was not measured"),
        Err(error) => tracing::warn!(%error, "measuring how fast networks are evaluated here was broken off"),
    }
}

fn tell(division: &Division, measured: &Measured) {
    let batch_was = match division.batch() {
        Batch::Told(_) => "told",
        Batch::UpTo(_) => "measured",
    };
    tracing::info!(
        device = %division.devices(),
        provider = measured.provider,
        threads = division.threads(),
        sessions = division.sessions(),
        games = division.games(),
        batch = measured.batch,
        batch_was,
        evaluations_per_second = measured.rates_in_words(),
        "how fast one session evaluates here, by size of batch"
    );
}
