//! Transfers what differs between a source and a target, and can remove what the source does not have.
//!
//! Two sides are the same if their size and MD5 sum are. Where a blob has no sum, the one that is newer at the source is
//! transferred.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use lazuli_console::output::{self, size};
use lazuli_console::{Failure, Result};
use serde_json::json;

use super::address::{BlobAddress, Location};
use super::cp::{self, Plan, count_text, locations, relative, transfer};
use super::digest::of_file;
use super::listing::{self, Entry};
use super::work::Task;
use super::{Sync, ensure, local};
use crate::account::Account;
use crate::session::Session;

/// A file or a blob of one side.
#[derive(Clone, Debug)]
enum SyncItem {
    File { path: PathBuf, size: u64, modified: i64 },
    Blob { address: BlobAddress, entry: Entry },
}

impl SyncItem {
    fn fact(&self) -> Fact {
        match self {
            Self::File { path, size, modified } => {
                Fact { size: *size, modified: *modified, sum: SumSource::File(path.clone()) }
            }
            Self::Blob { entry, .. } => Fact {
                size: entry.size,
                modified: entry.modified,
                sum: SumSource::Reported(entry.md5.clone()),
            },
        }
    }
}

/// What one side has, by names that both sides share.
type Side = BTreeMap<String, SyncItem>;

/// Makes a target the same as its source, transferring only what differs.
pub fn sync(account: &Arc<Account>, sync: &Sync, json: bool) -> Result<()> {
    let began = Instant::now();
    let (source, target) = locations(&sync.source, &sync.target)?;
    check_apart(&source, &target)?;
    let mut session = Session::new(Arc::clone(account))?;
    let mut plan = Plan::default();
    let from = side(&mut session, &source, sync, &mut plan.refused)?;
    if let (true, false, Location::Remote(to)) =
        (sync.transfer.create, sync.transfer.dry_run, &target)
    {
        ensure(&mut session, &to.container)?;
    }
    let to = target_side(&mut session, &target, sync)?;
    let mut removed = Plan::default();
    if sync.delete {
        let gone = to.iter().filter(|(name, _)| !from.contains_key(*name));
        removed.tasks = gone.map(|(_, thing)| removal(thing)).collect();
    }
    let count = from.len();
    let changed = differing(from, &to, sync.transfer.parallel);
    let unchanged = count - changed.len();
    for (name, thing) in changed {
        add(&mut plan, &name, thing, &target)?;
    }
    if sync.transfer.dry_run {
        plan.tasks.extend(removed.tasks);
        cp::show(&plan, json);
        return Ok(());
    }
    let mut done = transfer(account, plan, &sync.transfer)?;
    let is_whole = done.failed == 0;
    let mut removals = 0;
    if is_whole {
        let gone = transfer(account, removed, &sync.transfer)?;
        removals = gone.items;
        done.failed += gone.failed;
    }
    // Listing, comparing and removing are part of it.
    done.elapsed = began.elapsed();
    let mut answer = cp::summary(&done);
    answer["unchanged"] = json!(unchanged);
    answer["removed"] = json!(removals);
    output::changed(json, &answer, || {
        let (moved, bytes) = (count_text(done.items), size(done.bytes));
        let gone = if sync.delete { format!(", removed {removals}") } else { String::new() };
        format!("transferred {moved}, {bytes}; {unchanged} unchanged{gone}")
    });
    done.check().map_err(|failure| match sync.delete && !is_whole {
        true => failure.hint("nothing was removed; run it again once the cause is gone"),
        false => failure.hint("run it again: what is there is not sent again"),
    })
}

/// Neither side may lie within the other one: it would change while it is compared.
fn check_apart(source: &Location, target: &Location) -> Result<()> {
    let (Location::Remote(source), Location::Remote(target)) = (source, target) else {
        return Ok(());
    };
    let (one, two) = (source.below(), target.below());
    let is_within = one.name.starts_with(&two.name) || two.name.starts_with(&one.name);
    if one.container == two.container && is_within {
        return Err(Failure::usage("source and target lie within each other"));
    }
    Ok(())
}

