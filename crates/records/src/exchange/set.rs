//! A prepared set: checked games of one game, divided for training and validation, with a manifest.
//!
//! Its name says what it is: `HD8,AUG,TS0.95,renju` is depth of the history of stones (2 is none), whether symmetries are to be
//! used, share for training, rules. In its folder lie two files of [`delimited`] records and the manifest, which has a hash of
//! either: what reads a set sees the games that were checked, or an error. Nothing here opens a file.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use tengen_games::{AnyGame, params};

use super::delimited;
use crate::ids::RecordId;
use crate::record::Record;
use crate::rejection::Rejection;
use crate::wire::decode;

/// Version of the manifest's meaning.
const MANIFEST_VERSION: u32 = 1;
/// What a game without a history of stones has: one plane a colour.
const HISTORY_NONE: &str = "2";

/// The games to train on.
pub const TRAIN: &str = "train.binpb";
/// The games to validate with.
pub const VALIDATION: &str = "validation.binpb";
/// What the set says of itself.
pub const MANIFEST: &str = "manifest.json";

/// How a set is divided and used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Division {
    /// Share of the games that train, in `(0, 1]`.
    pub train_split: f64,
    /// Whether training is to see positions through symmetries.
    pub augmentation: Augmentation,
}

/// Whether positions are seen through the symmetries of the game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Augmentation {
    /// They are.
    Symmetries,
    /// They are not.
    None,
}

/// What the set says of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    manifest_version: u32,
    /// The set's name.
    pub name: String,
    /// Canonical id of the game.
    pub game: String,
    /// The rules it was checked by, hexadecimal.
    pub rules_fingerprint: String,
    /// The planes of this id, hexadecimal; a set holds no planes, so other planes of the same rules can learn from it too.
    pub feature_fingerprint: String,
    /// Depth of the history of stones, `2` for none.
    pub history: String,
    /// Whether training is to see positions through symmetries.
    pub augmentation: bool,
    /// Share of the games that train.
    pub train_split: f64,
    /// The rules its games were played by: the game without what changes only its planes.
    pub rulesets: Vec<String>,
    /// The games to train on.
    pub train: Part,
    /// The games to validate with.
    pub validation: Part,
    /// Games that came more than once, counted once above.
    pub duplicates: u64,
    /// The files of its import; what else they hold is in other sets.
    pub sources: Vec<Source>,
}

/// One part of a set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// Its file in the set's folder.
    pub file: String,
    /// Games in it.
    pub games: u64,
    /// Plies of them that were played, openings left out.
    pub plies: u64,
    /// BLAKE3 of the file, hexadecimal.
    pub blake3: String,
}

/// A file that was imported.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Its path as given.
    pub file: String,
    /// Games of it that are good, by whatever rules.
    pub games: u64,
    /// Games of it that were refused.
    pub refused: u64,
}

/// A set cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetError {
    /// The manifest is no manifest.
    #[error("{MANIFEST}: {0}")]
    Manifest(String),
    /// The manifest is of another build.
    #[error("{MANIFEST} has version {0}, this build reads {MANIFEST_VERSION}: import the games again")]
    Version(u32),
    /// A file is not the one that was written.
    #[error(
        "{file} is not the file that {MANIFEST} describes (BLAKE3 {actual}, there {stated}): import the games again"
    )]
    Changed {
        /// The file.
        file: String,
        /// What it hashes to.
        actual: String,
        /// What the manifest says.
        stated: String,
    },
    /// A record of a file is none.
    #[error("{file}: {source}")]
    Record {
        /// The file.
        file: String,
        /// What is wrong.
        #[source]
        source: Rejection,
    },
    /// Something that is no record stands in a file.
    #[error("{file}: {source}")]
    Fault {
        /// The file.
        file: String,
        /// Where.
        #[source]
        source: delimited::Fault,
    },
}

impl Manifest {
    /// Reads a manifest.
    ///
    /// # Errors
    /// When it is none, or one of another version.
    pub fn parse(json: &str) -> Result<Manifest, SetError> {
        #[derive(Deserialize)]
        struct Version {
            manifest_version: u32,
        }
        let bad = |error: serde_json::Error| SetError::Manifest(error.to_string());
        // First, since another version may have other fields.
        let Version { manifest_version } = serde_json::from_str(json).map_err(bad)?;
        if manifest_version != MANIFEST_VERSION {
            return Err(SetError::Version(manifest_version));
        }
        serde_json::from_str(json).map_err(bad)
    }
}

