//! One proof's row: begun as not proved, so that a proof that dies half-way leaves its failure behind, and proved at its
//! end.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

use serde::{Deserialize, Serialize};

use crate::machine;
use crate::wanted::WANTED;

/// The variable that names the folder of the rows.
const FOLDER: &str = "FAULTS_ROWS";

/// Whether a proof came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It has begun, and failed unless it is still running.
    NotProved,
    /// Everything that it asserts held.
    Proved,
}

/// What a proof says of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Its name, one of [`WANTED`].
    pub proof: String,
    /// How it ended.
    pub verdict: Verdict,
    /// What was done and what was found, in whole numbers.
    pub counts: BTreeMap<String, u64>,
    /// What was measured; names end with the unit.
    pub measured: BTreeMap<String, f64>,
    /// What numbers do not say.
    pub notes: BTreeMap<String, String>,
    /// How long it took.
    pub seconds: f64,
    /// Where it ran.
    pub machine: String,
    /// When it ended, by RFC 3339 in UTC.
    pub date: String,
}

/// A proof that runs.
#[derive(Debug)]
pub struct Proof {
    row: Row,
    begun: Instant,
    folder: Option<PathBuf>,
}

impl Proof {
    /// Begins the proof of this name.
    ///
    /// # Panics
    /// When [`WANTED`] does not know the name, or its row cannot be written.
    pub fn begin(name: &str) -> Proof {
        let folder = std::env::var_os(FOLDER).map(PathBuf::from);
        Proof::begin_in(name, folder)
    }

    fn begin_in(name: &str, folder: Option<PathBuf>) -> Proof {
        assert!(
            WANTED.iter().any(|wanted| wanted.proof == name),
            "{name} is a new proof: give it a row in WANTED (crates/faults)"
        );
        let proof = Proof {
            row: Row {
                proof: name.to_owned(),
                verdict: Verdict::NotProved,
                counts: BTreeMap::new(),
                measured: BTreeMap::new(),
                notes: BTreeMap::new(),
                seconds: 0.0,
                machine: machine::in_words(),
                date: now(),
            },
            begun: Instant::now(),
            folder,
        };
        proof.write();
        proof
    }

    /// Notes a number of things done or found.
    #[must_use]
    pub fn count(mut self, what: &str, number: usize) -> Proof {
        self.row.counts.insert(what.to_owned(), number as u64);
        self
    }

    /// Notes a measurement; `what` ends with its unit.
    #[must_use]
    pub fn measure(mut self, what: &str, value: f64) -> Proof {
        self.row.measured.insert(what.to_owned(), value);
        self
    }

    /// Notes what no number says.
    #[must_use]
    pub fn note(mut self, what: &str, text: &str) -> Proof {
        self.row.notes.insert(what.to_owned(), text.to_owned());
        self
    }

    /// The proof has come to its end: everything that it asserts held.
    ///
    /// # Panics
    /// When its row cannot be written.
    pub fn proved(mut self) {
        self.row.verdict = Verdict::Proved;
        self.row.seconds = self.begun.elapsed().as_secs_f64();
        self.row.date = now();
        self.write();
        println!("{}", self.row);
    }

    fn write(&self) {
        let Some(folder) = &self.folder else { return };
        std::fs::create_dir_all(folder).expect("the folder of the rows can be made");
        let text = serde_json::to_vec_pretty(&self.row).expect("a row is plain data");
        #[allow(
            clippy::disallowed_methods,
            reason = "a row that a crash cuts short is no row, and is reported"
        )]
        std::fs::write(path_of(folder, &self.row.proof), text).expect("a row can be written");
    }
}

/// Where a proof's row lies.
pub(crate) fn path_of(folder: &Path, proof: &str) -> PathBuf {
    folder.join(format!("{proof}.json"))
}

fn now() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = match self.verdict {
            Verdict::NotProved => "NOT PROVED",
            Verdict::Proved => "proved",
        };
        write!(f, "{verdict}: {}", self.proof)?;
        self.counts
            .iter()
            .try_for_each(|(what, number)| write!(f, ", {what} {number}"))?;
        self.measured
            .iter()
            .try_for_each(|(what, value)| write!(f, ", {what} {value:.3}"))?;
        self.notes
            .iter()
            .try_for_each(|(what, text)| write!(f, ", {what}: {text}"))?;
        write!(f, " ({:.1} s)", self.seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(folder: &Path) -> Row {
        let text = std::fs::read(path_of(folder, WANTED[0].proof)).unwrap();
        serde_json::from_slice(&text).unwrap()
    }

    #[test]
    fn a_proof_is_not_proved_until_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let proof = Proof::begin_in(WANTED[0].proof, Some(folder.path().to_owned()));
        assert_eq!(read(folder.path()).verdict, Verdict::NotProved);
        let proof = proof.count("kills", 3).measure("wait_ms", 1.5).note("by", "a signal");
        proof.proved();
        let row = read(folder.path());
        assert_eq!((row.verdict, row.counts["kills"]), (Verdict::Proved, 3));
        assert!(
            row.to_string().contains("kills 3, wait_ms 1.500, by: a signal"),
            "{row}"
        );
    }

    #[test]
    #[should_panic(expected = "give it a row in WANTED")]
    fn a_proof_that_nobody_waits_for_is_refused() {
        let _proof = Proof::begin_in("something-else", None);
    }
}
