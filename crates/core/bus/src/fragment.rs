//! A fragment within a transaction: its states, and what every operation does with its rows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use lazuli_engine::{Item, PREFIX_BYTES, PageLimit, Result, Space, Tx, after_key};
use lazuli_shardmap::record::{decode, encode};

use crate::config::{EntityConfig, FragmentConfig, SubscriptionConfig};
use crate::description::Description;
use crate::message::SEQUENCE_BITS;
pub(crate) use crate::place::{FORWARD, Place, not_found};
use crate::rows::{
    DeliveryRow, DeliveryState, FragmentState, Line, LineState, Part, SessionRow, Stored,
};
use crate::shared::Shared;
use crate::timers;

/// What a transaction made possible, for those who wait.
#[derive(Clone, Debug, Default)]
pub(crate) struct Woken {
    pub(crate) lines: Vec<(u16, Line)>,
    /// Whether there is something to forward.
    pub(crate) forwards: Vec<Place>,
}

struct Loaded<T> {
    value: T,
    /// As it was read, to be replaced.
    item: Option<Item>,
    is_dirty: bool,
}

/// A fragment within a transaction.
pub(crate) struct Fragment {
    pub(crate) place: Place,
    pub(crate) shared: Arc<Shared>,
    pub(crate) config: Arc<FragmentConfig>,
    state: Loaded<FragmentState>,
    lines: BTreeMap<Line, Loaded<LineState>>,
    sessions: BTreeMap<(Line, String), Loaded<SessionRow>>,
    woken: BTreeSet<Line>,
}

impl Fragment {
    /// Fails with `EntityNotFound` if the entity is not there, or not yet.
    pub(crate) async fn load(tx: &Tx<'_>, place: &Place, shared: &Arc<Shared>) -> Result<Self> {
        let item = tx.get(&place.state()).await?.ok_or_else(not_found)?;
        let state: FragmentState = decode(item.payload.clone())?;
        let config = match shared.configs.get(place.container, &place.route, state.config) {
            Some(config) => config,
            None => {
                let config = Arc::new(read_config(tx, place, state.config).await?);
                shared.configs.keep(place.container, &place.route, config.clone());
                config
            }
        };
        Ok(Self {
            place: place.clone(),
            shared: shared.clone(),
            config,
            state: Loaded { value: state, item: Some(item), is_dirty: false },
            lines: BTreeMap::new(),
            sessions: BTreeMap::new(),
            woken: BTreeSet::new(),
        })
    }

    pub(crate) fn description(&self, owner: u32) -> Result<&Description> {
        self.config.description(owner).ok_or_else(not_found)
    }

    pub(crate) fn state(&self) -> &FragmentState {
        &self.state.value
    }

    pub(crate) fn state_mut(&mut self) -> &mut FragmentState {
        self.state.is_dirty = true;
        &mut self.state.value
    }

    /// The next sequence number.
    pub(crate) fn next_number(&mut self) -> u64 {
        let fragment = u64::from(self.place.fragment);
        let state = self.state_mut();
        state.last += 1;
        fragment << SEQUENCE_BITS | state.last
    }

    async fn load_line(&mut self, tx: &Tx<'_>, line: Line) -> Result<&mut Loaded<LineState>> {
        if !self.lines.contains_key(&line) {
            let item = tx.get(&self.place.line(line)).await?;
            let value = match &item {
                Some(item) => decode(item.payload.clone())?,
                None => LineState::default(),
            };
            self.lines.insert(line, Loaded { value, item, is_dirty: false });
        }
        Ok(self.lines.get_mut(&line).expect("it was inserted above if it was not there"))
    }

    pub(crate) async fn line(&mut self, tx: &Tx<'_>, line: Line) -> Result<LineState> {
        Ok(self.load_line(tx, line).await?.value)
    }

    pub(crate) async fn line_mut(&mut self, tx: &Tx<'_>, line: Line) -> Result<&mut LineState> {
        let loaded = self.load_line(tx, line).await?;
        loaded.is_dirty = true;
        Ok(&mut loaded.value)
    }

    async fn load_session(
        &mut self,
        tx: &Tx<'_>,
        line: Line,
        session: &str,
    ) -> Result<&mut Loaded<SessionRow>> {
        let key = (line, session.to_owned());
        if !self.sessions.contains_key(&key) {
            let item = tx.get(&self.place.session(line, session)).await?;
            let value = match &item {
                Some(item) => decode(item.payload.clone())?,
                None => SessionRow::default(),
            };
            self.sessions.insert(key.clone(), Loaded { value, item, is_dirty: false });
        }
        Ok(self.sessions.get_mut(&key).expect("it was inserted above if it was not there"))
    }

