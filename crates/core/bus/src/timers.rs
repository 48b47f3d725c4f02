//! What is to be done at a time: locks that end, scheduled messages, sessions' locks, lines that are deleted, forwarding.
//!
//! A timer is a row by its time. Receives run those that are due, so that a message is there at once; and the engine's
//! sweep runs the others, so that they are run also when nobody receives.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use lazuli_engine::{
    BoxFuture, Engine, Expirer, Item, ItemKey, KeyRange, PREFIX_BYTES, PageLimit, Result, Space,
    Tx, after_key,
};
use lazuli_shardmap::record::{decode, encode};

use crate::fragment::{FORWARD, Fragment, Place};
use crate::record::damaged;
use crate::rows::{DeliveryState, Line, Part, Stored, split_numbered};
use crate::shared::Shared;

/// The timers that one transaction runs, and the writes after which it runs no more: the locks of a thousand messages may
/// hang on each, and a transaction that is too large would be too large for ever.
const RUN_MAX: usize = 64;
const RUN_WRITES: usize = 2_000;
/// How long to wait before forwarding is tried again.
const FORWARD_AGAIN_MS: u64 = 1_000;
/// The rows of a deleted line that one transaction deletes, and the writes after which it deletes no more.
const SLICE_ROWS: usize = 1_000;
const SLICE_WRITES: usize = 10_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimerKind {
    /// Locks of messages that were given out together. The number is that of the write; the payload has theirs.
    Locks = 1,
    /// A scheduled message.
    Due = 2,
    /// The lock of a session, whose id is the payload.
    Session = 3,
    /// A line that is deleted. The payload is the last key that was.
    Doomed = 4,
    /// Messages that are on their way.
    Forward = 5,
}

impl TimerKind {
    fn of(byte: u8) -> Result<Self> {
        [Self::Locks, Self::Due, Self::Session, Self::Doomed, Self::Forward]
            .into_iter()
            .find(|kind| *kind as u8 == byte)
            .ok_or_else(|| damaged("a timer"))
    }
}

/// A timer, from its key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timer {
    pub(crate) due_ms: u64,
    pub(crate) kind: TimerKind,
    pub(crate) line: Line,
    pub(crate) number: u64,
}

impl Timer {
    fn row(&self) -> Bytes {
        let mut row = BytesMut::with_capacity(22);
        row.put_u64(self.due_ms);
        row.put_u8(self.kind as u8);
        row.put_slice(&self.line.bytes());
        row.put_u64(self.number);
        row.freeze()
    }

    fn from_row(row: &[u8]) -> Result<Self> {
        let Some((head, rest)) = row.split_first_chunk::<9>() else {
            return Err(damaged("a timer"));
        };
        let [time @ .., kind] = head;
        let (line, number) = split_numbered(rest)?;
        Ok(Self { due_ms: u64::from_be_bytes(*time), kind: TimerKind::of(*kind)?, line, number })
    }

    pub(crate) fn key(&self, place: &Place) -> ItemKey {
        place.key(Space::BUS_TIMERS, &self.row())
    }

    /// Sets the timer.
    pub(crate) async fn set(
        &self,
        fragment: &mut Fragment,
        tx: &mut Tx<'_>,
        payload: Bytes,
    ) -> Result<()> {
        tx.put_until(&self.key(&fragment.place), payload, Some(self.due_ms)).await?;
        if self.due_ms < fragment.state().timer_ms {
            fragment.state_mut().timer_ms = self.due_ms;
        }
        Ok(())
    }
}

/// Sets a timer for locks that end together.
pub(crate) async fn set_locks(
    fragment: &mut Fragment,
    tx: &mut Tx<'_>,
    line: Line,
    until_ms: u64,
    numbers: &[u64],
) -> Result<()> {
    let number = tx.lsn().0;
    let timer = Timer { due_ms: until_ms, kind: TimerKind::Locks, line, number };
    timer.set(fragment, tx, encode(&numbers.to_vec())).await
}

/// Has forwarding tried again later, whatever happens to this process.
pub(crate) async fn arm_forward(
    fragment: &mut Fragment,
    tx: &mut Tx<'_>,
    line: Line,
) -> Result<()> {
    let due_ms = tx.now_ms().saturating_add(FORWARD_AGAIN_MS);
    let number = tx.lsn().0;
    Timer { due_ms, kind: TimerKind::Forward, line, number }.set(fragment, tx, Bytes::new()).await
}

/// Has all rows of a line deleted.
pub(crate) async fn doom(fragment: &mut Fragment, tx: &mut Tx<'_>, line: Line) -> Result<()> {
    let (due_ms, number) = (tx.now_ms(), tx.lsn().0);
    Timer { due_ms, kind: TimerKind::Doomed, line, number }.set(fragment, tx, Bytes::new()).await
}

