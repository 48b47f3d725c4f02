//! `lazuli blob rm`: removes one blob, or everything below a prefix, and says what it removed.

use std::sync::Arc;

use serde_json::json;

use super::address::Address;
use super::task::Task;
use super::work::{self, Options};
use super::{blobs, find, listing, plan};
use crate::args::blob::Rm;
use crate::commands::remote::session::Session;
use crate::failure::Result;
use crate::output;

pub(super) fn run(rm: &Rm) -> Result<()> {
    let address = Address::read(&rm.place)?;
    let place = find(&rm.service)?;
    let mut session = Session::new(Arc::clone(&place))?;
    let json = rm.service.target.json;
    if !rm.recursive {
        plan::check_name(&address)?;
        blobs::remove(&mut session, &address)?;
        output::changed(json, &json!({ "removed": 1, "failed": 0 }), || {
            format!("removed {address}")
        });
        return Ok(());
    }
    let below = address.below();
    let entries = listing::below(&mut session, &below)?;
    let task = |entry: &listing::Entry| Ok(Task::Remove(plan::relative(&below, entry)?.0));
    let tasks = entries.iter().map(task).collect::<Result<_>>()?;
    let options =
        Options { parallel: rm.parallel, quiet: true, follow_links: false, announce: !json };
    let done = work::run(&place, tasks, &[], options)?;
    if json {
        output::json(&json!({ "removed": done.items, "failed": done.failed }));
    }
    done.check()
}
