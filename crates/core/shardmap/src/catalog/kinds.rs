//! Whose records are whose: each user of [`super::RecordWrite`] has a number of its own.

/// Accounts of the fronts, with their keys.
pub const ACCOUNT: u8 = 0x01;
/// Settings of a front's service, by service and account.
pub const SERVICE: u8 = 0x02;
/// Nodes of a fleet: what each says of itself, by its id.
pub const NODE: u8 = 0x03;
/// Changes that the admin APIs of a fleet were asked for, by number.
pub const AUDIT: u8 = 0x04;
/// Work that nodes have begun beside their leases, by its name: the id of the node.
pub const CLAIM: u8 = 0x05;
/// Restores of a fleet, by the id of the node that runs them; under an empty key the last number that was given to one.
pub const RESTORE: u8 = 0x06;
/// The number of the last write of reference data.
pub const REFERENCE_HEAD: u8 = 0x10;
/// Writes of reference data by their numbers.
pub const REFERENCE_LOG: u8 = 0x11;
/// Entries of reference data.
pub const REFERENCE: u8 = 0x12;
/// Multi-step jobs that are not finished.
pub const JOB: u8 = 0x20;
/// Multi-step jobs that are finished.
pub const JOB_FINISHED: u8 = 0x21;
/// Moves that are over, by number.
pub const MOVE_FINISHED: u8 = 0x22;
/// Starts of the process that owns the folder, and what members were seen with: see `lineage`.
pub const START: u8 = 0x31;
/// Shards that are to be emptied, by id.
pub const SHARD_DRAINED: u8 = 0x30;
/// Sharded SQL databases by name: shards, maps and tables, without mappings.
pub const SQL_DATABASE: u8 = 0x40;
/// Mappings of sharded SQL databases, by database and number.
pub const SQL_MAPPING: u8 = 0x41;
/// Jobs of sharded SQL databases that are not finished, by database and number.
pub const SQL_JOB: u8 = 0x42;
/// Those that are finished.
pub const SQL_JOB_FINISHED: u8 = 0x43;
