//! Another partition key for a container that is in use: its items are copied into a new one, changes are followed until both are
//! the same, and then the new one takes the name of the former.
//!
//! Every step can be repeated, and the progress file says which one is next. So the command can be killed at any time and run
//! again. The order is what makes it right: the position in the feed of all versions is taken before the first item is copied,
//! so whatever changes afterwards comes by the feed. Applying an old change once more does no harm, since the newer ones
//! follow.

mod apply;
mod steps;
mod switch;
mod verify;

use std::path::PathBuf;
use std::sync::Arc;

use lazuli_console::progress::{Figures, Meter};
use lazuli_console::{Failure, Result, output};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Repartition;
use super::item::KeyPaths;
use super::service::{Place, Service};
use crate::account::Account;
use crate::progress::Progress;
use crate::session::Call;

/// How far it is, as the progress file keeps it.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct At {
    source_rid: String,
    target_rid: String,
    /// The position in the feed of all versions up to which changes were applied.
    position: String,
    /// Where the next page of items to copy begins.
    next: Option<String>,
    is_copied: bool,
    is_switched: bool,
    copied: u64,
    changes: u64,
}

/// A repartition under way.
struct Work {
    account: Arc<Account>,
    service: Service,
    source: Place,
    target: Place,
    /// The partition keys of both.
    from: KeyPaths,
    to: KeyPaths,
    parallel: u64,
    progress: Progress,
    meter: Meter,
    at: At,
}

/// Makes a container with another partition key of one that is in use.
pub fn repartition(account: &Arc<Account>, options: &Repartition, json: bool) -> Result<()> {
    let source = options.place.clone();
    let former = options.former.clone().unwrap_or(format!("{}-former", source.container));
    let target = source.named(&former);
    let to = KeyPaths::parse(&options.keys).map_err(Failure::usage)?;
    let what = json!({
        "repartition": account.base(), "container": source.shown(), "key": options.keys,
        "former": former,
    });
    let kept = PathBuf::from(format!("{}.{}.repartition", source.database, source.container));
    let progress = Progress::new(Some(options.progress.clone().unwrap_or(kept)), what);
    let at: Option<At> = match progress.read()? {
        Some(kept) => Some(serde_json::from_value(kept).map_err(|_| damaged())?),
        None => None,
    };
    let mut service = Service::new(account)?;
    let described = service.describe(&source)?;
    let meter = Meter::new("copied", "items", options.quiet, Figures::default(), None);
    let mut work = Work {
        account: Arc::clone(account),
        service,
        source,
        target,
        from: described.keys.clone(),
        to,
        parallel: options.parallel,
        progress,
        meter,
        at: at.unwrap_or_default(),
    };
    let done = work.run(options, &described.body, &described.rid);
    work.meter.finish();
    done.map_err(|failure| failure.hint("run the same command again to continue"))?;
    work.progress.remove()?;
    summary(&work, options, json);
    Ok(())
}

fn damaged() -> Failure {
    Failure::failed("the progress file is damaged").hint("remove it and the new container")
}

impl Work {
    fn run(&mut self, options: &Repartition, body: &Value, rid: &str) -> Result<()> {
        if !self.at.target_rid.is_empty() && rid == self.at.target_rid {
            // It was killed after the switch and before it could note it.
            self.at.is_switched = true;
        }
        if !self.at.is_switched {
            if self.at.position.is_empty() {
                self.prepare(body, rid)?;
            }
            if rid != self.at.source_rid {
                let message = "the container is another one than when this began";
                return Err(Failure::failed(message));
            }
            if self.at.target_rid.is_empty() {
                self.create_target(body, options.throughput)?;
            }
            self.copy()?;
            self.follow()?;
            let differing = self.verify()?;
            if options.no_switch {
                self.settle(differing)?;
                return self.compare_counts();
            }
            self.switch(differing)?;
        }
        if options.delete_former {
            let path = self.target.path();
            self.service.session.expect(Call::new("DELETE", &path))?;
        }
        Ok(())
    }

    fn save(&mut self) -> Result<()> {
        self.progress.save(json!(self.at))
    }

    fn save_if_due(&mut self) -> Result<()> {
        if self.progress.is_due() { self.save() } else { Ok(()) }
    }

    fn show(&mut self) {
        self.meter.show(Figures { items: self.at.copied + self.at.changes, bytes: 0 });
    }
}

fn summary(work: &Work, options: &Repartition, json: bool) {
    let (copied, changes) = (work.at.copied, work.at.changes);
    let (place, former) = (work.source.shown(), work.target.shown());
    let keys = options.keys.join(", ");
    let answer = json!({
        "container": place, "key": options.keys, "former": former, "copied": copied,
        "changes": changes, "switched": work.at.is_switched,
        "seconds": work.meter.elapsed().as_secs_f64(),
    });
    let counted = format!("copied {copied} items and applied {changes} changes");
    output::changed(json, &answer, || match (work.at.is_switched, options.delete_former) {
        (true, true) => format!("{place} is now partitioned by {keys}: {counted}"),
        (true, false) => {
            format!("{place} is now partitioned by {keys}: {counted}; {former} is the former one")
        }
        (false, _) => {
            format!("{former} has the items of {place}, partitioned by {keys}: {counted}")
        }
    });
}
