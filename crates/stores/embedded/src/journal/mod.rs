//! Checks the journals before the engine opens them, because the engine handles two cases wrongly: it refuses to open
//! when the last, unanswered batch is torn in its middle, and it silently drops everything after a damaged header.
//!
//! Every batch must be complete, numbered without a gap, and in order. An incomplete batch is **torn** if it cannot
//! have been answered, and is cut off; otherwise it is **damage**, and the store is not opened. It was on disk if
//!
//! - another journal follows: the engine syncs a journal before it begins the next;
//! - the answered file says so;
//! - a later marker says so, even one in a torn batch: each names the last batch that was on disk before it.
//!
//! Nothing is written unless the whole tail is torn.

mod batch;

use std::fs::{File, OpenOptions};
use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
use std::io::{BufReader, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use lazuli_store::{Error, Result};

use crate::error::from_io;
use crate::marker::{self, Marker};
use batch::{Batch, Next};

/// How far the engine's sequence number may grow between two batches. Flushes and compactions use numbers too.
const SEQUENCE_STEP_MAX: u64 = 1 << 32;
const BUFFER_BYTES: usize = 256 * 1024;
/// Disks are written in pages; no system has larger ones.
const PAGE_BYTES: u64 = 64 * 1024;

/// The contents of the journals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scan {
    /// The markers of the first and the last complete batch.
    pub(crate) ends: Option<(Marker, Marker)>,
    pub(crate) bytes: u64,
    /// Whether the last journal has a torn tail, which must be cut off before the engine opens it.
    pub(crate) torn: Option<Cut>,
    /// The part of the last journal that no fsync has confirmed.
    pub(crate) unsynced: Option<(PathBuf, Range<u64>)>,
}

/// The end of a journal that was cut off, because it was never answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    pub file: PathBuf,
    /// The length of the file now.
    pub offset: u64,
    /// How many bytes were after it, including preallocated space.
    pub bytes: u64,
    /// What was found there.
    pub what: &'static str,
}

/// Reads all journals in `folder`. `promised` is the last batch that is known to be on disk. Batches after number
/// `end` are treated as torn.
pub(crate) fn scan(folder: &Path, marker_key: &[u8], promised: u64, end: u64) -> Result<Scan> {
    let journals = list(folder)?;
    let mut scan = Scan::default();
    let mut last: Option<Batch> = None;
    for (at, path) in journals.iter().enumerate() {
        let io = |error: std::io::Error| from_io(path.display(), &error);
        let bounds = Bounds { promised, end };
        let end = read_journal(path, marker_key, bounds, &mut scan, &mut last).map_err(io)?;
        scan.unsynced = Some((path.clone(), end.synced..end.offset));
        let Some(what) = end.damage else { continue };
        let lost = match last {
            Some(batch) => Some(batch.marker.number + 1),
            None => marker_at(path, end.offset, marker_key).map_err(io)?.map(|m| m.number),
        };
        let proof = if at + 1 < journals.len() {
            Some("a journal follows, so it was on disk".to_owned())
        } else if lost.is_some_and(|lost| promised >= lost) {
            Some(format!("commit {promised} was answered"))
        } else {
            later_proof(path, end.offset, marker_key, lost).map_err(io)?
        };
        if let Some(proof) = proof {
            return Err(damaged(path, end.offset, what, &proof));
        }
        let size = path.metadata().map_err(io)?.len();
        let bytes = size.saturating_sub(end.offset);
        scan.torn = Some(Cut { file: path.clone(), offset: end.offset, bytes, what });
    }
    match (scan.ends, journals.last()) {
        (Some((_, Marker { number: last, .. })), Some(path)) if last < promised => {
            let proof = format!("commit {promised} was answered, the last one here is {last}");
            Err(damaged(path, scan.bytes, "the journal ends too early", &proof))
        }
        _ => Ok(scan),
    }
}

