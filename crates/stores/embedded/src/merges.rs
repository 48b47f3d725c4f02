//! Rate-limits the engine's compactions, as long as they are not behind.
//!
//! A compaction is background work that would keep a core from requests. The engine calls a filter for every value
//! that it compacts; this filter keeps all values and pauses the thread. While so many runs of tables wait for
//! compaction that commits might have to wait, it does not pause.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fjall::compaction::filter::{
    CompactionFilter, CompactionFilterResult, Context, Factory, ItemAccessor, Verdict,
};
use lazuli_env::real::Rests;

/// With this many runs waiting for compaction there are no pauses.
pub(crate) const RUNS_RESTING_MAX: usize = 8;

/// Whether compactions are behind, shared by the filters and the committer.
#[derive(Clone, Default)]
pub(crate) struct Hurry(Arc<AtomicBool>);

impl Hurry {
    pub(crate) fn set(&self, is_behind: bool) {
        self.0.store(is_behind, Ordering::Relaxed);
    }
}

impl Factory for Hurry {
    fn name(&self) -> &'static str {
        "lazuli:rests"
    }

    fn make_filter(&self, _: &Context) -> Box<dyn CompactionFilter> {
        Box::new(Merge { hurry: self.clone(), rests: Rests::default() })
    }
}

/// One compaction.
struct Merge {
    hurry: Hurry,
    rests: Rests,
}

impl CompactionFilter for Merge {
    fn filter_item(&mut self, _: ItemAccessor<'_>, _: &Context) -> CompactionFilterResult {
        if !self.hurry.0.load(Ordering::Relaxed) {
            self.rests.look();
        }
        Ok(Verdict::Keep)
    }
}
