//! A transaction as its code sees it: reads and writes of items, on the state that the transactions before it leave behind.

use std::future::Future;
use std::sync::Arc;

use bytes::{BufMut, Bytes};
use lazuli_shardmap::ContainerId;
use lazuli_shardmap::layout::{self, Space};
use lazuli_shardmap::local::Held;
use lazuli_store::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use lazuli_store::{Direction, Error, KeyRange, PageLimit, Reader, Result, Write, after_key};

use crate::changes::{self, ItemOperation};
use crate::condition::Condition;
use crate::derived::Rules;
use crate::item::{Item, ItemKey, keys_of};
use crate::limits::{TRANSACTION_BYTES_MAX, TRANSACTION_WRITES_MAX};
use crate::lsn::Lsn;
use crate::outside::Outside;
use crate::overlay::Overlay;
use crate::stats::Delta;

/// How far numbers may be ahead of the clock before that counts: a clock that is put right steps back by less, and numbers
/// run ahead by less where very much is written.
const AHEAD_MAX_MS: u64 = 60_000;

/// Something that reads and writes in one partition, or in several of one shard, as one atomic unit.
///
/// It may be run more than once, each time on a state as if it had never run before: the result must follow from `self`
/// and from what it reads, and it must wait for nothing but the transaction's own reads.
pub trait Transaction: Send + Sync + 'static {
    type Output: Send + 'static;

    fn run(&self, tx: &mut Tx<'_>) -> impl Future<Output = Result<Self::Output>> + Send;

    /// What it takes from the budget of each partition.
    fn cost(&self) -> u32 {
        1
    }
}

/// A partition that a transaction may touch.
pub(crate) struct Claim {
    pub(crate) held: Held,
    pub(crate) records_changes: bool,
    /// By which rules rows follow from its items.
    pub(crate) rules: Option<Arc<dyn Rules>>,
}

/// One page of items, with the key after which the next one starts.
#[derive(Debug, Default)]
pub struct ItemPage {
    /// Whole keys as the store has them, with their items; expired ones are left out.
    pub items: Vec<(Bytes, Item)>,
    /// Where to go on, if there is more.
    pub next: Option<Bytes>,
}

pub struct Tx<'a> {
    pub(crate) base: &'a dyn Reader,
    pub(crate) overlay: &'a mut Overlay,
    pub(crate) claims: &'a [Claim],
    /// One for each claim: what this transaction adds.
    pub(crate) deltas: Vec<Delta>,
    pub(crate) lsn: Lsn,
    /// What the clock says, if the number is far ahead of it.
    clock_ms: Option<u64>,
    outside: &'a Outside,
    /// Keys of which the base is known to have none.
    absent: KeyRange,
    writes: usize,
    bytes_before: usize,
    /// Whether something with an expiry was written.
    pub(crate) wrote_expiry: bool,
    /// Entries of indexes that were written or deleted.
    pub(crate) entries_written: u64,
}

impl<'a> Tx<'a> {
    pub(crate) fn new(
        base: &'a dyn Reader,
        overlay: &'a mut Overlay,
        claims: &'a [Claim],
        lsn: Lsn,
        clock_ms: u64,
        outside: &'a Outside,
    ) -> Self {
        let is_ahead = lsn.millis() > clock_ms.saturating_add(AHEAD_MAX_MS);
        let clock_ms = is_ahead.then_some(clock_ms);
        let bytes_before = overlay.bytes();
        let deltas = claims.iter().map(|_| Delta::default()).collect();
        let absent = KeyRange::new(Bytes::new(), Some(Bytes::new()));
        let (writes, wrote_expiry, entries_written) = (0, false, 0);
        Self {
            base,
            overlay,
            claims,
            deltas,
            lsn,
            clock_ms,
            outside,
            absent,
            writes,
            bytes_before,
            wrote_expiry,
            entries_written,
        }
    }

    /// The number of this transaction: the version of everything it writes.
    pub fn lsn(&self) -> Lsn {
        self.lsn
    }

    /// The time of this transaction. It never steps back along a partition's life.
    pub fn now_ms(&self) -> u64 {
        self.lsn.millis()
    }

    /// What the clock says, where the number of this transaction is far ahead of it: the clock was ahead for a while, and
    /// was set back. Numbers go on from there, because they must grow. What people are shown follows the clock.
    pub fn set_back_ms(&self) -> Option<u64> {
        self.clock_ms
    }

    /// How many rows this transaction has written so far, for those that must not grow too large.
    pub fn writes(&self) -> usize {
        self.writes
    }

    /// Looks once whether there is anything at all from the first of these keys to the last. Where there is nothing, as when
    /// new rows come in order, reading them one by one costs no more reads.
    pub async fn foresee(&mut self, keys: impl Iterator<Item = &ItemKey>) -> Result<()> {
        let mut span: Option<(&Bytes, &Bytes)> = None;
        for key in keys.map(ItemKey::bytes) {
            let (first, last) = span.unwrap_or((key, key));
            span = Some((first.min(key), last.max(key)));
        }
        let Some((first, last)) = span.filter(|(first, last)| first != last) else { return Ok(()) };
        let range = KeyRange::new(first.clone(), Some(after_key(last)));
        let page = self.base.scan(&range, Direction::Forward, PageLimit::items(1)).await?;
        if page.items.is_empty() {
            self.absent = range;
        }
        Ok(())
    }

