//! Routes as SQL: what the triggers on a shard and the mover's queries compute, equal to what a router computes.

use lazuli_sharded_sql::{ColumnType, MapKind, ShardMap, quote_ident, quote_literal};
use lazuli_shardmap::{KeySchema, KeyType};
use lazuli_store::KeyRange;

use crate::form::hex;

/// The type that `lazuli.route_N` takes for a column: all integers are one, and so are texts.
fn argument(column: ColumnType) -> &'static str {
    match column {
        ColumnType::Int2 | ColumnType::Int4 | ColumnType::Int8 => "bigint",
        ColumnType::Text | ColumnType::Varchar => "text",
        other => other.name(),
    }
}

/// The statement that makes the function `lazuli.route_N` of a map on a shard.
pub(crate) fn route_function(map: &ShardMap) -> String {
    let arguments: Vec<&str> = map.key.iter().map(|it| argument(*it)).collect();
    let names: Vec<String> = (1..=map.key.len()).map(|nth| format!("${nth}")).collect();
    let body = match map.kind {
        MapKind::Hash => {
            let parts = map.key.iter().zip(&names).map(|(column, name)| column.canonical_sql(name));
            let texts = parts.collect::<Vec<_>>().join(" || chr(31) || ");
            format!("substring(sha256(convert_to({texts}, 'UTF8')) from 1 for 2)")
        }
        MapKind::List | MapKind::Range => {
            let parts = map.key.iter().zip(&names).map(|(column, name)| encoded(*column, name));
            parts.collect::<Vec<_>>().join(" || ")
        }
    };
    format!(
        "CREATE OR REPLACE FUNCTION lazuli.route_{}({}) RETURNS bytea LANGUAGE sql IMMUTABLE \
         PARALLEL SAFE AS $lazuli$ SELECT {body} $lazuli$",
        map.id,
        arguments.join(", ")
    )
}

/// The order-preserving bytes of one part: those of `lazuli_shardmap::key`.
fn encoded(column: ColumnType, name: &str) -> String {
    match column.key_type() {
        KeyType::Int32 | KeyType::Int64 => {
            format!("int8send({name} # '-9223372036854775808'::int8)")
        }
        KeyType::DateTime => {
            // Microseconds since 2000 as ticks since the year 1.
            let micros = column.canonical_sql(name);
            let ticks = format!("(({micros})::int8 * 10 + 630822816000000000)");
            format!("int8send({ticks} # '-9223372036854775808'::int8)")
        }
        KeyType::Uuid => format!("uuid_send({name})"),
        KeyType::Bool => format!("CASE WHEN {name} THEN '\\x01'::bytea ELSE '\\x00'::bytea END"),
        // A text of PostgreSQL's has no zero byte to be escaped.
        KeyType::Text => format!("(convert_to({name}, 'UTF8') || '\\x0001'::bytea)"),
        KeyType::Bytes => format!("lazuli.escaped({name})"),
    }
}

/// The call that computes the route of a row of a table with these key columns.
pub(crate) fn route_of(map: &ShardMap, columns: &[(String, ColumnType)], alias: &str) -> String {
    let values: Vec<String> = columns.iter().map(|(name, _)| named(name, alias)).collect();
    format!("lazuli.route_{}({})", map.id, values.join(", "))
}

fn named(column: &str, alias: &str) -> String {
    let dot = if alias.is_empty() { "" } else { "." };
    format!("{alias}{dot}{}", quote_ident(column))
}

/// A condition that a row's route is in a range.
pub(crate) fn within(
    map: &ShardMap,
    columns: &[(String, ColumnType)],
    alias: &str,
    range: &KeyRange,
) -> String {
    let route = route_of(map, columns, alias);
    let mut conditions = native_bounds(map, columns, alias, range);
    if !range.start.is_empty() {
        conditions.push(format!("{route} >= {}", bytea(&range.start)));
    }
    match &range.end {
        Some(end) => conditions.push(format!("{route} < {}", bytea(end))),
        None => conditions.push(format!("{route} IS NOT NULL")),
    }
    format!("({})", conditions.join(" AND "))
}

/// Conditions on the first column that an index on it serves. They may let more rows pass than the range has.
fn native_bounds(
    map: &ShardMap,
    columns: &[(String, ColumnType)],
    alias: &str,
    range: &KeyRange,
) -> Vec<String> {
    let Some((name, column)) = columns.first().filter(|_| map.kind != MapKind::Hash) else {
        return Vec::new();
    };
    let literal = |bound: &[u8]| {
        let first = KeySchema::one(column.key_type());
        let (encoded, _) = first.split(bound).ok()?;
        let part = KeySchema::print(&first.decode(encoded).ok()?);
        // Only where PostgreSQL sorts values as we do, whatever the collation.
        let cast = match column {
            ColumnType::Int2 | ColumnType::Int4 | ColumnType::Int8 => "int8",
            ColumnType::Uuid => "uuid",
            ColumnType::Timestamptz => "timestamptz",
            _ => return None,
        };
        Some(format!("{}::{cast}", quote_literal(&part)))
    };
    let name = named(name, alias);
    let low = literal(&range.start).map(|it| format!("{name} >= {it}"));
    let high = range.end.as_ref().and_then(|end| literal(end)).map(|it| format!("{name} <= {it}"));
    low.into_iter().chain(high).collect()
}

