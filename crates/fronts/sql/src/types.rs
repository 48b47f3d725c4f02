//! Types of users' own have other numbers on every shard. Clients know those of the catalog shard, so all others are
//! translated to them, and values that carry such numbers inside are refused in binary form.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use lazuli_pg::Field;
use lazuli_pg::server::{read_row_description, write_row_description};

use crate::error::{SqlError, code};
use crate::shard::Connection;

/// The first number that is not the same on every server.
pub(crate) const FIRST_OWN_OID: u32 = 16_384;

/// From a shard's own numbers to those of the catalog shard, and whether values in binary form hold such numbers.
pub(crate) type ShardTypes = HashMap<u32, (u32, bool)>;

/// The types of a database, by name.
pub(crate) type Named = HashMap<String, (u32, bool)>;

/// Arrays and composites, and domains and ranges over them, hold numbers of types in their binary form.
const TYPES: &str = "SELECT n.nspname || '.' || t.typname, t.oid, t.typtype NOT IN ('e', 'b') OR t.typcategory = 'A' \
     FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace WHERE t.oid >= 16384 \
     AND n.nspname <> 'lazuli'";

pub(crate) async fn load(shard: &mut Connection) -> Result<Named, SqlError> {
    let rows = shard.simple(TYPES).await?;
    let read = |row: Vec<Option<String>>| {
        let mut row = row.into_iter();
        let (name, oid, carries) = (row.next()??, row.next()??, row.next()??);
        Some((name, (oid.parse().ok()?, carries == "t")))
    };
    Ok(rows.into_iter().filter_map(read).collect())
}

/// How the numbers of a shard are translated. None if they are the same as on the catalog shard.
pub(crate) fn compare(catalog: &Named, shard: &Named) -> Option<Arc<ShardTypes>> {
    let pairs: ShardTypes = shard
        .iter()
        .filter_map(|(name, (oid, carries))| Some((*oid, (catalog.get(name)?.0, *carries))))
        .collect();
    pairs.iter().any(|(oid, (other, _))| oid != other).then(|| Arc::new(pairs))
}

/// A row description with the catalog shard's numbers.
pub(crate) fn translate(whole: &Bytes, types: &ShardTypes) -> Result<Bytes, SqlError> {
    let mut fields = read_row_description(whole.slice(lazuli_pg::frame::HEADER_BYTES..))?;
    if fields.iter().all(|field| field.oid < FIRST_OWN_OID) {
        return Ok(whole.clone());
    }
    for field in fields.iter_mut().filter(|field| field.oid >= FIRST_OWN_OID) {
        let Some((oid, carries)) = types.get(&field.oid) else {
            let message =
                format!("the type of column \"{}\" is not on the catalog shard", field.name);
            return Err(SqlError::new(code::NOT_READY, message));
        };
        if *carries && field.format == 1 {
            return Err(carried(&field.name));
        }
        field.oid = *oid;
    }
    let mut out = BytesMut::new();
    write_row_description(&mut out, &fields);
    Ok(out.freeze())
}

/// Refuses binary values that hold numbers of a shard's own, for a client that has the catalog shard's description.
pub(crate) fn refuse_carried(
    fields: &[Field],
    formats: &[i16],
    types: &ShardTypes,
) -> Result<(), SqlError> {
    for (index, field) in fields.iter().enumerate().filter(|(_, field)| field.oid >= FIRST_OWN_OID)
    {
        let is_binary = match formats {
            [] => false,
            [one] => *one == 1,
            many => many.get(index) == Some(&1),
        };
        if is_binary
            && types.values().any(|(canonical, carries)| *canonical == field.oid && *carries)
        {
            return Err(carried(&field.name));
        }
    }
    Ok(())
}

fn carried(column: &str) -> SqlError {
    SqlError::refused(format!("column \"{column}\" cannot be sent in binary form"))
        .detail("Its values hold numbers of types, which differ between the shards.")
        .hint("Ask for text.")
}

/// The numbers that a shard has for types that a client has named by those of the catalog shard.
pub(crate) fn on_shard(types: &[u32], shard: Option<&ShardTypes>) -> Vec<u32> {
    let own = |oid: u32| {
        let found =
            shard.and_then(|shard| shard.iter().find(|(_, (canonical, _))| *canonical == oid));
        found.map_or(oid, |(own, _)| *own)
    };
    types.iter().map(|oid| if *oid < FIRST_OWN_OID { *oid } else { own(*oid) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_translated_and_binary_arrays_of_them_refused() {
        let named = |oid: u32| {
            Named::from([
                ("public.mood".to_owned(), (oid, false)),
                ("public._mood".to_owned(), (oid + 1, true)),
            ])
        };
        assert_eq!(compare(&named(20_000), &named(20_000)), None);
        let types = compare(&named(20_000), &named(30_000)).unwrap();
        let described = |oid: u32, format: i16| {
            let field = Field {
                name: "m".into(),
                table: 0,
                column: 0,
                oid,
                length: 4,
                modifier: -1,
                format,
            };
            let mut out = BytesMut::new();
            write_row_description(&mut out, &[field]);
            out.freeze()
        };
        assert_eq!(translate(&described(30_000, 1), &types).unwrap(), described(20_000, 1));
        assert_eq!(translate(&described(30_001, 0), &types).unwrap(), described(20_001, 0));
        assert!(translate(&described(30_001, 1), &types).is_err());
        assert!(translate(&described(30_007, 0), &types).is_err());
        assert_eq!(on_shard(&[23, 20_000, 0], Some(&types)), [23, 30_000, 0]);
    }
}