    pub(crate) async fn session(
        &mut self,
        tx: &Tx<'_>,
        line: Line,
        session: &str,
    ) -> Result<SessionRow> {
        Ok(self.load_session(tx, line, session).await?.value.clone())
    }

    pub(crate) async fn session_mut(
        &mut self,
        tx: &Tx<'_>,
        line: Line,
        session: &str,
    ) -> Result<&mut SessionRow> {
        let loaded = self.load_session(tx, line, session).await?;
        loaded.is_dirty = true;
        Ok(&mut loaded.value)
    }

    /// Whether messages of the line are received by session.
    pub(crate) fn has_sessions(&self, line: Line) -> bool {
        let requires = self.config.description(line.owner).is_some_and(|it| it.requires_session);
        line.part == Part::Main && requires
    }

    /// Notes that something can be received that could not before.
    pub(crate) async fn wake(&mut self, tx: &Tx<'_>, line: Line) -> Result<()> {
        if self.woken.insert(line) {
            self.line_mut(tx, line).await?.wakes += 1;
        }
        Ok(())
    }

    /// Writes what has changed.
    pub(crate) fn save(self, tx: &mut Tx<'_>) -> Result<Woken> {
        let Self { place, state, lines, sessions, woken, .. } = self;
        if state.is_dirty {
            tx.replace(&place.state(), state.item.as_ref(), encode(&state.value), None)?;
        }
        for (line, loaded) in lines.into_iter().filter(|(_, loaded)| loaded.is_dirty) {
            tx.replace(&place.line(line), loaded.item.as_ref(), encode(&loaded.value), None)?;
        }
        for ((line, session), loaded) in sessions.into_iter().filter(|(_, it)| it.is_dirty) {
            let key = place.session(line, &session);
            let row = &loaded.value;
            // A session without messages, lock and state is as if it had never been there.
            if row.count == 0 && row.lock == 0 && !row.has_state {
                if let Some(item) = &loaded.item {
                    tx.remove(&key, item)?;
                }
            } else {
                tx.replace(&key, loaded.item.as_ref(), encode(row), None)?;
            }
        }
        let is_transfer = |line: &Line| line.part == Part::Transfer;
        let forwards = if woken.iter().any(is_transfer) { vec![place.clone()] } else { Vec::new() };
        let lines = woken.into_iter().map(|line| (place.fragment, line)).collect();
        Ok(Woken { lines, forwards })
    }

    /// Puts a message at the end of a line under a new number, and answers the number.
    pub(crate) async fn append(
        &mut self,
        tx: &mut Tx<'_>,
        line: Line,
        mut stored: Stored,
    ) -> Result<u64> {
        let number = self.next_number();
        if stored.origin == 0 {
            stored.origin = number;
        }
        // Dead letters do not expire, and neither do messages that are not where they are going yet.
        let expires_ms = stored.expires_ms.filter(|_| line.part == Part::Main);
        self.state_mut().bytes += stored.size();
        let was_empty = self.line(tx, line).await?.count == 0;
        self.line_mut(tx, line).await?.count += 1;
        tx.replace(&self.place.message(line, number), None, encode(&stored), expires_ms)?;
        if self.has_sessions(line) {
            let session = stored.session_id.as_deref().unwrap_or_default();
            let key = self.place.session_order(line, session, number);
            tx.replace(&key, None, Bytes::new(), None)?;
            let row = self.session_mut(tx, line, session).await?;
            if row.count == 0 {
                (row.low, row.head) = (number, number);
            }
            row.count += 1;
            self.make_ready(tx, line, session).await?;
        }
        match line.part {
            Part::Scheduled => {}
            Part::Transfer => {
                if was_empty {
                    timers::arm_forward(self, tx, line).await?;
                }
                self.wake(tx, line).await?;
            }
            Part::Main | Part::DeadLetter | Part::TransferDeadLetter => {
                self.wake(tx, line).await?;
            }
        }
        Ok(number)
    }

    /// Enters a session among those that wait for a receiver, if it has messages and no receiver.
    pub(crate) async fn make_ready(
        &mut self,
        tx: &mut Tx<'_>,
        line: Line,
        session: &str,
    ) -> Result<()> {
        let row = self.session(tx, line, session).await?;
        if row.lock != 0 || row.ready != 0 || row.count == 0 {
            return Ok(());
        }
        let number = self.next_number();
        let payload = Bytes::copy_from_slice(session.as_bytes());
        tx.replace(&self.place.ready(line, number), None, payload, None)?;
        self.session_mut(tx, line, session).await?.ready = number;
        self.wake(tx, line).await
    }