pub(crate) fn bytea(bytes: &[u8]) -> String {
    format!("'\\x{}'::bytea", hex(bytes))
}

/// Bounds as people write them.
pub(crate) mod bounds {
    use bytes::Bytes;
    use lazuli_sharded_sql::{HASH_SLOTS, MapKind, ShardMap};
    use lazuli_shardmap::{KeyPart, KeySchema, MapKind as CoreKind};
    use lazuli_store::{Error, KeyRange, Result, after_key};

    fn schema(map: &ShardMap) -> Result<KeySchema> {
        KeySchema::new(map.key.iter().map(|it| it.key_type()).collect::<Vec<_>>())
    }

    /// A key as text, its parts with commas between them.
    pub(crate) fn key(map: &ShardMap, text: &str) -> Result<Vec<KeyPart>> {
        schema(map)?.parse(text)
    }

    pub(crate) fn route(map: &ShardMap, key: &[KeyPart]) -> Result<Bytes> {
        map.route(key).map_err(|error| Error::invalid("key-type", error))
    }

    /// All routes of one key; in a hash map those of its slot, which is never split.
    pub(crate) fn routes_of(map: &ShardMap, key: &[KeyPart]) -> Result<KeyRange> {
        let route = route(map, key)?;
        let end = match map.kind {
            MapKind::Hash => next_slot(&route),
            MapKind::List | MapKind::Range => Some(after_key(&route)),
        };
        let is_first = map.kind == MapKind::Hash && route[..] == [0, 0];
        Ok(KeyRange::new(if is_first { Bytes::new() } else { route }, end))
    }

    fn next_slot(slot: &[u8]) -> Option<Bytes> {
        let slot = u16::from_be_bytes(slot.try_into().ok()?);
        slot.checked_add(1).map(|next| Bytes::copy_from_slice(&next.to_be_bytes()))
    }

    /// A bound: a key, or in a hash map the number of a slot. `min` and `max` mean the ends.
    pub(crate) fn parse(map: &ShardMap, text: &str) -> Result<Option<Bytes>> {
        if matches!(text, "" | "min" | "max") {
            return Ok(None);
        }
        if map.kind != MapKind::Hash {
            return route(map, &key(map, text)?).map(Some);
        }
        let number: u32 = text.parse().unwrap_or(u32::MAX);
        match u16::try_from(number) {
            Ok(0) => Ok(None),
            Ok(slot) => Ok(Some(Bytes::copy_from_slice(&slot.to_be_bytes()))),
            Err(_) if number == HASH_SLOTS => Ok(None),
            Err(_) => {
                let message = format!("a bound of a hash map is a slot, 0 to {HASH_SLOTS}");
                Err(Error::invalid("bad-bound", message))
            }
        }
    }

    /// The text that [`parse`] reads back; `after KEY` behind a single key.
    pub(crate) fn print(map: &ShardMap, bound: &[u8]) -> String {
        let kind = match map.kind {
            MapKind::Hash => {
                let slot = bound.try_into().map(u16::from_be_bytes).unwrap_or(0);
                return slot.to_string();
            }
            MapKind::List => CoreKind::List,
            MapKind::Range => CoreKind::Range,
        };
        match (bound, schema(map)) {
            ([], _) => "min".to_owned(),
            (bound, Ok(schema)) => match bound.strip_suffix(&[0]) {
                Some(key) if schema.decode(key).is_ok() => {
                    format!("after {}", kind.print(&schema, key))
                }
                _ => kind.print(&schema, bound),
            },
            (_, Err(_)) => "?".to_owned(),
        }
    }

    /// A range for people: `low..high`, or the key alone where it is one key's.
    pub(crate) fn print_range(map: &ShardMap, routes: &KeyRange) -> String {
        let is_point = !routes.start.is_empty() && routes.end == Some(after_key(&routes.start));
        if is_point && map.kind != MapKind::Hash {
            return print(map, &routes.start);
        }
        let low = if routes.start.is_empty() { "min".into() } else { print(map, &routes.start) };
        let high = routes.end.as_ref().map_or("max".to_owned(), |end| print(map, end));
        format!("{low}..{high}")
    }

    /// Cuts all slots of a hash map into this many ranges whose sizes differ by one at most.
    pub(crate) fn cut(parts: usize) -> Vec<KeyRange> {
        let parts = parts.clamp(1, HASH_SLOTS as usize);
        let slot = |nth: usize| (HASH_SLOTS as usize * nth / parts) as u32;
        let bound = |slot: u32| {
            u16::try_from(slot).ok().map(|slot| Bytes::copy_from_slice(&slot.to_be_bytes()))
        };
        (0..parts)
            .map(|nth| {
                let start = if nth == 0 { None } else { bound(slot(nth)) };
                KeyRange::new(start.unwrap_or_default(), bound(slot(nth + 1)))
            })
            .collect()
    }
}
