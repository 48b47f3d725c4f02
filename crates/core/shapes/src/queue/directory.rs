//! Queues themselves: created, deleted, listed, cleared, and what is kept about each.

use std::collections::BTreeMap;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use lazuli_engine::{
    Container, Cuts, Error, FanOut, Item, ItemScan, KeyPart, KeyRange, KeySchema, KeyType, Kind,
    MapKind, NewContainer, OnFailure, PREFIX_BYTES, PageLimit, Policies, Result, Space,
    Transaction, Tx, View,
};

use super::rows::{Position, QueueState};
use super::{QueuePlace, Queues, SCHEMA, container_name, queue_not_found};

/// The partitions that the queues of an account begin with.
const PARTITIONS: u16 = 16;
const FORMAT: u8 = 1;

/// Names and values that a client keeps about a queue, in its order.
pub type Metadata = Vec<(String, String)>;

/// What came of creating a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Created {
    New,
    /// There was one with the same metadata already.
    Before,
}

/// What can be asked about a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueProperties {
    pub metadata: Metadata,
    /// The messages it holds, visible or not. Those that have expired count until the next sweep.
    pub count: u64,
}

/// A queue of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueInfo {
    pub name: String,
    pub metadata: Metadata,
}

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuePage {
    pub queues: Vec<QueueInfo>,
    /// The first name of the next page; none at the end.
    pub next: Option<String>,
}

/// What is kept about a queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Description {
    metadata: Metadata,
    acl: Option<String>,
}

impl Description {
    fn encode(&self) -> Bytes {
        let mut bytes = BytesMut::new();
        bytes.put_u8(FORMAT);
        put_text(&mut bytes, self.acl.as_deref().unwrap_or_default());
        bytes.put_u8(u8::from(self.acl.is_some()));
        for (name, value) in &self.metadata {
            put_text(&mut bytes, name);
            put_text(&mut bytes, value);
        }
        bytes.freeze()
    }

    fn decode(mut bytes: Bytes) -> Result<Self> {
        let damaged = || Error::corrupt("bad-queue-row", "what is kept of a queue does not decode");
        if bytes.is_empty() || bytes.get_u8() != FORMAT {
            return Err(damaged());
        }
        let acl = take_text(&mut bytes).ok_or_else(damaged)?;
        let has_acl = match bytes.try_get_u8() {
            Ok(flag @ (0 | 1)) => flag == 1,
            _ => return Err(damaged()),
        };
        let mut metadata = Vec::new();
        while !bytes.is_empty() {
            let name = take_text(&mut bytes).ok_or_else(damaged)?;
            metadata.push((name, take_text(&mut bytes).ok_or_else(damaged)?));
        }
        Ok(Self { metadata, acl: has_acl.then_some(acl) })
    }
}

/// `length (4) | text`.
fn put_text(bytes: &mut BytesMut, text: &str) {
    bytes.put_u32(u32::try_from(text.len()).unwrap_or(u32::MAX));
    bytes.put_slice(text.as_bytes());
}

fn take_text(bytes: &mut Bytes) -> Option<String> {
    let length = usize::try_from(bytes.try_get_u32().ok()?).ok()?;
    if length > bytes.len() {
        return None;
    }
    String::from_utf8(bytes.split_to(length).into()).ok()
}

/// Whether both say the same: the case of names and the order do not matter.
fn is_same(a: &Metadata, b: &Metadata) -> bool {
    let sorted = |metadata: &Metadata| -> BTreeMap<String, String> {
        metadata.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.clone())).collect()
    };
    sorted(a) == sorted(b)
}

struct Create {
    place: QueuePlace,
    metadata: Metadata,
    salt: u64,
}

impl Transaction for Create {
    type Output = Created;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Created> {
        if let Some(item) = tx.get(&self.place.queue()).await? {
            if is_same(&Description::decode(item.payload)?.metadata, &self.metadata) {
                return Ok(Created::Before);
            }
            let message = "there is a queue of this name with other metadata";
            return Err(Error::exists("queue-exists", message));
        }
        let description = Description { metadata: self.metadata.clone(), acl: None };
        tx.put(&self.place.queue(), description.encode()).await?;
        let head = Position::default();
        let line = tx.lsn().0;
        let state = QueueState { line, salt: self.salt, next: 1, count: 0, head, end_ms: 0 };
        tx.put(&self.place.state(), state.encode()).await?;
        Ok(Created::New)
    }
}

