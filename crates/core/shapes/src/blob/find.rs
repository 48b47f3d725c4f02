//! Finding blobs by their tags, in a container or in all of an account. A page says where it ended, also when nothing of
//! what it looked at was found, so that pages of any size lose nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use lazuli_engine::{
    Container, KeyPart, KeyRange, KeySchema, KeyType, Kind, Order, PageLimit, PartitionScan,
    Result, RowPage, View, after_prefix,
};

use super::Blobs;
use super::address::{ContainerAddress, names_of};
use super::cursor::{States, gathered};
use super::list::Page;
use super::record::BlobRecord;

/// The blobs that a partition looks at before it answers with what it has.
const EXAMINED_MAX: usize = 10_000;

/// Whether a blob is one that is looked for: its container and its tags.
pub type FindTest = Arc<dyn Fn(&str, &[(String, String)]) -> bool + Send + Sync>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundBlob {
    pub container: String,
    pub name: String,
    pub tags: Vec<(String, String)>,
}

impl Blobs {
    /// A page of the blobs with such tags, of one container or of all, behind the place where the page before ended.
    pub async fn find_by_tags(
        &self,
        account: &str,
        container: Option<&str>,
        test: FindTest,
        most: usize,
        after: Option<&Bytes>,
    ) -> Result<Page<FoundBlob>> {
        let (blobs, range) = match container {
            Some(name) => {
                let address =
                    ContainerAddress { account: account.to_owned(), container: name.to_owned() };
                let found = self.find(&address).await?;
                let schema = KeySchema::new(vec![KeyType::Text, KeyType::Int64])?;
                let generation = KeyPart::Int64(found.record.generation);
                let parts = [KeyPart::Text(name.to_owned()), generation];
                let start = found.blobs.kind.route(&schema, &parts)?;
                let range = KeyRange::new(start.clone(), after_prefix(&start));
                (found.blobs, range)
            }
            None => match self.contents(account).await? {
                Some(blobs) => (blobs, KeyRange::all()),
                None => return Ok(Page { entries: Vec::new(), next: None }),
            },
        };
        let scan = FindScan {
            shape: self,
            account,
            blobs: blobs.clone(),
            range,
            test,
            now_ms: self.now_ms(),
            generations: Mutex::default(),
        };
        self.page_of_list(&blobs, &scan, &scan.range, most, after).await
    }
}

struct FindScan<'a> {
    shape: &'a Blobs,
    account: &'a str,
    blobs: Arc<Container>,
    range: KeyRange,
    test: FindTest,
    now_ms: u64,
    /// The generations of the containers that there are, as far as they were asked for, and whether they hash their names.
    generations: Mutex<BTreeMap<String, Option<(i64, bool)>>>,
}

impl FindScan<'_> {
    /// Whether the names of a container are hashed; none if it is no more. Blobs of containers that were deleted stay for a
    /// while, and are not found.
    async fn is_hashed(&self, container: &str, generation: i64) -> Result<Option<bool>> {
        let alive = |known: Option<(i64, bool)>| {
            known.filter(|(known, _)| *known == generation).map(|(_, is_hashed)| is_hashed)
        };
        let lock = || self.generations.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(known) = lock().get(container) {
            return Ok(alive(*known));
        }
        let address =
            ContainerAddress { account: self.account.to_owned(), container: container.to_owned() };
        let found = match self.shape.find(&address).await {
            Ok(found) => Some((found.record.generation, found.record.is_hashed)),
            Err(error) if error.kind() == Kind::NotFound => None,
            Err(error) => return Err(error),
        };
        lock().insert(container.to_owned(), found);
        Ok(alive(found))
    }
}

impl PartitionScan for FindScan<'_> {
    type Row = (Bytes, FoundBlob);

    fn order(&self) -> Order {
        Order::ByRoute
    }

    async fn page(
        &self,
        view: &View,
        after: Option<&Bytes>,
        limit: PageLimit,
    ) -> Result<RowPage<Self::Row>> {
        let mut states = States::new(&self.blobs, &self.range, after, false);
        let mut page = RowPage { rows: Vec::new(), bytes: 0, next: None };
        for examined in 1.. {
            let Some(row) = states.next(view, PageLimit::items(1_000)).await? else { break };
            let key = row.sort_key();
            let record = BlobRecord::decode(row.item.payload)?;
            let is_there = record.is_committed && !record.is_expired(self.now_ms);
            if is_there && !record.tags.is_empty() {
                let (container, generation, name) = names_of(&self.blobs, &row.route)?;
                if (self.test)(&container, &record.tags)
                    && let Some(is_hashed) = self.is_hashed(&container, generation).await?
                {
                    let name = gathered(name, is_hashed);
                    page.bytes += key.len() + name.len() + record.tags.len() * 64;
                    let found = FoundBlob { container, name, tags: record.tags };
                    page.rows.push((key.clone(), found));
                }
            }
            let is_full = page.rows.len() >= limit.items || page.bytes >= limit.bytes;
            if is_full || examined >= EXAMINED_MAX {
                page.next = Some(key);
                break;
            }
        }
        Ok(page)
    }

    fn sort_key(&self, (key, _): &Self::Row) -> Result<Bytes> {
        Ok(key.clone())
    }
}
