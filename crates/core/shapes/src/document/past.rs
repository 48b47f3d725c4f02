//! Former versions of documents, kept for readers of the change feed that want to see every version.
//!
//! Row key: `id | LSN of the version (8)`. Payload: `format (1) = 1 | LSN of what came after it (8) | whether that was a put (1)
//! or a deletion (2) | item as it was stored`. Each row expires when it need not be kept any more, and takes with it the
//! records of its changes.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use lazuli_engine::{
    BoxFuture, Direction, Error, Expirer, Item, ItemKey, KeyRange, Lsn, PageLimit, Result, Space,
    Tx, View,
};

const FORMAT: u8 = 1;
const HEAD_BYTES: usize = 10;
const LSN_BYTES: usize = 8;

/// What came after a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Successor {
    Put,
    Delete,
}

fn row_key(key: &ItemKey, version: Lsn) -> ItemKey {
    let row = [key.row(), &version.0.to_be_bytes()].concat();
    ItemKey::new(key.container(), Space::DOCUMENT_PAST, key.route(), &row)
}

/// Keeps a version for so many seconds.
pub(super) async fn keep(
    tx: &mut Tx<'_>,
    key: &ItemKey,
    old: &Item,
    successor: Successor,
    kept_s: u64,
) -> Result<()> {
    let mut payload = BytesMut::with_capacity(HEAD_BYTES + old.payload.len());
    payload.put_u8(FORMAT);
    payload.put_u64(tx.lsn().0);
    payload.put_u8(match successor {
        Successor::Put => 1,
        Successor::Delete => 2,
    });
    payload.put_slice(&old.payload);
    let expires_ms = tx.now_ms().saturating_add(kept_s.saturating_mul(1_000));
    let row = row_key(key, old.version);
    tx.put_until(&row, payload.freeze(), Some(expires_ms)).await?;
    // Nobody follows the changes of these rows.
    tx.forget_change(&row, tx.lsn())
}

/// What came after a version, and the item as it was stored.
fn decode(mut payload: Bytes) -> Result<(Lsn, Successor, Bytes)> {
    let damaged = || Error::corrupt("bad-version", "a former version does not decode");
    if payload.len() < HEAD_BYTES || payload.get_u8() != FORMAT {
        return Err(damaged());
    }
    let next = Lsn(payload.get_u64());
    let successor = match payload.get_u8() {
        1 => Successor::Put,
        2 => Successor::Delete,
        _ => return Err(damaged()),
    };
    Ok((next, successor, payload))
}

/// An item as it was in this version, if it is kept.
pub(super) async fn version(view: &View, key: &ItemKey, version: Lsn) -> Result<Option<Item>> {
    let Some(row) = view.get(&row_key(key, version)).await? else { return Ok(None) };
    let (_, _, payload) = decode(row.payload)?;
    Ok(Some(Item { version, expires_ms: None, written_ms: None, payload }))
}

/// An item as it was right before a write, if that is kept.
pub(super) async fn version_before(view: &View, key: &ItemKey, lsn: Lsn) -> Result<Option<Item>> {
    let row = |version: u64| {
        let key = row_key(key, Lsn(version));
        key.bytes().slice(lazuli_engine::PREFIX_BYTES..)
    };
    let range = KeyRange::new(row(0), Some(row(lsn.0)));
    let limit = PageLimit::items(4);
    let page = view.scan(Space::DOCUMENT_PAST, &range, Direction::Backward, limit).await?;
    let length = lazuli_engine::PREFIX_BYTES + key.route().len() + key.row().len() + LSN_BYTES;
    // Rows of longer ids may lie in between.
    for (at, row) in page.items.into_iter().filter(|(at, _)| at.len() == length) {
        let (next, _, payload) = decode(row.payload)?;
        if next == lsn {
            let bytes = at.last_chunk::<LSN_BYTES>().copied().unwrap_or_default();
            let version = Lsn(u64::from_be_bytes(bytes));
            return Ok(Some(Item { version, expires_ms: None, written_ms: None, payload }));
        }
    }
    Ok(None)
}

/// Forgets the changes that a version was kept for.
pub(super) struct PastExpirer;

impl Expirer for PastExpirer {
    fn expired<'a>(
        &'a self,
        tx: &'a mut Tx<'_>,
        key: &'a ItemKey,
        item: Item,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let Some((id, version)) = key.row().split_last_chunk::<LSN_BYTES>() else {
                return Ok(());
            };
            let (next, successor, _) = decode(item.payload)?;
            let document = ItemKey::new(key.container(), Space::ITEMS, key.route(), id);
            tx.forget_change(&document, Lsn(u64::from_be_bytes(*version)))?;
            if successor == Successor::Delete {
                tx.forget_change(&document, next)?;
            }
            tx.forget_change(key, tx.lsn())
        })
    }
}
