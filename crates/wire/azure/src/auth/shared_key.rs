//! Shared keys: the `Authorization` header, the texts that clients sign, and the clock.
//!
//! Clients of the Blob and Queue services sign all headers that begin with `x-ms-` and all parameters of the query. In two
//! points clients differ, and each form is accepted: in the order of headers whose names differ in a hyphen, and in whether
//! `Date` is signed beside `x-ms-date`. Clients of the Table service sign less.

use std::borrow::Cow;
use std::cmp::Ordering;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lazuli_http::uri::Query;
use lazuli_http::{HeaderMap, HeaderName, HeaderValue, Request, date};

use super::{Accounts, Key, Keys, Refusal};
use crate::storage;

/// How far a request's date may be from our clock.
pub const CLOCK_SKEW_MS_MAX: u64 = 15 * 60 * 1000;

/// Which text was signed: the longer or the shorter one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    SharedKey,
    SharedKeyLite,
}

/// What an `Authorization` header says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authorization<'a> {
    pub scheme: Scheme,
    pub account: &'a str,
    pub signature: Vec<u8>,
}

/// Whose text is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// That of the Table service.
    Tables,
    /// That of the Blob and Queue services.
    Storage,
}

/// From this version on an empty body has no length in the signed text.
const VERSION_WITHOUT_ZERO: &str = "2015-02-21";
const PREFIX: &str = "x-ms-";

/// The headers that the longer text has between the method and those of the services, in its order.
const SIGNED_HEADERS: [&str; 11] = [
    "content-encoding",
    "content-language",
    "content-length",
    "content-md5",
    "content-type",
    "date",
    "if-modified-since",
    "if-match",
    "if-none-match",
    "if-unmodified-since",
    "range",
];
/// And those of the shorter text.
const SIGNED_HEADERS_LITE: [&str; 3] = ["content-md5", "content-type", "date"];

impl<'a> Authorization<'a> {
    pub fn parse(text: &'a str) -> Result<Self, Refusal> {
        let (scheme, rest) = text.trim().split_once(' ').ok_or(Refusal::Malformed)?;
        let scheme = match scheme {
            _ if scheme.eq_ignore_ascii_case("SharedKey") => Scheme::SharedKey,
            _ if scheme.eq_ignore_ascii_case("SharedKeyLite") => Scheme::SharedKeyLite,
            _ => return Err(Refusal::Malformed),
        };
        let (account, signature) = rest.trim().split_once(':').ok_or(Refusal::Malformed)?;
        let signature = STANDARD.decode(signature).map_err(|_| Refusal::Malformed)?;
        if account.is_empty() || signature.is_empty() {
            return Err(Refusal::Malformed);
        }
        Ok(Self { scheme, account, signature })
    }
}

