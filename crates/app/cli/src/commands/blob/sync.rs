//! `lazuli blob sync`: what differs between source and target is transferred, and what is gone can be removed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use serde_json::json;

use super::address::{Address, Spot};
use super::compare::{Fact, Known, Verdict, compare, have_sums};
use super::listing::{self, Entry};
use super::plan::{self, Plan, count_text, relative, spots, transfer};
use super::task::Task;
use super::{containers, find, local};
use crate::args::blob::Sync;
use crate::commands::remote::meter::size_text;
use crate::commands::remote::session::Session;
use crate::failure::{Failure, Result};
use crate::output;

/// A file or a blob of one side.
#[derive(Clone, Debug)]
enum Thing {
    File { path: PathBuf, size: u64, modified: i64 },
    Blob { address: Address, entry: Entry },
}

impl Thing {
    fn fact(&self) -> Fact {
        match self {
            Self::File { path, size, modified } => {
                Fact { size: *size, modified: *modified, sum: Known::Of(path.clone()) }
            }
            Self::Blob { entry, .. } => Fact {
                size: entry.size,
                modified: entry.modified,
                sum: Known::Told(entry.md5.clone()),
            },
        }
    }
}

/// What one side has, by names that both sides share.
type Side = BTreeMap<String, Thing>;

pub(super) fn run(sync: &Sync) -> Result<()> {
    let began = Instant::now();
    let (source, target) = spots(&sync.source, &sync.target)?;
    check_apart(&source, &target)?;
    let place = find(&sync.transfer.service)?;
    let mut session = Session::new(Arc::clone(&place))?;
    let mut plan = Plan::default();
    let from = side(&mut session, &source, sync, &mut plan.refused)?;
    if let (true, false, Spot::Remote(to)) = (sync.transfer.create, sync.transfer.dry_run, &target)
    {
        containers::ensure(&mut session, &to.container)?;
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
        plan::show(&plan, &sync.transfer);
        return Ok(());
    }
    let mut done = transfer(&place, plan, &sync.transfer)?;
    let is_whole = done.failed == 0;
    let mut removals = 0;
    if is_whole {
        let gone = transfer(&place, removed, &sync.transfer)?;
        removals = gone.items;
        done.failed += gone.failed;
    }
    // Listing, comparing and removing are part of it.
    done.elapsed = began.elapsed();
    let mut answer = plan::summary(&done);
    answer["unchanged"] = json!(unchanged);
    answer["removed"] = json!(removals);
    output::changed(sync.transfer.service.target.json, &answer, || {
        let (moved, bytes) = (count_text(done.items), size_text(done.bytes));
        let gone = if sync.delete { format!(", removed {removals}") } else { String::new() };
        format!("transferred {moved}, {bytes}; {unchanged} unchanged{gone}")
    });
    done.check().map_err(|failure| match sync.delete && !is_whole {
        true => failure.hint("nothing was removed; run it again once the cause is gone"),
        false => failure.hint("run it again: what is there is not sent again"),
    })
}

/// Neither side may lie within the other one: it would change while it is compared.
fn check_apart(source: &Spot, target: &Spot) -> Result<()> {
    let (Spot::Remote(source), Spot::Remote(target)) = (source, target) else { return Ok(()) };
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
    spot: &Spot,
    sync: &Sync,
    refused: &mut Vec<String>,
) -> Result<Side> {
    match spot {
        Spot::Local(folder) => {
            let tree = local::walk(folder, sync.transfer.follow_links)?;
            refused.extend(tree.refused);
            let thing = |found: local::Found| {
                let local::Found { name, path, size, modified } = found;
                (name, Thing::File { path, size, modified })
            };
            Ok(tree.files.into_iter().map(thing).collect())
        }
        Spot::Remote(address) => {
            let below = address.below();
            let mut side = Side::new();
            for entry in listing::below(session, &below)? {
                let (address, name) = relative(&below, &entry)?;
                side.insert(name, Thing::Blob { address, entry });
            }
            Ok(side)
        }
    }
}

/// The same of the target, which need not be there yet.
fn target_side(session: &mut Session, target: &Spot, sync: &Sync) -> Result<Side> {
    let is_missing = match target {
        Spot::Local(folder) => !folder.exists(),
        // It is there by now, unless it would only be created.
        Spot::Remote(to) if sync.transfer.dry_run && sync.transfer.create => {
            !listing::containers(session)?.contains(&to.container)
        }
        Spot::Remote(_) => false,
    };
    if is_missing {
        return Ok(Side::new());
    }
    // What is at the target alone is not transferred, so its names need not fit.
    side(session, target, sync, &mut Vec::new())
}

/// What is not the same at the target. Files are read only where nothing else tells.
fn differing(from: Side, to: &Side, parallel: u64) -> Vec<(String, Thing)> {
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
fn add(plan: &mut Plan, name: &str, thing: Thing, target: &Spot) -> Result<()> {
    match (thing, target) {
        (Thing::File { path, size, .. }, Spot::Remote(to)) => {
            plan.tasks.push(Task::Upload { file: path, size, to: to.below().with(name) });
        }
        (Thing::Blob { address, entry }, Spot::Local(folder)) => {
            plan.download(address, entry, Path::new(folder), name);
        }
        (Thing::Blob { address, entry }, Spot::Remote(to)) => {
            let to = to.below().with(name);
            plan.tasks.push(Task::Copy { from: address, to, size: entry.size });
        }
        (Thing::File { .. }, Spot::Local(_)) => return Err(plan::both_local()),
    }
    Ok(())
}

fn removal(thing: &Thing) -> Task {
    match thing {
        Thing::File { path, .. } => Task::RemoveFile(path.clone()),
        Thing::Blob { address, .. } => Task::Remove(address.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_of_one_container_lie_apart() {
        let check = |one: &str, two: &str| {
            check_apart(&Spot::read(one).unwrap(), &Spot::read(two).unwrap()).is_ok()
        };
        assert!(check("az://c/a", "az://d/a") && check("az://c/a", "az://c/ab"));
        assert!(check("az://c/a", "here"));
        assert!(!check("az://c/a", "az://c/a/b") && !check("az://c/a/b", "az://c"));
    }
}
