//! The segments on disk: append, read in order, count verdicts, remove. Blocks; knows no threads.
//!
//! Memory holds eight bytes for each game that was not read yet, never the games. After a start nothing is appended to
//! a segment of before, nor to one of which a write has failed: what became of its end can then do no harm to anything
//! later.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use tengen_records::{RecordId, peek_id};
use tengen_service::files::{create_folder, sync_folder, write_atomic};

use super::SpoolError;
use super::frame::{HEADER_BYTES, header, recover, whole_frame};
use super::rejected::Rejected;
use crate::handshake::RunKey;

/// Largest segment before the next one is begun: what a restart sends again at most though it was decided.
const SEGMENT_BYTES_MAX: u64 = 16 << 20;
/// Segments that fill the spool: with fewer, one undecided game would hold too much of it.
const SEGMENTS_MIN: u64 = 16;
/// Part of the spool that self-play leaves to matches and to what is in flight when it pauses.
const RESERVE_PARTS: u64 = 8;
/// The file that says which run the games are of.
const RUN_FILE: &str = "run";

/// What there is room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// Everything.
    Everything,
    /// The reserve is reached: no game of self-play should be started.
    Matches,
    /// Nothing: whoever has a game must wait.
    Nothing,
    /// Nothing, because the disk itself is full.
    DiskFull,
}

/// One segment file.
#[derive(Debug, Default)]
struct Segment {
    bytes: u64,
    /// Games that were not read since they were written or recovered: offset of the frame, length of the game.
    unread: VecDeque<(u32, u32)>,
    /// Games without a verdict.
    open: u64,
}

/// The spool's files.
#[derive(Debug)]
pub(crate) struct Store {
    folder: PathBuf,
    rejected: Rejected,
    bytes_max: u64,
    segments: BTreeMap<u64, Segment>,
    /// The segment being written.
    writing: Option<(u64, File)>,
    /// Frames that are not durable yet, to be written together, and the length of the game in each.
    buffer: Vec<u8>,
    waiting: VecDeque<u32>,
    /// Frames that went bad on the disk, with their segments and offsets, until they are set aside.
    damaged: VecDeque<(u64, usize, Vec<u8>)>,
    /// The segment being read.
    reading: Option<(u64, File)>,
    /// No segment before this one has unread games.
    first_unread: u64,
    next: u64,
    bytes: u64,
    games: u64,
}

/// A game read back, and the segment whose verdict it is.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) segment: u64,
    pub(super) id: RecordId,
    pub(super) game: Vec<u8>,
}

impl Store {
    /// Opens the spool in the actor's data folder and finds what an earlier process left.
    pub(crate) fn open(data: &Path, bytes_max: u64) -> Result<Store, SpoolError> {
        let folder = data.join("spool");
        create_folder(&folder).map_err(|source| SpoolError::io("create", &folder, source))?;
        let mut store = Store {
            rejected: Rejected::new(data.join("rejected")),
            bytes_max,
            segments: BTreeMap::new(),
            writing: None,
            buffer: Vec::new(),
            waiting: VecDeque::new(),
            damaged: VecDeque::new(),
            reading: None,
            first_unread: 0,
            next: 1,
            bytes: 0,
            games: 0,
            folder,
        };
        let refused = store.rejected.ids()?;
        for number in store.list()? {
            store.next = number + 1;
            store.recover_segment(number, &refused)?;
        }
        if store.games > 0 {
            let (games, bytes) = (store.games, store.bytes);
            tracing::info!(games, bytes, "the spool holds games of before, they will be sent");
        }
        Ok(store)
    }

    /// Takes the spool for a run. Games of another one are not mixed in, and not thrown away either.
    pub(crate) fn claim(&mut self, run: &RunKey) -> Result<(), SpoolError> {
        let path = self.folder.join(RUN_FILE);
        let old = match std::fs::read_to_string(&path) {
            Ok(text) => text.trim().to_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(source) => return Err(SpoolError::io("read", &path, source)),
        };
        if old == run.to_string() {
            return Ok(());
        }
        if self.games > 0 {
            return Err(SpoolError::OtherRun {
                path: self.folder.clone(),
                games: self.games,
                old,
                new: run.clone(),
            });
        }
        Ok(write_atomic(&path, format!("{run}\n").as_bytes())?)
    }

    /// The folder.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Durable games without a verdict.
    pub(crate) fn games(&self) -> u64 {
        self.games
    }

    /// Bytes on disk.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What there is room for. A single append may go beyond the bound by what it holds.
    pub(crate) fn room(&self) -> Room {
        let reserve = self.bytes_max / RESERVE_PARTS;
        match self.bytes + self.buffer.len() as u64 {
            used if used >= self.bytes_max => Room::Nothing,
            used if used >= self.bytes_max - reserve => Room::Matches,
            _ => Room::Everything,
        }
    }