/// All files or blobs of one side. Names that cannot be at the other one are refused.
fn side(
    session: &mut Session,
    spot: &Location,
    sync: &Sync,
    refused: &mut Vec<String>,
) -> Result<Side> {
    match spot {
        Location::Local(folder) => {
            let tree = local::walk(folder, sync.transfer.follow_links)?;
            refused.extend(tree.refused);
            let thing = |found: local::Found| {
                let local::Found { name, path, size, modified } = found;
                (name, SyncItem::File { path, size, modified })
            };
            Ok(tree.files.into_iter().map(thing).collect())
        }
        Location::Remote(address) => {
            let below = address.below();
            let mut side = Side::new();
            for entry in listing::below(session, &below)? {
                let (address, name) = relative(&below, &entry)?;
                side.insert(name, SyncItem::Blob { address, entry });
            }
            Ok(side)
        }
    }
}

/// The same of the target, which need not be there yet.
fn target_side(session: &mut Session, target: &Location, sync: &Sync) -> Result<Side> {
    let is_missing = match target {
        Location::Local(folder) => !folder.exists(),
        // It is there by now, unless it would only be created.
        Location::Remote(to) if sync.transfer.dry_run && sync.transfer.create => {
            !listing::containers(session)?.contains(&to.container)
        }
        Location::Remote(_) => false,
    };
    if is_missing {
        return Ok(Side::new());
    }
    // What is at the target alone is not transferred, so its names need not fit.
    side(session, target, sync, &mut Vec::new())
}

/// What is not the same at the target. Files are read only where nothing else tells.
fn differing(from: Side, to: &Side, parallel: u64) -> Vec<(String, SyncItem)> {
    let (mut changed, mut doubtful, mut files) = (Vec::new(), Vec::new(), Vec::new());
    for (name, thing) in from {
        let verdict = match to.get(&name) {
            None => Verdict::Differs,
            Some(there) => compare(&thing.fact(), &there.fact()),
        };
        match verdict {
            Verdict::Same => {}
            Verdict::Differs => changed.push((name, thing)),
            Verdict::Read(file, sum) => {
                doubtful.push((name, thing));
                files.push((file, sum));
            }
        }
    }
    let same = have_sums(&files, parallel);
    let others = doubtful.into_iter().zip(same).filter(|(_, is_same)| !is_same);
    changed.extend(others.map(|(one, _)| one));
    changed.sort_by(|one, two| one.0.cmp(&two.0));
    changed
}

/// Adds the transfer of one thing to the target.
fn add(plan: &mut Plan, name: &str, thing: SyncItem, target: &Location) -> Result<()> {
    match (thing, target) {
        (SyncItem::File { path, size, .. }, Location::Remote(to)) => {
            plan.tasks.push(Task::Upload { file: path, size, to: to.below().with(name) });
        }
        (SyncItem::Blob { address, entry }, Location::Local(folder)) => {
            plan.download(address, entry, Path::new(folder), name);
        }
        (SyncItem::Blob { address, entry }, Location::Remote(to)) => {
            let to = to.below().with(name);
            plan.tasks.push(Task::Copy { from: address, to, size: entry.size });
        }
        (SyncItem::File { .. }, Location::Local(_)) => return Err(cp::both_local()),
    }
    Ok(())
}

fn removal(thing: &SyncItem) -> Task {
    match thing {
        SyncItem::File { path, .. } => Task::RemoveFile(path.clone()),
        SyncItem::Blob { address, .. } => Task::Remove(address.clone()),
    }
}

/// What is known of one side without reading it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Fact {
    size: u64,
    /// Seconds since the Unix epoch.
    modified: i64,
    sum: SumSource,
}

/// Where an MD5 sum comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
enum SumSource {
    /// The service reports it, or has none.
    Reported(Option<String>),
    /// It has to be computed from a file.
    File(PathBuf),
}

/// What comparing two sides says before anything is read.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Same,
    Differs,
    /// They are the same if this file has this sum.
    Read(PathBuf, String),
}

