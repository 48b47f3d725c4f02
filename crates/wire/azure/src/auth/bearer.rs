//! Bearer tokens: what an identity provider says of the sender, taken at its word.
//!
//! Form, times, issuer and audience are checked as the original does. The signature is not, because nobody here knows
//! the keys of an issuer, so tokens are for development and are refused unless the operator switched them on, and on
//! connections without TLS always.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;

use super::Refusal;
use lazuli_http::message::Request;

/// Who may have issued a token: the clouds' token services, whatever the tenant.
const ISSUERS: [&str; 4] = [
    "https://sts.windows.net/",
    "https://sts.microsoftonline.de/",
    "https://sts.chinacloudapi.cn/",
    "https://sts.windows-ppe.net/",
];
/// Whom a token for all accounts is made for: the storage services by address, and by the id they are registered under.
const AUDIENCES: [&str; 2] = ["https://storage.azure.com", "e406a681-f3d4-42a8-90b6-c2b029497af1"];
/// Behind account and service in the address of one account.
const CLOUDS: [&str; 4] =
    [".core.windows.net", ".core.chinacloudapi.cn", ".core.usgovcloudapi.net", ".core.cloudapi.de"];

/// Whether tokens are taken at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tokens {
    #[default]
    Off,
    /// Everything but the signature is checked.
    Basic,
}

/// What is wrong with a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenFault {
    /// Tokens are not taken.
    NotSupported,
    NotSecure,
    /// It is no token.
    Malformed,
    NotInTime,
    OtherIssuer,
    OtherAudience,
}

impl TokenFault {
    /// In the words of the services.
    pub fn detail(self) -> &'static str {
        match self {
            Self::NotSupported => "Authentication scheme Bearer is not supported.",
            Self::NotSecure => "Authentication scheme Bearer is not allowed with HTTP.",
            Self::Malformed => "The token is not a JSON Web Token.",
            Self::NotInTime => "Lifetime validation failed.",
            Self::OtherIssuer => "Invalid token issuer.",
            Self::OtherAudience => "Invalid token audience.",
        }
    }
}

/// Whom a token speaks of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    pub object_id: String,
    pub tenant_id: String,
    /// Until when the token is valid, in seconds since the Unix epoch.
    pub expires_s: u64,
}

#[derive(Deserialize)]
struct Claims {
    aud: String,
    iss: String,
    nbf: f64,
    exp: f64,
    iat: f64,
    #[serde(default)]
    oid: String,
    #[serde(default)]
    tid: String,
}

/// Whether a request comes with a token, good or bad.
pub fn is_present(request: &Request) -> bool {
    request.header("authorization").is_some_and(|value| token(value).is_some())
}

fn token(authorization: &str) -> Option<&str> {
    let (scheme, token) = authorization.trim().split_once(' ')?;
    scheme.eq_ignore_ascii_case("Bearer").then_some(token.trim())
}

/// Lets a request in if its token is for this service (`blob`, `queue` or `table`) of the account.
pub fn check(
    request: &Request,
    account: &str,
    service: &str,
    tokens: Tokens,
) -> Result<Identity, Refusal> {
    let refuse = |fault| Err(Refusal::Token(fault));
    let text = request.header("authorization").and_then(token).ok_or(Refusal::Missing)?;
    if tokens == Tokens::Off {
        return refuse(TokenFault::NotSupported);
    }
    if !request.secure {
        return refuse(TokenFault::NotSecure);
    }
    let now_s = request.received_ms / 1000;
    check_text(text, now_s, |audience| is_audience(audience, account, service))
        .map_err(Refusal::Token)
}

/// Whom a token speaks of, if it is valid at this time and for an audience that is ours.
pub fn check_text(
    text: &str,
    now_s: u64,
    is_ours: impl Fn(&str) -> bool,
) -> Result<Identity, TokenFault> {
    let claims = claims(text).ok_or(TokenFault::Malformed)?;
    let now = now_s as f64;
    let is_known = claims.iat.is_finite() && now >= claims.nbf && now <= claims.exp;
    if !is_known {
        return Err(TokenFault::NotInTime);
    }
    if !ISSUERS.iter().any(|issuer| claims.iss.starts_with(issuer)) {
        return Err(TokenFault::OtherIssuer);
    }
    if !is_ours(&claims.aud) {
        return Err(TokenFault::OtherAudience);
    }
    let expires_s = claims.exp as u64;
    Ok(Identity { object_id: claims.oid, tenant_id: claims.tid, expires_s })
}