    pub(super) fn rejected(&self) -> &Rejected {
        &self.rejected
    }

    /// How many games were added and are not durable, and the bytes that they will take.
    pub(super) fn waiting(&self) -> (usize, usize) {
        (self.waiting.len(), self.buffer.len())
    }

    /// Adds a game; it is not durable before [`Store::sync`] has returned.
    pub(super) fn append(&mut self, game: &[u8]) {
        // It fits: a game's length is checked at the spool's door.
        self.waiting.push_back(game.len() as u32);
        self.buffer.extend_from_slice(&header(game));
        self.buffer.extend_from_slice(game);
    }

    /// Whether something that went bad on the disk was not set aside yet.
    pub(super) fn has_damaged(&self) -> bool {
        !self.damaged.is_empty()
    }

    /// Makes everything added durable. What an error leaves out still waits: nothing is lost by trying again.
    pub(super) fn sync(&mut self) -> Result<(), SpoolError> {
        while !self.waiting.is_empty() {
            self.sync_part()?;
        }
        while let Some((segment, offset, frame)) = self.damaged.front() {
            let segment = *segment;
            self.set_damaged_aside(segment, *offset, frame)?;
            self.damaged.pop_front();
            self.settle(segment)?;
        }
        Ok(())
    }

    /// Makes as many of the oldest waiting games durable as the segment takes.
    fn sync_part(&mut self) -> Result<(), SpoolError> {
        let segment_bytes = (self.bytes_max / SEGMENTS_MIN).clamp(1, SEGMENT_BYTES_MAX);
        let (number, mut file) = match self.writing.take() {
            Some(writing) => writing,
            None => self.begin_segment()?,
        };
        let begin = self.segments.get(&number).map_or(0, |segment| segment.bytes);
        let mut frames = Vec::new();
        let mut end = begin;
        for &len in &self.waiting {
            // It fits: a game is at most 8 MiB, a segment little more than its bound.
            frames.push((end as u32, len));
            end += HEADER_BYTES as u64 + u64::from(len);
            if end >= segment_bytes {
                break;
            }
        }
        let written = end - begin;
        if let Err(source) = file
            .write_all(&self.buffer[..written as usize])
            .and_then(|()| file.sync_data())
        {
            self.give_up_segment(number, &file);
            return Err(SpoolError::io("write", &segment_path(&self.folder, number), source));
        }
        self.buffer.drain(..written as usize);
        self.waiting.drain(..frames.len());
        self.bytes += written;
        self.games += frames.len() as u64;
        let segment = self.segments.entry(number).or_default();
        segment.bytes = end;
        segment.open += frames.len() as u64;
        segment.unread.extend(frames);
        if end < segment_bytes {
            self.writing = Some((number, file));
        }
        Ok(())
    }

    /// Reads the oldest game that was not read yet. Games that went bad on the disk are passed over, and set aside by the
    /// next [`Store::sync`].
    pub(super) fn read(&mut self) -> Result<Option<Read>, SpoolError> {
        loop {
            let mut unread = self.segments.range_mut(self.first_unread..);
            let Some((&number, segment)) = unread.find(|(_, segment)| !segment.unread.is_empty()) else {
                return Ok(None);
            };
            self.first_unread = number;
            let Some((offset, len)) = segment.unread.pop_front() else {
                continue;
            };
            let mut frame = vec![0; HEADER_BYTES + len as usize];
            let path = segment_path(&self.folder, number);
            let file = match &self.reading {
                Some((reading, file)) if *reading == number => file,
                _ => &self.reading.insert((number, open_segment(&path)?)).1,
            };
            file.read_exact_at(&mut frame, u64::from(offset))
                .map_err(|source| SpoolError::io("read", &path, source))?;
            if let Some(game) = whole_frame(&frame, 0)
                && let Some(id) = peek_id(&frame[game.clone()])
            {
                let game = frame.split_off(game.start);
                return Ok(Some(Read {
                    segment: number,
                    id,
                    game,
                }));
            }
            self.damaged.push_back((number, offset as usize, frame));
        }
    }

    /// A game of this segment has its verdict. The segment goes with its last one.
    pub(super) fn settle(&mut self, number: u64) -> Result<(), SpoolError> {
        let Some(segment) = self.segments.get_mut(&number) else {
            return Ok(());
        };
        segment.open = segment.open.saturating_sub(1);
        self.games = self.games.saturating_sub(1);
        let growing = self.writing.as_ref().is_some_and(|(writing, _)| *writing == number);
        if segment.open == 0 && !growing {
            self.remove(number)?;
        }
        Ok(())
    }

