//! Where training goes on from: a checkpoint, or the run's newest network.

use anyhow::Result;
use tch::Device;
use tengen_network::random_weights;
use tengen_records::ModelId;
use tengen_replay::StepLimit;
use tengen_service::channel::Channel;
use tokio_util::sync::CancellationToken;

use crate::ancestry;
use crate::checkpoint::{Checkpoint, CheckpointFolder, LineModel, TrainingState};
use crate::setup::Setup;
use crate::trainer::Trainer;
use crate::training::Line;

/// Where training goes on from.
pub(crate) struct Beginning {
    pub(crate) trainer: Trainer,
    pub(crate) limit: StepLimit,
    pub(crate) line: Line,
}

/// Training restored from the checkpoint, or begun from the run's newest network: where there is no checkpoint, and where
/// another learner has published since, so that the run's networks stay one line. `None`: stopped meanwhile.
pub(crate) async fn begin(
    setup: &Setup,
    checkpoint: Option<Checkpoint>,
    folder: &CheckpointFolder,
    device: Device,
    channel: Channel,
    stop: &CancellationToken,
) -> Result<Option<Beginning>> {
    let Some(newest) = ancestry::newest(channel.clone(), stop).await? else {
        return Ok(None);
    };
    let id = ModelId::from_bytes(&newest.model_id)?;
    match checkpoint {
        Some(checkpoint) => {
            setup.identity.check(&checkpoint.state)?;
            if checkpoint.state.is_of_the_line_of(id, newest.iteration) {
                return restore(setup, &checkpoint, device).map(Some);
            }
            let kept = folder.set_aside(&id.short())?;
            tracing::warn!(
                step = checkpoint.state.step,
                newest = %id.short(),
                newest_step = newest.step,
                kept = %kept.display(),
                "another learner has published since the checkpoint here: training goes on from its network"
            );
        }
        None => {
            tracing::info!(newest = %id.short(), step = newest.step, "no checkpoint: training goes on from the newest network")
        }
    }
    let Some(ancestor) = ancestry::read(channel, &newest, &setup.shape, stop).await? else {
        return Ok(None);
    };
    let mut trainer = Trainer::new(&setup.shape, &ancestor.weights, setup.config.training.clone(), device)?;
    trainer.begin_at(newest.step);
    let limit = match ancestor.positions_total {
        None => setup.config.limit,
        // What the earlier learner was behind is not made up for.
        Some(positions) => StepLimit {
            from_step: newest.step,
            from_positions: positions,
            ..setup.config.limit
        },
    };
    let published = LineModel {
        iteration: newest.iteration,
        model_id: id.to_string(),
    };
    let line = Line {
        published,
        exported: None,
    };
    Ok(Some(Beginning { trainer, limit, line }))
}

fn restore(setup: &Setup, checkpoint: &Checkpoint, device: Device) -> Result<Beginning> {
    let config = setup.config.training.clone();
    // Any weights of the shape will do: all of them are overwritten.
    let mut trainer = Trainer::new(&setup.shape, &random_weights(&setup.shape, 0), config, device)?;
    trainer.restore(checkpoint)?;
    let TrainingState {
        step,
        limit,
        published,
        exported,
        ..
    } = checkpoint.state.clone();
    let now = setup.config.limit;
    // Before the checkpoint kept it, the limit held from the first step.
    let limit = limit.map_or(now, |old| old.continued(now.batch, now.samples_per_position, step));
    let line = Line { published, exported };
    Ok(Beginning { trainer, limit, line })
}
