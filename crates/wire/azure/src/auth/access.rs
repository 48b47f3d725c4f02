//! Who a request comes from, and what it may do: the owner of the account everything, a shared access signature what it
//! says.

use std::sync::Arc;

use lazuli_http::Request;
use lazuli_http::uri::Query;

use super::bearer::{self, Identity, Tokens};
use super::sas::{self, AccountGrant};
use super::service_sas::{self, Resource, ServiceGrant};
use super::table_sas::{self, TableGrant};
use super::{Accounts, Dialect, Keys, Refusal, shared_key, signed_date};
use crate::acl::StoredPolicy;
use crate::storage_error::CommonCode;

/// A service by its letter in signatures, its name in addresses, and the text that its clients sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    pub letter: char,
    pub name: &'static str,
    pub dialect: Dialect,
}

impl Service {
    pub const BLOB: Self = Self { letter: 'b', name: "blob", dialect: Dialect::Storage };
    pub const QUEUE: Self = Self { letter: 'q', name: "queue", dialect: Dialect::Storage };
    pub const TABLE: Self = Self { letter: 't', name: "table", dialect: Dialect::Tables };
}

/// What the sender of a request may do; `G` is what a signature for one resource grants. Cheap to clone.
#[derive(Debug)]
pub enum Access<G = ServiceGrant> {
    /// The sender has a key of the account. CORS preflight requests have this access too.
    Owner,
    /// The sender has a token, which grants everything: there are no roles here.
    User(Arc<Identity>),
    Account(Arc<AccountGrant>),
    /// A signature for the resource that the request names.
    Resource(Arc<G>),
    /// The request is not signed.
    Anonymous,
}

impl<G> Clone for Access<G> {
    fn clone(&self) -> Self {
        match self {
            Self::Owner => Self::Owner,
            Self::User(user) => Self::User(user.clone()),
            Self::Account(grant) => Self::Account(grant.clone()),
            Self::Resource(grant) => Self::Resource(grant.clone()),
            Self::Anonymous => Self::Anonymous,
        }
    }
}

/// What a signature for one resource grants.
pub trait Grant {
    /// The code for an operation on another type of resource than the signature is for.
    const OTHER_TYPE: CommonCode;

    fn permissions(&self) -> &str;
}

impl Grant for ServiceGrant {
    const OTHER_TYPE: CommonCode = CommonCode::AuthorizationFailure;

    fn permissions(&self) -> &str {
        &self.permissions
    }
}

impl Grant for TableGrant {
    const OTHER_TYPE: CommonCode = CommonCode::AuthorizationResourceTypeMismatch;

    fn permissions(&self) -> &str {
        &self.permissions
    }
}

/// What an operation needs of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// The owner's key: no signature will do.
    Key,
    /// The type of resource as signatures of accounts call it (`s`, `c` or `o`), and the permissions: any of them.
    Any(char, &'static str),
    /// All of them.
    All(char, &'static str),
}

/// The sender of a request, as far as its head says.
pub enum Sender<'r, G> {
    Known(Access<G>),
    /// The bearer of a signature, which can be checked once its policy is known.
    Bearer(Signature<'r>),
}

/// A signature for one resource, not verified yet.
pub struct Signature<'r> {
    request: &'r Request,
    query: &'r Query<'r>,
    account: &'r str,
    keys: Arc<Keys>,
    identity: Option<Identity>,
}

