//! Preconditions on items, checked inside the lane on the state that the write will change.

use lazuli_store::{Error, Result};

use crate::item::Item;
use crate::lsn::Lsn;

/// What must hold of an item before a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Nothing.
    Any,
    /// There is no such item.
    Absent,
    /// There is one.
    Present,
    /// There is one and its last write had this number.
    Version(Lsn),
}

impl Condition {
    pub fn check(self, found: Option<&Item>) -> Result<()> {
        match (self, found) {
            (Self::Any, _) | (Self::Absent, None) | (Self::Present, Some(_)) => Ok(()),
            (Self::Version(wanted), Some(item)) if item.version == wanted => Ok(()),
            (Self::Absent, Some(_)) => Err(Error::exists("item-exists", "the item exists")),
            (Self::Present | Self::Version(_), None) => {
                Err(Error::not_found("item-not-found", "there is no such item"))
            }
            (Self::Version(wanted), Some(item)) => Err(Error::precondition(
                "version-mismatch",
                format!("the item has version {}, not {wanted}", item.version),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use lazuli_store::Kind;

    #[test]
    fn every_condition_on_a_present_and_an_absent_item() {
        let item =
            Item { version: Lsn(5), expires_ms: None, written_ms: None, payload: Bytes::new() };
        let kind = |condition: Condition, found| condition.check(found).err().map(|e| e.kind());
        assert_eq!(kind(Condition::Any, None), None);
        assert_eq!(kind(Condition::Any, Some(&item)), None);
        assert_eq!(kind(Condition::Absent, None), None);
        assert_eq!(kind(Condition::Absent, Some(&item)), Some(Kind::Exists));
        assert_eq!(kind(Condition::Present, None), Some(Kind::NotFound));
        assert_eq!(kind(Condition::Present, Some(&item)), None);
        assert_eq!(kind(Condition::Version(Lsn(5)), None), Some(Kind::NotFound));
        assert_eq!(kind(Condition::Version(Lsn(5)), Some(&item)), None);
        assert_eq!(kind(Condition::Version(Lsn(4)), Some(&item)), Some(Kind::Precondition));
    }
}
