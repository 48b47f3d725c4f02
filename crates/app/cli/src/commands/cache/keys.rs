//! `lazuli cache top`, `scan` and `delete`: every key of a database is looked at, some at a time.

use std::cmp::Reverse;

use lazuli_console::progress::{Figures, Meter};
use lazuli_console::{Failure, Result, confirm, output};
use lazuli_resp::Answer;
use serde_json::{Value, json};

use super::{Cache, Scan, shown};
use crate::args::cache::{Database, Kind};

fn open(database: &Database) -> Result<Cache> {
    let (mut cache, _) = Cache::find(&database.place)?;
    cache.select(database.number)?;
    Ok(cache)
}

pub(super) fn scan(
    database: &Database,
    pattern: Option<&str>,
    kind: Option<Kind>,
    limit: usize,
) -> Result<()> {
    let mut cache = open(database)?;
    let kind = kind.map(|it| format!("{it:?}").to_lowercase());
    let mut steps = Scan::new(pattern, kind.as_deref());
    let (mut keys, mut has_more) = (Vec::new(), false);
    while let Some(found) = steps.next(&mut cache)? {
        keys.extend(found.iter().map(|it| shown(it)));
        if keys.len() > limit || (keys.len() == limit && steps.cursor.is_some()) {
            keys.truncate(limit);
            has_more = true;
            break;
        }
    }
    if database.place.target.json {
        output::json(&json!({ "keys": keys, "more": has_more }));
        return Ok(());
    }
    keys.iter().for_each(|key| output::line(key));
    if has_more {
        eprintln!("there may be more: --limit says how many are printed");
    }
    Ok(())
}

pub(super) fn delete(database: &Database, pattern: &str, is_sure: bool) -> Result<()> {
    let mut cache = open(database)?;
    let as_json = database.place.target.json;
    if !is_sure {
        let mut meter = Meter::new("found", "keys", as_json, Figures::default(), None);
        let (mut steps, mut count) = (Scan::new(Some(pattern), None), 0);
        while let Some(found) = steps.next(&mut cache)? {
            count += found.len() as u64;
            meter.show(Figures { items: count, bytes: 0 });
        }
        meter.finish();
        let question = format!("delete {count} keys of database {}?", database.number);
        if count > 0 && !confirm::ask(&question)? {
            return Err(Failure::failed("nothing was deleted"));
        }
    }
    let mut meter = Meter::new("deleted", "keys", as_json, Figures::default(), None);
    let (mut steps, mut deleted) = (Scan::new(Some(pattern), None), 0);
    while let Some(found) = steps.next(&mut cache)? {
        if found.is_empty() {
            continue;
        }
        let mut command: Vec<&[u8]> = vec![b"UNLINK"];
        command.extend(found.iter().map(Vec::as_slice));
        if let Answer::Integer(count) = cache.ask(&command)? {
            deleted += count.unsigned_abs();
        }
        meter.show(Figures { items: deleted, bytes: 0 });
    }
    meter.finish();
    let answer = json!({ "deleted": deleted });
    output::changed(as_json, &answer, || format!("deleted {deleted} keys that match {pattern}"));
    Ok(())
}

/// A key as `top` ranks it.
struct Ranked {
    key: Vec<u8>,
    kind: String,
    bytes: i64,
    /// How often it is used, or for how many seconds it was not.
    usage: i64,
}

pub(super) fn top(database: &Database, pattern: Option<&str>, count: usize) -> Result<()> {
    let mut cache = open(database)?;
    let policy = policy(&mut cache)?;
    let is_counted = policy.ends_with("-lfu");
    let as_json = database.place.target.json;
    let mut meter = Meter::new("looked at", "keys", as_json, Figures::default(), None);
    let (mut biggest, mut most_used) = (Vec::new(), Vec::new());
    let (mut steps, mut met) = (Scan::new(pattern, None), Figures::default());
    while let Some(found) = steps.next(&mut cache)? {
        for one in figures(&mut cache, found, is_counted)? {
            met.items += 1;
            met.bytes += one.bytes.unsigned_abs();
            let shared = std::rc::Rc::new(one);
            biggest.push(shared.clone());
            most_used.push(shared);
        }
        // Only the first of each are kept, so that any number of keys can be looked at.
        biggest.sort_by_key(|it| Reverse(it.bytes));
        most_used.sort_by_key(|it| if is_counted { -it.usage } else { it.usage });
        biggest.truncate(count);
        most_used.truncate(count);
        meter.show(met);
    }
    meter.finish();
    let usage = if is_counted { "frequency" } else { "idle_seconds" };
    let listed = |all: &[std::rc::Rc<Ranked>]| -> Vec<Value> {
        let one = |it: &std::rc::Rc<Ranked>| {
            let mut one = json!({ "key": shown(&it.key), "type": it.kind, "bytes": it.bytes });
            one[usage] = it.usage.into();
            one
        };
        all.iter().map(one).collect()
    };
    let answer = json!({
        "keys": met.items,
        "bytes": met.bytes,
        "biggest": listed(&biggest),
        "most_used": listed(&most_used),
    });
    if as_json {
        output::json(&answer);
        return Ok(());
    }
    let columns = ["key", "type", "bytes", usage];
    output::line(&format!("biggest of {} keys", met.items));
    output::table(&columns, &output::rows(&answer["biggest"], &columns));
    output::line(match is_counted {
        true => "\nmost used",
        false => {
            "\nused last (how often is counted under the policies allkeys-lfu and volatile-lfu)"
        }
    });
    output::table(&columns, &output::rows(&answer["most_used"], &columns));
    Ok(())
}

fn policy(cache: &mut Cache) -> Result<String> {
    let fields = cache.info("memory")?;
    let found = fields.into_iter().find(|(name, _)| name == "maxmemory_policy");
    Ok(found.map(|(_, value)| value).unwrap_or_default())
}

/// Type, size and use of keys; those that are gone meanwhile are left out.
fn figures(cache: &mut Cache, keys: Vec<Vec<u8>>, is_counted: bool) -> Result<Vec<Ranked>> {
    let usage: &[u8] = if is_counted { b"FREQ" } else { b"IDLETIME" };
    let mut commands: Vec<Vec<&[u8]>> = Vec::new();
    for key in &keys {
        commands.push(vec![b"TYPE", key]);
        commands.push(vec![b"MEMORY", b"USAGE", key]);
        commands.push(vec![b"OBJECT", usage, key]);
    }
    cache.send(commands.iter().map(Vec::as_slice))?;
    let mut all = Vec::new();
    for key in keys {
        let (kind, bytes, usage) = (cache.receive()?, cache.receive()?, cache.receive()?);
        if let (Answer::Simple(kind), Answer::Integer(bytes), Answer::Integer(usage)) =
            (kind, bytes, usage)
        {
            let kind = String::from_utf8_lossy(&kind).into_owned();
            all.push(Ranked { key, kind, bytes, usage });
        }
    }
    Ok(all)
}
