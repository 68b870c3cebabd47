//! A prepared set: a folder of checked games of one game, divided for training and validation, with a manifest.
//!
//! Its name says what it is, in the manner of the Gomoku seed: `HD8,AUG,TS0.95,renju`: depth of the history of stones (2 is
//! none), whether symmetries are to be used, share for training, rules.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::Serialize;
use tengen_games::{AnyGame, params};
use tengen_records::exchange::delimited;
use tengen_records::{Record, RecordId};
use tengen_service::files::write_atomic;

/// Version of the manifest's meaning.
const MANIFEST_VERSION: u32 = 1;
/// What a game without a history of stones has: one plane a colour.
const HISTORY_NONE: &str = "2";

/// How a set is divided and used.
#[derive(Clone, Copy, Debug)]
pub(super) struct Division {
    /// Share of the games that train, in `(0, 1]`.
    pub(super) train_split: f64,
    /// Whether training is to see positions through symmetries.
    pub(super) augmentation: Augmentation,
}

/// Whether positions are seen through the symmetries of the game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Augmentation {
    /// They are.
    Symmetries,
    /// They are not.
    None,
}

/// A set on its way.
pub(super) struct Set {
    game: AnyGame,
    division: Division,
    seen: BTreeSet<RecordId>,
    train: Part,
    validation: Part,
    duplicates: u64,
}

#[derive(Default)]
struct Part {
    bytes: Vec<u8>,
    games: u64,
    plies: u64,
}

/// What the set says of itself.
#[derive(Debug, Serialize)]
struct Manifest<'a> {
    manifest_version: u32,
    name: &'a str,
    game: &'a str,
    rules_fingerprint: String,
    feature_fingerprint: String,
    history: &'a str,
    augmentation: bool,
    train_split: f64,
    rulesets: Vec<&'a str>,
    train: Count<'a>,
    validation: Count<'a>,
    duplicates: u64,
    sources: &'a [Source],
}

/// One part of the set.
#[derive(Debug, Serialize)]
struct Count<'a> {
    file: &'a str,
    games: u64,
    plies: u64,
    blake3: String,
}

/// A file that games came from.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Source {
    /// Its path as given.
    pub(super) file: String,
    /// Games of it that are good.
    pub(super) games: u64,
    /// Games of it that were refused.
    pub(super) refused: u64,
}

const TRAIN: &str = "train.binpb";
const VALIDATION: &str = "validation.binpb";
const MANIFEST: &str = "manifest.json";

impl Set {
    pub(super) fn new(game: AnyGame, division: Division) -> Set {
        Set {
            game,
            division,
            seen: BTreeSet::new(),
            train: Part::default(),
            validation: Part::default(),
            duplicates: 0,
        }
    }

    /// Adds a checked record of the set's game; one that is there already is counted and left out.
    pub(super) fn add(&mut self, record: &Record) {
        if !self.seen.insert(record.id) {
            self.duplicates += 1;
            return;
        }
        let part = if share_of(record.id) < self.division.train_split {
            &mut self.train
        } else {
            &mut self.validation
        };
        delimited::append(record, &mut part.bytes);
        part.games += 1;
        part.plies += record.plies.len() as u64;
    }

    /// Games in it.
    pub(super) fn games(&self) -> u64 {
        self.train.games + self.validation.games
    }

    /// Writes the set into a folder of `parent` and says which. The manifest comes last: without it there is no set.
    pub(super) fn write(&self, parent: &Path, sources: &[Source]) -> anyhow::Result<PathBuf> {
        let name = self.name();
        let folder = parent.join(&name);
        write_atomic(&folder.join(TRAIN), &self.train.bytes)?;
        write_atomic(&folder.join(VALIDATION), &self.validation.bytes)?;
        let id = &self.game.spec().id;
        let history = history(id);
        let count = |file, part: &Part| Count {
            file,
            games: part.games,
            plies: part.plies,
            blake3: blake3::hash(&part.bytes).to_hex().to_string(),
        };
        let manifest = Manifest {
            manifest_version: MANIFEST_VERSION,
            name: &name,
            game: id,
            rules_fingerprint: self.game.rules_fingerprint().to_string(),
            feature_fingerprint: self.game.feature_fingerprint().to_string(),
            history: &history,
            augmentation: self.division.augmentation == Augmentation::Symmetries,
            train_split: self.division.train_split,
            rulesets: vec![id],
            train: count(TRAIN, &self.train),
            validation: count(VALIDATION, &self.validation),
            duplicates: self.duplicates,
            sources,
        };
        let text = serde_json::to_string_pretty(&manifest)? + "\n";
        write_atomic(&folder.join(MANIFEST), text.as_bytes())?;
        Ok(folder)
    }

    fn name(&self) -> String {
        let id = &self.game.spec().id;
        let augmentation = match self.division.augmentation {
            Augmentation::Symmetries => "AUG,",
            Augmentation::None => "",
        };
        // What separates parameters is awkward in names of folders.
        let rules = without_history(id).replace(['?', '&'], ".");
        format!(
            "HD{},{augmentation}TS{},{rules}",
            history(id),
            self.division.train_split
        )
    }
}

/// Where a game lies between 0 and 1: by its id alone, so that the same games divide alike wherever they come from.
fn share_of(id: RecordId) -> f64 {
    let hash = blake3::hash(&id.to_bytes());
    let mut first = [0; 8];
    first.copy_from_slice(&hash.as_bytes()[..8]);
    // 53 bits, as many as the number has.
    (u64::from_le_bytes(first) >> 11) as f64 / (1_u64 << 53) as f64
}

fn history(id: &str) -> String {
    let given = params::split(id).map(|(_, given)| given).unwrap_or_default();
    let history = given.into_iter().find(|(key, _)| key == "history");
    history.map_or_else(|| HISTORY_NONE.to_owned(), |(_, depth)| depth)
}

fn without_history(id: &str) -> String {
    let Ok((name, mut given)) = params::split(id) else {
        return id.to_owned();
    };
    given.retain(|(key, _)| key != "history");
    let pairs = given.iter().map(|(key, value)| format!("?{key}={value}"));
    std::iter::once(name.to_owned()).chain(pairs).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_seed() {
        let name = |game: &str, augmentation| {
            let division = Division {
                train_split: 0.95,
                augmentation,
            };
            Set::new(AnyGame::parse(game).unwrap(), division).name()
        };
        assert_eq!(
            name("renju?history=8", Augmentation::Symmetries),
            "HD8,AUG,TS0.95,renju"
        );
        assert_eq!(
            name("caro5?size=9&opening=none", Augmentation::None),
            "HD2,TS0.95,caro5.size=9.opening=none"
        );
    }

    #[test]
    fn games_divide_by_their_ids_about_as_asked() {
        let train = (0..10_000).filter(|&index| {
            let lease = tengen_records::LeaseId(7);
            share_of(RecordId { lease, index }) < 0.9
        });
        assert!((8_800..9_200).contains(&train.count()));
    }
}
