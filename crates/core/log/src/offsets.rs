//! How far groups of consumers have come: offsets that the clients of Kafka commit. The offsets of a group are one shardlet,
//! so that a commit for many partitions is one transaction.
//!
//! A row is named by the container of the hub, not by the hub's name: a hub that is made anew begins without them.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use lazuli_engine::{
    Container, ContainerId, Cuts, Direction, Error, FanOut, ItemKey, ItemScan, KeyPart, KeyRange,
    KeySchema, KeyType, Kind, MapKind, NewContainer, OnFailure, PREFIX_BYTES, PageLimit, Policies,
    Result, Space, Transaction, Tx,
};

use crate::Logs;
use crate::claims::check_holder;
use crate::hub::check_group_name;
use crate::limits::{GROUPS_LISTED_MAX, OFFSET_LIFE, OFFSET_NOTE_BYTES_MAX, OFFSETS_AT_ONCE_MAX};
use crate::rows::damaged;

const SCHEMA: &str = "log-groups/1";
/// What the names of these containers begin with; the namespace follows.
const CONTAINERS: &str = "hub-groups/";
/// The partitions that the groups of a namespace begin with.
const PARTITIONS: u16 = 4;
const FORMAT: u8 = 1;
const DAY_MS: u64 = 24 * 3600 * 1000;

/// How far a group has come in one log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupOffset {
    pub hub: ContainerId,
    pub partition: u32,
    pub committed: CommittedOffset,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommittedOffset {
    /// The next record to read.
    pub offset: u64,
    /// What the consumer notes beside it.
    pub note: String,
}

struct Commit {
    group: GroupPlace,
    offsets: Vec<GroupOffset>,
    /// The process that coordinates the group, if several could.
    holder: Option<u64>,
}

impl Transaction for Commit {
    type Output = ();

    async fn run(&self, tx: &mut Tx<'_>) -> Result<()> {
        if let Some(holder) = self.holder {
            check_holder(tx, &self.group, holder).await?;
        }
        let expires_ms = tx.now_ms() + OFFSET_LIFE.as_millis() as u64;
        // The end of a day, so that most commits leave the expiry of the row as it is.
        let expires_ms = Some(expires_ms.next_multiple_of(DAY_MS));
        for one in &self.offsets {
            let key = self.group.row(one.hub, one.partition);
            tx.put_until(&key, encode(&one.committed), expires_ms).await?;
        }
        Ok(())
    }
}

struct Forget(GroupPlace);

impl Transaction for Forget {
    type Output = bool;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<bool> {
        let GroupPlace { container, route } = &self.0;
        let range = KeyRange::prefix(route.clone());
        let mut any = false;
        loop {
            let limit = PageLimit::items(1_000);
            let page = tx.scan(*container, Space::ITEMS, &range, Direction::Forward, limit).await?;
            if page.items.is_empty() {
                return Ok(any);
            }
            any = true;
            for (key, item) in page.items {
                tx.remove(&ItemKey::from_bytes(key, route.len())?, &item)?;
            }
        }
    }
}

/// Where the offsets of a group are.
#[derive(Clone)]
pub(crate) struct GroupPlace {
    pub(crate) container: ContainerId,
    pub(crate) route: Bytes,
}

impl GroupPlace {
    pub(crate) fn new(container: &Container, group: &str) -> Result<Self> {
        let key = [KeyPart::Text(group.to_owned())];
        Ok(Self { container: container.id, route: container.kind.route(&container.key, &key)? })
    }

    fn row(&self, hub: ContainerId, partition: u32) -> ItemKey {
        let mut row = [0; 8];
        row[..4].copy_from_slice(&hub.0.to_be_bytes());
        row[4..].copy_from_slice(&partition.to_be_bytes());
        ItemKey::new(self.container, Space::ITEMS, &self.route, &row)
    }
}

fn encode(committed: &CommittedOffset) -> Bytes {
    let mut row = BytesMut::with_capacity(9 + committed.note.len());
    row.put_u8(FORMAT);
    row.put_u64(committed.offset);
    row.put_slice(committed.note.as_bytes());
    row.freeze()
}

fn decode(mut row: Bytes) -> Result<CommittedOffset> {
    let damaged = || damaged("the offset of a group");
    if row.len() < 9 || row.get_u8() != FORMAT {
        return Err(damaged());
    }
    let offset = row.get_u64();
    let note = String::from_utf8(row.into()).map_err(|_| damaged())?;
    Ok(CommittedOffset { offset, note })
}

