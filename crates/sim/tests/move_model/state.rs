//! What the model remembers: the catalog, two shards, and everybody who does something to them.
//!
//! Numbers that count from 1 use 0 for "none", so that states stay small and comparable.

/// How many keys the partition has. Each is one chunk of the copy.
pub(crate) const KEYS: usize = 2;
/// How many writes can be written down for the move. Index 0 stays empty.
pub(crate) const LOG: usize = 8;

/// One value per key. 0 is a key that does not exist.
pub(crate) type Data = [u8; KEYS];

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub(crate) enum RowState {
    #[default]
    Online,
    /// Open, and every write writes its key down.
    Sending,
    Fenced,
}

/// The partition's row in a local map: the guard of its writes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub(crate) struct Row {
    /// 0: the shard has no row.
    pub epoch: u8,
    pub state: RowState,
}

impl Row {
    /// Whether it is the row that somebody with this epoch in its cache looks for.
    pub(crate) fn is_at(self, epoch: u8) -> bool {
        self.epoch != 0 && self.epoch == epoch
    }

    pub(crate) fn is_open(self) -> bool {
        self.epoch != 0 && self.state != RowState::Fenced
    }
}

/// The guard of what is copied to a shard, and how far the copy has come.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub(crate) struct Arrival {
    /// 0: nothing arrives. Job epochs grow over all moves, so one number stands for the move and its job epoch.
    pub job: u8,
    pub copied: u8,
    pub position: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub(crate) struct Shard {
    pub row: Row,
    pub arrival: Arrival,
    pub garbage: bool,
    /// The number of the last operation it took.
    pub applied: u8,
    pub data: Data,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub(crate) enum Stage {
    #[default]
    NoMove,
    Copying,
    Fenced,
    /// Committed; the source deletes its garbage.
    Retiring,
    /// Cancelled on the source; the target still has its arrival.
    Clearing,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub(crate) enum Kind {
    #[default]
    Begin,
    Take,
    Fence,
    Reopen,
    Commit,
    Cancel,
    Clear,
}

/// An operation as the catalog writes it down: all that it will do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub(crate) struct Operation {
    /// 0: no operation.
    pub number: u8,
    pub kind: Kind,
    pub source: u8,
    pub epoch: u8,
    pub job: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub(crate) struct Catalog {
    pub owner: u8,
    pub epoch: u8,
    pub stage: Stage,
    pub job: u8,
    pub pending: Operation,
    /// The number of the last operation.
    pub version: u8,
    /// The highest job epoch given out.
    pub jobs: u8,
    pub moves: u8,
    pub reopens: u8,
}

/// What one read of the source brings to the target, in one commit with the progress it makes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub(crate) struct Pass {
    /// 0: no pass.
    pub job: u8,
    pub target: u8,
    /// Which keys it brings, and their values in the snapshot.
    pub keys: [bool; KEYS],
    pub values: Data,
    /// Whether it is a chunk of the copy, not a pass over what was written down.
    pub is_chunk: bool,
    pub copied: u8,
    pub position: u8,
}

/// Everything a coordinator knows. A crash takes all of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub(crate) struct Coordinator {
    /// 0: it leads nothing.
    pub job: u8,
    pub target: u8,
    pub fenced: bool,
    /// The final pass is done.
    pub ready: bool,
    /// Read and not yet written.
    pub pass: Pass,
    /// The operation that it takes through its steps, and how many of them it has done.
    pub operation: Operation,
    pub steps_done: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub(crate) struct Writer {
    pub done: u8,
    /// Its cache: where the partition is, and at which epoch.
    pub shard: u8,
    pub epoch: u8,
    /// It has passed the check and is about to commit.
    pub checked: bool,
    /// What the check told it: that its key has to be written down.
    pub records: bool,
    pub lsn: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub(crate) enum Reading {
    #[default]
    Rest,
    /// It has its snapshot, which shows all that was answered by then, or does not.
    Fresh,
    Stale,
    /// It has passed the check before it took a snapshot.
    Checked,
    /// It was given what it must not see.
    Wrong,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub(crate) struct Reader {
    pub shard: u8,
    pub epoch: u8,
    pub reading: Reading,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub(crate) struct State {
    pub catalog: Catalog,
    pub shards: [Shard; 2],
    /// By LSN: the key that was written, plus one.
    pub log: [u8; LOG],
    pub lsn: u8,
    /// What the partition holds by all that was answered.
    pub truth: Data,
    pub writers: [Writer; 2],
    pub reader: Reader,
    pub coordinators: [Coordinator; 2],
    /// A pass whose coordinator no longer waits for it. It may still be written.
    pub stray: Pass,
    /// Somebody is about to delete what was written down for a move that is over.
    pub clears: bool,
    /// The target of the first move has gone, for good.
    pub target_gone: bool,
}

impl State {
    pub(crate) fn is_gone(&self, shard: u8) -> bool {
        self.target_gone && shard == 1
    }

    pub(crate) fn shard(&mut self, shard: u8) -> &mut Shard {
        &mut self.shards[usize::from(shard)]
    }
}
