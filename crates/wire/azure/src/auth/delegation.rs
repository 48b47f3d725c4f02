//! Keys that are made for a user for a while, who signs with them instead of an account's key.
//!
//! Nothing is kept: such a key is derived from the account's and from all that is said about it, so whoever has the
//! account's key can make it again, and rotating that takes every key back that was made with it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::bearer::{Identity, TokenFault};
use super::{Key, Keys, Refusal};
use crate::DocumentError;
use lazuli_http::date::{
    Fraction, TICKS_PER_MILLI, TICKS_PER_SECOND, format_iso8601, parse_iso8601,
};
use lazuli_http::message::Request;
use lazuli_http::uri::Query;
use lazuli_http::xml;

/// Keeps these keys apart from whatever else is signed with an account's key.
const PURPOSE: &str = "user delegation key";

/// How far ahead a key may end.
const LIFE_TICKS_MAX: i64 = 7 * 24 * 60 * 60 * TICKS_PER_SECOND;

/// From when to when a user wants a key, and for the users of which other tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyWish {
    pub start: String,
    pub expiry: String,
    pub delegated_tenant: String,
}

impl KeyWish {
    /// Reads what was sent. Without a start it is now. Times are cut to whole seconds, because clients sign them so.
    pub fn read(body: &[u8], now_ms: u64) -> Result<Self, DocumentError> {
        let root = xml::parse(body).map_err(|_| DocumentError::NotXml)?;
        if root.name != "KeyInfo" {
            return Err(DocumentError::NotXml);
        }
        let time = |name| root.child_text(name).map(parse_iso8601);
        let now = i64::try_from(now_ms / 1000).unwrap_or(0).saturating_mul(TICKS_PER_SECOND);
        let start = time("Start").unwrap_or(Some(now)).ok_or(DocumentError::BadValue)?;
        let expiry = time("Expiry").flatten().ok_or(DocumentError::BadValue)?;
        let life = expiry.saturating_sub(start.max(now));
        if expiry <= start || !(1..=LIFE_TICKS_MAX).contains(&life) {
            return Err(DocumentError::BadValue);
        }
        let text = |ticks: i64| {
            let whole = ticks - ticks.rem_euclid(TICKS_PER_SECOND);
            format_iso8601(whole, Fraction::Shortest)
        };
        Ok(Self {
            start: text(start),
            expiry: text(expiry),
            delegated_tenant: root.child_text("DelegatedUserTid").unwrap_or_default().to_owned(),
        })
    }
}

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

    /// The document that is sent to the client that asked for it.
    pub fn write(&self, keys: &Keys) -> String {
        let mut out = String::from("<?xml version=\"1.0\" encoding=\"utf-8\"?><UserDelegationKey>");
        for (name, text) in [
            ("SignedOid", self.object_id),
            ("SignedTid", self.tenant_id),
            ("SignedStart", self.start),
            ("SignedExpiry", self.expiry),
            ("SignedService", self.service),
            ("SignedVersion", self.version),
        ] {
            xml::write(&mut out, name, text);
        }
        if !self.delegated_tenant.is_empty() {
            xml::write(&mut out, "SignedDelegatedUserTid", self.delegated_tenant);
        }
        xml::write(&mut out, "Value", &self.value(keys));
        out.push_str("</UserDelegationKey>");
        out
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

#[cfg(test)]
mod tests {
    use super::super::shared_key::tests::NOW_MS;
    use super::*;

    #[test]
    fn a_wish_has_an_end_that_is_ahead_and_not_too_far() {
        let read = |inner: &str| {
            let body = format!("<KeyInfo>{inner}</KeyInfo>");
            KeyWish::read(body.as_bytes(), NOW_MS).map(|wish| (wish.start, wish.expiry))
        };
        let times = |start: &str, expiry: &str| Ok((start.to_owned(), expiry.to_owned()));
        assert_eq!(
            read("<Start>2026-11-15T00:00:00Z</Start><Expiry>2026-11-16T00:00:00.9Z</Expiry>"),
            times("2026-11-15T00:00:00Z", "2026-11-16T00:00:00Z")
        );
        let open = read("<Start/><Expiry>2026-11-16</Expiry>");
        assert_eq!(open, times("2026-11-15T22:24:23Z", "2026-11-16T00:00:00Z"));
        for bad in [
            "",
            "<Expiry>soon</Expiry>",
            "<Expiry>2026-11-15T22:24:23Z</Expiry>",
            "<Expiry>2026-11-30</Expiry>",
            "<Start>2026-11-17</Start><Expiry>2026-11-16</Expiry>",
        ] {
            assert_eq!(read(bad), Err(DocumentError::BadValue), "{bad}");
        }
        assert_eq!(KeyWish::read(b"<Key/>", NOW_MS), Err(DocumentError::NotXml));
    }
}
