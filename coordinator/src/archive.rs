//! A run as it can be read, whether it goes on or not: its database, its network files, and what is told of it.
//!
//! The services that only read stand on this alone. Nothing here needs the run's game: a run whose rules or planes this
//! build no longer has can still be read.

use std::path::Path;
use std::sync::Arc;

use rusqlite::Connection;
use tengen_proto::v1;
use tengen_service::run_config::RunConfig;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use crate::access::Access;
use crate::files::ModelFiles;
use crate::messages;
use crate::services::{blocking, errors};
use crate::store::{Readers, StoreError, games, gates, models, progress, ratings, settings, steering};

/// Where to read a run; clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Archive {
    /// The run's name.
    pub(crate) run_id: Arc<str>,
    /// The database.
    pub(crate) readers: Readers,
    /// The network files.
    pub(crate) files: ModelFiles,
    /// The status, as it changes.
    pub(crate) status: watch::Receiver<Arc<v1::RunStatus>>,
    /// The champion, as it changes.
    pub(crate) champion: watch::Receiver<Arc<v1::Model>>,
    /// Who is let in.
    pub(crate) access: Arc<Access>,
    /// Whether the run does not go on: it is only read.
    pub(crate) is_at_rest: bool,
    /// Cancelled when the process drains: streams end.
    pub(crate) stop: CancellationToken,
}

impl Archive {
    /// Reads the database on a thread that may block.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, Status> {
        let readers = self.readers.clone();
        blocking(move || readers.with(read))
            .await?
            .map_err(|error| errors::internal(&error))
    }
}

/// What is told of a run that does not go on: its status and champion, once. The senders keep the outlets open.
#[derive(Debug)]
pub(crate) struct Still {
    pub(crate) status: watch::Sender<Arc<v1::RunStatus>>,
    pub(crate) champion: watch::Sender<Arc<v1::Model>>,
}

/// Reads what the database of a run at rest says. `None` when it holds no run.
pub(crate) fn read_still(connection: &Connection, data: &Path) -> Result<Option<Still>, StoreError> {
    let Some(run) = progress::run(connection)? else {
        return Ok(None);
    };
    let standing = progress::load(connection)?;
    let row = models::champion(connection)?.ok_or_else(|| StoreError::corrupt("champion", "there is none"))?;
    let champion = messages::model(connection, &run.run_id, &row)?;
    let gate = match gates::open(connection)? {
        Some(gate) => Some(messages::stored_gate(&gate, &gates::log(connection, gate.id)?)),
        None => None,
    };
    let newest = settings::newest(connection)?;
    let settings_revision = newest.as_ref().map_or(0, |(revision, _)| *revision);
    // A configuration of another build may not be read by this one; then the schedule is not shown.
    let config = newest.and_then(|(_, toml)| RunConfig::from_toml(&toml).ok());
    let schedule = config.as_ref().map(|config| config.row(standing.iteration));
    let learner = config.map(|config| config.learner);
    let status = v1::RunStatus {
        run_id: run.run_id.clone(),
        game: run.game,
        build: tengen_service::BUILD.to_owned(),
        created_unix_ms: run.created_ms,
        iteration: standing.iteration,
        iteration_games: standing.iteration_games,
        iteration_games_target: schedule.map_or(0, |row| row.games),
        simulations: schedule.map_or(0, |row| row.simulations),
        generation: standing.generation,
        champion: Some(messages::bare_model(&run.run_id, &row)),
        gate,
        gates_decided: gates::counts(connection)?.1,
        games: standing.self_play_games,
        match_games: standing.match_games,
        rating_games: ratings::rated_games(connection)?,
        positions: standing.positions,
        window_positions: standing.positions.min(standing.window_capacity),
        window_capacity: standing.window_capacity,
        rejected: games::rejections(connection)?.into_iter().collect(),
        opening_paths: games::opening_paths(connection)?.into_iter().collect(),
        candidates_waiting: models::waiting(connection)?.len() as u32,
        settings_revision,
        samples_per_position_max: learner.as_ref().map_or(0.0, |learner| learner.samples_per_position),
        steps_behind_max: learner.as_ref().map_or(0, |learner| learner.steps_behind_max),
        window_min_positions: learner.map_or(0, |learner| learner.window_min_positions),
        waiting: format!("the run is at rest and read from {}", data.display()),
        steering: Some(messages::steering(&steering::load(connection)?)),
        ..v1::RunStatus::default()
    };
    Ok(Some(Still {
        status: watch::Sender::new(Arc::new(status)),
        champion: watch::Sender::new(Arc::new(champion)),
    }))
}
