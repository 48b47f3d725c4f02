//! Lists of an account's containers, also of those that were deleted and can be restored.

use std::sync::Arc;

use bytes::Bytes;
use lazuli_engine::{
    Container, KeyPart, KeyRange, Lsn, Order, PageLimit, PartitionScan, Result, RowPage, View,
    after_prefix,
};

use super::Blobs;
use super::address::number_at;
use super::codec::damaged;
use super::container::ContainerRecord;
use super::cursor::{States, text_prefix};
use super::list::Page;

#[derive(Clone, Debug, Default)]
pub struct ListContainers {
    pub prefix: String,
    /// Whether those are listed that were deleted and can be restored.
    pub deleted: bool,
    pub most: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedContainer {
    pub name: String,
    /// The write that deleted it, by which it can be restored.
    pub deleted: Option<Lsn>,
    pub record: ContainerRecord,
}

impl Blobs {
    /// A page of the containers of an account, by name, behind the place where the page before ended.
    pub async fn list_containers(
        &self,
        account: &str,
        options: &ListContainers,
        after: Option<&Bytes>,
    ) -> Result<Page<ListedContainer>> {
        let Some(directory) = self.directory(account).await? else {
            return Ok(Page { entries: Vec::new(), next: None });
        };
        let start = text_prefix(&[], &options.prefix);
        let range = KeyRange::new(start.clone(), after_prefix(&start));
        let (now_ms, deleted) = (self.now_ms(), options.deleted);
        let scan = ContainerScan { directory: directory.clone(), range, deleted, now_ms };
        self.page_of_list(&directory, &scan, &scan.range, options.most, after).await
    }
}

struct ContainerScan {
    directory: Arc<Container>,
    range: KeyRange,
    deleted: bool,
    now_ms: u64,
}

impl PartitionScan for ContainerScan {
    type Row = (Bytes, ListedContainer);

    fn order(&self) -> Order {
        Order::ByRoute
    }

    async fn page(
        &self,
        view: &View,
        after: Option<&Bytes>,
        limit: PageLimit,
    ) -> Result<RowPage<Self::Row>> {
        let mut states = States::new(&self.directory, &self.range, after, self.deleted);
        let mut page = RowPage { rows: Vec::new(), bytes: 0, next: None };
        while let Some(row) = states.next(view, limit).await? {
            let key = row.sort_key();
            page.bytes += key.len() + row.item.payload.len();
            let record = ContainerRecord::decode(row.item.payload)?;
            if record.deleted.is_some_and(|deleted| deleted.until_ms <= self.now_ms) {
                continue;
            }
            let parts = self.directory.kind.key(&self.directory.key, &row.route)?;
            let [KeyPart::Text(name)] = &parts[..] else { return Err(damaged()) };
            let deleted = match row.past {
                Some(past) => Some(Lsn(number_at(&past, 0).ok_or_else(damaged)?)),
                None => None,
            };
            let listed = ListedContainer { name: name.clone(), deleted, record };
            page.rows.push((key.clone(), listed));
            if page.rows.len() >= limit.items || page.bytes >= limit.bytes {
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
