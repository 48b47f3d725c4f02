//! Forwarding: messages on their way to another entity are put there, and then taken out here.
//!
//! Two transactions, because the entities may be on different shards. The destination keeps the number of the last message
//! that came from each line, so what is put there twice, after a crash in between or by two processes, is put there once.

use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use lazuli_engine::{Engine, Error, Kind, PageLimit, Result, Space, Transaction, Tx};
use lazuli_shardmap::record::{decode, encode};

use crate::BusReason;
use crate::address::Address;
use crate::bus::{Bus, gone};
use crate::config::FragmentConfig;
use crate::endpoint::Endpoint;
use crate::fragment::{FORWARD, Fragment, Place, Woken};
use crate::limits::{FORWARD_HOPS_MAX, RECEIVE_BYTES_MAX};
use crate::rows::{Line, Part, Stored, Transfer, number_of};
use crate::shared::Shared;

/// The messages that are forwarded at once.
const FORWARD_MESSAGES: usize = 100;
/// How often the background task looks for what other processes left behind.
const LOOK: Duration = Duration::from_secs(1);

/// A message on its way.
#[derive(Clone)]
struct Parcel {
    number: u64,
    stored: Stored,
    body: Bytes,
}

/// What a line has to forward.
struct Outgoing {
    line: Line,
    parcels: Vec<Parcel>,
}

/// Reads what a fragment has to forward.
struct Look {
    shared: Arc<Shared>,
    place: Place,
}

impl Transaction for Look {
    type Output = (Arc<FragmentConfig>, Vec<Outgoing>);

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Self::Output> {
        let mut fragment = Fragment::load(tx, &self.place, &self.shared).await?;
        let config = fragment.config.clone();
        let subscriptions = config.subscriptions.iter().map(|it| it.number);
        let mut outgoing = Vec::new();
        for owner in std::iter::once(0).chain(subscriptions) {
            let line = Line::new(owner, Part::Transfer);
            let state = fragment.line(tx, line).await?;
            if state.count == 0 {
                continue;
            }
            let range = self.place.messages(line, state.head);
            let limit = PageLimit { items: FORWARD_MESSAGES, bytes: RECEIVE_BYTES_MAX };
            let container = self.place.container;
            let page = tx.scan(container, Space::BUS_MESSAGES, &range, FORWARD, limit).await?;
            let mut parcels = Vec::new();
            for (key, item) in page.items {
                let stored: Stored = decode(item.payload)?;
                let body = fragment.read_body(tx, &stored).await?;
                parcels.push(Parcel { number: number_of(&key)?, stored, body });
            }
            outgoing.push(Outgoing { line, parcels });
        }
        Ok((config, outgoing))
    }

    fn cost(&self) -> u32 {
        0
    }
}

/// Puts messages that come from a line elsewhere into an entity.
struct Arrive {
    shared: Arc<Shared>,
    place: Place,
    /// Entity, fragment and line that they come from.
    source: Bytes,
    parcels: Vec<Parcel>,
}

impl Transaction for Arrive {
    type Output = Woken;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Woken> {
        let mut fragment = Fragment::load(tx, &self.place, &self.shared).await?;
        let key = self.place.watermark(&self.source);
        let mut last = match tx.get(&key).await? {
            Some(item) => decode(item.payload)?,
            None => 0u64,
        };
        let config = fragment.config.clone();
        let description = &config.entity.description;
        if !description.status.may_send() {
            let message = "the destination does not take messages";
            return Err(Error::precondition(BusReason::EntityDisabled, message));
        }
        for Parcel { number, stored, body } in &self.parcels {
            if *number <= last {
                continue;
            }
            last = *number;
            fragment.check_quota(description, stored.size())?;
            let mut stored = stored.clone();
            stored.body = fragment.place_body(tx, body)?;
            stored.hops += 1;
            stored.transfer = Transfer::None;
            let ttl = description.default_ttl_ms;
            stored.lives_ms = match (stored.lives_ms, ttl) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
            let lacks_session = description.requires_session && stored.session_id.is_none();
            if lacks_session && config.entity.kind == crate::EntityKind::Queue {
                let line = Line::new(0, Part::Main);
                let reason = Some("Session id is null.");
                fragment.bury(tx, line, stored, reason, None).await?;
            } else {
                fragment.publish(tx, stored, Some(body), *number).await?;
            }
        }
        tx.put(&key, encode(&last)).await?;
        fragment.save(tx)
    }
}

