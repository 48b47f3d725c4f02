//! Copies between local files and blobs, or from blob to blob: what is to be copied where.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lazuli_console::output::{self, size};
use lazuli_console::{Failure, Result};
use serde_json::{Value, json};

use super::address::{BlobAddress, Location, last, text_of};
use super::listing::{self, Entry};
use super::work::{self, Done, Options, Task};
use super::{Cp, Transfer, ensure, local, one};
use crate::account::Account;
use crate::session::Session;

/// All that is to be done, and what cannot be.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) tasks: Vec<Task>,
    /// Names that cannot be at the target, and why.
    pub(super) refused: Vec<String>,
}

impl Plan {
    /// A blob that is to be written below a folder, under a name of its own.
    pub(super) fn download(&mut self, from: BlobAddress, entry: Entry, root: &Path, name: &str) {
        match local::inside(root, name) {
            Ok(file) => {
                self.tasks.push(Task::Download { from, entry, root: root.to_owned(), file });
            }
            Err(reason) => self.refused.push(format!("cannot download {from}: {reason}")),
        }
    }
}

/// Copies files, folders and blobs.
pub fn cp(account: &Arc<Account>, cp: &Cp, json: bool) -> Result<()> {
    let (source, target) = locations(&cp.source, &cp.target)?;
    let has_choice = !cp.choice.include.is_empty() || !cp.choice.exclude.is_empty();
    if has_choice && !cp.recursive {
        return Err(Failure::usage("--include and --exclude go with --recursive"));
    }
    let mut session = Session::new(Arc::clone(account))?;
    let plan = match (source, target) {
        (Location::Local(file), Location::Remote(to)) => upload(&file, &to, cp)?,
        (Location::Remote(from), Location::Local(folder)) => {
            download(&mut session, &from, &folder, cp)?
        }
        (Location::Remote(from), Location::Remote(to)) => copy(&mut session, &from, &to, cp)?,
        (Location::Local(_), Location::Local(_)) => return Err(both_local()),
    };
    if cp.transfer.dry_run {
        show(&plan, json);
        return Ok(());
    }
    if let (true, Location::Remote(to)) = (cp.transfer.create, Location::read(&cp.target)?) {
        ensure(&mut session, &to.container)?;
    }
    let done = transfer(account, plan, &cp.transfer)?;
    output::changed(json, &summary(&done), || {
        format!("copied {}, {}", count_text(done.items), size(done.bytes))
    });
    done.check()
}

/// Source and target, of which at least one is in the service.
pub(super) fn locations(source: &str, target: &str) -> Result<(Location, Location)> {
    let (source, target) = (Location::read(source)?, Location::read(target)?);
    match (&source, &target) {
        (Location::Local(_), Location::Local(_)) => Err(both_local()),
        (Location::Remote(from), Location::Remote(to)) if from == to => {
            Err(Failure::usage("source and target are the same"))
        }
        _ => Ok((source, target)),
    }
}

pub(super) fn both_local() -> Failure {
    Failure::usage("neither the source nor the target is in a container")
        .hint("locations in containers are written az://container/name")
}

pub(super) fn transfer(account: &Arc<Account>, plan: Plan, transfer: &Transfer) -> Result<Done> {
    let Transfer { parallel, quiet, follow_links, .. } = *transfer;
    let options = Options { parallel, quiet, follow_links, announce: false };
    work::run(account, plan.tasks, &plan.refused, options)
}

pub(super) fn summary(done: &Done) -> Value {
    let seconds = done.elapsed.as_secs_f64();
    let (transferred, bytes, failed) = (done.items, done.bytes, done.failed);
    json!({ "transferred": transferred, "bytes": bytes, "failed": failed, "seconds": seconds })
}

pub(super) fn count_text(count: u64) -> String {
    if count == 1 { "1 blob".to_owned() } else { format!("{count} blobs") }
}

/// Prints what would be done.
pub(super) fn show(plan: &Plan, json: bool) {
    plan.refused.iter().for_each(|reason| eprintln!("{reason}"));
    if json {
        let tasks: Vec<Value> = plan.tasks.iter().map(Task::to_json).collect();
        output::json(&json!({ "tasks": tasks }));
    } else {
        plan.tasks.iter().for_each(|task| output::line(&format!("would {task}")));
    }
}