impl<'r, G> Sender<'r, G> {
    /// A request without a signature is `Anonymous`, and the front decides what it may do. The Table service refuses it.
    pub fn of(
        request: &'r Request,
        query: &'r Query<'r>,
        account: &'r str,
        accounts: &Accounts,
        service: Service,
        tokens: Tokens,
    ) -> Result<Self, Refusal> {
        let is_tables = service.dialect == Dialect::Tables;
        let has_token = bearer::is_present(request);
        let identity = match has_token {
            true => Some(bearer::check(request, account, service.name, tokens)?),
            false => None,
        };
        let has_signature = sas::is_present(query);
        match identity {
            Some(identity) if is_tables || !has_signature => {
                accounts.get(account).ok_or(Refusal::UnknownAccount)?;
                return Ok(Self::Known(Access::User(Arc::new(identity))));
            }
            _ if has_token => {}
            _ if is_tables && (!has_signature || has_dated_key(request)) => {
                shared_key::check_table(request, query, account, accounts)?;
                return Ok(Self::Known(Access::Owner));
            }
            _ if !is_tables && request.headers.contains_key("authorization") => {
                shared_key::check(request, query, account, accounts)?;
                return Ok(Self::Known(Access::Owner));
            }
            _ => {}
        }
        let keys = accounts.get(account).ok_or(Refusal::UnknownAccount)?;
        if !has_signature {
            return Ok(Self::Known(Access::Anonymous));
        }
        let is_account = match service.dialect {
            Dialect::Tables => table_sas::named(query).is_none(),
            Dialect::Storage => sas::is_account(query),
        };
        if is_account {
            let grant = sas::check_account(request, query, account, &keys, service.letter)?;
            return Ok(Self::Known(Access::Account(Arc::new(grant))));
        }
        Ok(Self::Bearer(Signature { request, query, account, keys, identity }))
    }
}

/// Whether a request has the header of a key that can be checked. Some clients of the Table service send one without a date
/// beside a shared access signature, which is then the one that counts.
fn has_dated_key(request: &Request) -> bool {
    let headers = &request.headers;
    headers.contains_key("authorization") && signed_date(headers).is_ok()
}

impl Signature<'_> {
    pub fn account(&self) -> &str {
        self.account
    }

    pub fn query(&self) -> &Query<'_> {
        self.query
    }

    /// The stored policy that it names.
    pub fn policy(&self) -> Option<&str> {
        service_sas::policy(self.query)
    }

    /// The table that it is for.
    pub fn table(&self) -> Option<&str> {
        table_sas::named(self.query).map(|(table, _)| table)
    }

    /// Verifies a signature for a container, blob or queue.
    pub fn check(
        &self,
        resource: Resource<'_>,
        policy: Option<&StoredPolicy>,
    ) -> Result<ServiceGrant, Refusal> {
        let identity = self.identity.as_ref();
        let Self { request, query, account, keys, .. } = self;
        service_sas::check(request, query, account, keys, resource, policy, identity)
    }

    /// Verifies a signature for a table.
    pub fn check_table(&self, policy: Option<&StoredPolicy>) -> Result<TableGrant, Refusal> {
        table_sas::check(self.request, self.query, self.account, &self.keys, policy)
    }
}

impl<G: Grant> Access<G> {
    /// Refuses an operation that is not granted. A signature for a resource is for its content: of the types of resource it
    /// counts as `types`.
    pub fn check(&self, need: Need, types: &str) -> Result<(), CommonCode> {
        let (granted, types) = match self {
            Self::Owner | Self::User(_) => return Ok(()),
            Self::Account(grant) => (grant.permissions.as_str(), grant.resource_types.as_str()),
            Self::Resource(grant) => (grant.permissions(), types),
            Self::Anonymous => return Err(CommonCode::NoAuthenticationInformation),
        };
        let has = |letter: char| granted.contains(letter);
        let (resource, is_granted) = match need {
            Need::Key => return Err(CommonCode::AuthorizationFailure),
            Need::Any(resource, letters) => (resource, letters.chars().any(has)),
            Need::All(resource, letters) => (resource, letters.chars().all(has)),
        };
        if !types.contains(resource) {
            return Err(match self {
                Self::Account(_) => CommonCode::AuthorizationResourceTypeMismatch,
                _ => G::OTHER_TYPE,
            });
        }
        if is_granted { Ok(()) } else { Err(CommonCode::AuthorizationPermissionMismatch) }
    }
}
