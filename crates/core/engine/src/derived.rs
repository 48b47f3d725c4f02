//! Derived rows: entries of indexes that follow from an item and from what its container says, and from nothing else.
//!
//! A data model says which entries an item has. The engine keeps them with the item: written and deleted in the same commit,
//! made again where the item arrives by a move or a restore, deleted with it as garbage, and compared with it by `fsck`.
//! They are neither counted nor backed up. Containers of other data models pay one comparison for each request.
//!
//! Key: `container | INDEX | entry | route | row key`; value: `length of the route (2) | length of the row key (2)`. So rows of
//! all partitions of a container on a shard lie in the order of their entries, and each tells whose it is: splitting a
//! partition copies nothing.

use std::fmt;
use std::sync::Arc;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use lazuli_shardmap::layout::{self, PREFIX_BYTES, Space};
use lazuli_shardmap::{Container, ContainerId};
use lazuli_store::{Error, KeyRange, Result, Write};

use crate::engine::Engine;
use crate::item::{Item, ItemKey};
use crate::tx::{expiry_key, route_length};

/// How a data model says which entries its items have.
pub trait Deriver: Send + Sync {
    /// The schema tag of the containers that have any.
    fn schema(&self) -> &'static str;

    /// The rules of such a container; none if its items have no entries.
    fn rules(&self, container: &Container) -> Result<Option<Arc<dyn Rules>>>;
}

/// Which entries the items of one container have.
pub trait Rules: Send + Sync {
    /// The entries of an item of the space of items, ascending, none twice. What they are depends on nothing else.
    fn entries(&self, key: &ItemKey, item: &Item) -> Result<Vec<Bytes>>;

    /// What is to be expected of entries like this one.
    fn standing(&self, entry: &[u8]) -> Standing;
}

/// What is to be expected of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Every item has them, and there are no others.
    Complete,
    /// Items may lack them yet.
    Building,
    /// They are to be deleted.
    Waste,
}

/// The data model that derives rows, if there is one. It follows from the data models and is no choice.
#[derive(Clone, Default)]
pub struct Deriving(Option<Arc<dyn Deriver>>);

impl fmt::Debug for Deriving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_ref().map_or("Deriving(none)", |deriver| deriver.schema()))
    }
}

impl Deriving {
    pub fn new(deriver: Arc<dyn Deriver>) -> Self {
        Self(Some(deriver))
    }

    /// Whether a container may have rules.
    fn is_about(&self, container: &Container) -> bool {
        self.0.as_ref().is_some_and(|deriver| deriver.schema() == container.schema)
    }

    /// The rules of a container, if it has any.
    #[inline]
    pub(crate) fn rules(&self, container: &Container) -> Result<Option<Arc<dyn Rules>>> {
        match &self.0 {
            Some(deriver) if container.schema == deriver.schema() => deriver.rules(container),
            _ => Ok(None),
        }
    }
}

/// The row of an entry of an item.
pub(crate) fn row(entry: &[u8], key: &ItemKey) -> lazuli_store::Item {
    let rest = &key.bytes()[PREFIX_BYTES..];
    let mut bytes = layout::start(key.container(), Space::INDEX, entry.len() + rest.len());
    bytes.put_slice(entry);
    bytes.put_slice(rest);
    (bytes.freeze(), lengths_of(key))
}

/// The value of every entry of an item.
fn lengths_of(key: &ItemKey) -> Bytes {
    let length = |part: &[u8]| u16::try_from(part.len()).unwrap_or(u16::MAX);
    let mut value = BytesMut::with_capacity(4);
    value.put_u16(length(key.route()));
    value.put_u16(length(key.row()));
    value.freeze()
}

/// The entry and the item of a row of the space `INDEX`.
pub(crate) fn decode(key: &Bytes, value: &[u8]) -> Result<(Bytes, ItemKey)> {
    let damaged = || Error::corrupt("bad-entry", "an entry of an index does not decode");
    let (container, _, rest) = layout::split(key).ok_or_else(damaged)?;
    let (route, row) = lengths(value).ok_or_else(damaged)?;
    let at = rest.len().checked_sub(route + row).ok_or_else(damaged)?;
    let (entry, item) = rest.split_at(at);
    let (route, row) = item.split_at(route);
    Ok((key.slice_ref(entry), ItemKey::new(container, Space::ITEMS, route, row)))
}