/// Runs timers that are due, a bounded number.
pub(crate) async fn run_due(fragment: &mut Fragment, tx: &mut Tx<'_>) -> Result<()> {
    let now = tx.now_ms();
    if fragment.state().timer_ms > now {
        return Ok(());
    }
    let place = fragment.place.clone();
    let bare = |time: u64| -> Bytes {
        place.key(Space::BUS_TIMERS, &time.to_be_bytes()).bytes().slice(PREFIX_BYTES..)
    };
    let range = KeyRange::new(bare(fragment.state().timer_ms), Some(bare(u64::MAX)));
    let limit = PageLimit::items(RUN_MAX + 1);
    let page = tx.scan_expired(place.container, Space::BUS_TIMERS, &range, limit).await?;
    // Later timers that are set below take it back.
    fragment.state_mut().timer_ms = match page.next {
        Some(_) => now,
        None => u64::MAX,
    };
    for (nth, (key, item)) in page.items.into_iter().enumerate() {
        let key = ItemKey::from_bytes(key, place.route.len())?;
        let timer = Timer::from_row(key.row())?;
        if timer.due_ms > now || nth == RUN_MAX || tx.writes() > RUN_WRITES {
            let state = fragment.state_mut();
            state.timer_ms = state.timer_ms.min(timer.due_ms);
            break;
        }
        tx.remove(&key, &item)?;
        run(fragment, tx, timer, item.payload).await?;
    }
    Ok(())
}

async fn run(fragment: &mut Fragment, tx: &mut Tx<'_>, timer: Timer, payload: Bytes) -> Result<()> {
    let Timer { kind, line, number, .. } = timer;
    match kind {
        TimerKind::Locks => {
            let now = tx.now_ms();
            for locked in decode::<Vec<u64>>(payload)? {
                let Some((row, item)) = fragment.delivery(tx, line, locked).await? else {
                    continue;
                };
                // A lock that was renewed has another timer, and one of another write is another lock.
                if row.state == DeliveryState::Locked && row.session == 0 && row.until_ms <= now {
                    fragment.let_go(tx, line, locked, row, &item).await?;
                }
            }
            Ok(())
        }
        TimerKind::Due => fragment.activate(tx, line, number).await,
        TimerKind::Session => {
            let session = String::from_utf8(payload.into()).map_err(|_| damaged("a timer"))?;
            let row = fragment.session(tx, line, &session).await?;
            if row.lock == number && row.until_ms <= tx.now_ms() {
                fragment.unlock_session(tx, line, &session).await?;
            }
            Ok(())
        }
        TimerKind::Doomed => delete_slice(fragment, tx, timer, payload).await,
        TimerKind::Forward => {
            if fragment.line(tx, line).await?.count > 0 {
                arm_forward(fragment, tx, line).await?;
                fragment.wake(tx, line).await?;
                fragment.shared.want_forward(fragment.place.clone());
            }
            Ok(())
        }
    }
}

/// The spaces whose rows begin with their line.
const LINE_SPACES: [Space; 4] =
    [Space::BUS_MESSAGES, Space::BUS_DELIVERIES, Space::BUS_ORDER, Space::BUS_SESSIONS];

/// Deletes some rows of a line that is no longer anybody's, and sets the timer for the next ones.
async fn delete_slice(
    fragment: &mut Fragment,
    tx: &mut Tx<'_>,
    timer: Timer,
    after: Bytes,
) -> Result<()> {
    let place = fragment.place.clone();
    let next = Timer { due_ms: tx.now_ms() + 1, ..timer };
    if tx.writes() > SLICE_WRITES {
        return next.set(fragment, tx, after).await;
    }
    let first = after.first().map_or(0, |space| usize::from(*space));
    for (nth, space) in LINE_SPACES.into_iter().enumerate().skip(first) {
        let key = place.key(space, &timer.line.bytes());
        let mut range = KeyRange::prefix(key.bytes().slice(PREFIX_BYTES..));
        if nth == first && after.len() > 1 {
            range.start = after_key(&after[1..]);
        }
        let limit = PageLimit::items(SLICE_ROWS);
        let page = tx.scan(place.container, space, &range, FORWARD, limit).await?;
        for (key, item) in page.items {
            if space == Space::BUS_MESSAGES {
                let stored: Stored = decode(item.payload.clone())?;
                fragment.release_body(tx, &stored.body).await?;
                let state = fragment.state_mut();
                state.bytes = state.bytes.saturating_sub(stored.size());
            }
            tx.remove(&ItemKey::from_bytes(key, place.route.len())?, &item)?;
        }
        if let Some(last) = page.next {
            let after = [&[nth as u8], &last[PREFIX_BYTES..]].concat();
            return next.set(fragment, tx, after.into()).await;
        }
    }
    let states = place.session_state(timer.line, "");
    let range = KeyRange::prefix(states.bytes().slice(PREFIX_BYTES..));
    let limit = PageLimit::items(SLICE_ROWS);
    let page = tx.scan(place.container, Space::BUS_ROWS, &range, FORWARD, limit).await?;
    for (key, item) in page.items {
        tx.remove(&ItemKey::from_bytes(key, place.route.len())?, &item)?;
    }
    if page.next.is_some() {
        let rest = Bytes::copy_from_slice(&[LINE_SPACES.len() as u8]);
        return next.set(fragment, tx, rest).await;
    }
    tx.delete(&place.line(timer.line)).await.map(|_| ())
}

