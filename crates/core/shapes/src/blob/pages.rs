//! Pages: writes in multiples of 512 bytes anywhere in a page blob.

use std::ops::Range;

use lazuli_engine::{Direction, ItemKey, Lsn, PageLimit, Result, Space, View};

use super::address::{Place, number_at, offset_of};
use super::codec::damaged;
use super::limits::PAGES_WRITE_BYTES_MAX;
use super::pieces::{Piece, decode_one};
use super::read::behind;

/// The pieces that a page blob had at some time, sorted by their offsets, as far as they lie in the range.
pub(super) async fn pieces_as_of(
    view: &View,
    place: &Place,
    content: u64,
    as_of: Lsn,
    range: Range<u64>,
) -> Result<Vec<(u64, Piece)>> {
    // No piece is longer than one write, so that those that reach into the range are not far before it.
    let from = range.start.saturating_sub(PAGES_WRITE_BYTES_MAX);
    let mut found = Vec::new();
    let ranges =
        [place.pieces(content, from, range.end), place.former_pieces(content, from, range.end)];
    for mut keys in ranges {
        loop {
            let limit = PageLimit::MAX;
            let page = view.scan(Space::BLOB_PIECES, &keys, Direction::Forward, limit).await?;
            for (key, item) in page.items {
                let key = ItemKey::from_bytes(key, place.route.len())?;
                let offset = offset_of(key.row()).ok_or_else(damaged)?;
                // A piece of now has no end yet.
                let until = number_at(key.row(), 16).map_or(Lsn(u64::MAX), Lsn);
                let piece = decode_one(item.payload)?;
                let is_inside = offset < range.end && offset + piece.length > range.start;
                if is_inside && piece.since <= as_of && as_of < until {
                    found.push((offset, piece));
                }
            }
            match page.next {
                Some(last) => keys.start = behind(&last),
                None => break,
            }
        }
    }
    found.sort_by_key(|(offset, _)| *offset);
    Ok(found)
}
