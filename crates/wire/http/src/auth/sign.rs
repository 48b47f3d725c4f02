//! Signing a request with an account's key, as clients of the services do.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;

use super::{Key, Refusal, Scheme, shared_key, signed_date, table};
use crate::message::Request;
use crate::uri::Query;

/// Whose text is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// That of the Table service.
    Tables,
    /// That of the Blob and Queue services.
    Storage,
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
            ("SharedKeyLite", table::string_to_sign(scheme, request, &query, account, date))
        }
        Dialect::Storage => {
            let (scheme, form) = (Scheme::SharedKey, shared_key::Form::DOCUMENTED);
            ("SharedKey", shared_key::string_to_sign(scheme, request, &query, account, form))
        }
    };
    let signature = STANDARD.encode(key.sign(&text));
    let value = HeaderValue::try_from(format!("{name} {account}:{signature}"));
    request.headers.insert("authorization", value.map_err(|_| Refusal::Malformed)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::super::table::tests::{KEY, request};
    use super::super::{Accounts, Keys};
    use super::*;

    #[test]
    fn what_is_signed_is_let_in_and_nothing_else() {
        let accounts = Accounts::new();
        let key = || Key::from_base64(KEY).unwrap();
        accounts.set("dev", Keys { first: key(), second: None });
        let date = ("x-ms-date", "Sun, 15 Nov 2026 22:24:23 GMT");
        let check = |request: &Request, dialect| {
            let query = Query::parse(&request.query).unwrap();
            match dialect {
                Dialect::Tables => table::check(request, &query, "dev", &accounts),
                Dialect::Storage => shared_key::check(request, &query, "dev", &accounts),
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
}
