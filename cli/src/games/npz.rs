//! Positions as `.npz`, for numpy and whoever trains elsewhere: `planes` u8 `[N,C,H,W]`, `policy` f32 `[N,A]`, `value` f32
//! `[N]`, `weight` f32 `[N]`, and the planes' `scale` f32 `[C]`.
//!
//! The arrays grow in temporary files, so that an export may be larger than memory; the archive is not compressed, as
//! `numpy.savez` writes it.

use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};
use std::path::Path;

use anyhow::{Context, ensure};
use tengen_games::{AnyGame, Game, GameVisitor};
use tengen_records::exchange::positions;
use tengen_records::{Record, Rejection};
use tengen_service::files::write_atomic_with;
use zip::write::FileOptions;
use zip::{CompressionMethod, ZipWriter};

/// Positions of one game's records, gathered.
pub(super) struct Positions {
    game: AnyGame,
    planes: BufWriter<File>,
    policy: BufWriter<File>,
    value: BufWriter<File>,
    weight: BufWriter<File>,
    len: u64,
}

impl Positions {
    pub(super) fn new(game: AnyGame) -> anyhow::Result<Positions> {
        let file = || {
            tempfile::tempfile()
                .map(BufWriter::new)
                .context("failed to make a temporary file")
        };
        Ok(Positions {
            game,
            planes: file()?,
            policy: file()?,
            value: file()?,
            weight: file()?,
            len: 0,
        })
    }

    /// Positions so far.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Adds the positions of a record, which must be of the same game.
    pub(super) fn add(&mut self, record: &Record) -> anyhow::Result<()> {
        let id = &self.game.spec().id;
        ensure!(
            record.game_id == *id,
            "game {} is of {}, and the positions of one file must be of one game ({id})",
            record.id,
            record.game_id
        );
        self.game.clone().visit(Add(self, record))
    }

    /// Writes the archive.
    pub(super) fn finish(self, path: &Path) -> anyhow::Result<()> {
        let spec = self.game.spec();
        let len = self.len;
        let (channels, actions) = (spec.planes.len() as u64, spec.actions.len() as u64);
        let (rows, cols) = (spec.rows as u64, spec.cols as u64);
        let scales: Vec<u8> = spec.planes.iter().flat_map(|plane| plane.scale.to_le_bytes()).collect();
        let mut arrays = [
            ("planes", "|u1", vec![len, channels, rows, cols], self.planes),
            ("policy", "<f4", vec![len, actions], self.policy),
            ("value", "<f4", vec![len], self.value),
            ("weight", "<f4", vec![len], self.weight),
        ]
        .map(|(name, kind, shape, bytes)| {
            Ok::<_, io::Error>((
                name,
                kind,
                shape,
                bytes.into_inner().map_err(|error| error.into_error())?,
            ))
        });
        write_atomic_with(path, |file| {
            let mut zip = ZipWriter::new(file);
            for array in &mut arrays {
                let (name, kind, shape, bytes) = array.as_mut().map_err(|error| io::Error::from(error.kind()))?;
                bytes.rewind()?;
                begin(&mut zip, name, kind, shape)?;
                io::copy(bytes, &mut zip)?;
            }
            begin(&mut zip, "scale", "<f4", &[channels])?;
            zip.write_all(&scales)?;
            zip.finish()?.flush()
        })?;
        Ok(())
    }
}

struct Add<'a>(&'a mut Positions, &'a Record);

impl GameVisitor for Add<'_> {
    type Output = anyhow::Result<()>;

    fn visit<G: Game>(self, game: G) -> Self::Output {
        let Add(gathered, record) = self;
        positions::each(&game, record, |position| {
            gathered.planes.write_all(&position.planes)?;
            for probability in &position.policy {
                gathered.policy.write_all(&probability.to_le_bytes())?;
            }
            gathered.value.write_all(&position.value.to_le_bytes())?;
            gathered.weight.write_all(&position.weight.to_le_bytes())?;
            gathered.len += 1;
            Ok(())
        })
        .map_err(|error: AddError| match error {
            AddError::Rejected(rejection) => anyhow::Error::new(rejection),
            AddError::Io(error) => anyhow::Error::new(error).context("failed to write a temporary file"),
        })
    }
}

#[derive(Debug)]
enum AddError {
    Rejected(Rejection),
    Io(io::Error),
}

impl From<Rejection> for AddError {
    fn from(rejection: Rejection) -> AddError {
        AddError::Rejected(rejection)
    }
}

impl From<io::Error> for AddError {
    fn from(error: io::Error) -> AddError {
        AddError::Io(error)
    }
}

/// Begins an array: its entry of the archive and its head.
fn begin<W: Write + Seek>(zip: &mut ZipWriter<W>, name: &str, kind: &str, shape: &[u64]) -> io::Result<()> {
    let options = FileOptions::default()
        .compression_method(CompressionMethod::Stored)
        .large_file(true);
    zip.start_file(format!("{name}.npy"), options)?;
    zip.write_all(&head(kind, shape))
}

/// The head of a `.npy` file, version 1.0, whose length is a multiple of 64.
fn head(kind: &str, shape: &[u64]) -> Vec<u8> {
    const MAGIC: &[u8] = b"\x93NUMPY\x01\x00";
    const ALIGN: usize = 64;
    let sizes: String = shape.iter().map(|size| format!("{size}, ")).collect();
    // A tuple of one has a comma, the others may end with one.
    let mut text = format!(
        "{{'descr': '{kind}', 'fortran_order': False, 'shape': ({}), }}",
        sizes.trim_end()
    );
    let unpadded = MAGIC.len() + 2 + text.len() + 1;
    text += &" ".repeat(unpadded.next_multiple_of(ALIGN) - unpadded);
    text.push('\n');
    let mut head = MAGIC.to_vec();
    head.extend((text.len() as u16).to_le_bytes());
    head.extend(text.bytes());
    head
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_aligned_and_say_kind_and_shape() {
        for (kind, shape, text) in [
            ("|u1", &[3, 13, 15, 15][..], "'shape': (3, 13, 15, 15,)"),
            ("<f4", &[0], "'shape': (0,)"),
        ] {
            let head = head(kind, shape);
            assert!(head.len().is_multiple_of(64) && head.ends_with(b"\n"));
            assert_eq!(u16::from_le_bytes([head[8], head[9]]) as usize, head.len() - 10);
            let said = String::from_utf8_lossy(&head[10..]);
            assert!(said.contains(text) && said.contains(kind), "{said}");
        }
    }
}