struct Remove(QueuePlace);

impl Transaction for Remove {
    type Output = ();

    async fn run(&self, tx: &mut Tx<'_>) -> Result<()> {
        let loaded = self.0.load(tx).await?;
        tx.delete(&self.0.queue()).await?;
        tx.remove(&self.0.state(), &loaded.item)?;
        self.0.doom(tx, loaded.state.line).await
    }
}

struct Clear(QueuePlace);

impl Transaction for Clear {
    type Output = ();

    async fn run(&self, tx: &mut Tx<'_>) -> Result<()> {
        let mut loaded = self.0.load(tx).await?;
        let state = &mut loaded.state;
        self.0.doom(tx, state.line).await?;
        state.line = tx.lsn().0;
        (state.count, state.head, state.end_ms) = (0, Position::default(), 0);
        self.0.save(tx, &loaded)
    }
}

/// What to change of a queue's description.
enum Keep {
    Metadata(Metadata),
    Acl(Option<String>),
}

struct Describe {
    place: QueuePlace,
    keep: Keep,
}

impl Transaction for Describe {
    type Output = ();

    async fn run(&self, tx: &mut Tx<'_>) -> Result<()> {
        let Some(item) = tx.get(&self.place.queue()).await? else { return Err(queue_not_found()) };
        let mut description = Description::decode(item.payload)?;
        match &self.keep {
            Keep::Metadata(metadata) => description.metadata = metadata.clone(),
            Keep::Acl(acl) => description.acl = acl.clone(),
        }
        tx.put(&self.place.queue(), description.encode()).await
    }
}

impl QueuePlace {
    async fn description_in(&self, view: &View) -> Result<Description> {
        let item = view.get(&self.queue()).await?.ok_or_else(queue_not_found)?;
        Description::decode(item.payload)
    }
}

impl Queues {
    /// Creates a queue. One with the same metadata may be there; fails with `Exists` if it has other.
    pub async fn create(&self, account: &str, queue: &str, metadata: Metadata) -> Result<Created> {
        let container = self.container(account).await?;
        let place = QueuePlace::new(&container, queue)?;
        let salt = self.engine.env().random.next_u64();
        let route = place.route.clone();
        self.engine.write(container.id, &route, Create { place, metadata, salt }).await
    }

    /// The container of an account, made at its first use.
    async fn container(&self, account: &str) -> Result<std::sync::Arc<Container>> {
        let name = container_name(account);
        match self.engine.open(&name, SCHEMA).await {
            Err(error) if error.kind() == Kind::NotFound => {}
            opened => return opened,
        }
        let new = NewContainer {
            name: name.clone(),
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
            _ => self.engine.open(&name, SCHEMA).await,
        }
    }

    /// Deletes a queue with all its messages. Fails with `NotFound` if there is none.
    pub async fn delete(&self, account: &str, queue: &str) -> Result<()> {
        self.write(account, queue, Remove).await
    }

    /// Deletes all messages of a queue.
    pub async fn clear(&self, account: &str, queue: &str) -> Result<()> {
        self.write(account, queue, Clear).await
    }

    pub async fn properties(&self, account: &str, queue: &str) -> Result<QueueProperties> {
        let place = self.place(account, queue).await?;
        let view = self.engine.read(place.container, &place.route, 1).await?;
        let metadata = place.description_in(&view).await?.metadata;
        let item = view.get(&place.state()).await?.ok_or_else(queue_not_found)?;
        Ok(QueueProperties { metadata, count: QueueState::decode(item.payload)?.count })
    }

    pub async fn set_metadata(&self, account: &str, queue: &str, metadata: Metadata) -> Result<()> {
        let keep = Keep::Metadata(metadata);
        self.write(account, queue, |place| Describe { place, keep }).await
    }

