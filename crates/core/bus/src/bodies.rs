//! What messages say, if it is long: kept apart from their rows, so that several messages can share it.

use bytes::Bytes;
use lazuli_engine::{Result, Tx};
use lazuli_shardmap::record::{decode, encode};

use crate::fragment::Fragment;
use crate::limits::INLINE_BYTES_MAX;
use crate::place::body_lost;
use crate::rows::{Body, Stored};

impl Fragment {
    /// Where to keep what a message says: in its own row, or apart, where several messages can share it.
    pub(crate) fn place_body(&mut self, tx: &mut Tx<'_>, body: &Bytes) -> Result<Body> {
        if body.len() <= INLINE_BYTES_MAX {
            return Ok(Body::Inline(body.clone()));
        }
        let at = self.next_number();
        tx.replace(&self.place.body(at), None, body.clone(), None)?;
        Ok(Body::Apart { at, bytes: u32::try_from(body.len()).unwrap_or(u32::MAX) })
    }

    /// Notes how many messages share a body that was placed for one. None at all: it goes.
    pub(crate) async fn share_body(
        &mut self,
        tx: &mut Tx<'_>,
        body: &Body,
        owners: u32,
    ) -> Result<()> {
        let Body::Apart { at, .. } = body else { return Ok(()) };
        match owners {
            0 => tx.delete(&self.place.body(*at)).await.map(|_| ()),
            1 => Ok(()),
            _ => tx.put(&self.place.owners(*at), encode(&owners)).await,
        }
    }

    /// One message less has this body.
    pub(crate) async fn release_body(&mut self, tx: &mut Tx<'_>, body: &Body) -> Result<()> {
        let Body::Apart { at, .. } = body else { return Ok(()) };
        let key = self.place.owners(*at);
        let owners = match tx.get(&key).await? {
            Some(item) => decode::<u32>(item.payload)?,
            None => 1,
        };
        match owners {
            0 | 1 => tx.delete(&self.place.body(*at)).await.map(|_| ()),
            2 => tx.delete(&key).await.map(|_| ()),
            _ => tx.put(&key, encode(&(owners - 1))).await,
        }
    }

    pub(crate) async fn read_body(&self, tx: &Tx<'_>, stored: &Stored) -> Result<Bytes> {
        match &stored.body {
            Body::Inline(body) => Ok(body.clone()),
            Body::Apart { at, .. } => {
                let found = tx.get(&self.place.body(*at)).await?;
                found.map(|item| item.payload).ok_or_else(body_lost)
            }
        }
    }
}