/// Rewrites what no fsync has confirmed. After a failed fsync the page cache may have bytes that the disk does not
/// have, and another fsync would not write them.
pub(crate) fn settle(scan: &Scan) -> Result<()> {
    let Some((path, range)) = &scan.unsynced else { return Ok(()) };
    let io = |error: std::io::Error| from_io(path.display(), &error);
    let mut file = OpenOptions::new().read(true).write(true).open(path).map_err(io)?;
    // The page in which the range begins is rewritten too.
    let mut at = range.start - range.start % PAGE_BYTES;
    let mut chunk = vec![0; BUFFER_BYTES];
    while at < range.end {
        let length = usize::try_from(range.end - at).unwrap_or(BUFFER_BYTES).min(BUFFER_BYTES);
        let bytes = &mut chunk[..length];
        let read = file.seek(SeekFrom::Start(at)).and_then(|_| file.read_exact(bytes));
        read.and_then(|()| file.seek(SeekFrom::Start(at))).map_err(io)?;
        file.write_all(bytes).map_err(io)?;
        at += length as u64;
    }
    file.sync_all().map_err(io)
}

/// Cuts a torn tail off. Its bytes are kept in `aside` until the next cut, for inspection, unless the disk is full.
pub(crate) fn cut(cut: &Cut, aside: &Path) -> Result<()> {
    let io = |error: std::io::Error| from_io(cut.file.display(), &error);
    match keep_aside(cut, aside) {
        Err(error) if matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge) => {
            let _ = std::fs::remove_file(aside);
        }
        kept => kept.map_err(io)?,
    }
    let file = OpenOptions::new().write(true).open(&cut.file).map_err(io)?;
    file.set_len(cut.offset).and_then(|()| file.sync_all()).map_err(io)
}

fn keep_aside(cut: &Cut, aside: &Path) -> std::io::Result<()> {
    let mut tail = File::open(&cut.file)?;
    tail.seek(SeekFrom::Start(cut.offset))?;
    let mut kept = File::create(aside)?;
    std::io::copy(&mut tail, &mut kept)?;
    kept.sync_all()
}

fn damaged(path: &Path, offset: u64, what: &str, proof: &str) -> Error {
    let path = path.display();
    let message = format!("{path} is damaged at byte {offset}: {what}, and {proof}");
    Error::corrupt("journal-damaged", message)
}

/// The journals, oldest first. The engine numbers them without a gap and deletes the oldest first.
fn list(folder: &Path) -> Result<Vec<PathBuf>> {
    let io = |error: std::io::Error| from_io(folder.display(), &error);
    let corrupt = |message: String| Error::corrupt("journal-missing", message);
    let mut ids = Vec::new();
    for entry in folder.read_dir().map_err(io)? {
        let name = entry.map_err(io)?.file_name();
        let Some(name) = name.to_str().and_then(|name| name.strip_suffix(".jnl")) else { continue };
        let id: u64 = name.parse().map_err(|_| corrupt(format!("{name}.jnl has no number")))?;
        ids.push(id);
    }
    ids.sort_unstable();
    if ids.is_empty() {
        return Err(corrupt(format!("{} has no journal", folder.display())));
    }
    if let Some(pair) = ids.windows(2).find(|pair| pair[0] + 1 != pair[1]) {
        let message = format!("journals between {} and {} are missing", pair[0], pair[1]);
        return Err(corrupt(message));
    }
    Ok(ids.into_iter().map(|id| folder.join(format!("{id}.jnl"))).collect())
}

/// Where the complete batches of a journal end, and the problem after them, if any.
struct End {
    offset: u64,
    /// Where the batches end that are known to be on disk.
    synced: u64,
    damage: Option<&'static str>,
}

/// The number up to which batches are known to be on disk, and the number after which they are rejected.
#[derive(Clone, Copy)]
struct Bounds {
    promised: u64,
    end: u64,
}