    /// The text that a front keeps about who may use the queue.
    pub async fn acl(&self, account: &str, queue: &str) -> Result<Option<String>> {
        let place = self.place(account, queue).await?;
        let view = self.engine.read(place.container, &place.route, 1).await?;
        Ok(place.description_in(&view).await?.acl)
    }

    pub async fn set_acl(&self, account: &str, queue: &str, acl: Option<String>) -> Result<()> {
        self.write(account, queue, |place| Describe { place, keep: Keep::Acl(acl) }).await
    }

    /// Queues whose names begin with `prefix`, by name, from the name `from` on.
    ///
    /// They are stored by the hash of their names, so a page reads the names of all queues of the account and keeps the
    /// first ones: as many as are asked for are in memory at a time.
    pub async fn list(
        &self,
        account: &str,
        prefix: &str,
        from: Option<&str>,
        most: usize,
    ) -> Result<QueuePage> {
        let container = match self.engine.open(&container_name(account), SCHEMA).await {
            Err(error) if error.kind() == Kind::NotFound => {
                return Ok(QueuePage { queues: Vec::new(), next: None });
            }
            opened => opened?,
        };
        let scan = ItemScan { space: Space::QUEUES, range: KeyRange::all() };
        let request =
            FanOut { routes: KeyRange::all(), limit: PageLimit::MAX, on_failure: OnFailure::Fail };
        let mut first: BTreeMap<String, Item> = BTreeMap::new();
        let mut after = None;
        loop {
            let page = self.engine.fan_out(container.id, &scan, &request, after.as_ref()).await?;
            for (key, item) in page.rows {
                let name = name_of(&container, &key)?;
                if name.starts_with(prefix) && from.is_none_or(|from| name.as_str() >= from) {
                    first.insert(name, item);
                }
                // One more than asked for says where the next page begins.
                if first.len() > most.max(1).saturating_add(1) {
                    first.pop_last();
                }
            }
            match page.next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        let next = if first.len() > most.max(1) { first.pop_last() } else { None };
        let queues = first.into_iter().map(|(name, item)| {
            let metadata = Description::decode(item.payload)?.metadata;
            Ok(QueueInfo { name, metadata })
        });
        Ok(QueuePage { queues: queues.collect::<Result<_>>()?, next: next.map(|(name, _)| name) })
    }
}

/// The name of a queue from the key of a row.
fn name_of(container: &Container, key: &[u8]) -> Result<String> {
    let damaged = || Error::corrupt("bad-queue-key", "the key of a queue does not decode");
    let rest = key.get(PREFIX_BYTES..).ok_or_else(damaged)?;
    let (route, _) = container.kind.split(&container.key, rest)?;
    match container.kind.key(&container.key, route)?.pop() {
        Some(KeyPart::Text(name)) => Ok(name),
        _ => Err(damaged()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_survives_its_row_and_damage_is_corrupt() {
        let metadata = vec![("A".to_owned(), "1".to_owned()), ("b".to_owned(), String::new())];
        for acl in [None, Some(String::new()), Some("text".to_owned())] {
            let description = Description { metadata: metadata.clone(), acl };
            let row = description.encode();
            assert_eq!(Description::decode(row.clone()).unwrap(), description);
            for length in 0..row.len() {
                let cut = Description::decode(row.slice(..length));
                assert!(cut.is_err() || cut.unwrap() != description);
            }
        }
    }

    #[test]
    fn metadata_is_the_same_whatever_its_order_and_the_case_of_names() {
        let pairs = |pairs: &[(&str, &str)]| -> Metadata {
            pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
        };
        assert!(is_same(&pairs(&[("A", "1"), ("b", "2")]), &pairs(&[("B", "2"), ("a", "1")])));
        assert!(!is_same(&pairs(&[("a", "1")]), &pairs(&[("a", "2")])));
        assert!(!is_same(&pairs(&[("a", "A")]), &pairs(&[("a", "a")])));
        assert!(!is_same(&pairs(&[]), &pairs(&[("a", "1")])));
    }
}
