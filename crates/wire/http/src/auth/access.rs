//! Who a request to the Blob or Queue service comes from, and what it may do: the owner of the account everything, a
//! shared access signature what it says.

use std::sync::Arc;

use super::bearer::{self, Identity, Tokens};
use super::sas::{self, AccountGrant};
use super::service_sas::{self, Resource, ServiceGrant};
use super::{Accounts, Keys, Refusal, shared_key};
use crate::acl::StoredPolicy;
use crate::message::Request;
use crate::storage_error::CommonCode;
use crate::uri::Query;

/// A service by its letter in signatures and its name in addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    pub letter: char,
    pub name: &'static str,
}

impl Service {
    pub const BLOB: Self = Self { letter: 'b', name: "blob" };
    pub const QUEUE: Self = Self { letter: 'q', name: "queue" };
}

/// What the sender of a request may do. Cheap to clone.
#[derive(Clone, Debug)]
pub enum Access {
    /// Whoever has a key of the account. Preflights have it too, and nothing else to ask for.
    Owner,
    /// Whoever has a token, which grants everything: there are no roles here.
    User(Arc<Identity>),
    Account(Arc<AccountGrant>),
    /// A signature for the resource that the request names.
    Resource(Arc<ServiceGrant>),
    /// Nobody signed it.
    Anonymous,
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

/// Who a request says that it comes from.
pub enum Sender<'r> {
    Known(Access),
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

impl<'r> Sender<'r> {
    /// A request that nobody signed is `Anonymous`, and the front decides what that is good for.
    pub fn of(
        request: &'r Request,
        query: &'r Query<'r>,
        account: &'r str,
        accounts: &Accounts,
        service: Service,
        tokens: Tokens,
    ) -> Result<Self, Refusal> {
        let has_token = bearer::is_present(request);
        let identity = match has_token {
            true => Some(bearer::check(request, account, service.name, tokens)?),
            false => None,
        };
        let has_key = request.headers.contains_key("authorization") && !has_token;
        if has_key {
            shared_key::check(request, query, account, accounts)?;
            return Ok(Self::Known(Access::Owner));
        }
        let keys = accounts.get(account).ok_or(Refusal::UnknownAccount)?;
        if !sas::is_present(query) {
            return Ok(Self::Known(match identity {
                Some(identity) => Access::User(Arc::new(identity)),
                None => Access::Anonymous,
            }));
        }
        if sas::is_account(query) {
            let grant = sas::check_account(request, query, account, &keys, service.letter)?;
            return Ok(Self::Known(Access::Account(Arc::new(grant))));
        }
        Ok(Self::Bearer(Signature { request, query, account, keys, identity }))
    }
}

impl Signature<'_> {
    /// The policy of the container or queue that it names.
    pub fn policy(&self) -> Option<&str> {
        service_sas::policy(self.query)
    }

    pub fn check(
        &self,
        resource: Resource<'_>,
        policy: Option<&StoredPolicy>,
    ) -> Result<Access, Refusal> {
        let grant = service_sas::check(
            self.request,
            self.query,
            self.account,
            &self.keys,
            resource,
            policy,
            self.identity.as_ref(),
        )?;
        Ok(Access::Resource(Arc::new(grant)))
    }
}

impl Access {
    /// Refuses an operation that is not granted. A signature for a resource is for what is in it: of the types of
    /// resource it counts as `types`.
    pub fn check(&self, need: Need, types: &str) -> Result<(), CommonCode> {
        let (granted, types) = match self {
            Self::Owner | Self::User(_) => return Ok(()),
            Self::Account(grant) => (&grant.permissions, grant.resource_types.as_str()),
            Self::Resource(grant) => (&grant.permissions, types),
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
                _ => CommonCode::AuthorizationFailure,
            });
        }
        if is_granted { Ok(()) } else { Err(CommonCode::AuthorizationPermissionMismatch) }
    }
}