impl Part {
    /// The games of this part in `bytes`, which its file holds.
    ///
    /// # Errors
    /// When the file is not the one that was written.
    pub fn records(&self, bytes: &[u8]) -> Result<Vec<Record>, SetError> {
        let file = || self.file.clone();
        let actual = blake3::hash(bytes).to_hex().to_string();
        if actual != self.blake3 {
            let stated = self.blake3.clone();
            return Err(SetError::Changed {
                file: file(),
                actual,
                stated,
            });
        }
        let parts = delimited::split(bytes).map(|part| {
            let (_, record) = part.map_err(|source| SetError::Fault { file: file(), source })?;
            decode(record).map_err(|source| SetError::Record { file: file(), source })
        });
        parts.collect()
    }
}

/// A set on its way.
#[derive(Debug)]
pub struct Set {
    game: AnyGame,
    division: Division,
    seen: BTreeSet<RecordId>,
    train: Gathered,
    validation: Gathered,
    duplicates: u64,
}

#[derive(Debug, Default)]
struct Gathered {
    bytes: Vec<u8>,
    games: u64,
    plies: u64,
}

impl Gathered {
    fn add(&mut self, record: &Record) {
        delimited::append(record, &mut self.bytes);
        self.games += 1;
        self.plies += record.plies.len() as u64;
    }

    fn part(&self, file: &str) -> Part {
        Part {
            file: file.to_owned(),
            games: self.games,
            plies: self.plies,
            blake3: blake3::hash(&self.bytes).to_hex().to_string(),
        }
    }
}

impl Set {
    /// An empty set of games of `game`.
    pub fn new(game: AnyGame, division: Division) -> Set {
        Set {
            game,
            division,
            seen: BTreeSet::new(),
            train: Gathered::default(),
            validation: Gathered::default(),
            duplicates: 0,
        }
    }

    /// Adds a checked record of the set's game; one that is there already is counted and left out.
    pub fn add(&mut self, record: &Record) {
        debug_assert_eq!(record.game_id, self.game.spec().id, "a set is of one game");
        if !self.seen.insert(record.id) {
            self.duplicates += 1;
        } else if share_of(record.id) < self.division.train_split {
            self.train.add(record);
        } else {
            self.validation.add(record);
        }
    }

    /// Games in it.
    pub fn games(&self) -> u64 {
        self.train.games + self.validation.games
    }

    /// What the set says of itself.
    pub fn manifest(&self, sources: &[Source]) -> Manifest {
        let id = &self.game.spec().id;
        Manifest {
            manifest_version: MANIFEST_VERSION,
            name: self.name(),
            game: id.clone(),
            rules_fingerprint: self.game.rules_fingerprint().to_string(),
            feature_fingerprint: self.game.feature_fingerprint().to_string(),
            history: history(id),
            augmentation: self.division.augmentation == Augmentation::Symmetries,
            train_split: self.division.train_split,
            rulesets: vec![params::rules_id(id)],
            train: self.train.part(TRAIN),
            validation: self.validation.part(VALIDATION),
            duplicates: self.duplicates,
            sources: sources.to_vec(),
        }
    }

