//! The change feeds: readers that follow one range each while others write, keep their position over the kill, and go on
//! from it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use lazuli_trial::Result;
use lazuli_trial::documents::DocumentClient;
use serde_json::Value;

use super::CONTAINER;
use super::check::{Expected, whole};

/// How long a reader that has read everything waits before it looks again.
const LOOK_INTERVAL: Duration = Duration::from_millis(2);

/// A place in the feed of one range.
#[derive(Clone, Debug)]
pub(super) struct Position {
    range: String,
    /// None is the beginning.
    etag: Option<String>,
}

/// What one reader has read since its round began.
pub(crate) struct FeedLog {
    pub(super) position: Position,
    /// Items by id and number, in the order in which they came.
    pub(super) seen: Vec<(String, u64)>,
}

impl FeedLog {
    fn new(position: Position) -> Self {
        Self { position, seen: Vec::new() }
    }

    /// Reads one page. Says whether there was something.
    fn read(&mut self, client: &mut DocumentClient) -> Result<bool> {
        let Position { range, etag } = &self.position;
        let answer = client.send(&CONTAINER.changes(range, etag.as_deref()))?;
        let refused = || format!("changes of {range}: {} {}", answer.status, answer.text());
        if !matches!(answer.status, 200 | 304) {
            return Err(refused());
        }
        let etag = answer.header("etag").ok_or_else(refused)?.to_owned();
        let is_more = answer.status == 200;
        if is_more {
            let page = answer.json();
            for item in page["Documents"].as_array().ok_or_else(refused)? {
                let (id, number) = whole(item)?;
                self.seen.push((id, number));
            }
        }
        self.position.etag = Some(etag);
        Ok(is_more)
    }
}

/// The beginnings of the feeds of all ranges.
pub(super) fn beginnings(address: SocketAddr) -> Result<Vec<Position>> {
    let ranges = DocumentClient::connect(address)?.expect(&CONTAINER.ranges(), &[200])?.json();
    let ranges = ranges["PartitionKeyRanges"].as_array().cloned().unwrap_or_default();
    let position =
        |range: &Value| Some(Position { range: range["id"].as_str()?.to_owned(), etag: None });
    ranges.iter().map(position).collect::<Option<_>>().ok_or("a range without an id".to_owned())
}

/// Follows a feed until the connection breaks.
pub(super) fn follow(address: SocketAddr, position: Position) -> Result<FeedLog> {
    let mut log = FeedLog::new(position);
    let Ok(mut client) = DocumentClient::connect(address) else { return Ok(log) };
    loop {
        match log.read(&mut client) {
            Ok(true) => {}
            Ok(false) => std::thread::sleep(LOOK_INTERVAL),
            Err(error) if error.starts_with("changes of") => return Err(error),
            Err(_) => return Ok(log),
        }
    }
}

/// Reads on to the end.
pub(super) fn read_on(address: SocketAddr, mut log: FeedLog) -> Result<FeedLog> {
    let mut client = DocumentClient::connect(address)?;
    while log.read(&mut client)? {}
    Ok(log)
}

/// Reads the feeds from these positions to their ends.
pub(super) fn read_from(address: SocketAddr, positions: Vec<Position>) -> Result<Vec<FeedLog>> {
    positions.into_iter().map(|it| read_on(address, FeedLog::new(it))).collect()
}

/// What the feeds have shown must be what the items have become: every one that is there with its newest number, each
/// number once and after the smaller ones, and nothing that is not there.
pub(super) fn compare(logs: &[FeedLog], expected: &Expected) -> Result {
    let mut newest: BTreeMap<&str, u64> = BTreeMap::new();
    for (id, number) in logs.iter().flat_map(|log| &log.seen) {
        if let Some(before) = newest.insert(id, *number).filter(|before| before >= number) {
            return Err(format!("REPEATED: the feed had {id} with {before}, then with {number}"));
        }
    }
    for (id, number) in &newest {
        let item = expected.get(*id);
        let fits = item.is_some_and(|item| match item.is_there() {
            true => *number == item.number,
            false => *number < item.number,
        });
        if !fits {
            return Err(format!("the feed showed {id} with {number}, and it is {item:?}"));
        }
    }
    let missing = expected.values().find(|item| item.is_there() && !newest.contains_key(&*item.id));
    missing.map_or(Ok(()), |item| Err(format!("GAP: the feed never showed {item:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crash::documents::writers::{Act, ItemWrite};

    /// Items by id and number, and whether they are there.
    fn items(given: &[(&str, u64, bool)]) -> Expected {
        let item = |&(id, number, is_there): &(&str, u64, bool)| ItemWrite {
            key: "k".to_owned(),
            id: id.to_owned(),
            round: 0,
            number,
            act: if is_there { Act::Upsert } else { Act::Delete },
            was_there: true,
            etag: None,
        };
        given.iter().map(|given| (given.0.to_owned(), item(given))).collect()
    }

    fn shown(seen: &[(&str, u64)], expected: &[(&str, u64, bool)]) -> Result {
        let position = Position { range: "0".to_owned(), etag: None };
        let seen = seen.iter().map(|(id, number)| ((*id).to_owned(), *number)).collect();
        compare(&[FeedLog { position, seen }], &items(expected))
    }

    #[test]
    fn a_feed_shows_the_newest_of_each_item_and_may_leave_out_what_came_before() {
        shown(&[("a", 0), ("b", 1), ("a", 3)], &[("a", 3, true), ("b", 1, true)]).unwrap();
        // What is deleted by now may have been shown before.
        shown(&[("a", 2)], &[("a", 3, false), ("b", 1, false)]).unwrap();
    }

    #[test]
    fn a_gap_a_repeat_and_a_change_that_was_never_made_are_found() {
        assert!(shown(&[("a", 0)], &[("a", 0, true), ("b", 0, true)]).is_err(), "b is missing");
        assert!(shown(&[("a", 0)], &[("a", 1, true)]).is_err(), "the newest is missing");
        assert!(shown(&[("a", 1), ("a", 1)], &[("a", 1, true)]).is_err(), "one came twice");
        assert!(shown(&[("a", 1), ("a", 0)], &[("a", 1, true)]).is_err(), "they came in disorder");
        assert!(shown(&[("a", 2)], &[("a", 1, true)]).is_err(), "it was shown and then lost");
        assert!(shown(&[("a", 0)], &[]).is_err(), "it was never written");
        assert!(shown(&[("a", 3)], &[("a", 3, false)]).is_err(), "it was deleted before");
    }
}
