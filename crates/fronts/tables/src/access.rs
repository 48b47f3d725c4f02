//! Who a request comes from, and what it may do: the owner of the account everything, a shared access signature what it
//! says.

use std::sync::Arc;

use lazuli_http::Request;
use lazuli_http::acl::StoredPolicy;
use lazuli_http::auth::sas::{self, AccountGrant};
use lazuli_http::auth::table_sas::{self, EntityRange, TableGrant};
use lazuli_http::auth::{self, Refusal, bearer};
use lazuli_http::odata::Value;
use lazuli_http::uri::Query;

use crate::address::{Address, EntityKey};
use crate::entity::{PARTITION_KEY, ROW_KEY};
use crate::error::{Code, Fault, Result};
use crate::filter::{Comparison, Filter};
use crate::request::{EntityWrite, Operation};
use crate::{Front, tables};

/// The letter of this service in an account's signature.
const SERVICE: char = 't';
/// Its name in the addresses of the original.
const SERVICE_NAME: &str = "table";

/// What the sender of a request may do. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) enum Access {
    /// Whoever has a key of the account, or a token while tokens are taken. Preflights have it too, and nothing else to
    /// ask for.
    Owner,
    Account(Arc<AccountGrant>),
    Table(Arc<TableGrant>),
}

/// What an operation needs of a signature.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// The owner's key: no signature will do.
    Key,
    /// The type of resource as signatures call it, and the permissions, any or all of them.
    Any(char, &'static str),
    All(char, &'static str),
}

impl Access {
    pub(crate) async fn of(
        front: &Front,
        request: &Request,
        query: &Query<'_>,
        address: &Address,
    ) -> Result<Self> {
        let account = &*address.target.account;
        if bearer::is_present(request) {
            bearer::check(request, account, SERVICE_NAME, front.tokens)?;
            return Ok(Self::Owner);
        }
        if !sas::is_present(query) || is_signed(request) {
            auth::table::check(request, query, account, &front.accounts)?;
            return Ok(Self::Owner);
        }
        let keys = front.accounts.get(account).ok_or(Refusal::UnknownAccount)?;
        let Some((table, policy)) = table_sas::named(query) else {
            let grant = sas::check_account(request, query, account, &keys, SERVICE)?;
            return Ok(Self::Account(Arc::new(grant)));
        };
        let policy = match policy {
            Some(id) => stored_policy(front, account, table, id).await?,
            None => None,
        };
        let grant = table_sas::check(request, query, account, &keys, policy.as_ref())?;
        Ok(Self::Table(Arc::new(grant)))
    }

    /// Refuses an operation that is not granted. Keys that stand in a body are checked by `check_key`.
    pub(crate) fn check(&self, operation: &Operation) -> Result<()> {
        let (granted, types) = match self {
            Self::Owner => return Ok(()),
            Self::Account(grant) => (&grant.permissions, grant.resource_types.as_str()),
            // A signature for a table is for what is in it.
            Self::Table(grant) => (&grant.permissions, "o"),
        };
        let has = |letter: char| granted.contains(letter);
        let (resource, is_granted) = match operation.need() {
            Need::Key => return Err(Fault::new(Code::AuthorizationFailure)),
            Need::Any(resource, letters) => (resource, letters.chars().any(has)),
            Need::All(resource, letters) => (resource, letters.chars().all(has)),
        };
        if !types.contains(resource) {
            return Err(Fault::new(Code::AuthorizationResourceTypeMismatch));
        }
        if !is_granted {
            return Err(Fault::new(Code::AuthorizationPermissionMismatch));
        }
        self.check_table(operation)
    }

    fn check_table(&self, operation: &Operation) -> Result<()> {
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
        match self {
            Self::Table(grant) if !grant.table.eq_ignore_ascii_case(table) => {
                Err(Fault::new(Code::AuthorizationFailure))
            }
            _ => Ok(()),
        }
    }

    /// Refuses to write an entity outside of the granted range.
    pub(crate) fn check_key(&self, key: &EntityKey) -> Result<()> {
        if self.holds(key) { Ok(()) } else { Err(Fault::new(Code::AuthorizationFailure)) }
    }

    /// Whether an entity is in the granted range.
    pub(crate) fn holds(&self, key: &EntityKey) -> bool {
        match self {
            Self::Table(grant) => grant.range.contains(&key.partition_key, &key.row_key),
            Self::Owner | Self::Account(_) => true,
        }
    }

    /// The filter that also keeps to the granted range: queries find nothing outside of it.
    pub(crate) fn narrow(&self, filter: Option<Filter>) -> Option<Filter> {
        let Self::Table(grant) = self else { return filter };
        let terms: Vec<_> = filter.into_iter().chain(range_terms(&grant.range)).collect();
        (!terms.is_empty()).then_some(Filter::All(terms))
    }
}

/// Whether a request has the header of a key that can be checked. Some clients send one without a date beside a shared
/// access signature, which is then what counts.
fn is_signed(request: &Request) -> bool {
    let headers = &request.headers;
    headers.contains_key("authorization") && auth::signed_date(headers).is_ok()
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

async fn stored_policy(
    front: &Front,
    account: &str,
    table: &str,
    id: &str,
) -> Result<Option<StoredPolicy>> {
    let policies = tables::policies(front, account, table).await;
    match policies {
        Ok(policies) => Ok(policies.into_iter().find(|policy| policy.id == id)),
        // A table that is not there has no policies either; who has no access need not learn which it is.
        Err(fault) if !fault.is_ours() => Ok(None),
        Err(fault) => Err(fault),
    }
}
