//! Shared access signatures: what an account's owner lets others do, for how long, and from where.
//!
//! This file reads and checks what all of them have in common, and the account's own kind. The kinds of single services
//! differ in the text that is signed ([`super::table_sas`], [`super::service_sas`]). Nothing a signature says counts
//! before its text is verified.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{Keys, Refusal};
use crate::acl::StoredPolicy;
use lazuli_http::date::{TICKS_PER_MILLI, parse_iso8601};
use lazuli_http::message::Request;
use lazuli_http::uri::{Query, percent_decode};

/// From this version on an account's signature also covers the scope of encryption.
const VERSION_WITH_SCOPE: &str = "2020-12-06";
/// Versions are dates, so they sort as text.
const VERSION_BYTES: usize = "2020-12-06".len();

/// Whether a request is signed by its address.
pub fn is_present(query: &Query<'_>) -> bool {
    query.get("sig").is_some()
}

/// Whether the signature is one of a whole account.
pub fn is_account(query: &Query<'_>) -> bool {
    query.get("ss").is_some() || query.get("srt").is_some()
}

/// What a signature grants, after it was verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountGrant {
    pub permissions: String,
    /// `s`, `c` and `o`: the service itself, containers, what is in them.
    pub resource_types: String,
}

/// Verifies the signature of an account for one of its services (`b`, `f`, `q` or `t`).
pub fn check_account(
    request: &Request,
    query: &Query<'_>,
    account: &str,
    keys: &Keys,
    service: char,
) -> Result<AccountGrant, Refusal> {
    let fields = Fields(query);
    let version = fields.version()?;
    let (permissions, services) = (fields.get("sp"), fields.get("ss"));
    let resource_types = fields.get("srt");
    let mut text = [
        account,
        permissions,
        services,
        resource_types,
        fields.get("st"),
        fields.get("se"),
        fields.get("sip"),
        fields.get("spr"),
        version,
    ]
    .join("\n");
    text.push('\n');
    if version >= VERSION_WITH_SCOPE {
        text.push_str(fields.get("ses"));
        text.push('\n');
    }
    fields.verify(&text, keys)?;
    fields.terms(None)?.check(request)?;
    if !services.contains(service) {
        return Err(Refusal::OtherService);
    }
    Ok(AccountGrant {
        permissions: permissions.to_owned(),
        resource_types: resource_types.to_owned(),
    })
}

/// The parameters of a signature.
pub(super) struct Fields<'q>(pub(super) &'q Query<'q>);

impl<'q> Fields<'q> {
    /// A parameter, or nothing: both are signed alike.
    pub(super) fn get(&self, name: &str) -> &'q str {
        self.0.get(name).unwrap_or_default()
    }

    pub(super) fn version(&self) -> Result<&'q str, Refusal> {
        let version = self.get("sv");
        let plain = version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
        if version.len() == VERSION_BYTES && plain { Ok(version) } else { Err(Refusal::Malformed) }
    }

    pub(super) fn verify(&self, text: &str, keys: &Keys) -> Result<(), Refusal> {
        // A plus sign that was not escaped was read as a space.
        let signature = self.get("sig").replace(' ', "+");
        let signature = STANDARD.decode(signature).map_err(|_| Refusal::WrongSignature)?;
        // Of two signatures it is not clear which one counts.
        if self.0.iter().filter(|(name, _)| name.eq_ignore_ascii_case("sig")).count() != 1 {
            return Err(Refusal::WrongSignature);
        }
        if keys.verify(text, &signature) { Ok(()) } else { Err(Refusal::WrongSignature) }
    }

    /// The terms: each in the signature or in the policy that it names, and not in both.
    pub(super) fn terms(&self, policy: Option<&StoredPolicy>) -> Result<Terms, Refusal> {
        let one = |name: &str, stored: Option<&Option<String>>| {
            let own = Some(self.get(name)).filter(|value| !value.is_empty()).map(str::to_owned);
            match (own, stored.cloned().flatten()) {
                (Some(_), Some(_)) => Err(Refusal::Malformed),
                (own, stored) => Ok(own.or(stored)),
            }
        };
        Ok(Terms {
            permissions: one("sp", policy.map(|policy| &policy.permissions))?.unwrap_or_default(),
            start: one("st", policy.map(|policy| &policy.start))?,
            expiry: one("se", policy.map(|policy| &policy.expiry))?.ok_or(Refusal::OutsideTime)?,
            addresses: self.get("sip").to_owned(),
            protocols: self.get("spr").to_owned(),
        })
    }
}

