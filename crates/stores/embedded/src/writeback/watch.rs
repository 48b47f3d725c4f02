//! The thread that is notified of writes to tables. Without writes it sleeps in one system call.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{PipeReader, PipeWriter};
use std::mem::MaybeUninit;
use std::num::NonZeroU64;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::fs::{Advice, fadvise};
use rustix::io::Errno;

use super::growth::Growth;

/// How long writes are collected before they are processed: a few hundred kilobytes on a fast disk.
const GATHER_US: i64 = 500;
/// How many events are read before they are processed. The system merges identical ones.
const EVENTS_MAX: usize = 4096;
/// Buffer for many events: none has more than 16 bytes and a name of 255.
const BUFFER_BYTES: usize = 8 * 1024;

/// The thread, which ends when this is dropped.
pub(crate) struct Writeback {
    /// Nothing is ever written to it: the thread notices that it is closed.
    stop: Option<PipeWriter>,
    thread: Option<JoinHandle<()>>,
}

impl Writeback {
    /// Watches the tables of all keyspaces in the engine's folder. None if the system refuses: then the store works
    /// without.
    pub(crate) fn start(engine: &Path) -> Option<Self> {
        let watch = Watch::new(engine).ok()?;
        let (stopped, stop) = std::io::pipe().ok()?;
        let thread = std::thread::Builder::new().name("lazuli:writeback".to_owned());
        let run = move || {
            // An error ends only this thread.
            let _ = watch.run(&stopped, begin_to_write);
        };
        let thread = thread.spawn(run).ok()?;
        Some(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Writeback {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Watch {
    events: OwnedFd,
    /// The watched folders, by the number in events.
    folders: Vec<(i32, PathBuf)>,
    growth: Growth,
}

impl Watch {
    fn new(engine: &Path) -> std::io::Result<Self> {
        let events = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        let what = WatchFlags::MODIFY | WatchFlags::CLOSE_WRITE | WatchFlags::DELETE;
        let mut folders = Vec::new();
        for keyspace in fs::read_dir(engine.join("keyspaces"))? {
            let folder = keyspace?.path().join("tables");
            let number = inotify::add_watch(&events, &folder, what | WatchFlags::ONLYDIR)?;
            folders.push((number, folder));
        }
        Ok(Self { events, folders, growth: Growth::default() })
    }

    /// Runs until the other end of the pipe is closed.
    fn run(
        mut self,
        stopped: &PipeReader,
        mut begin: impl FnMut(&Path, Range<u64>),
    ) -> Result<(), Errno> {
        loop {
            let mut both = [
                PollFd::new(stopped, PollFlags::empty()),
                PollFd::new(&self.events, PollFlags::IN),
            ];
            wait(&mut both, None)?;
            let gather = Timespec { tv_sec: 0, tv_nsec: GATHER_US * 1_000 };
            if wait(&mut [PollFd::new(stopped, PollFlags::empty())], Some(&gather))? > 0 {
                return Ok(());
            }
            self.take_events()?;
            for (path, range) in self.growth.take_new(length_of) {
                begin(&path, range);
            }
        }
    }

    fn take_events(&mut self) -> Result<(), Errno> {
        let mut buffer = [MaybeUninit::uninit(); BUFFER_BYTES];
        let mut events = inotify::Reader::new(&self.events, &mut buffer);
        for _ in 0..EVENTS_MAX {
            let event = match events.next() {
                Ok(event) => event,
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error),
            };
            if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                // A lost event may be the end of a file.
                self.growth.forget_all();
                continue;
            }
            let folder = self.folders.iter().find(|(number, _)| *number == event.wd());
            let (Some((_, folder)), Some(name)) = (folder, event.file_name()) else { continue };
            let path = folder.join(OsStr::from_bytes(name.to_bytes()));
            if event.events().contains(ReadFlags::MODIFY) {
                self.growth.note_written(path);
            } else {
                self.growth.note_ended(&path);
            }
        }
        Ok(())
    }
}

/// How many of them are ready.
fn wait(on: &mut [PollFd<'_>], for_at_most: Option<&Timespec>) -> Result<usize, Errno> {
    match poll(on, for_at_most) {
        Err(Errno::INTR) => Ok(0),
        other => other,
    }
}

fn length_of(path: &Path) -> Option<u64> {
    fs::metadata(path).ok().map(|metadata| metadata.len())
}

/// Starts writeback of a part of a file without waiting for it. Linux does that, and drops pages that are clean
/// already. These are dirty, and stay while they are being written.
fn begin_to_write(path: &Path, range: Range<u64>) {
    // The file may have been deleted meanwhile.
    let Ok(file) = File::open(path) else { return };
    let _ = fadvise(&file, range.start, NonZeroU64::new(range.end - range.start), Advice::DontNeed);
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::mpsc::{Receiver, channel};
    use std::time::Duration;

    use tempfile::TempDir;

    use super::*;
    use crate::layout::Layout;
    use crate::open::{Again, Opened, open};
    use crate::settings::Settings;

    const MIB: usize = 1024 * 1024;
    /// Long enough for a thread to be notified of a write on a busy machine.
    const PATIENCE: Duration = Duration::from_secs(60);

    /// A watcher that reports what it would have written, and whose thread ends when the pipe is dropped.
    struct Watched {
        asked: Receiver<(PathBuf, Range<u64>)>,
        stop: PipeWriter,
        thread: JoinHandle<Result<(), Errno>>,
    }

    impl Watched {
        fn new(engine: &Path) -> Self {
            let watch = Watch::new(engine).unwrap();
            let (stopped, stop) = std::io::pipe().unwrap();
            let (ask, asked) = channel();
            let run = move || {
                watch.run(&stopped, |path, range| ask.send((path.to_owned(), range)).unwrap())
            };
            Self { asked, stop, thread: std::thread::spawn(run) }
        }

        fn next(&self) -> (PathBuf, Range<u64>) {
            self.asked.recv_timeout(PATIENCE).unwrap()
        }

        /// Ends the thread, and returns the parts that it requested since.
        fn end(self) -> Vec<(PathBuf, Range<u64>)> {
            drop(self.stop);
            self.thread.join().unwrap().unwrap();
            self.asked.iter().collect()
        }
    }

    fn keyspaces(numbers: &[u32]) -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        for number in numbers {
            fs::create_dir_all(folder.path().join(format!("keyspaces/{number}/tables"))).unwrap();
        }
        folder
    }

    #[test]
    fn files_of_every_keyspace_are_asked_for_while_they_grow() {
        let folder = keyspaces(&[0, 1, 2]);
        let watched = Watched::new(folder.path());
        let [one, two] = [1, 2].map(|n| folder.path().join(format!("keyspaces/{n}/tables/7")));
        let mut first = File::create(&one).unwrap();
        let mut second = File::create(&two).unwrap();
        first.write_all(&vec![1; MIB]).unwrap();
        assert_eq!(watched.next(), (one.clone(), 0..MIB as u64));
        second.write_all(&vec![1; MIB]).unwrap();
        assert_eq!(watched.next(), (two, 0..MIB as u64));
        first.write_all(&vec![1; 2 * MIB]).unwrap();
        let mut end = MIB as u64;
        while end < 3 * MIB as u64 {
            let (path, range) = watched.next();
            assert_eq!((path, range.start), (one.clone(), end));
            end = range.end;
        }
        assert_eq!(watched.end(), []);
    }

    #[test]
    fn a_name_that_is_used_again_is_a_new_file() {
        let folder = keyspaces(&[1]);
        let watched = Watched::new(folder.path());
        let path = folder.path().join("keyspaces/1/tables/7");
        for is_closed in [true, false, true] {
            let mut file = File::create(&path).unwrap();
            file.write_all(&vec![1; MIB]).unwrap();
            assert_eq!(watched.next(), (path.clone(), 0..MIB as u64));
            if is_closed {
                drop(file);
            }
            fs::remove_file(&path).unwrap();
        }
        assert_eq!(watched.end(), []);
    }

    #[test]
    fn tables_of_the_engine_are_asked_for_before_they_are_finished() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(folder.path());
        let lock = std::sync::Arc::new(layout.lock().unwrap());
        let Opened { state, .. } =
            open(&layout, &Settings::default(), &lock, Again::default()).unwrap();
        let watched = Watched::new(&state.folder);
        let mut tables = state.keyspaces.data.start_ingestion().unwrap();
        let mut noise = lazuli_env::SplitMix64::new(1);
        for n in 0..4 * MIB / 1024 {
            tables.write(format!("key-{n:06}"), noise.bytes(1024)).unwrap();
        }
        let (path, range) = watched.next();
        assert!(path.starts_with(state.folder.join("keyspaces")), "{}", path.display());
        assert_eq!(range.start, 0);
        tables.finish().unwrap();
        watched.end();
    }

    #[test]
    fn where_nothing_can_be_watched_there_is_no_thread() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Writeback::start(folder.path()).is_none());
        assert!(Writeback::start(keyspaces(&[1]).path()).is_some());
    }
}
