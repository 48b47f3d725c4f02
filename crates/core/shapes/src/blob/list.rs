//! Lists of blobs: by name, with past states where they are wanted, or by groups of names up to a delimiter. A group is
//! seen once and then passed over, however many names it has.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use lazuli_engine::{
    Container, Continuation, Direction, FanOut, KeyPart, KeyRange, KeySchema, KeyType, Lsn,
    OnFailure, Order, PREFIX_BYTES, PageLimit, PartitionScan, Result, RowPage, Space, View,
    after_prefix,
};

use super::Blobs;
use super::address::{ContainerAddress, Past, Which, names_of};
use super::cursor::{LAST, Row, States, gathered, text_prefix};
use super::record::BlobRecord;
use super::rows::damaged;
use super::shardlet::past_of;

/// The rows that a partition reads before it answers with what it has, listed or not.
const EXAMINED_MAX: usize = 10_000;
/// The past states that are read at once to find the newest version of a name; mostly the last one is.
const VERSIONS_AT_ONCE: usize = 8;

/// Which states a list has besides current ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Include {
    pub snapshots: bool,
    pub versions: bool,
    /// What was deleted and can be restored, of the kinds that are listed.
    pub deleted: bool,
    /// Blobs that have blocks and no commit yet.
    pub uncommitted: bool,
    /// Names that have versions and no current one.
    pub versions_only: bool,
}

