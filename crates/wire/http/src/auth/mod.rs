//! Who signed a request, over which text, and when: shared keys and shared access signatures.
//!
//! The services differ only in the text that is signed, so that each has files of its own here ([`table`] and
//! [`table_sas`] for Tables, [`shared_key`] and [`service_sas`] for Blobs and Queues). What is the same for all keys is
//! in this one: the `Authorization` header, the clock, the comparison.

pub mod access;
pub mod bearer;
pub mod delegation;
mod key;
pub mod sas;
pub mod service_sas;
pub mod shared_key;
mod sign;
pub mod table;
pub mod table_sas;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;

use crate::date;
use crate::message::Request;

pub use key::{Accounts, BadKey, KEY_BYTES_MAX, Key, Keys, key_bytes};
pub use sign::{Dialect, sign};

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

/// Why a request is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The request is not signed.
    Missing,
    /// The header is not of the form `SharedKey account:signature`, or a parameter of a shared access signature makes
    /// no sense.
    Malformed,
    /// Nobody has this account.
    UnknownAccount,
    /// The request is to an account other than the one that signed it.
    OtherAccount,
    /// There is no date, or none that can be read.
    NoDate,
    /// The date is too far from our clock.
    ClockSkew,
    /// Neither key of the account made this signature.
    WrongSignature,
    /// A shared access signature is not valid yet, not any more, or has no end.
    OutsideTime,
    /// It may not be used from this address.
    OtherAddress,
    /// It may only be used by HTTPS.
    OtherProtocol,
    /// It is for other services of the account.
    OtherService,
    /// It names a policy that the container does not have.
    UnknownPolicy,
    /// A bearer token is not taken.
    Token(bearer::TokenFault),
}

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
    // Last, so that a stranger learns nothing from it.
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
