//! Who sent a request: the owner of an account by one of its keys, or the bearer of a resource token.
//!
//! The service has no account in its paths. The first label of the host may name one; otherwise it is the account whose key
//! made the signature.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use lazuli_azure::auth::{Accounts, Key, Keys};
use lazuli_http::Request;
use lazuli_http::date::parse_rfc1123;
use lazuli_http::uri::percent_decode;

use crate::address::Target;
use crate::error::{Fault, Result};
use crate::limits::CLOCK_SKEW_MAX;

/// The key that emulators of the service publish. It is as good as the published key of the development account, so it is
/// taken as long as that one is.
pub struct Published {
    pub account: &'static str,
    /// The published key of the account.
    pub key: Key,
    /// The one that clients of this service know instead.
    pub other: Key,
}

/// Who sent a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sender {
    pub(crate) account: String,
    /// None means everything: the sender has a key.
    pub(crate) grant: Option<Grant>,
}

/// What a resource token grants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    /// The link of the resource, with everything below it.
    pub(crate) resource: String,
    pub(crate) mode: Mode,
    /// The JSON array of the one partition key that may be used, as in headers; none means all.
    pub(crate) key: Option<String>,
    /// The resource id of the permission: the token ends with it.
    pub(crate) permission: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Read,
    All,
}

impl Mode {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Read => "Read",
            Self::All => "All",
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let is = |mode: Self| text.eq_ignore_ascii_case(mode.name());
        [Self::Read, Self::All].into_iter().find(|mode| is(*mode))
    }
}

/// Finds out who sent a request and whether it is so.
pub(crate) fn check(
    request: &Request,
    target: &Target,
    accounts: &Accounts,
    published: Option<&Published>,
) -> Result<Sender> {
    let header = request.header("authorization").ok_or_else(|| {
        Fault::unauthorized(
            "Required Header authorization is missing. Ensure a valid Authorization token is passed.",
        )
    })?;
    let text = percent_decode(header).map_err(|_| malformed())?;
    match Authorization::parse(&text).ok_or_else(malformed)? {
        Authorization::Master(signature) => {
            let account = by_key(request, target, signature, accounts, published)?;
            Ok(Sender { account, grant: None })
        }
        Authorization::Resource(token) => by_token(token, request.received_ms, accounts),
        Authorization::Identity => {
            Err(Fault::unauthorized("Tokens of Microsoft Entra ID are not taken by this server."))
        }
    }
}

/// The decoded header.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Authorization<'a> {
    Master(&'a str),
    Resource(&'a str),
    /// A token of an identity provider.
    Identity,
}

impl<'a> Authorization<'a> {
    /// Reads `type=master&ver=1.0&sig=…`.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let rest = text.strip_prefix("type=")?;
        let (kind, rest) = rest.split_once('&')?;
        let (version, signature) = rest.strip_prefix("ver=")?.split_once("&sig=")?;
        match (kind, version) {
            ("master", "1.0") => Some(Self::Master(signature)),
            ("resource", "1.0" | "1") => Some(Self::Resource(signature)),
            ("aad", _) => Some(Self::Identity),
            _ => None,
        }
    }
}

fn malformed() -> Fault {
    let message =
        "Authorization header doesn't confirm to required format. Please verify and try again.";
    Fault::unauthorized(message)
}

fn wrong() -> Fault {
    Fault::unauthorized(
        "The input authorization token can't serve the request. The wrong key is being used or the \
         expected payload is not built as per the protocol. For more info: \
         https://aka.ms/cosmosdb-tsg-unauthorized.",
    )
}

/// The account whose key signed the request.
fn by_key(
    request: &Request,
    target: &Target,
    signature: &str,
    accounts: &Accounts,
    published: Option<&Published>,
) -> Result<String> {
    let signature = STANDARD.decode(signature.trim()).map_err(|_| malformed())?;
    let header = |name| request.header(name).unwrap_or_default();
    let (own_date, date) = (header("x-ms-date"), header("date"));
    check_date(if own_date.is_empty() { date } else { own_date }, request.received_ms)?;
    // A date in the general header alone is signed in the last line.
    let dates = format!(
        "{}\n{}\n",
        own_date.to_lowercase(),
        match own_date {
            "" => date.to_lowercase(),
            _ => String::new(),
        }
    );
    let texts = target.signed_links().map(|link| {
        format!("{}\n{}\n{link}\n{dates}", request.method.as_str().to_lowercase(), target.kind)
    });
    let is_signed = |keys: &Keys| texts.iter().any(|text| keys.verify(text, &signature));
    if let Some(published) = published {
        let other = Keys { first: published.other.clone(), second: None };
        if is_signed(&other) {
            return published.in_force(accounts).ok_or_else(wrong);
        }
    }
    let named = request.header("host").and_then(|host| host.split('.').next());
    if let Some((account, keys)) = named.and_then(|name| Some((name, accounts.get(name)?))) {
        return if is_signed(&keys) { Ok(account.to_owned()) } else { Err(wrong()) };
    }
    accounts.find(is_signed).ok_or_else(wrong)
}