/// Lets a request in if the account that it is sent to signed it: `is_signed` compares the text of the service, which has
/// the date in it, with the signature.
fn check_key(
    request: &Request,
    account: &str,
    accounts: &Accounts,
    is_signed: impl FnOnce(&Keys, &Authorization<'_>, &str) -> bool,
) -> Result<(), Refusal> {
    let header = request.headers.get("authorization").ok_or(Refusal::Missing)?;
    let authorization = Authorization::parse(header.to_str().map_err(|_| Refusal::Malformed)?)?;
    let keys = accounts.get(authorization.account).ok_or(Refusal::UnknownAccount)?;
    if authorization.account != account {
        return Err(Refusal::OtherAccount);
    }
    let date = signed_date(&request.headers)?;
    if !is_signed(&keys, &authorization, date) {
        return Err(Refusal::WrongSignature);
    }
    // Checked last, so that a client without a key learns nothing from it.
    check_clock(date, request.received_ms)
}

/// The date that a request is signed with: `x-ms-date` before `Date`, because browsers may not set the latter.
pub fn signed_date(headers: &HeaderMap) -> Result<&str, Refusal> {
    let value = headers.get("x-ms-date").or_else(|| headers.get("date")).ok_or(Refusal::NoDate)?;
    value.to_str().map_err(|_| Refusal::NoDate)
}

/// Refuses a request that was signed too long ago, or by a clock that is too far ahead.
pub fn check_clock(date: &str, now_ms: u64) -> Result<(), Refusal> {
    let seconds = date::parse_rfc1123(date).ok_or(Refusal::NoDate)?;
    let signed_ms = u64::try_from(seconds).map_err(|_| Refusal::ClockSkew)?.saturating_mul(1000);
    if now_ms.abs_diff(signed_ms) > CLOCK_SKEW_MS_MAX { Err(Refusal::ClockSkew) } else { Ok(()) }
}

/// Admits a request to the Blob or Queue service if the account that it is sent to signed it.
pub fn check(
    request: &Request,
    query: &Query<'_>,
    account: &str,
    accounts: &Accounts,
) -> Result<(), Refusal> {
    check_key(request, account, accounts, |keys, authorization, _| {
        let scheme = authorization.scheme;
        // Nearly always there is one text; the others are made only if it does not fit.
        Form::ALL.iter().filter(|form| form.differs(&request.headers)).any(|form| {
            let text = storage_text(scheme, request, query, account, *form);
            keys.verify(&text, &authorization.signature)
        })
    })
}

/// The same for the Table service.
pub fn check_table(
    request: &Request,
    query: &Query<'_>,
    account: &str,
    accounts: &Accounts,
) -> Result<(), Refusal> {
    check_key(request, account, accounts, |keys, authorization, date| {
        let text = table_text(authorization.scheme, request, query, account, date);
        keys.verify(&text, &authorization.signature)
    })
}

/// The text that clients of the Table service sign. The path goes in as it was sent; of the query only `comp` does.
pub fn table_text(
    scheme: Scheme,
    request: &Request,
    query: &Query<'_>,
    account: &str,
    date: &str,
) -> String {
    let (comp_mark, comp) = match query.get("comp") {
        Some(comp) => ("?comp=", comp),
        None => ("", ""),
    };
    let resource = format!("/{account}{}{comp_mark}{comp}", request.path);
    match scheme {
        Scheme::SharedKeyLite => format!("{date}\n{resource}"),
        Scheme::SharedKey => {
            let method = request.method.as_str();
            let md5 = request.header("content-md5").unwrap_or_default();
            let content_type = request.header("content-type").unwrap_or_default();
            format!("{method}\n{md5}\n{content_type}\n{date}\n{resource}")
        }
    }
}

/// Adds the `Authorization` header to a request that has all others already, its date among them.
pub fn sign(
    request: &mut Request,
    dialect: Dialect,
    account: &str,
    key: &Key,
) -> Result<(), Refusal> {
    let query = Query::parse(&request.query).map_err(|_| Refusal::Malformed)?;
    let (name, text) = match dialect {
        Dialect::Tables => {
            let (scheme, date) = (Scheme::SharedKeyLite, signed_date(&request.headers)?);
            ("SharedKeyLite", table_text(scheme, request, &query, account, date))
        }
        Dialect::Storage => {
            let (scheme, form) = (Scheme::SharedKey, Form::DOCUMENTED);
            ("SharedKey", storage_text(scheme, request, &query, account, form))
        }
    };
    let signature = STANDARD.encode(key.sign(&text));
    let value = HeaderValue::try_from(format!("{name} {account}:{signature}"));
    request.headers.insert("authorization", value.map_err(|_| Refusal::Malformed)?);
    Ok(())
}

/// In what the texts of clients differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// Headers are sorted by their bytes, and not as words.
    pub by_bytes: bool,
    /// `Date` is signed although `x-ms-date` is there.
    pub both_dates: bool,
}

impl Form {
    /// As the documentation has it.
    pub const DOCUMENTED: Self = Self { by_bytes: false, both_dates: false };

    const ALL: [Self; 4] = [
        Self::DOCUMENTED,
        Self { by_bytes: true, both_dates: false },
        Self { by_bytes: false, both_dates: true },
        Self { by_bytes: true, both_dates: true },
    ];

    /// Whether the text of these headers can be another one than the documented.
    fn differs(self, headers: &HeaderMap) -> bool {
        let has_both = headers.contains_key("x-ms-date") && headers.contains_key("date");
        let names =
            || headers.keys().map(HeaderName::as_str).filter(|name| name.starts_with(PREFIX));
        let is_ordered_alike = || {
            let (mut as_words, mut by_bytes): (Vec<_>, Vec<_>) =
                (names().collect(), names().collect());
            as_words.sort_by(|one, two| compare(one, two));
            by_bytes.sort_unstable();
            as_words == by_bytes
        };
        (!self.both_dates || has_both) && (!self.by_bytes || !is_ordered_alike())
    }
}

