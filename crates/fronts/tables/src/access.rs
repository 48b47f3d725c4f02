//! What a shared access signature for a table grants: operations on that table, on a range of its entities.

use lazuli_azure::Operation as _;
use lazuli_azure::auth::access::Access;
use lazuli_azure::auth::table_sas::{EntityRange, TableGrant};
use lazuli_azure::odata::Value;

use crate::address::EntityKey;
use crate::entity::{PARTITION_KEY, ROW_KEY};
use crate::error::{Common, Fault, Result};
use crate::filter::{Comparison, Filter};
use crate::request::{EntityWrite, Operation};

/// Refuses an operation that is not granted. Keys that stand in a body are checked by `check_key`.
pub(crate) fn check(access: &Access<TableGrant>, operation: &Operation) -> Result<()> {
    // A signature for a table is for the entities in it.
    access.check(operation.row().need, "o").map_err(Fault::new)?;
    let table = match operation {
        Operation::GetEntity { key, .. } => &key.table,
        Operation::QueryEntities { table, .. } => table,
        Operation::WriteEntity(EntityWrite::Insert { table }) => table,
        Operation::WriteEntity(
            EntityWrite::Replace { key, .. }
            | EntityWrite::Merge { key, .. }
            | EntityWrite::Delete { key, .. },
        ) => &key.table,
        // A transaction is checked change by change; the rest is not for signatures of tables.
        _ => return Ok(()),
    };
    match access {
        Access::Resource(grant) if !grant.table.eq_ignore_ascii_case(table) => {
            Err(Fault::new(Common::AuthorizationFailure))
        }
        _ => Ok(()),
    }
}

/// Refuses to write an entity outside of the granted range.
pub(crate) fn check_key(access: &Access<TableGrant>, key: &EntityKey) -> Result<()> {
    if holds(access, key) { Ok(()) } else { Err(Fault::new(Common::AuthorizationFailure)) }
}

/// Whether an entity is in the granted range.
pub(crate) fn holds(access: &Access<TableGrant>, key: &EntityKey) -> bool {
    match access {
        Access::Resource(grant) => grant.range.contains(&key.partition_key, &key.row_key),
        Access::Owner | Access::User(_) | Access::Account(_) | Access::Anonymous => true,
    }
}

/// The filter that also keeps to the granted range: queries find nothing outside of it.
pub(crate) fn narrow(access: &Access<TableGrant>, filter: Option<Filter>) -> Option<Filter> {
    let Access::Resource(grant) = access else { return filter };
    let terms: Vec<_> = filter.into_iter().chain(range_terms(&grant.range)).collect();
    (!terms.is_empty()).then_some(Filter::All(terms))
}

/// The range as conditions on the keys.
fn range_terms(range: &EntityRange) -> Vec<Filter> {
    let compare = |name: &str, comparison, key: &str| {
        Filter::Compare(name.to_owned(), comparison, Value::String(key.to_owned().into()))
    };
    let term = |bound: &Option<(String, Option<String>)>, beyond, at_or_beyond| {
        let (partition, row) = bound.as_ref()?;
        Some(match row {
            None => compare(PARTITION_KEY, at_or_beyond, partition),
            Some(row) => Filter::Any(vec![
                compare(PARTITION_KEY, beyond, partition),
                Filter::All(vec![
                    compare(PARTITION_KEY, Comparison::Equal, partition),
                    compare(ROW_KEY, at_or_beyond, row),
                ]),
            ]),
        })
    };
    let first = term(&range.first, Comparison::Greater, Comparison::GreaterOrEqual);
    let last = term(&range.last, Comparison::Less, Comparison::LessOrEqual);
    first.into_iter().chain(last).collect()
}