/// The route of the item of a row of the space `INDEX`.
pub(crate) fn route<'a>(key: &'a [u8], value: &[u8]) -> Result<&'a [u8]> {
    let damaged = || Error::corrupt("bad-entry", "an entry of an index does not decode");
    let (route, row) = lengths(value).ok_or_else(damaged)?;
    let start = key.len().checked_sub(route + row).filter(|start| *start >= PREFIX_BYTES);
    let start = start.ok_or_else(damaged)?;
    Ok(&key[start..start + route])
}

fn lengths(mut value: &[u8]) -> Option<(usize, usize)> {
    (value.len() == 4).then(|| (value.get_u16().into(), value.get_u16().into()))
}

/// Whether a row of the space `INDEX` is about these routes. A damaged one is about none.
pub(crate) fn is_in(key: &[u8], value: &[u8], routes: &KeyRange) -> bool {
    let Some((route, row)) = lengths(value) else { return false };
    let start = key.len().checked_sub(route + row).filter(|start| *start >= PREFIX_BYTES);
    start.is_some_and(|start| routes.contains(&key[start..]))
}

/// What has to be written so that an item has the entries that it should have, and not those that it had.
pub(crate) fn changes(
    rules: &dyn Rules,
    key: &ItemKey,
    old: Option<&Item>,
    new: Option<&Item>,
) -> Result<Vec<Write>> {
    if key.space() != Space::ITEMS {
        return Ok(Vec::new());
    }
    let entries = |item: Option<&Item>| match item {
        Some(item) => rules.entries(key, item),
        None => Ok(Vec::new()),
    };
    let (old, new) = (entries(old)?, entries(new)?);
    let mut changed: Vec<(bool, &Bytes)> = Vec::with_capacity(new.len());
    // Both are sorted, so one look at each finds what they do not have in common.
    let (mut was, mut is) = (old.iter().peekable(), new.iter().peekable());
    loop {
        match (was.peek(), is.peek()) {
            (None, None) => break,
            (Some(one), Some(two)) if one == two => {
                was.next();
                is.next();
            }
            (Some(one), two) if two.is_none_or(|two| one < two) => {
                changed.push((false, *one));
                was.next();
            }
            (_, Some(two)) => {
                changed.push((true, *two));
                is.next();
            }
            (Some(_), None) => {}
        }
    }
    Ok(rows_of(&changed, key))
}

/// The writes of entries that an item gets, or loses. An item has tens of them, so their keys share one piece of memory, and
/// all have the same value.
fn rows_of(changed: &[(bool, &Bytes)], key: &ItemKey) -> Vec<Write> {
    let rest = &key.bytes()[PREFIX_BYTES..];
    let length = |entry: &Bytes| PREFIX_BYTES + entry.len() + rest.len();
    let all = changed.iter().map(|(_, entry)| length(entry)).sum();
    let (start, value) = (layout::prefix(key.container(), Space::INDEX), lengths_of(key));
    let mut keys = BytesMut::with_capacity(all);
    for (_, entry) in changed {
        keys.put_slice(&start);
        keys.put_slice(entry);
        keys.put_slice(rest);
    }
    let mut keys = keys.freeze();
    let write = |(is_put, entry): &(bool, &Bytes)| {
        let key = keys.split_to(length(entry));
        if *is_put { Write::Put(key, value.clone()) } else { Write::Delete(key) }
    };
    changed.iter().map(write).collect()
}

/// What an item stands for beyond its own row, wherever it arrives.
pub(crate) struct Derived {
    pub(crate) container: Arc<Container>,
    pub(crate) rules: Option<Arc<dyn Rules>>,
}

impl Derived {
    /// The rows that stand for the item of a row: that of its expiry and those of its entries.
    pub(crate) fn rows(
        &self,
        key: &Bytes,
        value: Bytes,
        out: &mut Vec<lazuli_store::Item>,
    ) -> Result<()> {
        let item = Item::decode(value)?;
        if item.expires_ms.is_none() && self.rules.is_none() {
            return Ok(());
        }
        let Container { kind, key: schema, .. } = &*self.container;
        let (route, _) = kind.split(schema, &key[PREFIX_BYTES..])?;
        let key = ItemKey::from_bytes(key.clone(), route.len())?;
        if let Some(expires_ms) = item.expires_ms {
            out.push((expiry_key(expires_ms, &key), route_length(&key)));
        }
        if let Some(rules) = self.rules.as_ref().filter(|_| key.space() == Space::ITEMS) {
            let entries = rules.entries(&key, &item)?;
            out.extend(entries.iter().map(|entry| row(entry, &key)));
        }
        Ok(())
    }

