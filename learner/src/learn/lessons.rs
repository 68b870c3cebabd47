//! Prepared sets, read and held as a window for training and a list of positions for validation.

use std::collections::HashSet;
use std::fmt;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use anyhow::{Context, Result, bail, ensure};
use tengen_games::AnyGame;
use tengen_records::exchange::set::{MANIFEST, Manifest, Part};
use tengen_records::{Record, RecordId};
use tengen_replay::{Augmentation, Draw, Split, StoredGame, Window, WindowGame};

use crate::batches::SharedWindow;

/// Everything that can be learned from.
#[derive(Debug)]
pub(super) struct Lessons {
    /// Names of the sets.
    pub(super) sets: Vec<String>,
    /// The games to train on.
    pub(super) training: SharedWindow,
    /// Positions of them.
    pub(super) positions: u64,
    /// Every position to validate with.
    pub(super) validation: Vec<Draw>,
    /// Which symmetries positions are trained through.
    pub(super) augmentation: Augmentation,
    /// Hash over the games, hexadecimal.
    pub(super) id: String,
}

impl fmt::Display for Lessons {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let symmetries = match self.augmentation {
            Augmentation::Symmetries => "through the symmetries of the game",
            Augmentation::None => "as they were played",
        };
        write!(
            f,
            "{}: {} positions to learn from, {symmetries}, {} to validate with",
            self.sets.join(" and "),
            self.positions,
            self.validation.len()
        )
    }
}

/// Reads the sets in these folders, all of them of games by the rules of `game`. A game of several sets counts once.
pub(super) fn read(folders: &[PathBuf], game: &AnyGame) -> Result<Lessons> {
    let mut seen = HashSet::new();
    let mut hasher = blake3::Hasher::new();
    let (mut sets, mut train, mut validation) = (Vec::new(), Vec::new(), Vec::new());
    let mut augmentation = None;
    for folder in folders {
        let manifest = manifest(folder)?;
        check_rules(&manifest, folder, game)?;
        let asked = if manifest.augmentation {
            Augmentation::Symmetries
        } else {
            Augmentation::None
        };
        ensure!(
            *augmentation.get_or_insert(asked) == asked,
            "{} wants symmetries and another set does not, or the other way round: import them alike",
            folder.display()
        );
        for (part, into) in [(&manifest.train, &mut train), (&manifest.validation, &mut validation)] {
            hasher.update(part.blake3.as_bytes());
            let records = records(folder, part)?;
            into.extend(records.into_iter().filter(|record: &Record| seen.insert(record.id)));
        }
        sets.push(manifest.name);
    }
    let augmentation = augmentation.context("no set was named")?;
    hasher.update(format!("{augmentation:?}").as_bytes());
    let (window, positions) = window(train)?;
    Ok(Lessons {
        sets,
        training: Arc::new(Mutex::new(window)),
        positions,
        validation: validation.iter().flat_map(draws).collect(),
        augmentation,
        id: hasher.finalize().to_hex().to_string(),
    })
}

fn manifest(folder: &Path) -> Result<Manifest> {
    let path = folder.join(MANIFEST);
    let text = std::fs::read_to_string(&path).with_context(|| {
        format!(
            "{} is no prepared set: its {MANIFEST} cannot be read (`tengen games import FILES --out DIR` writes sets into \
             folders of DIR)",
            folder.display()
        )
    })?;
    Manifest::parse(&text).with_context(|| folder.display().to_string())
}

/// Other planes of the same rules may learn from a set: it holds games, not planes.
fn check_rules(manifest: &Manifest, folder: &Path, game: &AnyGame) -> Result<()> {
    let ours = game.rules_fingerprint().to_string();
    if manifest.rules_fingerprint != ours {
        bail!(
            "{} holds games of {} (rules {}), the run plays {} (rules {ours})",
            folder.display(),
            manifest.game,
            manifest.rules_fingerprint,
            game.spec().id,
        );
    }
    Ok(())
}

fn records(folder: &Path, part: &Part) -> Result<Vec<Record>> {
    // The name in the manifest is not trusted to stay in the folder.
    let name = Path::new(&part.file)
        .file_name()
        .context("the manifest names no file")?;
    let path = folder.join(name);
    let bytes = std::fs::read(&path).with_context(|| format!("failed to read {}", path.display()))?;
    part.records(&bytes).with_context(|| folder.display().to_string())
}

/// A window that holds all of these games, and their positions.
fn window(records: Vec<Record>) -> Result<(Window, u64)> {
    let games: Vec<(RecordId, u64)> = records
        .iter()
        .map(|record| (record.id, StoredGame::new(record).positions().len() as u64))
        .collect();
    let positions = games.iter().map(|(_, positions)| positions).sum();
    let Some(capacity) = NonZeroU64::new(positions) else {
        bail!("the sets have no position to learn from: games of people and searches of self-play have some");
    };
    let mut window = Window::new(capacity, Split::TRAINING_ONLY);
    let mut positions_total = 0;
    for ((sequence, record), (_, positions)) in (1..).zip(records).zip(games) {
        positions_total += positions;
        window.push(&WindowGame {
            sequence,
            positions_total,
            record,
        })?;
    }
    Ok((window, positions))
}

fn draws(record: &Record) -> Vec<Draw> {
    let game = Arc::new(StoredGame::new(record));
    (0..game.positions().len())
        .map(|position| Draw {
            game: Arc::clone(&game),
            position,
        })
        .collect()
}
