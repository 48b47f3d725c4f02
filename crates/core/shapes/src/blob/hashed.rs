//! Containers whose names are hashed (B3): in the routes of their blobs each name stands behind a digit of its hash, so
//! that names which only ever grow land in sixteen places of the container and not in one. A list reads the sixteen slices
//! side by side and puts them together in the order of names.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use lazuli_engine::{Container, Result, hashed_slice};

use super::Blobs;
use super::list::{ListOptions, Listed, Page};

/// The digits, one for each slice.
const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// The name as it stands in routes.
pub(super) fn spread(name: &str, is_hashed: bool) -> Cow<'_, str> {
    if !is_hashed {
        return Cow::Borrowed(name);
    }
    let slice = hashed_slice(name.as_bytes(), DIGITS.len() as u16);
    let digit = DIGITS.get(usize::from(slice)).copied().unwrap_or(DIGITS[0]);
    Cow::Owned(format!("{}{name}", char::from(digit)))
}

/// The name again.
pub(super) fn gathered(mut name: String, is_hashed: bool) -> String {
    if is_hashed && !name.is_empty() {
        name.remove(0);
    }
    name
}

/// How many entries of a slice are read for a page: its share and some more, because no hash is quite even.
fn share(most: usize) -> usize {
    most.min(2 * most / DIGITS.len() + 16)
}

impl Blobs {
    /// A page of a list as `list` makes it. Places between pages are sort keys without the digit, which stands behind
    /// `inside`. A page can be shorter than it may be, where a slice has more than its share.
    pub(super) async fn list_hashed(
        &self,
        blobs: &Arc<Container>,
        inside: &Bytes,
        options: &ListOptions,
        after: Option<&Bytes>,
    ) -> Result<Page<Listed>> {
        let most = options.most.max(1);
        let of_slice = ListOptions { most: share(most), ..options.clone() };
        let (at, mut rows, mut end) = (inside.len(), Vec::new(), None::<Bytes>);
        for digit in DIGITS {
            let slice: Bytes = [&inside[..], &[*digit][..]].concat().into();
            let after = after.map(|after| {
                let behind = after.get(at..).unwrap_or_default();
                Bytes::from([&slice[..], behind].concat())
            });
            let found = self.rows_of_list(blobs, slice, true, &of_slice, after.as_ref()).await?;
            let without_digit = |key: &Bytes| {
                let behind = key.get(at + 1..).unwrap_or_default();
                Bytes::from([&inside[..], behind].concat())
            };
            rows.extend(found.entries.into_iter().map(|(key, entry)| (without_digit(&key), entry)));
            if let Some(next) = found.next.as_ref().map(without_digit) {
                end = Some(match end {
                    Some(end) => next.min(end),
                    None => next,
                });
            }
        }
        rows.sort_by(|(one, _), (other, _)| one.cmp(other));
        // A folder has blobs in many slices and is listed once.
        rows.dedup_by(|(one, _), (other, _)| one == other);
        if let Some(end) = &end {
            // Behind it a slice may have what was not read.
            rows.retain(|(key, _)| key <= end);
        }
        if rows.len() > most {
            rows.truncate(most);
            end = rows.last().map(|(key, _)| key.clone());
        }
        Ok(Page { entries: rows.into_iter().map(|(_, entry)| entry).collect(), next: end })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_grow_are_spread_and_come_back() {
        let mut counts = std::collections::BTreeMap::new();
        for number in 0..1_600 {
            let name = format!("2026/11/16/{number:06}.jpg");
            let stored = spread(&name, true).into_owned();
            *counts.entry(stored.as_bytes()[0]).or_insert(0) += 1;
            assert_eq!(gathered(stored, true), name);
            assert_eq!(spread(&name, false), name);
            assert_eq!(gathered(name.clone(), false), name);
        }
        assert_eq!(counts.len(), DIGITS.len());
        assert!(counts.values().all(|count| (60..140).contains(count)), "{counts:?}");
    }

    /// Data on disk depends on it.
    #[test]
    fn the_digit_of_a_name_never_changes() {
        let digits: String = ["", "a", "b", "2026/11/16", "ä"]
            .iter()
            .filter_map(|name| spread(name, true).chars().next())
            .collect();
        assert_eq!(digits, "2e5c5");
    }
}