    /// What makes these rows of one state of an item those of another.
    pub(crate) fn replace(
        &self,
        key: &ItemKey,
        old: Option<&Bytes>,
        new: Option<&Bytes>,
        writes: &mut Vec<Write>,
    ) -> Result<()> {
        let read = |value: Option<&Bytes>| value.cloned().map(Item::decode).transpose();
        let (old, new) = (read(old)?, read(new)?);
        let expiry = |item: &Option<Item>| item.as_ref().and_then(|item| item.expires_ms);
        let (was, is) = (expiry(&old), expiry(&new));
        if was != is {
            writes.extend(was.map(|at| Write::Delete(expiry_key(at, key))));
            writes.extend(is.map(|at| Write::Put(expiry_key(at, key), route_length(key))));
        }
        if let Some(rules) = &self.rules {
            writes.extend(changes(&**rules, key, old.as_ref(), new.as_ref())?);
        }
        Ok(())
    }
}

impl Engine {
    /// What follows from the items of a container, by what the catalog says of it now: a change of the rules waits until
    /// no partition is on its way.
    pub(crate) async fn derived(&self, container: ContainerId) -> Result<Derived> {
        let cached = self.router.container(container).await?;
        if !self.settings.deriving.is_about(&cached) {
            return Ok(Derived { container: cached, rules: None });
        }
        let container = Arc::new(self.manager.catalog().container(container).await?);
        let rules = self.settings.deriving.rules(&container)?;
        Ok(Derived { container, rules })
    }
}

/// All keys of one container's entries.
pub(crate) fn all_keys(container: ContainerId) -> KeyRange {
    crate::item::keys_of(container, Space::INDEX, &KeyRange::all())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lsn::Lsn;

    /// An item has an entry for each byte of its payload.
    struct Letters;

    impl Rules for Letters {
        fn entries(&self, _: &ItemKey, item: &Item) -> Result<Vec<Bytes>> {
            let mut letters: Vec<u8> = item.payload.to_vec();
            letters.sort_unstable();
            letters.dedup();
            Ok(letters.into_iter().map(|letter| Bytes::from(vec![letter])).collect())
        }

        fn standing(&self, _: &[u8]) -> Standing {
            Standing::Complete
        }
    }

    fn item(payload: &str) -> Item {
        let payload = Bytes::copy_from_slice(payload.as_bytes());
        Item { version: Lsn(1), expires_ms: None, written_ms: None, payload }
    }

    #[test]
    fn only_what_differs_is_written() {
        let key = ItemKey::new(ContainerId(1), Space::ITEMS, b"route", b"row");
        let put = |letter: &str| {
            let (key, value) = row(letter.as_bytes(), &key);
            Write::Put(key, value)
        };
        let delete = |letter: &str| Write::Delete(row(letter.as_bytes(), &key).0);
        let changed = |old: Option<&str>, new: Option<&str>| {
            let (old, new) = (old.map(item), new.map(item));
            changes(&Letters, &key, old.as_ref(), new.as_ref()).unwrap()
        };
        assert_eq!(changed(None, Some("ba")), [put("a"), put("b")]);
        assert_eq!(changed(Some("abd"), Some("acd")), [delete("b"), put("c")]);
        assert_eq!(changed(Some("ab"), None), [delete("a"), delete("b")]);
        assert_eq!(changed(Some("ab"), Some("ba")), []);
        let mark = ItemKey::new(ContainerId(1), Space::MARKS, b"route", b"row");
        assert_eq!(changes(&Letters, &mark, None, Some(&item("a"))).unwrap(), []);
    }

    #[test]
    fn a_row_tells_its_item_and_damage_is_corrupt() {
        let key = ItemKey::new(ContainerId(1), Space::ITEMS, b"route", b"row");
        let (at, value) = row(b"entry", &key);
        assert_eq!(decode(&at, &value).unwrap(), (Bytes::from_static(b"entry"), key));
        assert!(is_in(&at, &value, &KeyRange::prefix(&b"rout"[..])));
        assert!(!is_in(&at, &value, &KeyRange::prefix(&b"x"[..])));
        for value in [&b""[..], b"\0\x05\0", b"\xff\xff\0\0"] {
            assert!(decode(&at, value).is_err());
            assert!(!is_in(&at, value, &KeyRange::all()));
        }
    }
}