pub(crate) fn register(engine: &Engine, shared: &Arc<Shared>) {
    engine.on_expiry(Space::BUS_TIMERS, Arc::new(LateTimers(shared.clone())));
    engine.on_expiry(Space::BUS_MESSAGES, Arc::new(Expired(shared.clone())));
}

/// The place of the fragment that an item belongs to. Its number is in the numbers of its messages.
async fn place_of(tx: &Tx<'_>, key: &ItemKey, shared: &Arc<Shared>) -> Result<Option<Fragment>> {
    let route = Bytes::copy_from_slice(key.route());
    let fragment = crate::endpoint::fragment_of_route(&route)?;
    let place = Place { container: key.container(), route, fragment };
    match Fragment::load(tx, &place, shared).await {
        Err(error) if error.is(crate::BusReason::EntityNotFound) => Ok(None),
        loaded => loaded.map(Some),
    }
}

/// Runs timers that nobody has run.
struct LateTimers(Arc<Shared>);

impl Expirer for LateTimers {
    fn expired<'a>(
        &'a self,
        tx: &'a mut Tx<'_>,
        key: &'a ItemKey,
        item: Item,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let timer = Timer::from_row(key.row())?;
            let Some(mut fragment) = place_of(tx, key, &self.0).await? else { return Ok(()) };
            run(&mut fragment, tx, timer, item.payload).await?;
            finish(fragment, tx, &self.0)
        })
    }
}

/// Saves a fragment in the sweep. Those who wait are told before the commit, and look again after a while.
fn finish(fragment: Fragment, tx: &mut Tx<'_>, shared: &Arc<Shared>) -> Result<()> {
    let (container, entity) = (fragment.place.container, fragment.config.entity.number);
    let woken = fragment.save(tx)?;
    shared.fire(container, entity, woken);
    Ok(())
}

/// Ends a message whose time to live is over.
struct Expired(Arc<Shared>);

impl Expirer for Expired {
    fn expired<'a>(
        &'a self,
        tx: &'a mut Tx<'_>,
        key: &'a ItemKey,
        item: Item,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let (line, number) = split_numbered(key.row())?;
            let Some(mut fragment) = place_of(tx, key, &self.0).await? else { return Ok(()) };
            let stored: Stored = decode(item.payload.clone())?;
            // What a receiver holds stays as long as it is held.
            if let Some(until_ms) = fragment.held_until(tx, line, number, &stored).await? {
                return tx.put_until(key, item.payload, Some(until_ms)).await;
            }
            // A subscription that is gone has its messages deleted by its own timer.
            if fragment.config.description(line.owner).is_none() {
                return tx.put_until(key, item.payload, None).await;
            }
            fragment.forget(tx, line, number, &stored).await?;
            fragment.expire(tx, line, stored).await?;
            finish(fragment, tx, &self.0)
        })
    }
}

impl Fragment {
    /// Until when a receiver holds a message, if one does.
    async fn held_until(
        &mut self,
        tx: &Tx<'_>,
        line: Line,
        number: u64,
        stored: &Stored,
    ) -> Result<Option<u64>> {
        let now = tx.now_ms();
        let Some((row, _)) = self.delivery(tx, line, number).await? else { return Ok(None) };
        if row.state != DeliveryState::Locked {
            return Ok(None);
        }
        if row.session == 0 {
            return Ok(Some(row.until_ms).filter(|until_ms| *until_ms > now));
        }
        let session = stored.session_id.as_deref().unwrap_or_default();
        let held = self.session(tx, line, session).await?;
        let is_held = held.lock == row.session && held.is_locked(now);
        Ok(Some(held.until_ms).filter(|_| is_held))
    }

    /// A message that was taken out of its line has expired: it is dead, or gone.
    pub(crate) async fn expire(
        &mut self,
        tx: &mut Tx<'_>,
        line: Line,
        stored: Stored,
    ) -> Result<()> {
        if line.part == Part::Main && self.description(line.owner)?.dead_letter_on_expiration {
            let why = ("TTLExpiredException", "The message expired and was dead lettered.");
            return self.bury(tx, line, stored, Some(why.0), Some(why.1)).await;
        }
        self.release_body(tx, &stored.body).await
    }
}
