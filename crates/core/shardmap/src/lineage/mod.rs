//! Lineage: whether the folders that one process owns belong together, and which of them is an older copy.
//!
//! Every start of the process has a number that grows and a token that is drawn. The catalog and each of its *members*
//! (the shards, and the folder of block files) write the start down, in three steps per member:
//!
//! 1. the catalog: the member was last seen with start `a` and is about to take start `p`;
//! 2. the member: my start is `p`;
//! 3. the catalog: the member has taken `p`.
//!
//! A process that ends between two steps leaves a member with `a` or with `p`, and the catalog knows both, so what a crash
//! leaves is never taken for a copy. A start tells copies of earlier runs apart. For copies of the present run both
//! sides keep a floor: how many commits the other side had at least. Only commits that are on disk count.
//!
//! This is for stores that exactly one process opens, which are the embedded ones.

mod judge;
mod rows;

use lazuli_env::Id;

use crate::ShardId;
use crate::record::record_fields;

pub use judge::{Doubt, judge};
pub use rows::{
    last_start, put_last_start, put_witnesses, read_standing, read_witness, write_standing,
};

/// One run of the process that owns catalog and members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// Grows with every start.
    pub number: u64,
    /// Drawn at the start, so that two runs with one number can be told apart. It holds the time.
    pub token: Id,
}

/// Who writes starts down beside the catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Member {
    Shard(ShardId),
    /// The folder of block files.
    Blocks,
}

/// What the catalog remembers of a member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Witness {
    /// The start that the member was last seen with; none before its first.
    pub agreed: Option<Start>,
    /// The start that it may have taken since.
    pub pending: Option<Start>,
    /// The member had at least this many commits.
    pub floor: u64,
    /// When the catalog learnt that, in milliseconds since the Unix epoch.
    pub floor_ms: u64,
    /// Set once the catalog was found to be an older copy: how many commits it had, and how many the member knows of. A
    /// catalog goes on counting, so later its commits alone would not show it.
    pub behind: Option<(u64, u64)>,
}

/// What a member says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    pub start: Start,
    /// The catalog had at least this many commits.
    pub catalog_floor: u64,
}

impl Start {
    /// When it was, in milliseconds since the Unix epoch.
    pub fn millis(&self) -> u64 {
        self.token.millis()
    }
}

impl Witness {
    /// The first step: the member, found with start `found`, is about to take `next`.
    #[must_use]
    pub fn before(self, found: Option<Start>, next: Start) -> Self {
        Self { agreed: found, pending: Some(next), ..self }
    }

    /// The third step: the member has taken `start`, and has this many commits.
    pub fn after(start: Start, floor: u64, floor_ms: u64) -> Self {
        Self { agreed: Some(start), pending: None, floor, floor_ms, behind: None }
    }

    fn knows(&self, start: Start) -> bool {
        self.agreed == Some(start) || self.pending == Some(start)
    }

    /// The newest start that the catalog knows the member by.
    pub fn newest(&self) -> Option<Start> {
        self.pending.or(self.agreed)
    }
}

record_fields!(Start { number, token });
record_fields!(Witness { agreed, pending, floor, floor_ms, behind });
record_fields!(Standing { start, catalog_floor });
