//! The texts that clients of the Blob and Queue services sign with an account's key.
//!
//! All headers that begin with `x-ms-` and all parameters of the query are signed. In two points clients differ, and
//! each of them is taken: in the order of headers whose names differ in a hyphen, and in whether `Date` is signed beside
//! `x-ms-date`.

use std::borrow::Cow;
use std::cmp::Ordering;

use http::{HeaderMap, HeaderName, HeaderValue};

use super::{Accounts, Refusal, Scheme, check_key};
use crate::message::Request;
use crate::storage;
use crate::uri::Query;

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

/// Lets a request in if the account that it is sent to signed it.
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
            let text = string_to_sign(scheme, request, query, account, *form);
            keys.verify(&text, &authorization.signature)
        })
    })
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

/// The signed text.
pub fn string_to_sign(
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
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use http::Method;

    use super::super::table::tests::{KEY, request};
    use super::super::{Key, Keys};
    use super::*;

    const DATE: (&str, &str) = ("x-ms-date", "Sun, 15 Nov 2026 22:24:23 GMT");
    const VERSION: (&str, &str) = ("x-ms-version", "2026-10-06");

    fn check_signed(request: &Request, query: &str) -> Result<(), Refusal> {
        let accounts = Accounts::new();
        let first = Key::from_base64(KEY).unwrap();
        accounts.set("devstoreaccount1", Keys { first, second: None });
        check(request, &Query::parse(query).unwrap(), "devstoreaccount1", &accounts)
    }

    fn put_message() -> Request {
        request(
            Method::POST,
            "/devstoreaccount1/orders/messages",
            &[
                DATE,
                VERSION,
                ("x-ms-client-request-id", "4f6f"),
                ("content-type", "application/xml"),
                ("content-length", "66"),
                ("accept", "application/xml"),
                (
                    "authorization",
                    "SharedKey devstoreaccount1:JhSZdUA/15bTPmePwzMYONETvFICdYD1odhbHHOUw4Y=",
                ),
            ],
        )
    }

    /// As azure-storage-queue 12.18.1 for Python signed them.
    #[test]
    fn what_an_sdk_signed_is_let_in() {
        let query = "visibilitytimeout=30&messagettl=-1";
        assert_eq!(check_signed(&put_message(), query), Ok(()));
        let set_metadata = request(
            Method::PUT,
            "/devstoreaccount1/orders",
            &[
                DATE,
                VERSION,
                ("x-ms-meta-a-b", "1"),
                ("x-ms-meta-ab1", "2"),
                ("x-ms-meta-aa", "3"),
                ("content-length", "0"),
                (
                    "authorization",
                    "SharedKey devstoreaccount1:ttEIPXcjWdf7n8zFl7Sz7jG9/ByBQiJlq1UJOzDRE/o=",
                ),
            ],
        );
        assert_eq!(check_signed(&set_metadata, "comp=metadata"), Ok(()));
        let list = request(
            Method::GET,
            "/devstoreaccount1/c/a%20b%2Bc.txt",
            &[
                DATE,
                VERSION,
                ("if-match", "\"0x1\""),
                ("x-ms-range", "bytes=0-3"),
                (
                    "authorization",
                    "SharedKey devstoreaccount1:HIESrV8ro9ZeHXxYy0rw+cPTrTP3jwnOD+nOUvwwjs0=",
                ),
            ],
        );
        let query = "restype=container&comp=list&prefix=%C3%A4%2F&include=metadata%2Ctags";
        assert_eq!(check_signed(&list, query), Ok(()));
    }

    #[test]
    fn whatever_is_signed_may_not_be_changed() {
        let query = "visibilitytimeout=30&messagettl=-1";
        let refused = |change: fn(&mut Request)| {
            let mut request = put_message();
            change(&mut request);
            check_signed(&request, query).unwrap_err()
        };
        let other = "visibilitytimeout=31&messagettl=-1";
        assert_eq!(check_signed(&put_message(), other), Err(Refusal::WrongSignature));
        assert_eq!(refused(|r| r.path.push('x')), Refusal::WrongSignature);
        assert_eq!(refused(|r| r.method = Method::PUT), Refusal::WrongSignature);
        for name in ["x-ms-version", "content-type", "content-length", "x-ms-client-request-id"] {
            let mut request = put_message();
            request.headers.remove(name);
            assert_eq!(check_signed(&request, query), Err(Refusal::WrongSignature), "{name}");
        }
        assert_eq!(refused(|r| r.received_ms += 16 * 60 * 1000), Refusal::ClockSkew);
    }

    /// The texts of the documentation of the services.
    #[test]
    fn the_texts_are_those_of_the_documentation() {
        let request = request(
            Method::PUT,
            "/acc/queue",
            &[
                ("content-md5", "M"),
                ("content-type", "T"),
                ("content-length", "0"),
                ("date", "D"),
                ("range", "R"),
                ("x-ms-version", "2014-02-14"),
                ("x-ms-b", " two "),
            ],
        );
        let query = Query::parse("timeout=5&Comp=acl&x=2&x=1").unwrap();
        let text = |scheme| string_to_sign(scheme, &request, &query, "acc", Form::DOCUMENTED);
        assert_eq!(
            text(Scheme::SharedKey),
            "PUT\n\n\n0\nM\nT\nD\n\n\n\n\nR\nx-ms-b:two\nx-ms-version:2014-02-14\n\
             /acc/acc/queue\ncomp:acl\ntimeout:5\nx:1,2"
        );
        assert_eq!(
            text(Scheme::SharedKeyLite),
            "PUT\nM\nT\nD\nx-ms-b:two\nx-ms-version:2014-02-14\n/acc/acc/queue?comp=acl"
        );
    }

    #[test]
    fn clients_may_sort_headers_by_bytes_and_sign_both_dates() {
        let headers =
            [DATE, ("x-ms-a-b", "1"), ("x-ms-aa", "2"), ("date", "Sun, 15 Nov 2026 22:24:23 GMT")];
        let check_form = |form: Form, headers: &[(&'static str, &'static str)]| {
            let mut request = request(Method::GET, "/devstoreaccount1", headers);
            let query = Query::default();
            let scheme = Scheme::SharedKey;
            let text = string_to_sign(scheme, &request, &query, "devstoreaccount1", form);
            let signature = STANDARD.encode(Key::from_base64(KEY).unwrap().sign(&text));
            let header = format!("SharedKey devstoreaccount1:{signature}");
            request.headers.insert("authorization", header.parse().unwrap());
            check_signed(&request, "")
        };
        for form in Form::ALL {
            assert_eq!(check_form(form, &headers), Ok(()), "{form:?}");
            assert_eq!(check_form(form, &[DATE, VERSION]), Ok(()), "{form:?}");
        }
    }

    #[test]
    fn headers_sort_as_words_do() {
        let mut names = ["x-ms-ab-", "x-ms-a-b", "x-ms-ab1", "x-ms-ab", "x-ms-a_b", "x-ms-a1"];
        names.sort_by(|one, two| compare(one, two));
        let expected = ["x-ms-a_b", "x-ms-a1", "x-ms-ab", "x-ms-ab-", "x-ms-a-b", "x-ms-ab1"];
        assert_eq!(names, expected);
    }
}