impl Published {
    /// The account, as long as it has its published key.
    fn in_force(&self, accounts: &Accounts) -> Option<String> {
        const PROBE: &str = "is this key in force?";
        let keys = accounts.get(self.account)?;
        keys.verify(PROBE, &self.key.sign(PROBE)).then(|| self.account.to_owned())
    }
}

fn check_date(date: &str, now_ms: u64) -> Result<()> {
    let Some(date) = parse_rfc1123(date) else {
        return Err(Fault::unauthorized(
            "The format of the value of header 'x-ms-date' is not valid: it must be an RFC 1123 date.",
        ));
    };
    let now = i64::try_from(now_ms / 1000).unwrap_or(i64::MAX);
    if now.abs_diff(date) <= CLOCK_SKEW_MAX.as_secs() {
        return Ok(());
    }
    Err(Fault::forbidden(
        "The authorization token is not valid at the current time. Please create another token and retry.",
    ))
}

/// Makes the token of a permission. Everything that it grants is in it, signed with the account's key.
pub(crate) fn token(account: &str, keys: &Keys, grant: &Grant, expires_s: u64) -> String {
    let key = grant.key.as_deref().unwrap_or_default();
    let (expires, mode) = (expires_s.to_string(), grant.mode.name());
    let payload = [account, &expires, mode, &grant.resource, key, &grant.permission].join("\n");
    let signature = STANDARD.encode(keys.first.sign(&payload));
    format!("type=resource&ver=1.0&sig={signature};{};", URL_SAFE_NO_PAD.encode(&payload))
}

fn by_token(token: &str, now_ms: u64, accounts: &Accounts) -> Result<Sender> {
    let mut parts = token.split(';');
    let (Some(signature), Some(payload), Some(""), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(malformed());
    };
    let signature = STANDARD.decode(signature).map_err(|_| malformed())?;
    let payload = URL_SAFE_NO_PAD.decode(payload).map_err(|_| malformed())?;
    let payload = String::from_utf8(payload).map_err(|_| malformed())?;
    let fields: Vec<&str> = payload.split('\n').collect();
    let [account, expires_s, mode, resource, key, permission] = fields[..] else {
        return Err(malformed());
    };
    let keys = accounts.get(account).ok_or_else(wrong)?;
    if !keys.verify(&payload, &signature) {
        return Err(wrong());
    }
    let (Ok(expires_s), Some(mode)) = (expires_s.parse::<u64>(), Mode::parse(mode)) else {
        return Err(malformed());
    };
    if now_ms / 1000 >= expires_s {
        return Err(Fault::forbidden("The authorization token has expired."));
    }
    let key = (!key.is_empty()).then(|| key.to_owned());
    let (resource, permission) = (resource.to_owned(), permission.to_owned());
    let grant = Grant { resource, mode, key, permission };
    Ok(Sender { account: account.to_owned(), grant: Some(grant) })
}

#[cfg(test)]
mod tests {
    use lazuli_http::date::format_rfc1123;
    use lazuli_http::uri::percent_encode;
    use lazuli_http::{HeaderMap, Method};

    use super::*;
    use crate::error::Status;

    const NOW_MS: u64 = 1_700_000_000_000;
    const EMULATOR: &str =
        "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

    fn key(text: &str) -> Key {
        Key::from_base64(&STANDARD.encode(text)).unwrap()
    }

    fn accounts() -> Accounts {
        let accounts = Accounts::new();
        accounts.set("dev", Keys { first: key("known"), second: None });
        accounts.set("mine", Keys { first: key("one"), second: Some(key("two")) });
        accounts
    }

    fn published() -> Published {
        let other = Key::from_base64(EMULATOR).unwrap();
        Published { account: "dev", key: key("known"), other }
    }

    fn request(method: Method, path: &str, authorization: &str, late_s: i64) -> Request {
        let mut headers = HeaderMap::new();
        let date = format_rfc1123((NOW_MS / 1000) as i64 - late_s);
        headers.insert("x-ms-date", date.parse().unwrap());
        headers.insert("authorization", authorization.parse().unwrap());
        let mut request = Request::outgoing(method, path.to_owned(), String::new(), headers);
        request.received_ms = NOW_MS;
        request
    }

    fn sent(key: &Key, path: &str, kind: &str, link: &str, late_s: i64) -> Result<Sender> {
        let date = format_rfc1123((NOW_MS / 1000) as i64 - late_s).to_lowercase();
        let signature = STANDARD.encode(key.sign(&format!("get\n{kind}\n{link}\n{date}\n\n")));
        let header = percent_encode(&format!("type=master&ver=1.0&sig={signature}"));
        let request = request(Method::GET, path, &header, late_s);
        check(&request, &Target::parse(path).unwrap(), &accounts(), Some(&published()))
    }