    /// The last act: a spool without games leaves no segment, so that the next start has nothing to send again.
    pub(super) fn close(&mut self) -> Result<(), SpoolError> {
        self.sync()?;
        match self.writing.take() {
            Some((number, _)) if self.segments.get(&number).is_some_and(|segment| segment.open == 0) => {
                self.remove(number)
            }
            _ => Ok(()),
        }
    }

    /// Numbers of the segments in the folder, ascending.
    fn list(&self) -> Result<Vec<u64>, SpoolError> {
        let numbers = || -> io::Result<Vec<u64>> {
            let mut numbers = Vec::new();
            for entry in std::fs::read_dir(&self.folder)? {
                let name = entry?.file_name();
                let number = name.to_str().and_then(|name| name.strip_suffix(".segment"));
                numbers.extend(number.and_then(|digits| digits.parse::<u64>().ok()));
            }
            numbers.sort_unstable();
            Ok(numbers)
        };
        numbers().map_err(|source| SpoolError::io("list", &self.folder, source))
    }

    fn recover_segment(&mut self, number: u64, refused: &HashSet<RecordId>) -> Result<(), SpoolError> {
        let path = segment_path(&self.folder, number);
        let mut bytes = std::fs::read(&path).map_err(|source| SpoolError::io("read", &path, source))?;
        let found = recover(&bytes);
        for range in &found.damaged {
            self.set_damaged_aside(number, range.start, &bytes[range.clone()])?;
        }
        if let Some(torn) = found.torn {
            let cut = torn.len();
            tracing::info!(segment = number, bytes = cut, "the segment's torn end was cut off");
            OpenOptions::new()
                .write(true)
                .open(&path)
                .and_then(|file| file.set_len(torn.start as u64).and_then(|()| file.sync_all()))
                .map_err(|source| SpoolError::io("cut", &path, source))?;
            bytes.truncate(torn.start);
        }
        let decided =
            |game: &[u8]| peek_id(game).is_some_and(|id| refused.contains(&id) && self.rejected.holds(id, game));
        let undecided = found.games.into_iter().filter(|game| !decided(&bytes[game.clone()]));
        let unread: VecDeque<_> = undecided
            .map(|game| ((game.start - HEADER_BYTES) as u32, game.len() as u32))
            .collect();
        let segment = Segment {
            bytes: bytes.len() as u64,
            open: unread.len() as u64,
            unread,
        };
        self.bytes += segment.bytes;
        self.games += segment.open;
        let empty = segment.open == 0;
        self.segments.insert(number, segment);
        if empty { self.remove(number) } else { Ok(()) }
    }

    fn set_damaged_aside(&self, segment: u64, offset: usize, bytes: &[u8]) -> Result<(), SpoolError> {
        let folder = self.rejected.folder().display();
        tracing::error!(
            segment, offset, bytes = bytes.len(), folder = %folder,
            "a part of the spool is damaged: its games are lost, the bytes are set aside"
        );
        let reason = format!(
            "segment {segment} of the spool was damaged on disk from byte {offset} on: these {} bytes hold no whole game\n",
            bytes.len()
        );
        self.rejected.keep_damaged(segment, offset, bytes, &reason)
    }

    fn begin_segment(&mut self) -> Result<(u64, File), SpoolError> {
        let number = self.next;
        // A number is used once, whatever becomes of its file.
        self.next += 1;
        let path = segment_path(&self.folder, number);
        let file = OpenOptions::new().create_new(true).append(true).open(&path);
        let file = file
            .and_then(|file| sync_folder(&self.folder).map(|()| file))
            .map_err(|source| SpoolError::io("create", &path, source))?;
        self.segments.insert(number, Segment::default());
        Ok((number, file))
    }

    /// A write to the segment failed. What it left is cut off, and nothing is written there again: after a failed fsync
    /// nobody can say what of it is on the disk.
    fn give_up_segment(&mut self, number: u64, file: &File) {
        let cut = match self.segments.get(&number) {
            Some(segment) if segment.open > 0 => file.set_len(segment.bytes).and_then(|()| file.sync_all()),
            _ => self.remove(number).map_err(io::Error::other),
        };
        if let Err(error) = cut {
            tracing::warn!(segment = number, %error, "what a failed write left in the spool stays until the next start");
        }
    }

    fn remove(&mut self, number: u64) -> Result<(), SpoolError> {
        let path = segment_path(&self.folder, number);
        std::fs::remove_file(&path)
            .and_then(|()| sync_folder(&self.folder))
            .map_err(|source| SpoolError::io("remove", &path, source))?;
        self.reading.take_if(|(reading, _)| *reading == number);
        if let Some(segment) = self.segments.remove(&number) {
            self.bytes -= segment.bytes;
        }
        Ok(())
    }
}

fn segment_path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:016}.segment"))
}

fn open_segment(path: &Path) -> Result<File, SpoolError> {
    File::open(path).map_err(|source| SpoolError::io("open", path, source))
}

#[cfg(test)]
mod tests;
