//! The names of things in a record: run, lease, game and model.
//!
//! Every id has one text form and one byte form; both are parsed here and nowhere else.

use std::fmt;
use std::str::FromStr;

/// Longest run id, characters.
pub const RUN_ID_LEN_MAX: usize = 100;

/// A text or a byte string that is not an id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseIdError {
    /// Not the hexadecimal digits of a lease id.
    #[error("{0:?} is not a lease id (32 hexadecimal digits)")]
    Lease(String),
    /// Not the hexadecimal digits of a model id.
    #[error("{0:?} is not a model id (64 hexadecimal digits)")]
    Model(String),
    /// Not a record id.
    #[error("{0:?} is not a record id (lease id, a dash, the index)")]
    Record(String),
    /// Not a run id.
    #[error("{0:?} is not a run id (1 to {RUN_ID_LEN_MAX} of the characters A-Z a-z 0-9 . _ -)")]
    Run(String),
    /// A byte string of the wrong length.
    #[error("{what} has {actual} bytes instead of {expected}")]
    Length {
        /// What the bytes should have been.
        what: &'static str,
        /// Bytes there are.
        actual: usize,
        /// Bytes there should be.
        expected: usize,
    },
}

fn exact<const N: usize>(what: &'static str, bytes: &[u8]) -> Result<[u8; N], ParseIdError> {
    bytes.try_into().map_err(|_| ParseIdError::Length {
        what,
        actual: bytes.len(),
        expected: N,
    })
}

/// Exactly `N` bytes from `2 * N` hexadecimal digits of either case.
fn from_digits<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    hex::decode_to_slice(text, &mut bytes).ok()?;
    Some(bytes)
}

/// A work order's name: 128 random bits. Text: 32 hexadecimal digits; bytes: 16, big endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LeaseId(pub u128);

impl LeaseId {
    /// The id in these 16 bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<LeaseId, ParseIdError> {
        Ok(LeaseId(u128::from_be_bytes(exact("lease id", bytes)?)))
    }

    /// The wire form.
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }
}

impl fmt::Display for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl FromStr for LeaseId {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<LeaseId, ParseIdError> {
        let bytes = from_digits(text).ok_or_else(|| ParseIdError::Lease(text.to_owned()))?;
        Ok(LeaseId(u128::from_be_bytes(bytes)))
    }
}

/// A game's name: the lease it was played under and its index within that lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordId {
    /// The lease.
    pub lease: LeaseId,
    /// Index within the lease, from 0.
    pub index: u32,
}

impl RecordId {
    /// The id in these 20 bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<RecordId, ParseIdError> {
        let bytes: [u8; 20] = exact("record id", bytes)?;
        let (lease, index) = bytes.split_at(16);
        Ok(RecordId {
            lease: LeaseId::from_bytes(lease)?,
            index: u32::from_be_bytes(exact("game index", index)?),
        })
    }

    /// Lease and index, both big endian: ordered as the ids are.
    pub fn to_bytes(self) -> [u8; 20] {
        let mut bytes = [0; 20];
        bytes[..16].copy_from_slice(&self.lease.to_bytes());
        bytes[16..].copy_from_slice(&self.index.to_be_bytes());
        bytes
    }
}

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.lease, self.index)
    }
}

impl FromStr for RecordId {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<RecordId, ParseIdError> {
        let parts = text
            .split_once('-')
            .and_then(|(lease, index)| Some((lease.parse().ok()?, index.parse().ok()?)));
        let (lease, index) = parts.ok_or_else(|| ParseIdError::Record(text.to_owned()))?;
        Ok(RecordId { lease, index })
    }
}

/// A network's name: the hash of its file. Text: 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModelId(pub [u8; 32]);

impl ModelId {
    /// The id in these 32 bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<ModelId, ParseIdError> {
        Ok(ModelId(exact("model id", bytes)?))
    }

    /// The wire form.
    pub const fn to_bytes(self) -> [u8; 32] {
        self.0
    }

    /// The first 12 digits, for people.
    pub fn short(self) -> String {
        hex::encode(&self.0[..6])
    }
}

impl fmt::Display for ModelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for ModelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ModelId({self})")
    }
}

impl FromStr for ModelId {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<ModelId, ParseIdError> {
        from_digits(text)
            .map(ModelId)
            .ok_or_else(|| ParseIdError::Model(text.to_owned()))
    }
}

/// A run's name: 1 to [`RUN_ID_LEN_MAX`] of the characters `A-Z a-z 0-9 . _ -`, so that it is safe in file names, keys
/// and addresses.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunId(String);

impl RunId {
    /// The run with this name.
    pub fn new(text: impl Into<String>) -> Result<RunId, ParseIdError> {
        let text = text.into();
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let dots_only = text.chars().all(|c| c == '.');
        if text.len() <= RUN_ID_LEN_MAX && text.chars().all(allowed) && !dots_only {
            Ok(RunId(text))
        } else {
            Err(ParseIdError::Run(text.chars().take(RUN_ID_LEN_MAX).collect()))
        }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for RunId {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<RunId, ParseIdError> {
        RunId::new(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_reads_back_its_own_text_and_bytes() {
        let lease = LeaseId(0x0123_4567_89ab_cdef);
        assert_eq!(lease.to_string(), "00000000000000000123456789abcdef");
        assert_eq!(lease.to_string().parse(), Ok(lease));
        assert_eq!(LeaseId::from_bytes(&lease.to_bytes()), Ok(lease));
        let record = RecordId { lease, index: 7 };
        assert_eq!(record.to_string(), "00000000000000000123456789abcdef-7");
        assert_eq!(record.to_string().parse(), Ok(record));
        assert_eq!(RecordId::from_bytes(&record.to_bytes()), Ok(record));
        let model = ModelId([0xa5; 32]);
        assert_eq!(model.to_string().parse(), Ok(model));
        assert_eq!(ModelId::from_bytes(&model.to_bytes()), Ok(model));
        assert_eq!(model.short(), "a5a5a5a5a5a5");
        let run = RunId::new("caro5-small_2.1").expect("a legal name");
        assert_eq!(run.to_string().parse(), Ok(run));
    }

    #[test]
    fn what_is_not_an_id_is_refused_with_the_offending_value() {
        assert_eq!("12".parse::<LeaseId>(), Err(ParseIdError::Lease("12".into())));
        assert_eq!("zz".parse::<ModelId>(), Err(ParseIdError::Model("zz".into())));
        for text in [
            "",
            "-",
            "12-1",
            "00000000000000000123456789abcdef",
            "00000000000000000123456789abcdef--1",
        ] {
            assert_eq!(text.parse::<RecordId>(), Err(ParseIdError::Record(text.into())));
        }
        for text in ["", "..", "a/b", "a b", "größe", &"x".repeat(101)] {
            assert!(RunId::new(text).is_err(), "{text:?}");
        }
        let short = LeaseId::from_bytes(&[1, 2]).expect_err("two bytes are no lease");
        assert_eq!(short.to_string(), "lease id has 2 bytes instead of 16");
    }
}