fn read_journal(
    path: &Path,
    marker_key: &[u8],
    bounds: Bounds,
    scan: &mut Scan,
    last: &mut Option<Batch>,
) -> std::io::Result<End> {
    let mut source = BufReader::with_capacity(BUFFER_BYTES, File::open(path)?);
    let (mut offset, mut synced) = (0, 0);
    loop {
        let batch = match batch::read(&mut source, marker_key)? {
            Next::Whole(batch) => batch,
            Next::NoStart => {
                let empty = is_zero(&mut source)?;
                let damage = (!empty).then_some("bytes follow where nothing was written");
                return Ok(End { offset, synced, damage });
            }
            Next::Damaged(what) => return Ok(End { offset, synced, damage: Some(what) }),
        };
        if !follows(&batch, last.as_ref()) {
            let damage = Some("the batch is not the one that comes next");
            return Ok(End { offset, synced, damage });
        }
        if batch.marker.number > bounds.end {
            return Ok(End { offset, synced, damage: Some("its write failed") });
        }
        offset += batch.bytes;
        if batch.marker.number <= bounds.promised {
            synced = offset;
        }
        scan.bytes += batch.bytes;
        scan.ends = Some((scan.ends.map_or(batch.marker, |(first, _)| first), batch.marker));
        *last = Some(batch);
    }
}

/// Whether a batch can directly follow the previous one.
fn follows(batch: &Batch, before: Option<&Batch>) -> bool {
    let marker = batch.marker;
    let in_step = batch.sequence >= marker.sequence_least
        && batch.sequence - marker.sequence_least < SEQUENCE_STEP_MAX
        && marker.synced < marker.number;
    in_step
        && before.is_none_or(|before| {
            marker.number == before.marker.number + 1 && before.sequence < marker.sequence_least
        })
}

fn is_zero(source: &mut impl Read) -> std::io::Result<bool> {
    let mut chunk = vec![0; BUFFER_BYTES];
    loop {
        match source.read(&mut chunk)? {
            0 => return Ok(true),
            read if chunk[..read].iter().any(|byte| *byte != 0) => return Ok(false),
            _ => {}
        }
    }
}

/// The marker of the batch that begins at `offset`, if it is readable.
fn marker_at(path: &Path, offset: u64, marker_key: &[u8]) -> std::io::Result<Option<Marker>> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(offset + batch::MARKER_OFFSET))?;
    let mut item = Vec::new();
    let item_bytes = marker_key.len() + marker::VALUE_BYTES;
    file.take(item_bytes as u64).read_to_end(&mut item)?;
    let value = item.strip_prefix(marker_key);
    Ok(value.and_then(Marker::decode))
}

/// Searches after the damage for a marker that proves that the damaged batch was on disk. The number of that batch
/// may be unknown; then a marker that names the batch right before its own is later, and is proof.
fn later_proof(
    path: &Path,
    offset: u64,
    marker_key: &[u8],
    lost: Option<u64>,
) -> std::io::Result<Option<String>> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(offset))?;
    let item_bytes = marker_key.len() + marker::VALUE_BYTES;
    let mut window = Vec::with_capacity(BUFFER_BYTES + item_bytes);
    let mut chunk = vec![0; BUFFER_BYTES];
    loop {
        let read = file.read(&mut chunk)?;
        window.extend_from_slice(&chunk[..read]);
        for item in window.windows(item_bytes).filter(|item| item.starts_with(marker_key)) {
            let Some(marker) = Marker::decode(&item[marker_key.len()..]) else { continue };
            let Marker { number, synced, .. } = marker;
            if lost.map_or(synced + 1 == number, |lost| synced >= lost) {
                return Ok(Some(format!("commit {number} proves that it was on disk")));
            }
        }
        if read == 0 {
            return Ok(None);
        }
        // A marker may span two chunks.
        window.drain(..window.len().saturating_sub(item_bytes - 1));
    }
}