fn compare(source: &Fact, target: &Fact) -> Verdict {
    if source.size != target.size {
        return Verdict::Differs;
    }
    let same = |is_same: bool| if is_same { Verdict::Same } else { Verdict::Differs };
    match (&source.sum, &target.sum) {
        (SumSource::Reported(Some(one)), SumSource::Reported(Some(two))) => same(one == two),
        (SumSource::File(file), SumSource::Reported(Some(sum)))
        | (SumSource::Reported(Some(sum)), SumSource::File(file)) => {
            Verdict::Read(file.clone(), sum.clone())
        }
        // Times are whole seconds. What was written within the same second counts as newer: that costs one transfer more,
        // and the other way round a change could go unseen.
        _ => same(source.modified < target.modified),
    }
}

/// Which of these files have the sums that stand beside them. One that cannot be read has not; the transfer will say why.
fn have_sums(files: &[(PathBuf, String)], parallel: u64) -> Vec<bool> {
    let answers: Vec<AtomicBool> = files.iter().map(|_| AtomicBool::new(false)).collect();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..parallel.min(files.len() as u64) {
            scope.spawn(|| {
                while let Some((at, (file, sum))) = take(&next, files) {
                    answers[at].store(has_sum(file, sum), Ordering::Relaxed);
                }
            });
        }
    });
    answers.into_iter().map(AtomicBool::into_inner).collect()
}

fn take<'a, T>(next: &AtomicUsize, all: &'a [T]) -> Option<(usize, &'a T)> {
    let at = next.fetch_add(1, Ordering::Relaxed);
    all.get(at).map(|one| (at, one))
}

fn has_sum(file: &Path, sum: &str) -> bool {
    of_file(file).is_ok_and(|own| own == sum)
}

#[cfg(test)]
mod tests {
    use super::super::digest::of_bytes;
    use super::*;

    #[test]
    fn sides_of_one_container_lie_apart() {
        let check = |one: &str, two: &str| {
            check_apart(&Location::read(one).unwrap(), &Location::read(two).unwrap()).is_ok()
        };
        assert!(check("az://c/a", "az://d/a") && check("az://c/a", "az://c/ab"));
        assert!(check("az://c/a", "here"));
        assert!(!check("az://c/a", "az://c/a/b") && !check("az://c/a/b", "az://c"));
    }

    #[test]
    fn sides_are_compared_by_size_then_sum_then_time() {
        let fact = |size, modified, sum: SumSource| Fact { size, modified, sum };
        let told = |sum: &str| SumSource::Reported(Some(sum.to_owned()));
        let file = || SumSource::File(PathBuf::from("f"));
        let none = || SumSource::Reported(None);
        let read = || Verdict::Read(PathBuf::from("f"), "a".to_owned());
        for (source, target, expected) in [
            (fact(1, 0, told("a")), fact(2, 9, told("a")), Verdict::Differs),
            (fact(1, 9, told("a")), fact(1, 0, told("a")), Verdict::Same),
            (fact(1, 0, told("a")), fact(1, 9, told("b")), Verdict::Differs),
            (fact(1, 9, file()), fact(1, 0, told("a")), read()),
            (fact(1, 0, told("a")), fact(1, 9, file()), read()),
            (fact(1, 5, file()), fact(1, 6, none()), Verdict::Same),
            (fact(1, 5, none()), fact(1, 5, file()), Verdict::Differs),
            (fact(1, 6, none()), fact(1, 5, told("a")), Verdict::Differs),
        ] {
            assert_eq!(compare(&source, &target), expected, "{source:?} {target:?}");
        }
    }

    #[test]
    fn sums_are_those_of_the_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("a"), "a").unwrap();
        std::fs::write(path("b"), "b").unwrap();
        let sum = of_bytes(b"a");
        let files: Vec<_> = ["a", "b", "c"].map(|name| (path(name), sum.clone())).into();
        assert_eq!(have_sums(&files, 2), [true, false, false]);
        assert!(have_sums(&[], 2).is_empty());
    }
}
