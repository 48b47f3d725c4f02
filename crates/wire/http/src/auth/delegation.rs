//! Keys that are made for a user for a while, who signs with them instead of an account's key.
//!
//! Nothing is kept: such a key is derived from the account's and from all that is said about it, so whoever has the
//! account's key can make it again, and rotating that takes every key back that was made with it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::bearer::{Identity, TokenFault};
use super::{Key, Keys, Refusal};
use crate::date::{TICKS_PER_MILLI, parse_iso8601};
use crate::message::Request;
use crate::uri::Query;

/// Keeps these keys apart from whatever else is signed with an account's key.
const PURPOSE: &str = "user delegation key";

/// What is said about a key: for whom, from when to when, for which service, and by which version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DelegatedKey<'a> {
    pub object_id: &'a str,
    pub tenant_id: &'a str,
    pub start: &'a str,
    pub expiry: &'a str,
    /// `b` or `q`.
    pub service: &'a str,
    pub version: &'a str,
    /// The tenant of the only user who may use what is signed with it, if it is for one.
    pub delegated_tenant: &'a str,
}

impl<'a> DelegatedKey<'a> {
    /// The key that a signature says it was made with. None if it was the account's.
    pub fn named(query: &'a Query<'a>) -> Option<Self> {
        let get = |name| query.get(name).unwrap_or_default();
        query.get("skoid")?;
        Some(Self {
            object_id: get("skoid"),
            tenant_id: get("sktid"),
            start: get("skt"),
            expiry: get("ske"),
            service: get("sks"),
            version: get("skv"),
            delegated_tenant: get("skdutid"),
        })
    }

    pub(super) fn fields(&self) -> [&'a str; 6] {
        [self.object_id, self.tenant_id, self.start, self.expiry, self.service, self.version]
    }

    /// The key itself, as it is given to the user.
    pub fn value(&self, keys: &Keys) -> String {
        STANDARD.encode(self.secret(&keys.first))
    }

    fn secret(&self, key: &Key) -> [u8; 32] {
        let fields = self.fields().join("\n");
        key.sign(&format!("{PURPOSE}\n{fields}\n{}", self.delegated_tenant))
    }

    /// The keys that it can be, one for each of the account's.
    pub(super) fn derive(&self, keys: &Keys) -> Keys {
        let derive = |key: &Key| Key::from_secret(&self.secret(key));
        Keys { first: derive(&keys.first), second: keys.second.as_ref().map(derive) }
    }

    /// Whether the key may be used now, for this service (`b` or `q`), and by this user.
    pub(super) fn check(
        &self,
        request: &Request,
        service: char,
        only_user: &str,
        identity: Option<&Identity>,
    ) -> Result<(), Refusal> {
        let now = i64::try_from(request.received_ms).unwrap_or(i64::MAX);
        let now = now.saturating_mul(TICKS_PER_MILLI);
        let time = |text| parse_iso8601(text).ok_or(Refusal::Malformed);
        if now < time(self.start)? || now >= time(self.expiry)? {
            return Err(Refusal::OutsideTime);
        }
        if !self.service.contains(service) {
            return Err(Refusal::OtherService);
        }
        if only_user.is_empty() {
            return Ok(());
        }
        let is_user = identity.is_some_and(|identity| {
            let tenant = [self.delegated_tenant, self.tenant_id];
            let tenant = tenant.into_iter().find(|tenant| !tenant.is_empty());
            identity.object_id == only_user && Some(identity.tenant_id.as_str()) == tenant
        });
        if is_user { Ok(()) } else { Err(Refusal::Token(TokenFault::NotSupported)) }
    }
}