fn upload(source: &Path, to: &BlobAddress, cp: &Cp) -> Result<Plan> {
    let meta = fs::metadata(source).map_err(|error| local::cannot(source, &error))?;
    if !meta.is_dir() {
        let name = source.file_name().map(Path::new).unwrap_or(source);
        let own = text_of(name).map_err(Failure::failed)?;
        let to = if to.is_folder() { to.with(own) } else { to.clone() };
        let task = Task::Upload { file: source.to_owned(), size: meta.len(), to };
        return Ok(Plan { tasks: vec![task], refused: Vec::new() });
    }
    if !cp.recursive {
        let message = format!("{} is a folder", source.display());
        return Err(Failure::usage(message).hint("--recursive copies all that is in it"));
    }
    let tree = local::walk(source, cp.transfer.follow_links)?;
    let below = to.below();
    let task = |found: local::Found| {
        let to = below.with(&found.name);
        Task::Upload { file: found.path, size: found.size, to }
    };
    let chosen = tree.files.into_iter().filter(|found| cp.choice.has(&found.name));
    Ok(Plan { tasks: chosen.map(task).collect(), refused: tree.refused })
}

fn download(session: &mut Session, from: &BlobAddress, target: &Path, cp: &Cp) -> Result<Plan> {
    let mut plan = Plan::default();
    if cp.recursive {
        let below = from.below();
        for entry in listing::below(session, &below)? {
            let (blob, name) = relative(&below, &entry)?;
            if cp.choice.has(&name) {
                plan.download(blob, entry, target, &name);
            }
        }
        return Ok(plan);
    }
    let entry = single(session, from)?;
    let ends_with_slash = target.to_string_lossy().ends_with('/');
    if target.is_dir() || ends_with_slash {
        plan.download(from.clone(), entry, target, last(&from.name));
        return Ok(plan);
    }
    let root = match target.parent() {
        Some(parent) if parent != Path::new("") => parent.to_owned(),
        _ => PathBuf::from("."),
    };
    let name = target.file_name().ok_or_else(|| Failure::usage("the target is no file"))?;
    let file = root.join(name);
    plan.tasks.push(Task::Download { from: from.clone(), entry, root, file });
    Ok(plan)
}

fn copy(session: &mut Session, from: &BlobAddress, to: &BlobAddress, cp: &Cp) -> Result<Plan> {
    let mut plan = Plan::default();
    if !cp.recursive {
        let entry = single(session, from)?;
        let to = if to.is_folder() { to.with(last(&from.name)) } else { to.clone() };
        plan.tasks.push(Task::Copy { from: from.clone(), to, size: entry.size });
        return Ok(plan);
    }
    let (from, to) = (from.below(), to.below());
    for entry in listing::below(session, &from)? {
        let (blob, name) = relative(&from, &entry)?;
        if cp.choice.has(&name) {
            plan.tasks.push(Task::Copy { from: blob, to: to.with(&name), size: entry.size });
        }
    }
    Ok(plan)
}

const RECURSIVE_HINT: &str = "--recursive means everything below it";

/// Refuses a whole container where one blob is meant.
pub(super) fn check_name(blob: &BlobAddress) -> Result<()> {
    if blob.name.is_empty() {
        return Err(Failure::usage(format!("{blob} is a container")).hint(RECURSIVE_HINT));
    }
    Ok(())
}

/// The one blob of this name.
fn single(session: &mut Session, blob: &BlobAddress) -> Result<Entry> {
    check_name(blob)?;
    let missing = || Failure::failed(format!("there is no blob {blob}")).hint(RECURSIVE_HINT);
    one::stat(session, blob)?.ok_or_else(missing)
}

/// A blob of a list, and what its name has behind what all names begin with.
pub(super) fn relative(below: &BlobAddress, entry: &Entry) -> Result<(BlobAddress, String)> {
    let name = entry.name.strip_prefix(below.name.as_str()).ok_or_else(|| {
        Failure::failed("the service listed a name that does not begin as it was asked to")
    })?;
    let blob = BlobAddress { container: below.container.clone(), name: entry.name.clone() };
    Ok((blob, name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_least_one_end_is_in_the_service_and_they_differ() {
        assert!(locations("a", "b").is_err());
        assert!(locations("az://c/a", "az://c/a").is_err());
        assert!(locations("az://c/a", "az://c/b").is_ok());
        assert!(locations("a", "az://c/b").is_ok() && locations("az://c/b", "a").is_ok());
    }
}
