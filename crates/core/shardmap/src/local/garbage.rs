//! What a shard is to delete, as its local map knows it.

use bytes::Bytes;
use lazuli_store::{Newest, Result, Write};

use super::rows::{garbage_key, scan_all};
use super::{APPLY_TRIES_MAX, Garbage, LocalMap, may_have_happened};
use crate::layout::Space;
use crate::record::decode;

impl LocalMap {
    /// What is to be deleted here.
    pub async fn garbage(&self) -> Result<Vec<Garbage>> {
        let items = scan_all(&Newest::of(&*self.store), Space::GARBAGE).await?;
        items.into_iter().map(|(_, row)| decode(row)).collect()
    }

    /// The guard of deleting a slice of this garbage, so that nothing is deleted that came to these routes afterwards.
    pub fn garbage_guard(id: u64) -> Bytes {
        garbage_key(id)
    }

    /// Says that this garbage is deleted. Again is fine.
    pub async fn garbage_done(&self, id: u64) -> Result<()> {
        let key = Self::garbage_guard(id);
        let mut tries = 1;
        loop {
            let done = async {
                let txn = self.store.begin(vec![key.clone()]).await?;
                txn.commit(vec![Write::Delete(key.clone())]).await
            };
            match done.await {
                // The row is gone.
                Err(error) if error.is_moved() => return Ok(()),
                Err(error) if may_have_happened(&error) && tries < APPLY_TRIES_MAX => tries += 1,
                result => return result,
            }
        }
    }
}