/// When, from where and how a signature may be used.
#[derive(Debug)]
pub(super) struct Terms {
    pub(super) permissions: String,
    start: Option<String>,
    expiry: String,
    addresses: String,
    protocols: String,
}

impl Terms {
    pub(super) fn check(&self, request: &Request) -> Result<(), Refusal> {
        let now = i64::try_from(request.received_ms).unwrap_or(i64::MAX);
        let now = now.saturating_mul(TICKS_PER_MILLI);
        let time = |text: &str| parse_iso8601(text).ok_or(Refusal::Malformed);
        let start = self.start.as_deref().map(time).transpose()?;
        if start.is_some_and(|start| now < start) || now >= time(&self.expiry)? {
            return Err(Refusal::OutsideTime);
        }
        if !self.addresses.is_empty() && !holds(&self.addresses, request.peer.ip())? {
            return Err(Refusal::OtherAddress);
        }
        match (self.protocols.as_str(), request.secure) {
            ("" | "https,http" | "http,https", _) | ("https", true) => Ok(()),
            ("https", false) => Err(Refusal::OtherProtocol),
            _ => Err(Refusal::Malformed),
        }
    }
}

/// Whether an address lies in `a` or `a-b`.
fn holds(range: &str, address: IpAddr) -> Result<bool, Refusal> {
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let parse = |text: &str| text.trim().parse::<Ipv4Addr>().map_err(|_| Refusal::Malformed);
    let (first, last) = (parse(first)?, parse(last)?);
    let address = match address {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(address) => address.to_ipv4_mapped(),
    };
    Ok(address.is_some_and(|address| (first..=last).contains(&address)))
}

/// An address as people may see it: without the value of its signature, which is as good as a key.
pub fn without_signature(url: &str) -> Cow<'_, str> {
    let Some((address, query)) = url.split_once('?') else { return Cow::Borrowed(url) };
    let is_signature = |part: &str| {
        let name = part.split('=').next().unwrap_or(part);
        percent_decode(name).is_ok_and(|name| name.eq_ignore_ascii_case("sig"))
    };
    if !query.split('&').any(is_signature) {
        return Cow::Borrowed(url);
    }
    let shown = |part| if is_signature(part) { "sig=XXXXX" } else { part };
    let parts: Vec<&str> = query.split('&').map(shown).collect();
    Cow::Owned(format!("{address}?{}", parts.join("&")))
}

#[cfg(test)]
mod tests {
    use super::super::Key;
    use super::super::shared_key::tests::{KEY, NOW_MS, request};
    use super::*;
    use lazuli_http::Method;

    fn keys() -> Keys {
        Keys { first: Key::from_base64(KEY).unwrap(), second: None }
    }

    /// Signs as the documentation says and checks the result at a fixed time from 127.0.0.1.
    fn check(parameters: &str, version: &str) -> Result<AccountGrant, Refusal> {
        let query = Query::parse(parameters).unwrap();
        let names = ["sp", "ss", "srt", "st", "se", "sip", "spr"];
        let values: Vec<_> = names.iter().map(|name| query.get(name).unwrap_or("")).collect();
        let scope = if version >= "2020-12-06" { "\n" } else { "" };
        let text = format!("dev\n{}\n{version}\n{scope}", values.join("\n"));
        let signature =
            lazuli_http::uri::percent_encode(&STANDARD.encode(keys().first.sign(&text)));
        let signed = format!("{parameters}&sv={version}&sig={signature}");
        let query = Query::parse(&signed).unwrap();
        check_account(&request(Method::GET, "/", &[]), &query, "dev", &keys(), 't')
    }