    fn account(result: Result<Sender>) -> Option<String> {
        result.ok().map(|sender| sender.account)
    }

    #[test]
    fn the_account_is_the_one_whose_key_signed() {
        let path = "/dbs/D/colls/c%20d/docs/";
        for (signer, name) in [("one", "mine"), ("two", "mine"), ("known", "dev")] {
            let sender = sent(&key(signer), path, "docs", "dbs/D/colls/c d", 0);
            assert_eq!(account(sender).as_deref(), Some(name));
        }
        assert_eq!(sent(&key("other"), path, "docs", "dbs/D/colls/c d", 0), Err(wrong()));
        assert_eq!(sent(&key("one"), path, "docs", "dbs/d/colls/c d", 0), Err(wrong()));
        assert_eq!(sent(&key("one"), path, "colls", "dbs/D/colls/c d", 0), Err(wrong()));
    }

    #[test]
    fn a_resource_id_may_be_signed_in_lower_case() {
        let path = "/dbs/AbCdEf==/colls/AbCdEfGhIjK=";
        assert!(sent(&key("one"), path, "colls", "abcdefghijk=", 0).is_ok());
        assert!(sent(&key("one"), "/offers/AbCd", "offers", "abcd", 0).is_ok());
        assert!(sent(&key("one"), "/", "", "", 0).is_ok());
    }

    #[test]
    fn the_published_key_is_good_while_the_account_has_its_own() {
        let emulator = Key::from_base64(EMULATOR).unwrap();
        assert_eq!(account(sent(&emulator, "/", "", "", 0)).as_deref(), Some("dev"));
        let accounts = accounts();
        accounts.set("dev", Keys { first: key("rotated"), second: None });
        assert_eq!(published().in_force(&accounts), None);
        accounts.remove("dev");
        assert_eq!(published().in_force(&accounts), None);
    }

    #[test]
    fn a_date_more_than_a_quarter_of_an_hour_off_is_refused() {
        let late = |seconds| sent(&key("one"), "/", "", "", seconds).map_err(|fault| fault.status);
        assert!(late(900).is_ok() && late(-900).is_ok());
        assert_eq!(late(901), Err(Status::Forbidden));
        assert_eq!(late(-901), Err(Status::Forbidden));
    }

    #[test]
    fn the_host_may_name_the_account() {
        let date = format_rfc1123((NOW_MS / 1000) as i64).to_lowercase();
        let signature = STANDARD.encode(key("known").sign(&format!("get\n\n\n{date}\n\n")));
        let mut request =
            request(Method::GET, "/", &format!("type=master&ver=1.0&sig={signature}"), 0);
        let target = Target::parse("/").unwrap();
        for (host, is_taken) in [("mine.documents.test", false), ("dev.x", true), ("h", true)] {
            request.headers.insert("host", host.parse().unwrap());
            let checked = check(&request, &target, &accounts(), None);
            assert_eq!(checked.is_ok(), is_taken, "{host}");
        }
    }

    #[test]
    fn a_token_grants_what_is_in_it_until_it_expires() {
        let (accounts, now_s) = (accounts(), NOW_MS / 1000);
        let grant = Grant {
            resource: "dbs/d/colls/c".into(),
            mode: Mode::Read,
            key: Some("[\"a\"]".into()),
            permission: "AAAA".into(),
        };
        let made = token("mine", &accounts.get("mine").unwrap(), &grant, now_s + 1);
        let target = Target::parse("/dbs/d/colls/c").unwrap();
        let send = |token: &str, path: &str| {
            let request = request(Method::GET, path, &percent_encode(token), 0);
            check(&request, &target, &accounts, None)
        };
        let sender = Sender { account: "mine".into(), grant: Some(grant.clone()) };
        assert_eq!(send(&made, "/dbs/d/colls/c"), Ok(sender));
        let late = token("mine", &accounts.get("mine").unwrap(), &grant, now_s);
        assert_eq!(send(&late, "/").map_err(|fault| fault.status), Err(Status::Forbidden));
        let forged = token("mine", &accounts.get("dev").unwrap(), &grant, now_s + 1);
        assert_eq!(send(&forged, "/"), Err(wrong()));
        for text in
            ["type=resource&ver=1.0&sig=", "type=resource&ver=1.0&sig=a;b;", "x", "type=aad"]
        {
            assert_eq!(send(text, "/"), Err(malformed()), "{text}");
        }
        let identity = send("type=aad&ver=1.0&sig=a.b.c", "/");
        assert_eq!(identity.map_err(|fault| fault.status), Err(Status::Unauthorized));
    }
}
