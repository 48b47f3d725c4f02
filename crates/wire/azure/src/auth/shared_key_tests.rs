//! What clients sign is let in, and nothing else is.

use lazuli_http::{Body, HeaderName, HeaderValue, Method, RequestId};

use super::*;

/// The published key of the development account.
pub(in crate::auth) const KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/\
                   KBHBeksoGMGw==";
pub(in crate::auth) const NOW_MS: u64 = 1_794_781_463_000;

pub(in crate::auth) fn request(
    method: Method,
    path: &str,
    headers: &[(&'static str, &'static str)],
) -> Request {
    let pairs = headers
        .iter()
        .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
    Request {
        method,
        path: path.to_owned(),
        query: String::new(),
        headers: HeaderMap::from_iter(pairs),
        body: Body::empty(),
        peer: ([127, 0, 0, 1], 1).into(),
        secure: false,
        received_ms: NOW_MS,
        id: RequestId(1),
    }
}

/// As azure-data-tables 12.7.0 for Python signed it.
fn signed_by_an_sdk() -> Request {
    request(
        Method::POST,
        "/devstoreaccount1/t72425004379b4e67b09e94c5700c2dce",
        &[
            ("content-type", "application/json;odata=nometadata"),
            ("x-ms-date", "Sun, 15 Nov 2026 22:24:23 GMT"),
            ("date", "Sun, 15 Nov 2026 22:24:23 GMT"),
            (
                "authorization",
                "SharedKey devstoreaccount1:VJegGJ9eDcstIOCWXtaRNKWARriiErpM8TDUFX3qD+4=",
            ),
        ],
    )
}

fn check_as(account: &str, request: &Request) -> Result<(), Refusal> {
    let accounts = Accounts::new();
    for name in ["devstoreaccount1", "other"] {
        let first = Key::from_base64(KEY).map_err(|_| Refusal::Malformed)?;
        accounts.set(name, Keys { first, second: None });
    }
    check_table(request, &Query::default(), account, &accounts)
}

#[test]
fn what_an_sdk_signed_for_tables_is_let_in() {
    assert_eq!(check_as("devstoreaccount1", &signed_by_an_sdk()), Ok(()));
}

#[test]
fn whatever_is_signed_for_tables_may_not_be_changed() {
    let refused = |change: fn(&mut Request)| {
        let mut request = signed_by_an_sdk();
        change(&mut request);
        check_as("devstoreaccount1", &request).unwrap_err()
    };
    let set = |request: &mut Request, name: &'static str, value: &'static str| {
        request.headers.insert(name, HeaderValue::from_static(value));
    };
    assert_eq!(refused(|r| r.path.push('x')), Refusal::WrongSignature);
    assert_eq!(refused(|r| r.method = Method::PUT), Refusal::WrongSignature);
    assert_eq!(
        refused(|r| {
            r.headers.remove("content-type");
        }),
        Refusal::WrongSignature
    );
    let mut request = signed_by_an_sdk();
    set(&mut request, "x-ms-date", "Sun, 15 Nov 2026 22:24:24 GMT");
    assert_eq!(check_as("devstoreaccount1", &request), Err(Refusal::WrongSignature));
    set(&mut request, "authorization", "SharedKey nobody:AAEC");
    assert_eq!(check_as("devstoreaccount1", &request), Err(Refusal::UnknownAccount));
    assert_eq!(check_as("other", &signed_by_an_sdk()), Err(Refusal::OtherAccount));
    assert_eq!(refused(|r| r.received_ms += 16 * 60 * 1000), Refusal::ClockSkew);
    assert_eq!(
        refused(|r| {
            r.headers.remove("x-ms-date");
            r.headers.remove("date");
        }),
        Refusal::NoDate
    );
    assert_eq!(
        refused(|r| {
            r.headers.remove("authorization");
        }),
        Refusal::Missing
    );
}

#[test]
fn the_texts_for_tables_are_those_of_the_documentation() {
    let request = request(
        Method::GET,
        "/Customers",
        &[("content-md5", "M"), ("content-type", "T"), ("x-ms-date", "D")],
    );
    let query = Query::parse("timeout=5&comp=acl").unwrap();
    let text = |scheme| table_text(scheme, &request, &query, "acc", "D");
    assert_eq!(text(Scheme::SharedKey), "GET\nM\nT\nD\n/acc/Customers?comp=acl");
    assert_eq!(text(Scheme::SharedKeyLite), "D\n/acc/Customers?comp=acl");
}

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
    let text = |scheme| storage_text(scheme, &request, &query, "acc", Form::DOCUMENTED);
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
        let text = storage_text(scheme, &request, &query, "devstoreaccount1", form);
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

#[test]
fn what_is_signed_is_let_in_and_nothing_else() {
    let accounts = Accounts::new();
    let key = || Key::from_base64(KEY).unwrap();
    accounts.set("dev", Keys { first: key(), second: None });
    let date = ("x-ms-date", "Sun, 15 Nov 2026 22:24:23 GMT");
    let check = |request: &Request, dialect| {
        let query = Query::parse(&request.query).unwrap();
        match dialect {
            Dialect::Tables => check_table(request, &query, "dev", &accounts),
            Dialect::Storage => check(request, &query, "dev", &accounts),
        }
    };
    for dialect in [Dialect::Tables, Dialect::Storage] {
        let mut signed = request(Method::GET, "/dev/things", &[date]);
        signed.query = "comp=list&prefix=a%2Fb".to_owned();
        assert_eq!(check(&signed, dialect), Err(Refusal::Missing));
        sign(&mut signed, dialect, "dev", &key()).unwrap();
        assert_eq!(check(&signed, dialect), Ok(()));
        signed.path = "/dev/other".to_owned();
        assert_eq!(check(&signed, dialect), Err(Refusal::WrongSignature));
    }
    let mut undated = request(Method::GET, "/dev/things", &[]);
    assert_eq!(sign(&mut undated, Dialect::Tables, "dev", &key()), Err(Refusal::NoDate));
}

#[test]
fn the_header_is_read() {
    let read = Authorization::parse("SharedKeyLite dev:AAEC").unwrap();
    assert_eq!(read.scheme, Scheme::SharedKeyLite);
    assert_eq!((read.account, read.signature.as_slice()), ("dev", [0u8, 1, 2].as_slice()));
    for bad in ["", "SharedKey", "SharedKey dev", "Bearer x:AAEC", "SharedKey :AAEC"] {
        assert_eq!(Authorization::parse(bad), Err(Refusal::Malformed), "{bad}");
    }
    for bad in ["SharedKey dev:", "SharedKey dev:%", "SharedKey dev:A"] {
        assert_eq!(Authorization::parse(bad), Err(Refusal::Malformed), "{bad}");
    }
}

#[test]
fn a_quarter_of_an_hour_is_the_most_that_clocks_may_differ() {
    let (date, at) = ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777_000);
    assert_eq!(check_clock(date, at), Ok(()));
    assert_eq!(check_clock(date, at + CLOCK_SKEW_MS_MAX), Ok(()));
    assert_eq!(check_clock(date, at - CLOCK_SKEW_MS_MAX), Ok(()));
    assert_eq!(check_clock(date, at + CLOCK_SKEW_MS_MAX + 1), Err(Refusal::ClockSkew));
    assert_eq!(check_clock(date, at - CLOCK_SKEW_MS_MAX - 1), Err(Refusal::ClockSkew));
    assert_eq!(check_clock("Sun, 06 Nov 1894 08:49:37 GMT", 0), Err(Refusal::ClockSkew));
    assert_eq!(check_clock("yesterday", 0), Err(Refusal::NoDate));
}