impl Logs {
    /// Notes how far a group has come, all of it or nothing. With a holder it is refused with `NotCoordinator` where
    /// another one has claimed the group.
    pub async fn commit_offsets(
        &self,
        namespace: &str,
        group: &str,
        offsets: Vec<GroupOffset>,
        holder: Option<u64>,
    ) -> Result<()> {
        check_group_name(group)?;
        if offsets.len() > OFFSETS_AT_ONCE_MAX {
            let message = format!("a commit has up to {OFFSETS_AT_ONCE_MAX} offsets");
            return Err(Error::too_large("too-many-offsets", message));
        }
        if offsets.iter().any(|one| one.committed.note.len() > OFFSET_NOTE_BYTES_MAX) {
            let message = format!("a note has up to {OFFSET_NOTE_BYTES_MAX} bytes");
            return Err(Error::too_large("note-too-large", message));
        }
        let container = self.groups(namespace).await?;
        let group = GroupPlace::new(&container, group)?;
        let route = group.route.clone();
        self.engine.write(container.id, &route, Commit { group, offsets, holder }).await
    }

    /// All that a group has committed, by hub and partition.
    pub async fn committed(
        &self,
        namespace: &str,
        group: &str,
    ) -> Result<BTreeMap<(ContainerId, u32), CommittedOffset>> {
        let mut found = BTreeMap::new();
        let Some(container) = self.groups_if_any(namespace).await? else { return Ok(found) };
        let place = GroupPlace::new(&container, group)?;
        let view = self.engine.read(container.id, &place.route, 1).await?;
        let mut range = KeyRange::prefix(place.route.clone());
        loop {
            let limit = PageLimit::MAX;
            let page = view.scan(Space::ITEMS, &range, Direction::Forward, limit).await?;
            for (key, item) in page.items {
                let row = key.get(PREFIX_BYTES + place.route.len()..).and_then(|row| {
                    let (hub, partition) = row.split_first_chunk::<4>()?;
                    Some((u32::from_be_bytes(*hub), u32::from_be_bytes(partition.try_into().ok()?)))
                });
                let (hub, partition) = row.ok_or_else(|| damaged("the key of an offset"))?;
                found.insert((ContainerId(hub), partition), decode(item.payload)?);
            }
            match page.next {
                Some(last) => {
                    range.start = lazuli_engine::after_key(&last.slice(PREFIX_BYTES..));
                }
                None => return Ok(found),
            }
        }
    }

    /// Forgets all that a group has committed, and says whether there was anything.
    pub async fn forget_group(&self, namespace: &str, group: &str) -> Result<bool> {
        let Some(container) = self.groups_if_any(namespace).await? else { return Ok(false) };
        let place = GroupPlace::new(&container, group)?;
        let route = place.route.clone();
        self.engine.write(container.id, &route, Forget(place)).await
    }

    /// The groups that have committed something, by name; a bounded number of offsets is looked at.
    pub async fn group_names(&self, namespace: &str) -> Result<Vec<String>> {
        let Some(container) = self.groups_if_any(namespace).await? else { return Ok(Vec::new()) };
        let scan = ItemScan { space: Space::ITEMS, range: KeyRange::all() };
        let limit = PageLimit::items(GROUPS_LISTED_MAX);
        let request = FanOut { routes: KeyRange::all(), limit, on_failure: OnFailure::Fail };
        let page = self.engine.fan_out(container.id, &scan, &request, None).await?;
        let mut names = std::collections::BTreeSet::new();
        for (key, _) in page.rows {
            let rest = key.get(PREFIX_BYTES..).ok_or_else(|| damaged("the key of an offset"))?;
            let (route, _) = container.kind.split(&container.key, rest)?;
            if let Some(KeyPart::Text(name)) = container.kind.key(&container.key, route)?.pop() {
                names.insert(name);
            }
        }
        Ok(names.into_iter().collect())
    }

    pub(crate) async fn groups_if_any(&self, namespace: &str) -> Result<Option<Arc<Container>>> {
        match self.engine.open(&format!("{CONTAINERS}{namespace}"), SCHEMA).await {
            Err(error) if error.kind() == Kind::NotFound => Ok(None),
            opened => opened.map(Some),
        }
    }

    /// The container of the groups of a namespace, made at its first use.
    pub(crate) async fn groups(&self, namespace: &str) -> Result<Arc<Container>> {
        if let Some(container) = self.groups_if_any(namespace).await? {
            return Ok(container);
        }
        let new = NewContainer {
            name: format!("{CONTAINERS}{namespace}"),
            kind: MapKind::Hash,
            key: KeySchema::one(KeyType::Text),
            schema: SCHEMA.to_owned(),
            placement: Vec::new(),
            policies: Policies::default(),
            cuts: Cuts::Even(PARTITIONS),
            shards: Vec::new(),
        };
        match self.engine.create_container(&new).await {
            // Another request created it first.
            Err(error) if error.kind() != Kind::Exists => Err(error),
            _ => self.engine.open(&new.name, SCHEMA).await,
        }
    }
}
