//! Settling messages: whoever has the right to one changes or deletes it, by its number, without a search.

use bytes::Bytes;
use lazuli_engine::{Error, Item, Result, Transaction, Tx};

use super::put::{INLINE_BYTES_MAX, Row};
use super::rows::{Position, State, Stored};
use super::{Hold, MessageId, Place, Queues, Receipt};

/// What to change of a message.
#[derive(Clone, Debug)]
pub struct Update {
    /// From now until others can receive it.
    pub hidden_ms: u64,
    /// What it says from now on; unchanged if none.
    pub content: Option<Bytes>,
}

/// A message and the right to it.
struct Claim {
    place: Place,
    id: MessageId,
    receipt: Receipt,
}

impl Claim {
    /// The message, if the right to it still holds.
    async fn check(&self, tx: &Tx<'_>, state: &State) -> Result<(Item, Stored)> {
        let not_found = || Error::not_found("message-not-found", "there is no such message");
        if self.id.salt != state.salt {
            return Err(not_found());
        }
        let key = self.place.message(state.line, self.id.number);
        let item = tx.get(&key).await?.ok_or_else(not_found)?;
        // The last write of the message gave out the only receipt that is good.
        if self.receipt != (Receipt { number: self.id.number, version: item.version }) {
            let message = "the message was received or changed since the receipt was given out";
            return Err(Error::precondition("receipt-mismatch", message));
        }
        let stored = Stored::decode(item.payload.clone())?;
        Ok((item, stored))
    }

    fn row(&self, state: &State) -> Row<'_> {
        Row { place: &self.place, line: state.line, number: self.id.number }
    }
}

struct Change {
    claim: Claim,
    update: Update,
}

impl Transaction for Change {
    type Output = Hold;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Hold> {
        let claim = &self.claim;
        let mut loaded = claim.place.load(tx).await?;
        let state = &mut loaded.state;
        let (item, mut stored) = claim.check(tx, state).await?;
        let row = claim.row(state);
        let number = row.number;
        row.leave(tx, stored.visible_ms, item.expires_ms)?;
        let stays_apart =
            self.update.content.as_ref().is_none_or(|new| new.len() > INLINE_BYTES_MAX);
        if stored.content.is_none() && !stays_apart {
            tx.delete(&claim.place.content(state.line, number)).await?;
        }
        if let Some(content) = &self.update.content {
            stored.content = Some(content.clone());
        }
        let visible_ms = tx.now_ms().saturating_add(self.update.hidden_ms);
        stored.visible_ms = visible_ms;
        row.write(tx, Some(&item), stored, item.expires_ms).await?;
        state.placed(Position { visible_ms, number });
        claim.place.save(tx, &loaded)?;
        Ok(Hold { receipt: Receipt { number, version: tx.lsn() }, visible_ms })
    }
}

struct Delete(Claim);

impl Transaction for Delete {
    type Output = ();

    async fn run(&self, tx: &mut Tx<'_>) -> Result<()> {
        let claim = &self.0;
        let mut loaded = claim.place.load(tx).await?;
        let state = &mut loaded.state;
        let (item, stored) = claim.check(tx, state).await?;
        tx.remove(&claim.place.message(state.line, claim.id.number), &item)?;
        claim.row(state).unhang(tx, &stored, item.expires_ms).await?;
        state.gone();
        claim.place.save(tx, &loaded)
    }
}

impl Queues {
    /// Changes what a message says, or when others can receive it, and answers the new right to it; the old one ends.
    pub async fn update(
        &self,
        account: &str,
        queue: &str,
        id: MessageId,
        receipt: Receipt,
        update: Update,
    ) -> Result<Hold> {
        let change = |place| Change { claim: Claim { place, id, receipt }, update };
        self.write(account, queue, change).await
    }

    /// Deletes a message.
    pub async fn delete_message(
        &self,
        account: &str,
        queue: &str,
        id: MessageId,
        receipt: Receipt,
    ) -> Result<()> {
        self.write(account, queue, |place| Delete(Claim { place, id, receipt })).await
    }
}
