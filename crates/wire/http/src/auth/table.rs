//! The texts that clients of the Table service sign.

use http::HeaderMap;

use super::{Accounts, Authorization, Refusal, Scheme, check_clock, signed_date};
use crate::message::Request;
use crate::uri::Query;

/// Lets a request in if the account that it is sent to signed it.
pub fn check(
    request: &Request,
    query: &Query<'_>,
    account: &str,
    accounts: &Accounts,
) -> Result<(), Refusal> {
    let header = request.headers.get("authorization").ok_or(Refusal::Missing)?;
    let authorization = Authorization::parse(header.to_str().map_err(|_| Refusal::Malformed)?)?;
    let keys = accounts.get(authorization.account).ok_or(Refusal::UnknownAccount)?;
    if authorization.account != account {
        return Err(Refusal::OtherAccount);
    }
    let date = signed_date(&request.headers)?;
    let text = string_to_sign(authorization.scheme, request, query, account, date);
    if !keys.verify(&text, &authorization.signature) {
        return Err(Refusal::WrongSignature);
    }
    // Last, so that a stranger learns nothing from it.
    check_clock(date, request.received_ms)
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
