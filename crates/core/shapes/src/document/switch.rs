//! Switching clients from one container to another: writes are held back for a moment, then both exchange their names.
//!
//! Held writes are those of partitions in the state read-only, which every process refuses, whatever it has cached. A note in
//! the catalog says until when. If it passes, the partitions take writes again: nobody who holds them back and goes away
//! keeps clients from writing for long. Only what is held is exchanged, and then it stays closed: what clients with an old
//! address would write there is refused, not lost.

use bytes::Bytes;
use lazuli_engine::{Error, Kind, Known, MapReason, PartitionState, Result, Work};

use super::Documents;
use super::collection::{Collection, TITLE};
use super::directory::Exchange;
use super::reason::DocumentReason;
use super::rid::Rid;

/// The names of the notes begin with it; the name of the container follows.
const NOTES: &str = "document-hold/";
/// The most containers that are looked at in one round.
const NOTES_MAX: usize = 1_000;
/// The longest that writes can be held back.
pub const HOLD_MS_MAX: u64 = 300_000;
/// How long writes must still be held back when names are exchanged.
const MARGIN_MS: u64 = 2_000;
/// How long a client that wants to write is told to wait.
const RETRY_MS: u64 = 500;
/// How often partitions are looked at, because some were split meanwhile.
const ROUNDS_MAX: usize = 8;

/// What a note says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hold {
    /// Writes are held back until then.
    Until(u64),
    /// They are being let in again.
    Ending,
    /// The container was exchanged for another one.
    Closed,
}

impl Hold {
    fn encode(self) -> Bytes {
        let number = match self {
            Self::Closed => 0,
            Self::Ending => 1,
            Self::Until(until_ms) => until_ms.max(2),
        };
        Bytes::copy_from_slice(&number.to_be_bytes())
    }

    fn decode(note: &Bytes) -> Self {
        match <[u8; 8]>::try_from(&note[..]).map(u64::from_be_bytes) {
            Ok(0) => Self::Closed,
            Ok(1) | Err(_) => Self::Ending,
            Ok(until_ms) => Self::Until(until_ms),
        }
    }
}

fn note_name(container: &str) -> String {
    format!("{NOTES}{container}")
}

fn busy() -> Error {
    let message = "the container is being held or let go by another request";
    Error::unavailable(DocumentReason::SwitchBusy, message)
}

impl Documents {
    /// Refuses writes to a container for a while; reads go on. Called again, it begins anew.
    pub async fn hold(&self, collection: &Collection, for_ms: u64) -> Result<()> {
        let name = note_name(&collection.container.name);
        let until_ms = self.engine.env().clock.now_ms() + for_ms.min(HOLD_MS_MAX);
        let seen = self.engine.service(&name).await?;
        match seen.as_ref().map(Hold::decode) {
            Some(Hold::Ending) => return Err(busy()),
            // What was exchanged stays closed anyway.
            Some(Hold::Closed) => return Ok(()),
            Some(Hold::Until(_)) | None => {}
        }
        let note = Hold::Until(until_ms).encode();
        if !self.engine.swap_service(&name, seen.as_ref(), Some(note)).await? {
            return Err(busy());
        }
        self.set_states(collection, PartitionState::ReadOnly).await
    }

    /// Takes writes again.
    pub async fn release(&self, collection: &Collection) -> Result<()> {
        let name = note_name(&collection.container.name);
        let Some(seen) = self.engine.service(&name).await? else { return Ok(()) };
        let ending = Hold::Ending.encode();
        // From here on nothing can be exchanged.
        if !self.engine.swap_service(&name, Some(&seen), Some(ending.clone())).await? {
            return Err(busy());
        }
        self.set_states(collection, PartitionState::Online).await?;
        self.engine.swap_service(&name, Some(&ending), None).await.map(|_| ())
    }

    /// Takes writes again wherever the time has passed for which they were held back. One process at a time does.
    pub async fn release_lapsed(&self) -> Result<()> {
        if !self.engine.may(Work::Jobs) {
            return Ok(());
        }
        let now_ms = self.engine.env().clock.now_ms();
        let mut outcome = Ok(());
        for (name, note) in self.engine.services(NOTES, NOTES_MAX).await? {
            let has_lapsed = match Hold::decode(&note) {
                Hold::Until(until_ms) => until_ms <= now_ms,
                Hold::Ending => true,
                Hold::Closed => false,
            };
            let container = name.trim_start_matches(NOTES);
            let released = match self.engine.open(container, super::SCHEMA).await {
                Err(error) if error.kind() == Kind::NotFound => {
                    self.engine.swap_service(&name, Some(&note), None).await.map(|_| ())
                }
                Ok(container) if has_lapsed => {
                    let definition = self.rules.definition(&container)?;
                    self.release(&Collection { container, definition }).await
                }
                found => found.map(|_| ()),
            };
            outcome = outcome.and(released);
        }
        outcome
    }

    async fn set_states(&self, collection: &Collection, state: PartitionState) -> Result<()> {
        for _ in 0..ROUNDS_MAX {
            let mut others = self.partitions(collection).await?;
            others.retain(|partition| partition.state != state);
            if others.is_empty() {
                // What was routed before sees the new epochs, and so do requests that come after this.
                return Ok(());
            }
            for partition in others {
                match self.engine.manager().set_state(Known::from(&partition), state).await {
                    // It was split or moved meanwhile: the next round finds it.
                    Err(error) if error.kind() == Kind::Precondition || error.is_moved() => {}
                    done => drop(done?),
                }
            }
        }
        Err(busy())
    }

    /// Gives two containers of a database each other's name, in one step. The first one must be held, and stays closed.
    pub async fn exchange(&self, account: &str, held: &Rid, other: &Rid) -> Result<()> {
        let collections =
            [self.open_rid(account, held).await?, self.open_rid(account, other).await?];
        let name = note_name(&collections[0].container.name);
        let now_ms = self.engine.env().clock.now_ms();
        let seen = self.engine.service(&name).await?;
        let is_held = match seen.as_ref().map(Hold::decode) {
            Some(Hold::Until(until_ms)) => until_ms >= now_ms + MARGIN_MS,
            Some(Hold::Closed) => true,
            Some(Hold::Ending) | None => false,
        };
        let closed = Some(Hold::Closed.encode());
        if !is_held || !self.engine.swap_service(&name, seen.as_ref(), closed).await? {
            let message = "writes to the container are not held back, or not for long enough";
            return Err(Error::precondition(DocumentReason::NotHeld, message));
        }
        let shelf = self.shelf(account).await?;
        let (container, route) = (shelf.container.id, shelf.route.clone());
        let (first, second) = (held.clone(), other.clone());
        let titles =
            self.engine.write(container, &route, Exchange { shelf, first, second }).await?;
        // With it a container gets a new version, so that what is remembered of its name is looked up again.
        for (collection, title) in collections.iter().zip(&titles) {
            self.engine.set_attribute(&collection.container.name, TITLE, Some(title)).await?;
        }
        Ok(())
    }

    /// The error of a write. A container that is held has its clients come again.
    pub(super) async fn refused(&self, collection: &Collection, error: Error) -> Error {
        if !error.is(MapReason::PartitionReadOnly) {
            return error;
        }
        match self.engine.service(&note_name(&collection.container.name)).await {
            Ok(Some(_)) => {
                let retry_after = std::time::Duration::from_millis(RETRY_MS);
                let kind = Kind::Throttled { retry_after };
                Error::new(kind, DocumentReason::Held, "writes are held back for a moment")
            }
            _ => error,
        }
    }
}
