//! Taking up a data folder: creates the run, or checks that the configuration still means the run that is there.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rusqlite::Connection;
use sha2::{Digest, Sha256};
use tengen_games::{AnyGame, ParseGameError};
use tengen_network::{Metadata, Shape, ShapeError, WriteError, model_id, random_weights, write_onnx};
use tengen_records::{ModelId, ParseIdError, RunId};
use tengen_service::run_config::RunConfig;

use crate::facts::RunFacts;
use crate::files::ModelFiles;
use crate::game::referee;
use crate::run::ratings::parse_baseline;
use crate::server::LiveKeys;
use crate::settings::{Change, Merged, SettingsFault, changes, merge};
use crate::store::models::{ModelRow, ModelState};
use crate::store::progress::{self, Progress, RunRow};
use crate::store::settings::SettingsRow;
use crate::store::trail::{self, Entry};
use crate::store::{StoreError, models, open_writer, settings};

/// The data folder cannot be taken up.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// What is fixed for a run has changed.
    #[error(
        "{data} holds the run {run:?}, and what is fixed for a run has changed:\n  {}\nthe run is untouched: restore the old \
         values, or start a new run with another --data folder; `tengen models list|show|pull --data {data}` reads it as it is",
        changes.iter().map(Change::to_string).collect::<Vec<_>>().join("\n  "), data = data.display()
    )]
    Changed {
        /// The folder.
        data: PathBuf,
        /// The run that is there.
        run: String,
        /// Every difference.
        changes: Vec<Change>,
    },
    /// The game is unknown or its parameters make no sense.
    #[error(transparent)]
    Game(#[from] ParseGameError),
    /// A player of rating matches is none.
    #[error("ratings.baselines: {0}")]
    Baseline(String),
    /// The run's name is no id.
    #[error("run.name: {0}")]
    Name(#[from] ParseIdError),
    /// There is no such network.
    #[error("[network]: {0}")]
    Shape(#[from] ShapeError),
    /// The random network could not be written as ONNX.
    #[error("failed to write the random network: {0}")]
    Onnx(#[from] WriteError),
    /// A file could not be written.
    #[error(transparent)]
    File(#[from] tengen_service::files::WriteError),
    /// The champion's file is gone or damaged.
    #[error("the champion's file models/{file_name} {problem}; restore it from a copy")]
    Champion {
        /// The file.
        file_name: String,
        /// What is wrong.
        problem: String,
    },
    /// The run file and the keys that were changed while the run went on make no configuration together.
    #[error(
        "the run file and the keys that were changed while the run went on do not go together: {0}; --apply takes the file's"
    )]
    Live(#[from] SettingsFault),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Opens the database in `data` and makes it the run of `config`.
pub(crate) fn open_run(
    data: &Path,
    mut config: RunConfig,
    live: LiveKeys,
    now_ms: i64,
) -> Result<(Connection, RunFacts), SetupError> {
    let game = AnyGame::parse(&config.run.game)?;
    // Two spellings of one game are the same run.
    config.run.game.clone_from(&game.spec().id);
    let shape = Shape::new(game.spec(), &config.network)?;
    let mut facts = RunFacts {
        id: RunId::new(config.run.name.clone())?,
        game: referee(&game),
        rules_fingerprint: game.rules_fingerprint(),
        feature_fingerprint: game.feature_fingerprint(),
        shape,
        toml: config.to_toml(),
        config,
        settings_revision: 1,
        audit: String::new(),
        created_ms: now_ms,
        rating_openings: OnceLock::new(),
    };
    for text in &facts.config.ratings.baselines {
        parse_baseline(text).map_err(SetupError::Baseline)?;
    }
    let mut connection = open_writer(data)?;
    let files = ModelFiles::new(data);
    match progress::run(&connection)? {
        None => create(&mut connection, &files, &facts)?,
        Some(run) => {
            facts.created_ms = run.created_ms;
            refuse_changes(&connection, data, &run, &facts)?;
            verify_champion(&connection, &files)?;
            begin_anew_after_restore(&mut connection, now_ms)?;
            let settled = merge_live(&connection, &mut facts, live)?;
            facts.settings_revision = apply_settings(&mut connection, &facts, &settled, now_ms)?;
        }
    }
    Ok((connection, facts))
}

/// Writes the random network and everything a run begins with.
fn create(connection: &mut Connection, files: &ModelFiles, facts: &RunFacts) -> Result<(), SetupError> {
    let model = random_model(files, facts)?;
    let transaction = connection.transaction().map_err(StoreError::from)?;
    progress::create_run(
        &transaction,
        &RunRow {
            run_id: facts.id.to_string(),
            game: facts.game.spec().id.clone(),
            seed: facts.config.run.seed,
            rules_fingerprint: facts.rules_fingerprint,
            feature_fingerprint: facts.feature_fingerprint,
            shape: facts.shape.describe(),
            created_ms: facts.created_ms,
        },
    )?;
    settings::insert(
        &transaction,
        &revision(facts, facts.settings_revision, facts.created_ms),
    )?;
    note(&transaction, "create-run", facts.id.as_str(), facts.created_ms)?;
    models::insert(&transaction, &model)?;
    progress::save(
        &transaction,
        &Progress {
            iteration: 0,
            iteration_games: 0,
            self_play_games: 0,
            match_games: 0,
            positions: 0,
            due: None,
            published_iteration: 0,
            champion: model.id,
            generation: 0,
            fence: 0,
            // Mirrors of an earlier run in the same place must not take this one's games for theirs.
            window_epoch: u64::try_from(facts.created_ms).unwrap_or(0) + 1,
            window_capacity: facts.config.replay.capacity_positions,
        },
    )?;
    transaction.commit().map_err(StoreError::from)?;
    tracing::info!(run = %facts.id, game = %facts.game.spec().id, model = %model.id.short(), "run created");
    Ok(())
}

fn random_model(files: &ModelFiles, facts: &RunFacts) -> Result<ModelRow, SetupError> {
    let created =
        std::time::UNIX_EPOCH + std::time::Duration::from_millis(u64::try_from(facts.created_ms).unwrap_or_default());
    let metadata = Metadata {
        run: facts.id.to_string(),
        game: facts.game.spec().id.clone(),
        rules_fingerprint: facts.rules_fingerprint,
        feature_fingerprint: facts.feature_fingerprint,
        created: humantime::format_rfc3339_millis(created).to_string(),
        ..Metadata::of_shape(&facts.shape)
    };
    let bytes = write_onnx(
        &facts.shape,
        &random_weights(&facts.shape, facts.config.run.seed),
        &metadata,
    )?;
    let id = ModelId(model_id(&bytes));
    files.write(id, &bytes)?;
    Ok(ModelRow {
        number: 0,
        id,
        iteration: 0,
        generation: Some(0),
        step: 0,
        parent: None,
        state: ModelState::Champion,
        created_ms: facts.created_ms,
        size_bytes: bytes.len() as u64,
        sha256: Sha256::digest(&bytes).to_vec(),
        metadata_json: metadata.to_json(),
        verdict: "the random network the run begins with".to_owned(),
        settings_revision: facts.settings_revision,
        file_name: ModelFiles::name(id),
        removed_ms: None,
        probes: Vec::new(),
    })
}

/// Compares what is fixed for a run and refuses any difference.
fn refuse_changes(connection: &Connection, data: &Path, run: &RunRow, facts: &RunFacts) -> Result<(), SetupError> {
    let stored = settings::newest(connection)?.map(|(_, toml)| toml).unwrap_or_default();
    let fixed = |change: &Change| change.key.starts_with("run.") || change.key.starts_with("network.");
    let mut changes: Vec<Change> = changes(&stored, &facts.toml).into_iter().filter(fixed).collect();
    let mut compare = |key: &str, old: String, new: String| {
        if old != new {
            changes.push(Change {
                key: key.to_owned(),
                old,
                new,
            });
        }
    };
    compare(
        "rules fingerprint",
        run.rules_fingerprint.to_string(),
        facts.rules_fingerprint.to_string(),
    );
    compare(
        "planes (feature fingerprint)",
        run.feature_fingerprint.to_string(),
        facts.feature_fingerprint.to_string(),
    );
    compare("network shape", run.shape.clone(), facts.shape.describe());
    if changes.is_empty() {
        return Ok(());
    }
    Err(SetupError::Changed {
        data: data.to_path_buf(),
        run: run.run_id.clone(),
        changes,
    })
}

fn verify_champion(connection: &Connection, files: &ModelFiles) -> Result<(), SetupError> {
    let Some(model) = models::champion(connection)? else {
        return Err(StoreError::corrupt("champion", "there is none").into());
    };
    let problem = match files.verify(model.id, &model.file_name) {
        Ok(true) => return Ok(()),
        Ok(false) => "does not hold the bytes its name says".to_owned(),
        Err(error) => format!("cannot be read ({error})"),
    };
    Err(SetupError::Champion {
        file_name: model.file_name,
        problem,
    })
}

/// A restored backup goes on with other games under commit sequences that were given before: its window gets an epoch that
/// no mirror has seen.
fn begin_anew_after_restore(connection: &mut Connection, now_ms: i64) -> Result<(), SetupError> {
    let mut standing = progress::load(connection)?;
    if standing.window_epoch != progress::EPOCH_OF_A_BACKUP {
        return Ok(());
    }
    standing.window_epoch = u64::try_from(now_ms).unwrap_or(0) + 1;
    let transaction = connection.transaction().map_err(StoreError::from)?;
    progress::save(&transaction, &standing)?;
    let detail = format!("{} games", standing.self_play_games + standing.match_games);
    note(&transaction, "restore-backup", &detail, now_ms)?;
    transaction.commit().map_err(StoreError::from)?;
    tracing::info!(games = %detail, "taken up from a backup");
    Ok(())
}

/// Adds what a start did to the audit.
fn note(connection: &Connection, action: &str, detail: &str, now_ms: i64) -> Result<(), StoreError> {
    let entry = Entry {
        who: trail::COORDINATOR,
        action,
        detail,
        ..Entry::default()
    };
    trail::append(connection, &entry, now_ms)
}

/// Takes the keys that were changed while the run went on as the run has them, unless the file is to be applied. Returns
/// the live keys that the file decides about from now on.
fn merge_live(connection: &Connection, facts: &mut RunFacts, live: LiveKeys) -> Result<Vec<String>, SetupError> {
    let keys = settings::live_keys(connection)?;
    if live == LiveKeys::GiveWay {
        return Ok(keys.into_iter().collect());
    }
    let (_, stored) = newest_settings(connection)?;
    let Merged { config, won, settled } = merge(&facts.config, &stored, &keys)?;
    for Change { key, old, new } in &won {
        tracing::warn!(
            key,
            running = old,
            file = new,
            "changed while the run went on, and not taken from the run file: start with --apply to take the file's"
        );
    }
    facts.toml = config.to_toml();
    facts.config = config;
    Ok(settled)
}

fn newest_settings(connection: &Connection) -> Result<(u32, String), StoreError> {
    settings::newest(connection)?.ok_or_else(|| StoreError::corrupt("settings", "there is no revision"))
}

/// A revision that a start makes.
fn revision(facts: &RunFacts, revision: u32, now_ms: i64) -> SettingsRow {
    SettingsRow {
        revision,
        toml: facts.toml.clone(),
        created_ms: now_ms,
        who: trail::COORDINATOR.to_owned(),
    }
}

/// Makes a changed configuration a new revision, with an audit row that names every key, and forgets live keys that the
/// file decides about.
fn apply_settings(
    connection: &mut Connection,
    facts: &RunFacts,
    settled: &[String],
    now_ms: i64,
) -> Result<u32, SetupError> {
    let (old_revision, stored) = newest_settings(connection)?;
    let changes = changes(&stored, &facts.toml);
    let mut standing = progress::load(connection)?;
    let capacity = facts.config.replay.capacity_positions;
    let transaction = connection.transaction().map_err(StoreError::from)?;
    for key in settled {
        settings::forget_live(&transaction, key)?;
    }
    if changes.is_empty() && standing.window_capacity == capacity {
        transaction.commit().map_err(StoreError::from)?;
        return Ok(old_revision);
    }
    let detail = changes.iter().map(Change::to_string).collect::<Vec<_>>().join("; ");
    settings::insert(&transaction, &revision(facts, old_revision + 1, now_ms))?;
    note(&transaction, "apply-settings", &detail, now_ms)?;
    if standing.window_capacity != capacity {
        standing.window_capacity = capacity;
        standing.window_epoch += 1;
        progress::save(&transaction, &standing)?;
    }
    transaction.commit().map_err(StoreError::from)?;
    tracing::info!(revision = old_revision + 1, changes = %detail, "settings applied");
    Ok(old_revision + 1)
}