    /// The item, unless it is absent or expired.
    pub async fn get(&self, key: &ItemKey) -> Result<Option<Item>> {
        self.claim_of(key)?;
        let item = self.raw(key).await?;
        Ok(item.filter(|item| !item.is_expired(self.now_ms())))
    }

    /// The item, if it meets the condition; otherwise the error that says how it does not.
    pub async fn check(&self, key: &ItemKey, condition: Condition) -> Result<Option<Item>> {
        let found = self.get(key).await?;
        condition.check(found.as_ref())?;
        Ok(found)
    }

    /// Items of one space whose `route | row key` lies in the range, which must lie inside one partition.
    pub async fn scan(
        &self,
        container: ContainerId,
        space: Space,
        range: &KeyRange,
        direction: Direction,
        limit: PageLimit,
    ) -> Result<ItemPage> {
        self.scan_at(container, space, range, direction, limit, self.now_ms()).await
    }

    pub(crate) async fn scan_at(
        &self,
        container: ContainerId,
        space: Space,
        range: &KeyRange,
        direction: Direction,
        limit: PageLimit,
        now_ms: u64,
    ) -> Result<ItemPage> {
        let holds = |claim: &Claim| {
            claim.held.container == container && holds_range(&claim.held.routes, range)
        };
        if !self.claims.iter().any(holds) {
            return Err(outside());
        }
        let keys = keys_of(container, space, range);
        let page = self.overlay.scan(self.base, &keys, direction, limit).await?;
        page_of_items(page, now_ms)
    }

    pub async fn put(&mut self, key: &ItemKey, payload: Bytes) -> Result<()> {
        self.put_until(key, payload, None).await
    }

    /// Writes an item that is gone from `expires_ms` on.
    pub async fn put_until(
        &mut self,
        key: &ItemKey,
        payload: Bytes,
        expires_ms: Option<u64>,
    ) -> Result<()> {
        let old = self.raw(key).await?;
        self.replace(key, old.as_ref(), payload, expires_ms)
    }

    /// Like [`Self::put_until`], for those who know what is there: the item that [`Self::get`] has answered, or none under
    /// a key that was never written. What they say goes into the partition's figures unseen.
    pub fn replace(
        &mut self,
        key: &ItemKey,
        old: Option<&Item>,
        payload: Bytes,
        expires_ms: Option<u64>,
    ) -> Result<()> {
        let claim = self.claim_of(key)?;
        check_size(key, &payload)?;
        let new = Item { version: self.lsn, expires_ms, written_ms: self.clock_ms, payload };
        if let Some(old) = old {
            self.deltas[claim].delete(self.outside.weigh_item(key.bytes(), old));
        }
        self.deltas[claim].put(self.outside.weigh_item(key.bytes(), &new));
        let value = new.encode();
        // An item that keeps its expiry keeps the row that stands for it.
        if old.and_then(|old| old.expires_ms) != expires_ms {
            self.drop_expiry(key, old)?;
            if let Some(expires_ms) = expires_ms {
                self.wrote_expiry = true;
                self.write(Write::Put(expiry_key(expires_ms, key), route_length(key)))?;
            }
        }
        self.derive(claim, key, old, Some(&new))?;
        self.record_change(claim, key, ItemOperation::Put)?;
        self.write(Write::Put(key.bytes().clone(), value))
    }

    /// Makes of an item that meets the condition what `change` says: its new payload, or none if it is to go. The item is
    /// read once, so this is cheaper than to check it and then to write it.
    pub async fn change(
        &mut self,
        key: &ItemKey,
        condition: Condition,
        change: impl FnOnce(Option<&Item>) -> Result<Option<Bytes>>,
    ) -> Result<()> {
        self.claim_of(key)?;
        let old = self.raw(key).await?;
        let found = old.as_ref().filter(|item| !item.is_expired(self.now_ms()));
        condition.check(found)?;
        match (change(found)?, &old) {
            (Some(payload), old) => self.replace(key, old.as_ref(), payload, None),
            (None, Some(old)) => self.remove(key, old),
            (None, None) => Ok(()),
        }
    }

    /// Deletes an item and says whether there was one.
    pub async fn delete(&mut self, key: &ItemKey) -> Result<bool> {
        let Some(old) = self.raw(key).await? else {
            self.claim_of(key)?;
            return Ok(false);
        };
        self.remove(key, &old)?;
        Ok(!old.is_expired(self.now_ms()))
    }