    const GOOD: &str = "sp=rl&ss=bt&srt=sco&se=2026-11-16T00:00:00Z";

    #[test]
    fn every_version_is_verified_by_its_own_text() {
        for version in ["2015-04-05", "2019-02-02", "2020-12-06", "2099-01-01"] {
            let grant = check(GOOD, version).unwrap();
            assert_eq!((grant.permissions.as_str(), grant.resource_types.as_str()), ("rl", "sco"));
        }
        assert_eq!(check(GOOD, "newest"), Err(Refusal::Malformed));
        let query = Query::parse("sp=r&sv=2019-02-02&sig=AAEC&se=2026-11-16").unwrap();
        let refused = check_account(&request(Method::GET, "/", &[]), &query, "dev", &keys(), 't')
            .unwrap_err();
        assert_eq!(refused, Refusal::WrongSignature);
    }

    #[test]
    fn a_signature_that_is_none_or_there_twice_is_a_wrong_one() {
        let good = "sp=rl&ss=bt&srt=sco&se=2026-11-16T00:00:00Z&sv=2019-02-02";
        let text = "dev\nrl\nbt\nsco\n\n2026-11-16T00:00:00Z\n\n\n2019-02-02\n";
        let signed = lazuli_http::uri::percent_encode(&STANDARD.encode(keys().first.sign(text)));
        let check = |more: String| {
            let parameters = format!("{good}{more}");
            let query = Query::parse(&parameters).unwrap();
            check_account(&request(Method::GET, "/", &[]), &query, "dev", &keys(), 't').map(|_| ())
        };
        assert_eq!(check(format!("&sig={signed}")), Ok(()));
        for sig in ["", "%25", "A", "abc", "%00", "no+base64!"] {
            assert_eq!(check(format!("&sig={sig}")), Err(Refusal::WrongSignature), "{sig}");
        }
        for twice in [format!("&sig={signed}&sig={signed}"), format!("&sig={signed}&SIG=AAEC")] {
            assert_eq!(check(twice.clone()), Err(Refusal::WrongSignature), "{twice}");
        }
    }

    #[test]
    fn terms_hold() {
        assert_eq!(NOW_MS, 1_794_781_463_000, "2026-11-15T22:24:23Z");
        let with = |more: &str| check(&format!("{GOOD}{more}"), "2019-02-02").map(|_| ());
        assert_eq!(with("&st=2026-11-15"), Ok(()));
        assert_eq!(with("&st=2026-11-15T22:25Z"), Err(Refusal::OutsideTime));
        assert_eq!(with("&sip=127.0.0.1"), Ok(()));
        assert_eq!(with("&sip=127.0.0.0-127.0.0.9&spr=https,http"), Ok(()));
        assert_eq!(with("&sip=127.0.0.2-127.0.0.9"), Err(Refusal::OtherAddress));
        assert_eq!(with("&sip=nowhere"), Err(Refusal::Malformed));
        assert_eq!(with("&spr=https"), Err(Refusal::OtherProtocol));
        let other = |text: &str| check(text, "2019-02-02").map(|_| ());
        assert_eq!(other("sp=r&ss=t&srt=o&se=2026-11-15T22:24:23Z"), Err(Refusal::OutsideTime));
        assert_eq!(other("sp=r&ss=t&srt=o"), Err(Refusal::OutsideTime));
        assert_eq!(other("sp=r&ss=bq&srt=o&se=2026-11-16"), Err(Refusal::OtherService));
    }

    #[test]
    fn a_signature_is_not_shown() {
        let shown = |url: &'static str| without_signature(url).into_owned();
        assert_eq!(shown("http://a/b?sp=r&sig=a%2Bb&se=c"), "http://a/b?sp=r&sig=XXXXX&se=c");
        assert_eq!(shown("http://a/b?SIG=x&s%69g=y"), "http://a/b?sig=XXXXX&sig=XXXXX");
        for same in ["http://a/b", "http://a/sig=x", "http://a/b?signature=x&s=y", "", "?"] {
            assert_eq!(shown(same), same);
        }
    }
}
