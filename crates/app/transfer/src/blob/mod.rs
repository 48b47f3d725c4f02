//! Containers and blobs of an account, in and out of files and folders.
//!
//! [`cp`] and [`sync`] make a list of tasks, which `work` does by several connections at the same time; `upload`, `download`
//! and `one` do one each.

mod address;
mod choice;
mod cp;
mod digest;
mod download;
mod listing;
mod local;
mod media;
mod one;
mod sync;
mod upload;
mod work;

use std::sync::Arc;

use clap::Args;
use lazuli_console::{Failure, Result, confirm, output};
use lazuli_http::date::{Fraction, TICKS_PER_SECOND, format_iso8601};
use serde_json::{Value, json};

use crate::account::Account;
use crate::session::{Call, Session};
use crate::table::PARALLEL_MAX;
use address::{container, shown};
use listing::Entry;
use work::{Options, Task};

pub use address::{BlobAddress, Location};
pub use choice::Choice;
pub use cp::cp;
pub use digest::Sum;
pub use local::{PART_SUFFIX, cannot};
pub use one::stat;
pub use sync::sync;
pub use upload::{BLOCK_BYTES, Upload};

#[derive(Clone, Debug, Args)]
pub struct Ls {
    /// az://CONTAINER, or az://CONTAINER/PREFIX for names that begin so [default: the containers]
    pub place: Option<String>,
    /// List all names, not only those up to the next slash
    #[arg(long, short)]
    pub recursive: bool,
}

/// How files and blobs are transferred.
#[derive(Clone, Debug, Args)]
pub struct Transfer {
    /// Create the container if it does not exist
    #[arg(long)]
    pub create: bool,
    /// Follow symbolic links to folders and files, which are skipped otherwise
    #[arg(long)]
    pub follow_links: bool,
    /// How many requests to send at the same time
    #[arg(long, value_name = "N", default_value = "8",
          value_parser = clap::value_parser!(u64).range(1..=PARALLEL_MAX))]
    pub parallel: u64,
    /// Only print what would be done
    #[arg(long)]
    pub dry_run: bool,
    /// Show no progress
    #[arg(long)]
    pub quiet: bool,
}

#[derive(Clone, Debug, Args)]
pub struct Cp {
    /// A file, a folder, or az://CONTAINER/NAME
    pub source: String,
    /// The same; copies into it if it is a folder or ends with a slash
    pub target: String,
    /// Copy everything below a folder or a prefix
    #[arg(long, short)]
    pub recursive: bool,
    #[command(flatten)]
    pub choice: Choice,
    #[command(flatten)]
    pub transfer: Transfer,
}

#[derive(Clone, Debug, Args)]
pub struct Sync {
    /// A folder, or az://CONTAINER/PREFIX
    pub source: String,
    /// The same
    pub target: String,
    /// Remove from the target what the source does not have
    #[arg(long)]
    pub delete: bool,
    #[command(flatten)]
    pub transfer: Transfer,
}

#[derive(Clone, Debug, Args)]
pub struct Rm {
    /// az://CONTAINER/NAME
    pub place: String,
    /// Remove everything below a prefix, or all blobs of a container
    #[arg(long, short)]
    pub recursive: bool,
    #[command(flatten)]
    pub choice: Choice,
    /// Only print what would be removed
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask before many blobs are removed
    #[arg(long, short)]
    pub yes: bool,
    /// How many requests to send at the same time
    #[arg(long, value_name = "N", default_value = "8",
          value_parser = clap::value_parser!(u64).range(1..=PARALLEL_MAX))]
    pub parallel: u64,
}

const CONTAINER: &str = "restype=container";

pub fn create(account: Arc<Account>, name: &str, json: bool) -> Result<()> {
    let name = container(name)?;
    let path = format!("/{name}");
    Session::new(account)?.expect(Call { query: CONTAINER, ..Call::new("PUT", &path) })?;
    let answer = json!({ "container": name });
    output::changed(json, &answer, || format!("created container {name}"));
    Ok(())
}

