//! The limits of scripts.

/// What all scripts together may hold in memory.
pub(crate) const MEMORY_BYTES_MAX: usize = 64 * 1024 * 1024;
/// After so many steps of the machine it is looked whether the script is to end.
pub(crate) const STEPS_BETWEEN_LOOKS: u32 = 10_000;
/// How deep results of scripts, JSON and MessagePack may be nested.
pub(crate) const DEPTH_MAX: usize = 200;
/// The most arguments that a script may call a command with.
pub(crate) const ARGUMENTS_MAX: usize = 1_000_000;