/// The text that clients of the Blob and Queue services sign.
pub fn storage_text(
    scheme: Scheme,
    request: &Request,
    query: &Query<'_>,
    account: &str,
    form: Form,
) -> String {
    let headers = &request.headers;
    let signed: &[_] = match scheme {
        Scheme::SharedKey => &SIGNED_HEADERS,
        Scheme::SharedKeyLite => &SIGNED_HEADERS_LITE,
    };
    let mut out = String::with_capacity(512);
    out.push_str(request.method.as_str());
    out.push('\n');
    for name in signed {
        let is_left_out = match *name {
            "date" => !form.both_dates && headers.contains_key("x-ms-date"),
            "content-length" => has_no_length(headers),
            _ => false,
        };
        if let Some(value) = headers.get(*name).filter(|_| !is_left_out) {
            out.push_str(text(value).trim());
        }
        out.push('\n');
    }
    push_headers(&mut out, headers, form);
    out.push('/');
    out.push_str(account);
    out.push_str(&request.path);
    match scheme {
        Scheme::SharedKey => push_query(&mut out, query),
        Scheme::SharedKeyLite => {
            if let Some(comp) = query.get("comp") {
                out.push_str("?comp=");
                out.push_str(comp);
            }
        }
    }
    out
}

fn has_no_length(headers: &HeaderMap) -> bool {
    let is_zero = headers.get("content-length").is_some_and(|length| length == "0");
    is_zero && storage::version(headers).is_ok_and(|version| version >= VERSION_WITHOUT_ZERO)
}

/// `name:value` in lines. Values of one name stand behind one another.
fn push_headers(out: &mut String, headers: &HeaderMap, form: Form) {
    let mut names: Vec<&str> =
        headers.keys().map(HeaderName::as_str).filter(|name| name.starts_with(PREFIX)).collect();
    match form.by_bytes {
        true => names.sort_unstable(),
        false => names.sort_by(|one, two| compare(one, two)),
    }
    for name in names {
        out.push_str(name);
        for (at, value) in headers.get_all(name).iter().enumerate() {
            out.push(if at == 0 { ':' } else { ',' });
            out.push_str(text(value).trim());
        }
        out.push('\n');
    }
}

/// `name:value` of all parameters in lines, the names in small letters and sorted, and so are values of one name.
fn push_query(out: &mut String, query: &Query<'_>) {
    let mut parameters: Vec<(String, &str)> =
        query.iter().map(|(name, value)| (name.to_lowercase(), value)).collect();
    parameters.sort_unstable();
    let mut last = None;
    for (name, value) in &parameters {
        if last == Some(name) {
            out.push(',');
        } else {
            out.push('\n');
            out.push_str(name);
            out.push(':');
        }
        out.push_str(value);
        last = Some(name);
    }
}

/// Clients sign text and send it as UTF-8, or as Latin-1 where it is not.
fn text(value: &HeaderValue) -> Cow<'_, str> {
    match std::str::from_utf8(value.as_bytes()) {
        Ok(text) => text.into(),
        Err(_) => value.as_bytes().iter().map(|byte| char::from(*byte)).collect::<String>().into(),
    }
}

/// The order of the services, which is that of words: a hyphen or an apostrophe counts only where two names are the same
/// without them.
fn compare(one: &str, two: &str) -> Ordering {
    let counts = |byte: &u8| joint(*byte) == 0;
    let letters = one.bytes().filter(counts).map(rank);
    let joints = || one.bytes().map(joint).cmp(two.bytes().map(joint));
    letters.cmp(two.bytes().filter(counts).map(rank)).then_with(joints)
}

/// Where a character stands among those that names of headers are made of.
fn rank(byte: u8) -> u8 {
    const SIGNS: &[u8] = b"!#$%&*.^_`|~+";
    match SIGNS.iter().position(|sign| *sign == byte) {
        Some(at) => at as u8,
        // Digits and then letters, as they stand in ASCII.
        None => byte,
    }
}

fn joint(byte: u8) -> u8 {
    match byte {
        b'\'' => 1,
        b'-' => 2,
        _ => 0,
    }
}

#[cfg(test)]
#[path = "shared_key_tests.rs"]
pub(super) mod tests;