/// Creates a container unless it exists.
pub fn ensure(session: &mut Session, name: &str) -> Result<()> {
    let path = format!("/{name}");
    let call = Call { query: CONTAINER, ..Call::new("PUT", &path) };
    session.ensure(call, "ContainerAlreadyExists")
}

pub fn delete(account: Arc<Account>, name: &str, json: bool) -> Result<()> {
    let name = container(name)?;
    let path = format!("/{name}");
    Session::new(account)?.expect(Call { query: CONTAINER, ..Call::new("DELETE", &path) })?;
    let answer = json!({ "container": name });
    output::changed(json, &answer, || format!("deleted container {name}"));
    Ok(())
}

/// Prints containers, or blobs with their size and time.
pub fn ls(account: Arc<Account>, ls: &Ls, json: bool) -> Result<()> {
    let address = ls.place.as_deref().map(BlobAddress::read).transpose()?;
    let mut session = Session::new(account)?;
    let Some(address) = address else {
        let names = listing::containers(&mut session)?;
        match json {
            true => output::json(&json!({ "containers": names })),
            false => names.iter().for_each(|name| output::line(name)),
        }
        return Ok(());
    };
    let (mut blobs, mut prefixes): (Vec<Value>, Vec<String>) = (Vec::new(), Vec::new());
    listing::pages(&mut session, &address, ls.recursive, |page| {
        if json {
            blobs.extend(page.blobs.iter().map(to_json));
            prefixes.extend(page.prefixes);
            return listing::check_count(blobs.len() + prefixes.len());
        }
        for prefix in page.prefixes {
            output::line(&row("-", "-", &prefix));
        }
        for entry in &page.blobs {
            output::line(&row(&entry.size.to_string(), &time(entry.modified), &entry.name));
        }
        Ok(())
    })?;
    if json {
        output::json(&json!({ "blobs": blobs, "prefixes": prefixes }));
    }
    Ok(())
}

fn row(size: &str, time: &str, name: &str) -> String {
    format!("{size:>15}  {time:<20}  {}", shown(name))
}

fn time(seconds: i64) -> String {
    format_iso8601(seconds.saturating_mul(TICKS_PER_SECOND), Fraction::Shortest)
}

fn to_json(entry: &Entry) -> Value {
    json!({
        "name": entry.name, "size": entry.size, "modified": time(entry.modified),
        "md5": entry.md5, "etag": entry.etag, "type": entry.kind,
    })
}

/// Removes one blob, or everything below a prefix, and prints what it removed.
pub fn rm(account: &Arc<Account>, rm: &Rm, json: bool) -> Result<()> {
    let address = BlobAddress::read(&rm.place)?;
    let mut session = Session::new(Arc::clone(account))?;
    if !rm.recursive {
        cp::check_name(&address)?;
        if rm.dry_run {
            output::line(&format!("would remove {address}"));
            return Ok(());
        }
        one::remove(&mut session, &address)?;
        let answer = json!({ "removed": 1, "failed": 0 });
        output::changed(json, &answer, || format!("removed {address}"));
        return Ok(());
    }
    let below = address.below();
    let entries = listing::below(&mut session, &below)?;
    let mut tasks = Vec::new();
    for entry in &entries {
        let (blob, name) = cp::relative(&below, entry)?;
        if rm.choice.has(&name) {
            tasks.push(Task::Remove(blob));
        }
    }
    if rm.dry_run {
        cp::show(&cp::Plan { tasks, refused: Vec::new() }, json);
        return Ok(());
    }
    if !rm.yes
        && !confirm::ask(&format!("remove {} below {below}?", cp::count_text(tasks.len() as u64)))?
    {
        return Err(Failure::failed("nothing was removed"));
    }
    let options =
        Options { parallel: rm.parallel, quiet: true, follow_links: false, announce: !json };
    let done = work::run(account, tasks, &[], options)?;
    if json {
        output::json(&json!({ "removed": done.items, "failed": done.failed }));
    }
    done.check()
}
