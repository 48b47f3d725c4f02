//! Which pages of a page blob hold something, and which changed since a snapshot.

use std::ops::Range;

use lazuli_engine::{Error, Kind, Lsn, Result, View};

use super::address::{BlobAddress, BlobPlace, Which};
use super::conditions::Conditions;
use super::pages::each_piece;
use super::pieces::Piece;
use super::read::ReadRange;
use super::record::{BlobKind, BlobRecord};
use super::{BlobReason, Blobs};

/// Ranges of pages, in order.
#[derive(Debug)]
pub struct PageRanges {
    pub record: BlobRecord,
    /// Pages that hold something; of a comparison, those that were written.
    pub written: Vec<Range<u64>>,
    /// Of a comparison: pages that were cleared.
    pub cleared: Vec<Range<u64>>,
}

impl Blobs {
    /// The pages that hold something; with a previous snapshot, those that changed since.
    pub async fn page_ranges(
        &self,
        address: &BlobAddress,
        which: Which,
        range: Option<ReadRange>,
        previous: Option<Lsn>,
        conditions: &Conditions,
    ) -> Result<PageRanges> {
        let seen = self.see(address, which).await?;
        seen.record.check_kind(BlobKind::Page)?;
        seen.record.check_read(conditions, self.now_ms())?;
        let length = seen.record.length();
        let range = match range {
            None => 0..length,
            Some(range) if range.first < length => {
                range.first..range.last.map_or(length, |last| length.min(last.saturating_add(1)))
            }
            Some(_) => {
                let message = "the range begins behind the end of the blob";
                return Err(Error::invalid(BlobReason::InvalidRange, message));
            }
        };
        let content = seen.record.content.id;
        let (view, place) = (&seen.view, &seen.place);
        let now = extents(view, place, content, seen.as_of, &range).await?;
        let Some(previous) = previous else {
            let written = merged(now.into_iter().map(|(range, _)| range));
            return Ok(PageRanges { written, record: seen.record, cleared: Vec::new() });
        };
        let before = match self.see_at(place.clone(), Which::Snapshot(previous)).await {
            Err(error) if error.kind() == Kind::NotFound => {
                let message = "there is no such snapshot to compare with";
                return Err(Error::not_found(BlobReason::PreviousSnapshotNotFound, message));
            }
            before => before?.record,
        };
        if before.content.id != content {
            let message = "the blob was replaced since the snapshot";
            return Err(Error::exists(BlobReason::BlobOverwritten, message));
        }
        if seen.as_of.is_some_and(|as_of| as_of < before.kept_until) {
            let message = "the snapshot to compare with is the newer one";
            return Err(Error::invalid(BlobReason::PreviousSnapshotNewer, message));
        }
        let then = Some(before.kept_until);
        let had = extents(view, place, content, then, &range).await?;
        let had = merged(had.into_iter().map(|(range, _)| range));
        let newer = now.iter().filter(|(_, since)| *since > before.kept_until);
        let written = merged(newer.map(|(range, _)| range.clone()));
        let has = merged(now.into_iter().map(|(range, _)| range));
        Ok(PageRanges { written, cleared: without(&had, &has), record: seen.record })
    }
}

/// Where a page blob has pieces, as far as they lie in the range, and since when.
async fn extents(
    view: &View,
    place: &BlobPlace,
    content: u64,
    as_of: Option<Lsn>,
    range: &Range<u64>,
) -> Result<Vec<(Range<u64>, Lsn)>> {
    let mut extents: Vec<(Range<u64>, Lsn)> = Vec::new();
    let mut show = |offset: u64, piece: Piece| {
        let inside = offset.max(range.start)..(offset + piece.length).min(range.end);
        match extents.last_mut() {
            Some((last, since)) if last.end == inside.start && *since == piece.since => {
                last.end = inside.end;
            }
            _ => extents.push((inside, piece.since)),
        }
    };
    each_piece(view, place, content, as_of, range.clone(), &mut show).await?;
    extents.sort_by_key(|(range, _)| range.start);
    Ok(extents)
}

/// Sorted ranges that do not overlap, those that touch as one.
fn merged(ranges: impl Iterator<Item = Range<u64>>) -> Vec<Range<u64>> {
    let mut merged: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match merged.last_mut() {
            Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

/// What the first ranges cover and the second do not.
fn without(ranges: &[Range<u64>], holes: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut left = Vec::new();
    let mut holes = holes.iter().peekable();
    for range in ranges {
        let mut start = range.start;
        while let Some(hole) = holes.peek() {
            if hole.start >= range.end {
                break;
            }
            if hole.start > start {
                left.push(start..hole.start);
            }
            start = start.max(hole.end);
            if hole.end > range.end {
                break;
            }
            holes.next();
        }
        if start < range.end {
            left.push(start..range.end);
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_merged_and_taken_away_from_each_other() {
        let ranges = |list: &[(u64, u64)]| -> Vec<Range<u64>> {
            list.iter().map(|(start, end)| *start..*end).collect()
        };
        let touching = ranges(&[(0, 2), (2, 4), (5, 6), (6, 9)]);
        assert_eq!(merged(touching.into_iter()), ranges(&[(0, 4), (5, 9)]));
        for (had, has, left) in [
            (vec![(0, 10)], vec![], vec![(0, 10)]),
            (vec![(0, 10)], vec![(0, 10)], vec![]),
            (vec![(0, 10)], vec![(2, 3), (5, 6)], vec![(0, 2), (3, 5), (6, 10)]),
            (vec![(0, 4), (6, 10)], vec![(2, 8)], vec![(0, 2), (8, 10)]),
            (vec![(4, 6)], vec![(0, 1), (5, 20)], vec![(4, 5)]),
        ] {
            assert_eq!(without(&ranges(&had), &ranges(&has)), ranges(&left));
        }
    }
}
