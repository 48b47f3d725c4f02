//! Jobs: what was decided and is not finished. A job that was written down is carried on by whoever finds it.

use serde::{Deserialize, Serialize};

use crate::form::MappingForm;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    pub number: u64,
    /// Grows whenever another process takes the job over. Shards refuse what a former leader still tries.
    pub epoch: u64,
    #[serde(flatten)]
    pub work: Work,
    /// Why it does not go on at the moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// How it ended: `done` or `cancelled`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    #[serde(default)]
    pub begun_ms: u64,
    #[serde(default)]
    pub ended_ms: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Work {
    /// Local maps must take what the catalog has decided.
    Change(ChangeWork),
    Move(MoveWork),
    Ddl(DdlWork),
}

/// What shards hold from now on. The catalog's own mappings have changed already.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeWork {
    /// Mappings that a shard holds no more: shard and mapping.
    pub removed: Vec<(u32, u64)>,
    pub put: Vec<MappingForm>,
    /// Whether sessions that the client library has opened for these mappings are ended.
    #[serde(default)]
    pub ends_sessions: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoveWork {
    pub map: u32,
    pub mapping: u64,
    pub from: u32,
    pub to: u32,
    pub step: Step,
    pub options: MoveOptions,
    /// Rows that were counted in the range when the move began.
    #[serde(default)]
    pub rows_expected: u64,
    #[serde(default)]
    pub rows_copied: u64,
    #[serde(default)]
    pub changes_applied: u64,
    /// How long writers of the range waited.
    #[serde(default)]
    pub pause_us: u64,
    /// How often the range was closed and opened again because the rest took too long.
    #[serde(default)]
    pub retreats: u32,
}

/// Where a move is. Up to `Switch` it may be called off; from `Open` on it only goes forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    Prepare,
    Copy,
    CatchUp,
    Verify,
    Switch,
    Open,
    Retire,
    /// Called off: what was copied is deleted.
    Cancel,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MoveOptions {
    /// The longest time that writers of the range may have to wait.
    pub pause_limit_ms: u64,
    /// The most rows that are copied in a second; none for as fast as it goes.
    pub rows_per_second: Option<u64>,
    /// Whether the mover leaves out checks of foreign keys and triggers of users on the target, where it may.
    pub as_replica: bool,
}

impl Default for MoveOptions {
    fn default() -> Self {
        Self { pause_limit_ms: 500, rows_per_second: None, as_replica: true }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DdlWork {
    pub statement: String,
    pub canary: u32,
    /// Shards on which it has run.
    pub done: Vec<u32>,
    /// Whether it goes on by itself to the other shards after the canary.
    pub waits_after_canary: bool,
}
