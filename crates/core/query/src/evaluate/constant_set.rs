//! Long lists of constants: whether a value is among them is looked up, not compared one by one.

use std::collections::BTreeSet;

use lazuli_value::{Kind, Value, ValueRef, canonical_hash};

/// The constants of an IN.
#[derive(Clone, Debug, PartialEq)]
pub struct ConstantSet {
    hashes: BTreeSet<u128>,
    kinds: BTreeSet<Kind>,
    has_undefined: bool,
}

impl ConstantSet {
    pub fn new<'v>(constants: impl Iterator<Item = Option<&'v Value>>) -> Self {
        let (mut hashes, mut kinds, mut has_undefined) = (BTreeSet::new(), BTreeSet::new(), false);
        for constant in constants {
            match constant {
                Some(value) => {
                    hashes.insert(canonical_hash(value.into()));
                    kinds.insert(ValueRef::from(value).kind());
                }
                None => has_undefined = true,
            }
        }
        Self { hashes, kinds, has_undefined }
    }

    /// What comparing with each of them would give: undefined if none is equal and one is of another kind.
    pub(super) fn contains(&self, value: ValueRef<'_>) -> Option<bool> {
        if self.hashes.contains(&canonical_hash(value)) {
            return Some(true);
        }
        let is_one_kind = self.kinds.iter().all(|kind| *kind == value.kind());
        (is_one_kind && !self.has_undefined).then_some(false)
    }
}
