//! The texts that clients of the Table service sign.

use http::HeaderMap;

use super::{Accounts, Refusal, Scheme, check_key};
use crate::message::Request;
use crate::uri::Query;

/// Lets a request in if the account that it is sent to signed it.
pub fn check(
    request: &Request,
    query: &Query<'_>,
    account: &str,
    accounts: &Accounts,
) -> Result<(), Refusal> {
    check_key(request, account, accounts, |keys, authorization, date| {
        let text = string_to_sign(authorization.scheme, request, query, account, date);
        keys.verify(&text, &authorization.signature)
    })
}

/// The signed text. The path goes in as it was sent; of the query only `comp` does.
pub fn string_to_sign(
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
            let md5 = text(&request.headers, "content-md5");
            let content_type = text(&request.headers, "content-type");
            format!("{method}\n{md5}\n{content_type}\n{date}\n{resource}")
        }
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("")
}

#[cfg(test)]
pub(super) mod tests {
    use http::{HeaderName, HeaderValue, Method};

    use super::super::{Key, Keys};
    use super::*;
    use crate::body::Body;
    use crate::message::RequestId;

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
        check(request, &Query::default(), account, &accounts)
    }

    #[test]
    fn what_an_sdk_signed_is_let_in() {
        assert_eq!(check_as("devstoreaccount1", &signed_by_an_sdk()), Ok(()));
    }

    #[test]
    fn whatever_is_signed_may_not_be_changed() {
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
    fn the_texts_are_those_of_the_documentation() {
        let request = request(
            Method::GET,
            "/Customers",
            &[("content-md5", "M"), ("content-type", "T"), ("x-ms-date", "D")],
        );
        let query = Query::parse("timeout=5&comp=acl").unwrap();
        let text = |scheme| string_to_sign(scheme, &request, &query, "acc", "D");
        assert_eq!(text(Scheme::SharedKey), "GET\nM\nT\nD\n/acc/Customers?comp=acl");
        assert_eq!(text(Scheme::SharedKeyLite), "D\n/acc/Customers?comp=acl");
    }
}
