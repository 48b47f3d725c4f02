//! Deleted containers: first kept for a while where the account wants that, then their blobs are cleared away.

use lazuli_engine::{
    Container, ItemKey, KeyPart, KeyRange, KeySchema, KeyType, Result, Space, Transaction, Tx,
    after_prefix,
};

use super::Blobs;
use super::address::number_at;
use super::codec::damaged;
use super::collect::{Collected, route_of};
use super::container::ContainerRecord;
use super::limits::DEAD_GENERATION_MS;
use super::sweep::Erase;

/// Moves a deleted container whose time is over among the garbage.
struct Expire {
    key: ItemKey,
}

impl Transaction for Expire {
    type Output = ();

    async fn run(&self, tx: &mut Tx<'_>) -> Result<()> {
        let Some(item) = tx.get(&self.key).await? else { return Ok(()) };
        let record = ContainerRecord::decode(item.payload.clone())?;
        if record.deleted.is_none_or(|deleted| deleted.until_ms > tx.now_ms()) {
            return Ok(());
        }
        tx.delete(&self.key).await?;
        let row = tx.lsn().0.to_be_bytes();
        let container = self.key.container();
        let garbage = ItemKey::new(container, Space::BLOB_GARBAGE, self.key.route(), &row);
        tx.put(&garbage, item.payload).await
    }

    fn cost(&self) -> u32 {
        0
    }
}

struct Delete {
    key: ItemKey,
}

impl Transaction for Delete {
    type Output = ();

    async fn run(&self, tx: &mut Tx<'_>) -> Result<()> {
        tx.delete(&self.key).await.map(|_| ())
    }

    fn cost(&self) -> u32 {
        0
    }
}

impl Blobs {
    /// Clears away the blobs of containers that were deleted for good.
    pub(super) async fn collect_containers(&self, directory: &Container) -> Result<Collected> {
        let mut done = Collected::default();
        for space in [Space::BLOB_PAST, Space::BLOB_GARBAGE] {
            let mut after = None;
            loop {
                let range = KeyRange::all();
                let (rows, next) = self.page_of(directory, space, &range, after.as_ref()).await?;
                for (_, key, item) in rows {
                    let record = ContainerRecord::decode(item.payload)?;
                    let route = route_of(&key);
                    if space == Space::BLOB_PAST {
                        let now_ms = self.now_ms();
                        if record.deleted.is_some_and(|deleted| deleted.until_ms <= now_ms) {
                            self.engine.write(directory.id, &route, Expire { key }).await?;
                        }
                        continue;
                    }
                    done.blobs += self.erase_generation(directory, &key, &record).await?;
                }
                match next {
                    Some(next) => after = Some(next),
                    None => break,
                }
            }
        }
        Ok(done)
    }

    /// Clears away the blobs of one generation of a container. What says that it is dead stays for some time, because a
    /// write that had begun before may come late.
    async fn erase_generation(
        &self,
        directory: &Container,
        key: &ItemKey,
        record: &ContainerRecord,
    ) -> Result<u64> {
        let account = directory.name.strip_prefix("blob-containers/").unwrap_or_default();
        let Some(blobs) = self.contents(account).await? else { return Ok(0) };
        let names = directory.kind.key(&directory.key, key.route())?;
        let [KeyPart::Text(name)] = &names[..] else { return Err(damaged()) };
        let prefix = KeySchema::new(vec![KeyType::Text, KeyType::Int64])?;
        let parts = [KeyPart::Text(name.clone()), KeyPart::Int64(record.generation)];
        let start = blobs.kind.route(&prefix, &parts)?;
        let range = KeyRange::new(start.clone(), after_prefix(&start));
        let mut erased = 0;
        for space in [Space::ITEMS, Space::BLOB_PAST] {
            loop {
                let (rows, next) = self.page_of(&blobs, space, &range, None).await?;
                for (place, _, _) in rows {
                    self.commit(&place, Erase { place: place.clone() }, None).await?;
                    erased += 1;
                }
                if next.is_none() {
                    break;
                }
            }
        }
        let deleted_ms = number_at(key.row(), 0).ok_or_else(damaged)? >> 12;
        if erased == 0 && deleted_ms + DEAD_GENERATION_MS <= self.now_ms() {
            let delete = Delete { key: key.clone() };
            self.engine.write(directory.id, &route_of(key), delete).await?;
        }
        Ok(erased)
    }
}