/// What becomes of a message that was on its way.
#[derive(Clone)]
enum Departure {
    Arrived,
    /// It cannot be put anywhere.
    Undeliverable(String),
}

/// Takes messages out of the line in which they were on their way.
struct Depart {
    shared: Arc<Shared>,
    place: Place,
    line: Line,
    departures: Vec<(u64, Departure)>,
}

impl Transaction for Depart {
    type Output = Woken;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Woken> {
        let line = self.line;
        let mut fragment = Fragment::load(tx, &self.place, &self.shared).await?;
        for (number, departure) in &self.departures {
            let Some(found) = fragment.find(tx, line, *number).await? else { continue };
            match departure {
                Departure::Arrived => fragment.end(tx, line, *number, &found).await?,
                Departure::Undeliverable(why) => {
                    fragment.take_out(tx, line, *number, &found).await?;
                    let reason = Some("TransferFailed");
                    fragment.bury(tx, line, found.stored, reason, Some(why)).await?;
                }
            }
            let state = fragment.line_mut(tx, line).await?;
            state.head = state.head.max(number + 1);
        }
        fragment.save(tx)
    }
}

impl Bus {
    /// Forwards what is on its way and keeps at it, as long as the bus is in use.
    pub fn start(&self) {
        let shared: Weak<Shared> = Arc::downgrade(&self.shared);
        let engine: Weak<Engine> = Arc::downgrade(&self.engine);
        let env = self.engine.env().clone();
        let clock = env.clock.clone();
        let task = async move {
            loop {
                // The engine is not held while there is nothing to do, so that it can end.
                let Some(waiting) = shared.upgrade() else { return };
                let pause = clock.sleep(LOOK);
                tokio::select! {
                    biased;
                    () = waiting.work.notified() => {}
                    () = pause => {}
                }
                let Some(engine) = engine.upgrade() else { return };
                let bus = Self { engine, shared: waiting };
                // What fails is tried again when its timer says so.
                let _ = bus.forward_wanted().await;
                let _ = bus.finish_idle().await;
            }
        };
        env.spawn.spawn("bus", Box::pin(task));
    }

    /// Forwards whatever is known to be on its way, once.
    pub async fn forward_wanted(&self) -> Result<()> {
        let mut outcome = Ok(());
        for place in self.shared.take_forwards() {
            outcome = outcome.and(self.forward(&place).await);
        }
        outcome
    }

    async fn forward(&self, place: &Place) -> Result<()> {
        loop {
            let look = Look { shared: self.shared.clone(), place: place.clone() };
            let (config, outgoing) =
                match self.engine.write(place.container, &place.route, look).await.map_err(gone) {
                    Err(error) if error.is(BusReason::EntityNotFound) => return Ok(()),
                    looked => looked?,
                };
            let mut moved = 0;
            for Outgoing { line, parcels } in outgoing {
                moved += self.forward_line(place, &config, line, parcels).await?;
            }
            if moved == 0 {
                return Ok(());
            }
        }
    }