    /// Like [`Self::delete`], for those who know what is there, as in [`Self::replace`].
    pub fn remove(&mut self, key: &ItemKey, old: &Item) -> Result<()> {
        let claim = self.claim_of(key)?;
        self.deltas[claim].delete(self.outside.weigh_item(key.bytes(), old));
        self.drop_expiry(key, Some(old))?;
        self.derive(claim, key, Some(old), None)?;
        self.record_change(claim, key, ItemOperation::Delete)?;
        self.write(Write::Delete(key.bytes().clone()))
    }

    /// Deletes an item that was to expire at `expires_ms` and has, and answers it. A row of the expiry space that no item
    /// stands behind is deleted too.
    pub(crate) async fn expire(&mut self, key: &ItemKey, expires_ms: u64) -> Result<Option<Item>> {
        match self.raw(key).await? {
            Some(item) if item.expires_ms == Some(expires_ms) => {
                if item.is_expired(self.now_ms()) {
                    self.delete(key).await?;
                    return Ok(Some(item));
                }
            }
            _ => self.write(Write::Delete(expiry_key(expires_ms, key)))?,
        }
        Ok(None)
    }

    pub(crate) async fn raw(&self, key: &ItemKey) -> Result<Option<Item>> {
        let found = match self.overlay.written(key.bytes()) {
            Some(change) => change.clone(),
            None if self.absent.contains(key.bytes()) => None,
            None => self.base.get(key.bytes()).await?,
        };
        found.map(Item::decode).transpose()
    }

    pub(crate) fn claim_of(&self, key: &ItemKey) -> Result<usize> {
        let holds = |claim: &Claim| {
            claim.held.container == key.container() && claim.held.routes.contains(key.route())
        };
        self.claims.iter().position(holds).ok_or_else(outside)
    }

    fn drop_expiry(&mut self, key: &ItemKey, old: Option<&Item>) -> Result<()> {
        match old.and_then(|old| old.expires_ms) {
            Some(expires_ms) => self.write(Write::Delete(expiry_key(expires_ms, key))),
            None => Ok(()),
        }
    }

    fn record_change(
        &mut self,
        claim: usize,
        key: &ItemKey,
        operation: ItemOperation,
    ) -> Result<()> {
        if self.claims[claim].held.is_sending {
            self.write(changes::record(Space::MOVING, self.lsn, key, operation))?;
        }
        if !self.claims[claim].records_changes {
            return Ok(());
        }
        self.write(changes::record(Space::CHANGES, self.lsn, key, operation))
    }

    pub(crate) fn write(&mut self, write: Write) -> Result<()> {
        self.writes += 1;
        self.overlay.write(write);
        let bytes = self.overlay.bytes() - self.bytes_before;
        if bytes > TRANSACTION_BYTES_MAX || self.writes > TRANSACTION_WRITES_MAX {
            return Err(Error::too_large(
                "transaction-too-large",
                format!("a transaction of {} writes and {bytes} bytes", self.writes),
            ));
        }
        Ok(())
    }
}

fn outside() -> Error {
    Error::invalid("outside-transaction", "the key is in no partition of this transaction")
}

fn holds_range(routes: &KeyRange, range: &KeyRange) -> bool {
    // A range of `route | row key` lies inside if its start does and its end is no further than the partition's.
    routes.contains(&range.start)
        && match (&routes.end, &range.end) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(last), Some(end)) => end <= last,
        }
}

fn check_size(key: &ItemKey, payload: &Bytes) -> Result<()> {
    // Room for the time in front of the key in the spaces that are ordered by time, and for the envelope.
    if key.bytes().len() + 16 > KEY_BYTES_MAX {
        return Err(Error::too_large("key-too-large", "the item's key is too long"));
    }
    if payload.len() + 32 > VALUE_BYTES_MAX {
        return Err(Error::too_large("value-too-large", "the item is too large"));
    }
    Ok(())
}

/// `container | EXPIRY | time (8) | space (1) | route | row key`.
pub(crate) fn expiry_key(expires_ms: u64, key: &ItemKey) -> Bytes {
    let rest = &key.bytes()[layout::PREFIX_BYTES..];
    let mut bytes = layout::start(key.container(), Space::EXPIRY, 9 + rest.len());
    bytes.put_u64(expires_ms);
    bytes.put_u8(key.space().0);
    bytes.put_slice(rest);
    bytes.freeze()
}

/// How much of `route | row key` is route: two bytes, as time-ordered rows keep it.
pub(crate) fn route_length(key: &ItemKey) -> Bytes {
    let length = u16::try_from(key.route().len()).unwrap_or(u16::MAX);
    Bytes::copy_from_slice(&length.to_be_bytes())
}

/// Decodes a page of the store and leaves out what has expired.
pub(crate) fn page_of_items(page: lazuli_store::Page, now_ms: u64) -> Result<ItemPage> {
    let next = match (page.more, page.items.last()) {
        (true, Some((last, _))) => Some(last.clone()),
        _ => None,
    };
    let mut items = Vec::with_capacity(page.items.len());
    for (key, value) in page.items {
        let item = Item::decode(value)?;
        if !item.is_expired(now_ms) {
            items.push((key, item));
        }
    }
    Ok(ItemPage { items, next })
}
