//! Copies of a store that may be read where an old state will do, such as standbys of a database.

use std::time::Duration;

use crate::Error;

/// What a store knows of its copies at the moment.
#[derive(Clone, Debug)]
pub enum Copies {
    /// One is read. Whatever was answered longer ago than this is in it.
    Behind(Duration),
    /// None can be read, for this reason: the newest state is read instead.
    Unused(Error),
}

impl Copies {
    /// How old the state may be that a read gets.
    pub fn staleness(&self) -> Duration {
        match self {
            Self::Behind(time) => *time,
            Self::Unused(_) => Duration::ZERO,
        }
    }
}