#[derive(Clone, Debug)]
pub struct ListOptions {
    pub prefix: String,
    /// Names before this one are left out.
    pub from: Option<String>,
    /// Where names share a beginning up to this text, behind the prefix, only the beginning is listed.
    pub delimiter: Option<String>,
    pub include: Include,
    pub most: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listed {
    Blob(Box<ListedBlob>),
    /// A beginning that names share, with the delimiter at its end.
    Prefix(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedBlob {
    pub name: String,
    /// Which state it is. A deleted blob is listed as the current one, with a record that says so.
    pub which: Which,
    pub record: BlobRecord,
    /// Whether the name has versions and no current one. The record is then that of the newest version, with the moment of
    /// its end as its version.
    pub has_versions_only: bool,
}

/// A page of a list.
#[derive(Debug)]
pub struct Page<Entry> {
    pub entries: Vec<Entry>,
    /// Where the next page goes on, for the caller to bring back; none at the end.
    pub next: Option<Bytes>,
}

impl Blobs {
    /// A page of the blobs of a container, behind the place where the page before ended.
    pub async fn list(
        &self,
        address: &ContainerAddress,
        options: &ListOptions,
        after: Option<&Bytes>,
    ) -> Result<Page<Listed>> {
        let found = self.find(address).await?;
        let prefix = KeySchema::new(vec![KeyType::Text, KeyType::Int64])?;
        let container = KeyPart::Text(address.container.clone());
        let parts = [container, KeyPart::Int64(found.record.generation)];
        let inside = found.blobs.kind.route(&prefix, &parts)?;
        if found.record.is_hashed {
            return Box::pin(self.list_hashed(&found.blobs, &inside, options, after)).await;
        }
        let rows = self.rows_of_list(&found.blobs, inside, false, options, after).await?;
        let entries = rows.entries.into_iter().map(|(_, entry)| entry).collect();
        Ok(Page { entries, next: rows.next })
    }

    /// A page of the blobs whose routes begin so, with their sort keys.
    pub(super) async fn rows_of_list(
        &self,
        blobs: &Arc<Container>,
        inside: Bytes,
        is_hashed: bool,
        options: &ListOptions,
        after: Option<&Bytes>,
    ) -> Result<Page<(Bytes, Listed)>> {
        let start = text_prefix(&inside, &options.prefix);
        let from = options.from.as_ref().map(|from| text_prefix(&inside, from));
        let range =
            KeyRange::new(from.unwrap_or_default().max(start.clone()), after_prefix(&start));
        if range.is_empty() {
            return Ok(Page { entries: Vec::new(), next: None });
        }
        let now_ms = self.now_ms();
        let scan = ListScan { blobs: blobs.clone(), inside, is_hashed, range, options, now_ms };
        self.page_of_rows(blobs, &scan, &scan.range, options.most, after).await
    }

    /// A page of rows without their keys.
    pub(super) async fn page_of_list<Entry: Send>(
        &self,
        container: &Container,
        scan: &impl PartitionScan<Row = (Bytes, Entry)>,
        routes: &KeyRange,
        most: usize,
        after: Option<&Bytes>,
    ) -> Result<Page<Entry>> {
        let page = self.page_of_rows(container, scan, routes, most, after).await?;
        let entries = page.entries.into_iter().map(|(_, entry)| entry).collect();
        Ok(Page { entries, next: page.next })
    }

    /// Asks for one row more than wanted, so that the last page knows that it is the last.
    async fn page_of_rows<Entry: Send>(
        &self,
        container: &Container,
        scan: &impl PartitionScan<Row = (Bytes, Entry)>,
        routes: &KeyRange,
        most: usize,
        after: Option<&Bytes>,
    ) -> Result<Page<(Bytes, Entry)>> {
        let after = after.map(|after| Continuation::new(container.id, after.clone()));
        let limit = PageLimit::items(most.max(1) + 1);
        let request = FanOut { routes: routes.clone(), limit, on_failure: OnFailure::Fail };
        let mut page = self.engine.fan_out(container.id, scan, &request, after.as_ref()).await?;
        let mut next = page.next.map(|next| next.position().clone());
        if page.rows.len() > most.max(1) {
            page.rows.truncate(most.max(1));
            next = page.rows.last().map(|(key, _)| key.clone());
        }
        Ok(Page { entries: page.rows, next })
    }
}

struct ListScan<'a> {
    blobs: Arc<Container>,
    /// What the routes of all blobs of the container begin with.
    inside: Bytes,
    is_hashed: bool,
    range: KeyRange,
    options: &'a ListOptions,
    now_ms: u64,
}

impl PartitionScan for ListScan<'_> {
    type Row = (Bytes, Listed);

    fn order(&self) -> Order {
        Order::ByRoute
    }

    async fn page(
        &self,
        view: &View,
        after: Option<&Bytes>,
        limit: PageLimit,
    ) -> Result<RowPage<Self::Row>> {
        let include = self.options.include;
        let with_past =
            include.snapshots || include.versions || include.deleted || include.versions_only;
        let mut states = States::new(&self.blobs, &self.range, after, with_past);
        let at_once = PageLimit { items: self.at_once(limit), bytes: limit.bytes };
        let mut page = RowPage { rows: Vec::new(), bytes: 0, next: None };
        // The name whose past states were the last rows, as long as its current one was not seen.
        let mut open = after.and_then(|after| self.route_of_past(after));
        for examined in 1.. {
            let row = states.next(view, at_once).await?;
            if let Some(route) = self.ended(&mut open, row.as_ref())
                && let Some((key, blob)) = self.versions_only(view, &route).await?
            {
                let key = self.add(&mut page, &mut states, key, blob);
                if self.is_full(&page, limit, examined) {
                    page.next = Some(key);
                    break;
                }
                // The row that was read may be in the same group of names.
                if row.as_ref().is_some_and(|row| row.sort_key() <= key) {
                    open = None;
                    continue;
                }
            }
            let Some(row) = row else { break };
            let at = row.sort_key();
            let name = self.name_of(&row.route)?;
            page.bytes += at.len() + row.item.payload.len();
            // A row of a current state that is not listed does not make the blob a current one.
            let closed = if row.past.is_none() { open.take() } else { None };
            let key = match (self.listed(row)?, closed) {
                (Some((which, record)), _) => {
                    let blob = ListedBlob { name, which, record, has_versions_only: false };
                    self.add(&mut page, &mut states, at.clone(), blob)
                }
                (None, Some(route)) => match self.versions_only(view, &route).await? {
                    Some((key, blob)) => self.add(&mut page, &mut states, key, blob),
                    None => at.clone(),
                },
                (None, None) => at.clone(),
            };
            if key != at {
                open = None;
            }
            if self.is_full(&page, limit, examined) {
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

impl ListScan<'_> {
    /// Adds an entry for a blob, or for the group of names that it is in. Answers the key behind which the list goes on.
    fn add(
        &self,
        page: &mut RowPage<(Bytes, Listed)>,
        states: &mut States<'_>,
        mut key: Bytes,
        blob: ListedBlob,
    ) -> Bytes {
        let entry = match self.group_of(&blob.name) {
            Some(group) => {
                let mut behind = BytesMut::from(&text_prefix(&self.inside, group)[..]);
                behind.put_u8(LAST);
                key = behind.freeze();
                states.seek(&key);
                Listed::Prefix(group.to_owned())
            }
            None => Listed::Blob(Box::new(blob)),
        };
        page.rows.push((key.clone(), entry));
        key
    }

    fn is_full(&self, page: &RowPage<(Bytes, Listed)>, limit: PageLimit, examined: usize) -> bool {
        page.rows.len() >= limit.items || page.bytes >= limit.bytes || examined >= EXAMINED_MAX
    }

    /// The name whose past state the page before ended with.
    fn route_of_past(&self, after: &Bytes) -> Option<Bytes> {
        let (route, row) = self.blobs.kind.split(&self.blobs.key, after).ok()?;
        (self.options.include.versions_only && past_of(row).is_ok()).then(|| after.slice_ref(route))
    }

    /// The name that has no current state, because the next row is one of another name.
    fn ended(&self, open: &mut Option<Bytes>, row: Option<&Row>) -> Option<Bytes> {
        if open.as_ref().is_some_and(|open| row.is_some_and(|row| row.route == *open)) {
            return None;
        }
        let is_past = |row: &&Row| row.past.is_some() && self.options.include.versions_only;
        std::mem::replace(open, row.filter(is_past).map(|row| row.route.clone()))
    }

    /// The entry of a name without a current state, where the current one would be, if the name has a version.
    async fn versions_only(
        &self,
        view: &View,
        route: &Bytes,
    ) -> Result<Option<(Bytes, ListedBlob)>> {
        let mut range = KeyRange::new(route.clone(), after_prefix(route));
        loop {
            let limit = PageLimit::items(VERSIONS_AT_ONCE);
            let page = view.scan(Space::BLOB_PAST, &range, Direction::Backward, limit).await?;
            for (key, item) in page.items {
                let behind = key.slice(PREFIX_BYTES..);
                let (_, row) = self.blobs.kind.split(&self.blobs.key, &behind)?;
                let mut record = BlobRecord::decode(item.payload)?;
                let is_there = record.deleted.is_none_or(|it| it.until_ms > self.now_ms);
                if past_of(row)?.1 == Past::Version && is_there {
                    record.version = Some(record.kept_until);
                    let (name, which) = (self.name_of(route)?, Which::Current);
                    let blob = ListedBlob { name, which, record, has_versions_only: true };
                    return Ok(Some(([&route[..], &[LAST]].concat().into(), blob)));
                }
            }
            match page.next {
                Some(last) => range.end = Some(last.slice(PREFIX_BYTES..)),
                None => return Ok(None),
            }
        }
    }

    /// With a delimiter most of what is read could be passed over, so that little is read at once.
    fn at_once(&self, limit: PageLimit) -> usize {
        if self.options.delimiter.is_some() { limit.items.min(16) } else { limit.items }
    }

    fn name_of(&self, route: &[u8]) -> Result<String> {
        let text = route.strip_prefix(&self.inside[..]).and_then(|it| it.strip_suffix(&[0, 1]));
        let text = text.ok_or_else(damaged)?;
        if text.contains(&0) {
            return Ok(gathered(names_of(&self.blobs, route)?.2, self.is_hashed));
        }
        std::str::from_utf8(text).map(str::to_owned).map_err(|_| damaged())
    }

    /// The beginning that a name shares with others, up to the delimiter.
    fn group_of<'n>(&self, name: &'n str) -> Option<&'n str> {
        let delimiter = self.options.delimiter.as_deref().filter(|it| !it.is_empty())?;
        let start = self.options.prefix.len();
        let at = name.get(start..)?.find(delimiter)?;
        name.get(..start + at + delimiter.len())
    }

    /// The row as the list shows it, if it does.
    fn listed(&self, row: Row) -> Result<Option<(Which, BlobRecord)>> {
        let record = BlobRecord::decode(row.item.payload)?;
        let include = self.options.include;
        if record.deleted.is_some_and(|it| !include.deleted || it.until_ms <= self.now_ms)
            || record.is_expired(self.now_ms)
        {
            return Ok(None);
        }
        let (which, is_listed) = match row.past.as_deref().map(past_of).transpose()? {
            None => (Which::Current, record.is_committed || include.uncommitted),
            Some((time, kind)) => self.past(time, kind, include),
        };
        Ok(is_listed.then_some((which, record)))
    }

    fn past(&self, time: Lsn, kind: Past, include: Include) -> (Which, bool) {
        match kind {
            Past::Snapshot => (Which::Snapshot(time), include.snapshots),
            Past::Version => (Which::Version(time), include.versions),
            Past::Deleted => (Which::Current, include.deleted),
        }
    }
}
