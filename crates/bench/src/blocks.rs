//! Block files against plain files on the same disk: made, written in pieces as they come from the network, and synced; or
//! read in pieces. The two take turns, so that other load on the machine affects both.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::time::Instant;

use bytes::Bytes;
use lazuli_store::blocks::{BlockFile, Blocks, Owner};
use lazuli_store::{Error, Result};
use lazuli_store_blocks::{BlockFiles, Durability};
use tokio::runtime::Runtime;

use crate::figures::{failed, mebibytes, runtime};
use crate::report::{Report, Turns};

/// Bytes per second are at least this share of what plain files give.
pub const SHARE_LEAST: f64 = 0.75;

/// How much is written and read in each turn, and how often.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    pub total_bytes: usize,
    pub rounds: usize,
}

impl Size {
    /// What the bounds are for.
    pub const FULL: Self = Self { total_bytes: 512 * 1024 * 1024, rounds: 5 };
    /// Enough to see that it runs.
    pub const TINY: Self = Self { total_bytes: 8 * 1024 * 1024, rounds: 1 };
}

/// As much as a connection gives at once.
const PIECE_BYTES: usize = 64 * 1024;
/// Bytes of a file, and how many are on their way at the same time.
const CASES: [(usize, usize); 5] =
    [(8 << 20, 1), (8 << 20, 4), (8 << 20, 16), (256 << 10, 4), (256 << 10, 16)];

/// Runs everything in `folder`, which must be on the disk that counts.
pub fn run(folder: &Path, size: Size) -> Result<Report> {
    let runtime = runtime()?;
    let mut report = Report::default();
    for (bytes, at_once) in CASES {
        let case = Case { bytes, at_once, count: (size.total_bytes / bytes).max(at_once) };
        let (mut writes, mut reads) = (Turns::default(), Turns::default());
        for round in 0..size.rounds {
            let root = folder.join(format!("{bytes}-{at_once}-{round}"));
            let files = BlockFiles::open(&root, Durability::Synced)?;
            let mut kept = Vec::new();
            writes.theirs.push(case.rate(|| case.plain(|n| write_plain(&root, n, bytes)))?);
            let write = || {
                kept = case.ours(&runtime, |n| write(files.clone(), n, bytes))?;
                Ok(())
            };
            writes.ours.push(case.rate(write)?);
            reads.theirs.push(case.rate(|| case.plain(|n| read_plain(&root, n)))?);
            let read = |n: usize| read(files.clone(), kept[n]);
            reads.ours.push(case.rate(|| case.ours(&runtime, read).map(drop))?);
            std::fs::remove_dir_all(&root).map_err(failed)?;
        }
        for (what, turns) in [("write", writes), ("read", reads)] {
            let name = format!("{what} {} KiB, {at_once} at once", bytes >> 10);
            let [ours, plain] = turns.medians().map(|bytes| mebibytes(bytes as u64));
            report.say(format_args!("{name}: {ours:.0} MiB/s, plain files {plain:.0} MiB/s"));
            report.at_least(format!("{name}, share"), turns.share(), SHARE_LEAST);
        }
    }
    Ok(report)
}

#[derive(Clone, Copy)]
struct Case {
    bytes: usize,
    at_once: usize,
    count: usize,
}

impl Case {
    /// Bytes per second of something that is done with every file.
    fn rate(&self, work: impl FnOnce() -> Result<()>) -> Result<f64> {
        let start = Instant::now();
        work()?;
        Ok((self.bytes * self.count) as f64 / start.elapsed().as_secs_f64())
    }

    /// Lets threads do something with every file, in turns.
    fn plain(&self, work: impl Fn(usize) -> std::io::Result<()> + Sync) -> Result<()> {
        let Self { at_once, count, .. } = *self;
        std::thread::scope(|scope| {
            let work = &work;
            let run =
                |first| scope.spawn(move || (first..count).step_by(at_once).try_for_each(work));
            let threads: Vec<_> = (0..at_once).map(run).collect();
            let mut done =
                threads.into_iter().map(|it| it.join().expect("a plain thread panicked"));
            done.try_for_each(|outcome| outcome.map_err(failed))
        })
    }

    /// Lets tasks do the same with ours, and gives what they gave in the order of the files.
    fn ours<T: Send + 'static, F: Future<Output = Result<T>> + Send + 'static>(
        &self,
        runtime: &Runtime,
        work: impl Fn(usize) -> F,
    ) -> Result<Vec<T>> {
        let Self { at_once, count, .. } = *self;
        let tasks: Vec<_> = (0..at_once)
            .map(|first| {
                let works: Vec<_> = (first..count).step_by(at_once).map(|n| (n, work(n))).collect();
                runtime.spawn(async move {
                    let mut done = Vec::new();
                    for (n, work) in works {
                        done.push((n, work.await?));
                    }
                    Ok::<_, Error>(done)
                })
            })
            .collect();
        let mut all = Vec::new();
        for task in tasks {
            let done = runtime.block_on(task);
            all.extend(done.map_err(failed)??);
        }
        all.sort_by_key(|(n, _)| *n);
        Ok(all.into_iter().map(|(_, one)| one).collect())
    }
}

fn piece(n: usize) -> Bytes {
    vec![(n % 251) as u8; PIECE_BYTES].into()
}

fn write_plain(root: &Path, n: usize, bytes: usize) -> std::io::Result<()> {
    let mut file = File::create_new(root.join(format!("plain-{n}")))?;
    let piece = piece(n);
    for _ in 0..bytes / PIECE_BYTES {
        file.write_all(&piece)?;
    }
    file.sync_all()
}

async fn write(files: BlockFiles, n: usize, bytes: usize) -> Result<BlockFile> {
    let owner = Owner { container: 1, route: Bytes::from_static(b"account|container|name") };
    let mut writer = files.create(&owner).await?;
    let piece = piece(n);
    for _ in 0..bytes / PIECE_BYTES {
        writer.write(piece.clone()).await?;
    }
    writer.finish().await
}

fn read_plain(root: &Path, n: usize) -> std::io::Result<()> {
    let mut file = File::open(root.join(format!("plain-{n}")))?;
    let mut buffer = vec![0; PIECE_BYTES];
    while file.read(&mut buffer)? > 0 {}
    Ok(())
}

async fn read(files: BlockFiles, file: BlockFile) -> Result<()> {
    let mut reader = files.read(&file, 0..file.length).await?;
    while reader.next().await?.is_some() {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tiny_run_measures_everything() {
        let folder = tempfile::tempdir().unwrap();
        let report = run(folder.path(), Size::TINY).unwrap();
        assert_eq!(report.values("").len(), 2 * CASES.len());
        assert!(report.values("").iter().all(|share| *share > 0.0), "{report}");
    }
}