/// The claims between the two dots of a token.
fn claims(token: &str) -> Option<Claims> {
    let mut parts = token.split('.');
    let (_head, claims, _signature) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    let bytes = URL_SAFE_NO_PAD.decode(claims.trim_end_matches('=')).ok()?;
    serde_json::from_slice(&bytes).ok()
}

fn is_audience(audience: &str, account: &str, service: &str) -> bool {
    let audience = audience.strip_suffix('/').unwrap_or(audience);
    if AUDIENCES.contains(&audience) {
        return true;
    }
    let host = audience.strip_prefix("https://").and_then(|rest| rest.strip_prefix(account));
    let cloud = host.and_then(|rest| rest.strip_prefix('.')?.strip_prefix(service));
    cloud.is_some_and(|cloud| CLOUDS.contains(&cloud))
}

#[cfg(test)]
mod tests {
    use lazuli_http::Method;
    use serde_json::{Value, json};

    use super::super::shared_key::tests::{NOW_MS, request};
    use super::*;

    fn good() -> Value {
        let now = NOW_MS / 1000;
        json!({
            "aud": "https://storage.azure.com/", "iss": "https://sts.windows.net/tenant/",
            "nbf": now - 1, "exp": now + 1, "iat": now - 1, "oid": "me", "tid": "tenant",
        })
    }

    fn sent(claims: &Value) -> Request {
        let claims = URL_SAFE_NO_PAD.encode(claims.to_string());
        let mut request = request(Method::GET, "/", &[]);
        let header = format!("Bearer e30.{claims}.AAEC");
        request.headers.insert("authorization", header.parse().unwrap());
        request.secure = true;
        request
    }

    fn check_with(claim: &str, value: Value) -> Result<(), TokenFault> {
        let mut claims = good();
        claims[claim] = value;
        match check(&sent(&claims), "dev", "queue", Tokens::Basic) {
            Ok(_) => Ok(()),
            Err(Refusal::Token(fault)) => Err(fault),
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_good_token_says_who_sent_it() {
        let identity = check(&sent(&good()), "dev", "queue", Tokens::Basic).unwrap();
        assert_eq!((&*identity.object_id, &*identity.tenant_id), ("me", "tenant"));
    }

    #[test]
    fn every_claim_is_checked() {
        let now = NOW_MS / 1000;
        assert_eq!(check_with("nbf", json!(now + 1)), Err(TokenFault::NotInTime));
        assert_eq!(check_with("exp", json!(now - 1)), Err(TokenFault::NotInTime));
        assert_eq!(check_with("iat", Value::Null), Err(TokenFault::Malformed));
        assert_eq!(check_with("iss", json!("https://evil.test/")), Err(TokenFault::OtherIssuer));
        for audience in [
            "https://storage.azure.com",
            "e406a681-f3d4-42a8-90b6-c2b029497af1",
            "https://dev.queue.core.windows.net",
            "https://dev.queue.core.cloudapi.de/",
        ] {
            assert_eq!(check_with("aud", json!(audience)), Ok(()), "{audience}");
        }
        for audience in [
            "https://storage.azure.com.evil.test",
            "https://other.queue.core.windows.net",
            "https://dev.blob.core.windows.net",
            "https://dev.queue.core.windows.net.evil.test",
            "",
        ] {
            let refused = check_with("aud", json!(audience));
            assert_eq!(refused, Err(TokenFault::OtherAudience), "{audience}");
        }
    }

    #[test]
    fn tokens_are_refused_in_the_open_and_where_they_are_off() {
        let refused = |request: &Request, tokens| {
            check(request, "dev", "queue", tokens).expect_err("it is refused")
        };
        let mut request = sent(&good());
        let off = Refusal::Token(TokenFault::NotSupported);
        assert_eq!(refused(&request, Tokens::Off), off);
        request.secure = false;
        assert_eq!(refused(&request, Tokens::Basic), Refusal::Token(TokenFault::NotSecure));
        for text in ["Bearer", "Bearer a", "Bearer a.b", "Bearer a.b.c", "Bearer a.e30.c.d"] {
            request.secure = true;
            request.headers.insert("authorization", text.parse().unwrap());
            let bad = Refusal::Token(TokenFault::Malformed);
            let expected = if text == "Bearer" { Refusal::Missing } else { bad };
            assert_eq!(refused(&request, Tokens::Basic), expected, "{text}");
        }
    }
}
