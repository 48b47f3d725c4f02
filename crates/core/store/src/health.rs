//! What a store can take at the moment, and which commits give space back.
//!
//! A disk that is full or broken stops writes, not reads. A store says so here, so that the engine can refuse
//! a write before it is tried, serve reads as ever, and tell the operator why.

use crate::{Error, Write};

/// How much a commit may put for each key that it deletes and still count as one that frees space. Receiving a message
/// deletes one row and puts another of up to this size, and it comes before the message can be deleted.
const PUT_BYTES_PER_DELETE: usize = 80 * 1024;
/// The same where space is nearly used up: rows that record a deletion are smaller than this.
const PUT_BYTES_PER_DELETE_SCARCE: usize = 4 * 1024;
/// What a commit that frees space may put beside: figures of the partitions that it touches.
const PUT_BYTES_BESIDE: usize = 4 * 1024;

/// What a store can take at the moment.
#[derive(Clone, Debug)]
pub enum StoreHealth {
    /// Everything.
    Well,
    /// Reads, and writes that free space: the disk is full. The error is what all other writes are answered with.
    Full(Shortage, Error),
    /// Reads only: a write to disk has failed. The error is what writes are answered with.
    Failed(Error),
}

/// How little space is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shortage {
    /// Less than the store wants to have for its own work.
    Tight,
    /// Hardly any: what is left is for deletions.
    Scarce,
}

impl StoreHealth {
    /// A word for machines.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Well => "well",
            Self::Full(..) => "full",
            Self::Failed(_) => "failed",
        }
    }

    /// Why not everything is taken.
    pub fn reason(&self) -> Option<&Error> {
        match self {
            Self::Well => None,
            Self::Full(_, error) | Self::Failed(error) => Some(error),
        }
    }

    /// Refuses writes that cannot be taken now.
    pub fn check(&self, intake: Intake) -> Result<(), Error> {
        match self {
            Self::Well => Ok(()),
            Self::Full(shortage, _) if intake.frees(*shortage) => Ok(()),
            Self::Full(_, error) | Self::Failed(error) => Err(error.clone()),
        }
    }
}

/// How much some writes put and delete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Intake {
    pub deletes: usize,
    pub put_bytes: usize,
}

impl Intake {
    pub fn of<'a>(writes: impl IntoIterator<Item = &'a Write>) -> Self {
        let mut intake = Self::default();
        writes.into_iter().for_each(|write| intake.add(write));
        intake
    }

    pub fn add(&mut self, write: &Write) {
        match write {
            Write::Put(..) => self.put_bytes += write.bytes(),
            Write::Delete(_) => self.deletes += 1,
        }
    }

    /// Whether this gives space back, sooner or later, or is on the way to it.
    pub fn frees(&self, shortage: Shortage) -> bool {
        let per_delete = match shortage {
            Shortage::Tight => PUT_BYTES_PER_DELETE,
            Shortage::Scarce => PUT_BYTES_PER_DELETE_SCARCE,
        };
        let allowed = self.deletes.saturating_mul(per_delete).saturating_add(PUT_BYTES_BESIDE);
        self.deletes > 0 && self.put_bytes <= allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(bytes: usize) -> Write {
        Write::Put("key".into(), vec![0; bytes].into())
    }

    #[test]
    fn what_deletes_and_puts_little_frees_space() {
        let delete = Write::Delete("gone".into());
        let frees = |writes: &[Write]| {
            [Shortage::Tight, Shortage::Scarce].map(|it| Intake::of(writes).frees(it))
        };
        assert_eq!(frees(&[]), [false, false]);
        assert_eq!(frees(&[put(1)]), [false, false]);
        assert_eq!(frees(std::slice::from_ref(&delete)), [true, true]);
        assert_eq!(frees(&[delete.clone(), put(1_000)]), [true, true]);
        assert_eq!(frees(&[delete.clone(), put(64 * 1024)]), [true, false]);
        assert_eq!(frees(&[delete, put(256 * 1024)]), [false, false]);
    }

    #[test]
    fn a_full_store_takes_what_frees_space_and_a_failed_one_nothing() {
        let error = Error::unavailable("disk-full", "full");
        let (frees, takes) = (Intake { deletes: 1, put_bytes: 0 }, Intake::default());
        let full = StoreHealth::Full(Shortage::Tight, error.clone());
        assert!(StoreHealth::Well.check(takes).is_ok());
        assert!(full.check(frees).is_ok() && full.check(takes).is_err());
        assert!(StoreHealth::Failed(error).check(frees).is_err());
    }
}