    /// Takes a session from among those that wait.
    pub(crate) async fn unready(
        &mut self,
        tx: &mut Tx<'_>,
        line: Line,
        session: &str,
    ) -> Result<()> {
        let ready = self.session(tx, line, session).await?.ready;
        if ready != 0 {
            tx.delete(&self.place.ready(line, ready)).await?;
            self.session_mut(tx, line, session).await?.ready = 0;
        }
        Ok(())
    }

    /// Takes a message out of its line, with all that hangs on it but its body, for it to go elsewhere.
    pub(crate) async fn take_out(
        &mut self,
        tx: &mut Tx<'_>,
        line: Line,
        number: u64,
        found: &Found,
    ) -> Result<()> {
        tx.remove(&self.place.message(line, number), &found.item)?;
        self.forget(tx, line, number, &found.stored).await
    }

    /// Deletes what hangs on a message whose row is gone: its delivery, its places in orders, and that it is counted.
    pub(crate) async fn forget(
        &mut self,
        tx: &mut Tx<'_>,
        line: Line,
        number: u64,
        stored: &Stored,
    ) -> Result<()> {
        let delivery = self.delivery(tx, line, number).await?;
        if let Some((row, item)) = &delivery {
            tx.remove(&self.place.delivery(line, number), item)?;
            if row.state == DeliveryState::Waiting && !row.deferred {
                self.unreturn(tx, line, number).await?;
            }
        }
        let deferred = delivery.as_ref().is_some_and(|(row, _)| row.deferred);
        if self.has_sessions(line) && !deferred {
            let session = stored.session_id.as_deref().unwrap_or_default();
            self.leave_session(tx, line, session, number).await?;
        }
        let state = self.state_mut();
        state.bytes = state.bytes.saturating_sub(stored.size());
        let line = self.line_mut(tx, line).await?;
        line.count = line.count.saturating_sub(1);
        Ok(())
    }

    /// Takes a message from the order of its session.
    pub(crate) async fn leave_session(
        &mut self,
        tx: &mut Tx<'_>,
        line: Line,
        session: &str,
        number: u64,
    ) -> Result<()> {
        if !tx.delete(&self.place.session_order(line, session, number)).await? {
            return Ok(());
        }
        let row = self.session_mut(tx, line, session).await?;
        row.count = row.count.saturating_sub(1);
        if row.count == 0 {
            self.unready(tx, line, session).await?;
        }
        Ok(())
    }

    /// Deletes a message for good.
    pub(crate) async fn end(
        &mut self,
        tx: &mut Tx<'_>,
        line: Line,
        number: u64,
        found: &Found,
    ) -> Result<()> {
        self.take_out(tx, line, number, found).await?;
        self.release_body(tx, &found.stored.body).await
    }

    /// A message, also if it has expired and was not swept yet.
    pub(crate) async fn find(&self, tx: &Tx<'_>, line: Line, number: u64) -> Result<Option<Found>> {
        let Some(item) = tx.get_expired(&self.place.message(line, number)).await? else {
            return Ok(None);
        };
        Ok(Some(Found { stored: decode(item.payload.clone())?, item }))
    }

    pub(crate) async fn delivery(
        &self,
        tx: &Tx<'_>,
        line: Line,
        number: u64,
    ) -> Result<Option<(DeliveryRow, Item)>> {
        let found = tx.get(&self.place.delivery(line, number)).await?;
        found.map(|item| Ok((decode(item.payload.clone())?, item))).transpose()
    }
}

/// A message within a transaction.
pub(crate) struct Found {
    pub(crate) stored: Stored,
    pub(crate) item: Item,
}

/// All subscriptions that a fragment knows.
pub(crate) async fn read_subscriptions(
    tx: &Tx<'_>,
    place: &Place,
) -> Result<Vec<SubscriptionConfig>> {
    let mut range = Place::between(&place.subscription(0), &place.subscription(u32::MAX));
    let mut subscriptions = Vec::new();
    loop {
        let limit = PageLimit::items(1_000);
        let page = tx.scan(place.container, Space::BUS_ROWS, &range, FORWARD, limit).await?;
        for (_, item) in page.items {
            subscriptions.push(decode(item.payload)?);
        }
        match page.next {
            Some(last) => range.start = after_key(&last.slice(PREFIX_BYTES..)),
            None => return Ok(subscriptions),
        }
    }
}

async fn read_config(tx: &Tx<'_>, place: &Place, change: u64) -> Result<FragmentConfig> {
    let item = tx.get(&place.entity()).await?.ok_or_else(not_found)?;
    let entity: EntityConfig = decode(item.payload)?;
    Ok(FragmentConfig { change, entity, subscriptions: read_subscriptions(tx, place).await? })
}