    /// Forwards messages of one line as far as it goes, and says how many have left it.
    async fn forward_line(
        &self,
        place: &Place,
        config: &FragmentConfig,
        line: Line,
        parcels: Vec<Parcel>,
    ) -> Result<usize> {
        let Some(description) = config.description(line.owner) else { return Ok(0) };
        let mut departures = Vec::new();
        let mut rest = parcels.into_iter().peekable();
        let mut failed = None;
        while let Some(first) = rest.next() {
            let target = match first.stored.transfer {
                Transfer::DeadLetter => description.forward_dead_letters_to.clone(),
                Transfer::Forward | Transfer::None => description.forward_to.clone(),
            };
            let number = first.number;
            let refused = |why: &str| Departure::Undeliverable(why.to_owned());
            if first.stored.hops >= FORWARD_HOPS_MAX {
                departures.push((number, refused("The message was forwarded too often.")));
                continue;
            }
            let to = match self.target(place, target).await {
                Ok(Some(to)) => to,
                Ok(None) => {
                    departures.push((number, refused("The destination does not exist.")));
                    continue;
                }
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            };
            // Those behind it that go to the same fragment go with it.
            let at = fragment_for(&to, &first);
            let transfer = first.stored.transfer;
            let mut group = vec![first];
            while let Some(next) = rest.next_if(|next| {
                next.stored.transfer == transfer
                    && next.stored.hops < FORWARD_HOPS_MAX
                    && fragment_for(&to, next) == at
            }) {
                group.push(next);
            }
            let numbers: Vec<u64> = group.iter().map(|parcel| parcel.number).collect();
            match self.arrive(&to, at, source(place, config, line), group).await {
                Ok(()) => {
                    departures.extend(numbers.into_iter().map(|it| (it, Departure::Arrived)));
                }
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
        }
        let moved = departures.len();
        if moved > 0 {
            let shared = self.shared.clone();
            let depart = Depart { shared, place: place.clone(), line, departures };
            let woken = self.engine.write(place.container, &place.route, depart).await;
            self.shared.fire(place.container, config.entity.number, woken.map_err(gone)?);
        }
        match failed {
            // The destination is full, disabled or away: the timer has it tried again.
            Some(error) if moved == 0 && !is_waiting(&error) => Err(error),
            _ => Ok(moved),
        }
    }

    /// Where messages go, if that exists.
    async fn target(&self, from: &Place, name: Option<String>) -> Result<Option<Endpoint>> {
        let (Some(name), Some(namespace)) = (name, self.namespace_of(from.container).await?) else {
            return Ok(None);
        };
        let Ok(address) = Address::parse(&name) else { return Ok(None) };
        match self.open(&namespace, &address).await {
            Ok(to) => Ok(to.check_sends().is_ok().then_some(to)),
            Err(error) if error.kind() == Kind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn arrive(
        &self,
        to: &Endpoint,
        fragment: u16,
        source: Bytes,
        parcels: Vec<Parcel>,
    ) -> Result<()> {
        let place = to.place(fragment)?;
        let arrive = Arrive { shared: self.shared.clone(), place: place.clone(), source, parcels };
        let woken = self.engine.write(place.container, &place.route, arrive).await;
        self.shared.fire(place.container, to.0.entity, woken.map_err(gone)?);
        Ok(())
    }
}

/// The fragment of the destination, the same whenever it is asked: by the key, else by the number.
fn fragment_for(to: &Endpoint, parcel: &Parcel) -> u16 {
    match parcel.stored.key() {
        Some(key) => to.fragment_of(key),
        None => to.fragment_of(&parcel.number.to_string()),
    }
}

/// The name of a line among all that forward to an entity.
fn source(place: &Place, config: &FragmentConfig, line: Line) -> Bytes {
    let mut source = BytesMut::new();
    source.put_u32(config.entity.number);
    source.put_u16(place.fragment);
    source.put_slice(&line.bytes());
    source.freeze()
}

fn is_waiting(error: &Error) -> bool {
    let waits = [BusReason::EntityDisabled, BusReason::QuotaExceeded];
    waits.into_iter().any(|reason| error.is(reason))
        || matches!(error.kind(), Kind::Unavailable { .. } | Kind::Throttled { .. })
}