    /// What belongs into the files: their names with their bytes.
    pub fn files(&self) -> [(&'static str, &[u8]); 2] {
        [(TRAIN, &self.train.bytes), (VALIDATION, &self.validation.bytes)]
    }

    fn name(&self) -> String {
        let id = &self.game.spec().id;
        let augmentation = match self.division.augmentation {
            Augmentation::Symmetries => "AUG,",
            Augmentation::None => "",
        };
        let (history, share, rules) = (history(id), self.division.train_split, rules(id));
        format!("HD{history},{augmentation}TS{share},{rules}")
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

/// The game in a name: its id without the depth that the name has already, with dots, since what separates parameters is awkward
/// in names of folders. A depth that is given as that of none stays: games that differ in nothing else have two names.
fn rules(id: &str) -> String {
    let Ok((name, mut given)) = params::split(id) else {
        return id.to_owned();
    };
    given.retain(|(key, depth)| key != "history" || depth == HISTORY_NONE);
    let pairs = given.iter().map(|(key, value)| format!("{key}={value}"));
    let parts: Vec<String> = std::iter::once(name.to_owned()).chain(pairs).collect();
    parts.join(".")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::{Format, Reader};
    use crate::ids::LeaseId;

    fn division(augmentation: Augmentation) -> Division {
        Division {
            train_split: 0.95,
            augmentation,
        }
    }

    #[test]
    fn names_say_history_symmetries_share_and_rules() {
        let name = |game: &str, augmentation| Set::new(AnyGame::parse(game).unwrap(), division(augmentation)).name();
        assert_eq!(
            name("renju?history=8", Augmentation::Symmetries),
            "HD8,AUG,TS0.95,renju"
        );
        assert_eq!(
            name("caro5?size=9&opening=none", Augmentation::None),
            "HD2,TS0.95,caro5.size=9.opening=none"
        );
        // Whose names would otherwise be one.
        for (plain, other) in [("renju", "renju?history=2"), ("black-hole", "black-hole?history=2")] {
            assert_eq!(
                name(plain, Augmentation::None),
                format!("HD2,TS0.95,{plain}"),
                "no history"
            );
            assert_eq!(
                name(other, Augmentation::None),
                format!("HD2,TS0.95,{plain}.history=2"),
                "a history of two"
            );
        }
    }

    #[test]
    fn rulesets_leave_out_what_changes_only_planes() {
        let game = AnyGame::parse("renju?size=9&history=8&threat_planes=false").unwrap();
        let manifest = Set::new(game, division(Augmentation::None)).manifest(&[]);
        assert_eq!(manifest.rulesets, ["renju?size=9"]);
        assert_eq!((&manifest.history[..], manifest.train.games), ("8", 0));
        assert_eq!(manifest.name, "HD8,TS0.95,renju.size=9.threat_planes=false");
    }

    #[test]
    fn games_divide_by_their_ids_about_as_asked() {
        let train = (0..10_000).filter(|&index| {
            let lease = LeaseId(7);
            share_of(RecordId { lease, index }) < 0.9
        });
        assert!((8_800..9_200).contains(&train.count()));
    }

    #[test]
    fn what_is_read_is_what_was_written_or_an_error() {
        let lines: String = (1..60).map(|best| format!("0,224;{best};{}\n", best % 3)).collect();
        let read = Reader::new(None).read(Format::Datapoints, lines.as_bytes());
        let records: Vec<Record> = read.into_iter().map(|game| game.record.unwrap()).collect();
        let game = AnyGame::parse(&records[0].game_id).unwrap();
        let mut set = Set::new(game, division(Augmentation::None));
        for record in records.iter().chain(&records[..3]) {
            set.add(record);
        }
        let manifest = set.manifest(&[]);
        assert_eq!((set.games(), manifest.duplicates), (59, 3));
        let json = serde_json::to_string(&manifest).unwrap();
        assert_eq!(Manifest::parse(&json).unwrap(), manifest);

        let [(_, train), (_, validation)] = set.files();
        let mut kept = manifest.train.records(train).unwrap();
        kept.extend(manifest.validation.records(validation).unwrap());
        kept.sort_by_key(|record| records.iter().position(|other| other.id == record.id));
        assert_eq!(kept, records);

        let mut changed = train.to_vec();
        changed[9] ^= 1;
        let error = manifest.train.records(&changed).unwrap_err();
        assert!(matches!(error, SetError::Changed { .. }), "{error}");
        // The files are as they were written, and still hold what is no record here.
        for bytes in [&[2, 7, 7][..], &[200, 1, 0]] {
            let part = Part {
                blake3: blake3::hash(bytes).to_hex().to_string(),
                ..manifest.train.clone()
            };
            let error = part.records(bytes).unwrap_err();
            assert!(error.to_string().starts_with(TRAIN), "{error}");
            assert!(
                matches!(error, SetError::Record { .. } | SetError::Fault { .. }),
                "{error}"
            );
        }
        let newer = json.replace("\"manifest_version\":1", "\"manifest_version\":2");
        assert_eq!(Manifest::parse(&newer), Err(SetError::Version(2)));
        assert!(matches!(Manifest::parse("{"), Err(SetError::Manifest(_))));
    }
}
