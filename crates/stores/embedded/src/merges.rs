//! Has the engine's thread rest while it merges tables, as long as it is not behind.
//!
//! Nobody waits for a merge, but many may wait for the core that it keeps. The engine asks a filter about every value
//! that it merges, and this one keeps all of them. While so many runs of tables wait to be merged that commits might
//! have to wait for it, it does not rest.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fjall::compaction::filter::{
    CompactionFilter, CompactionFilterResult, Context, Factory, ItemAccessor, Verdict,
};
use lazuli_env::real::Rests;

/// With so many runs that wait to be merged there is no time to rest.
pub(crate) const RUNS_RESTING_MAX: usize = 8;

/// Whether merges are behind, known to those who merge and to the one who looks.
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

/// One merge.
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
