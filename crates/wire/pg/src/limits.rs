//! How much a message may hold.

/// The longest message of a client that has proven who it is: what PostgreSQL itself takes.
pub const MESSAGE_BYTES_MAX: usize = 0x3fff_ffff;
/// The longest message of a client before that.
pub const STRANGER_BYTES_MAX: usize = 10_000;
/// The longest message of a shard.
pub const SERVER_MESSAGE_BYTES_MAX: usize = 0x3fff_ffff;
/// The most parameters of one statement: their count is a 16-bit number.
pub const PARAMETERS_MAX: usize = 65_535;
/// How many hash rounds a verifier of ours has.
pub const SCRAM_ITERATIONS: u32 = 4096;
/// The longest message of SCRAM.
pub const SCRAM_BYTES_MAX: usize = 4096;
