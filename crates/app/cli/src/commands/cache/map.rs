//! `lazuli cache map`: where the slots are.

use lazuli_console::{Failure, Result, output};
use lazuli_keyspace::{CONTAINER, SLOTS};
use serde_json::{Value, json};

use super::Cache;
use crate::args::cache::Place;
use crate::commands::map::partitions;

pub(super) fn run(place: &Place) -> Result<()> {
    let (mut cache, admin) = Cache::find(place)?;
    let listeners = listeners(&mut cache)?;
    let listed = partitions(&admin, Some(CONTAINER), None).ok();
    let held = listed.as_ref().and_then(Value::as_array).filter(|it| !it.is_empty());
    // Without a map in the store all keys are in the memory of the one process.
    let ranges: Vec<(u16, u16, Value)> = match held {
        None => vec![(0, SLOTS - 1, Value::Null)],
        Some(held) => {
            let range = |one: &Value| {
                let (from, to) = (slot(&one["from"]), slot(&one["to"]));
                (from.unwrap_or(0), to.unwrap_or(SLOTS).saturating_sub(1), one["shard"].clone())
            };
            held.iter().map(range).collect()
        }
    };
    let slots: Vec<Value> = joined(&ranges, &listeners)
        .into_iter()
        .map(|(first, last, shard, address)| {
            json!({ "first": first, "last": last, "shard": shard, "address": address })
        })
        .collect();
    if slots.is_empty() {
        return Err(Failure::failed("the server tells of no slots"));
    }
    let answer =
        json!({ "slots": slots, "hash": "crc16 of the key, or of its {tag}, modulo 16384" });
    if place.target.json {
        output::json(&answer);
        return Ok(());
    }
    let columns = ["first", "last", "shard", "address"];
    output::table(&columns, &output::rows(&answer["slots"], &columns));
    Ok(())
}

type Listener = (u16, u16, String);

/// Ranges of slots with their shards and listeners; neighbours that have both in common are one.
fn joined(ranges: &[(u16, u16, Value)], listeners: &[Listener]) -> Vec<(u16, u16, Value, String)> {
    let mut all: Vec<(u16, u16, Value, String)> = Vec::new();
    let mut ranges = ranges.to_vec();
    ranges.sort_by_key(|it| it.0);
    for (first, last, shard) in ranges {
        for (from, to, address) in listeners {
            let (first, last) = (first.max(*from), last.min(*to));
            if first > last {
                continue;
            }
            match all.last_mut() {
                Some(before)
                    if before.1 + 1 == first && before.2 == shard && before.3 == *address =>
                {
                    before.1 = last;
                }
                _ => all.push((first, last, shard.clone(), address.clone())),
            }
        }
    }
    all
}

/// Which listener has which slots; without cluster mode one has all.
fn listeners(cache: &mut Cache) -> Result<Vec<Listener>> {
    let fields = cache.info("cluster")?;
    let told = fields.iter().filter(|(name, _)| name == "lazuli_slots");
    let read = told.filter_map(|(_, value)| {
        let (slots, address) = value.split_once('@')?;
        let (first, last) = slots.split_once('-')?;
        Some((first.parse().ok()?, last.parse().ok()?, address.to_owned()))
    });
    let mut all: Vec<Listener> = read.collect();
    if all.is_empty() {
        all.push((0, SLOTS - 1, cache.authority.clone()));
    }
    all.sort_unstable();
    Ok(all)
}

/// The slot that a bound of a partition names, if it names one.
fn slot(bound: &Value) -> Option<u16> {
    let digits: String = bound.as_str()?.chars().filter(char::is_ascii_digit).collect();
    digits.parse().ok().filter(|it| *it <= SLOTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_cut_by_listeners_and_joined_where_nothing_differs() {
        let ranges = [(8192, 16383, json!("b")), (0, 4095, json!("a")), (4096, 8191, json!("a"))];
        let one = [(0, 16383, "x:1".to_owned())];
        let told = joined(&ranges, &one);
        let short: Vec<_> = told.iter().map(|it| (it.0, it.1, it.2.clone())).collect();
        assert_eq!(short, [(0, 8191, json!("a")), (8192, 16383, json!("b"))]);
        let two = [(0, 99, "x:1".to_owned()), (100, 16383, "x:2".to_owned())];
        let bounds: Vec<_> = joined(&ranges, &two).iter().map(|it| (it.0, it.1)).collect();
        assert_eq!(bounds, [(0, 99), (100, 8191), (8192, 16383)]);
    }
}
