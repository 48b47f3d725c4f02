//! Signatures of requests: shared keys, shared access signatures and bearer tokens.
//!
//! The services differ only in the text that is signed: [`shared_key`] has those of keys, [`table_sas`] those of signatures
//! for tables, [`service_sas`] those for blobs and queues. [`access`] decides which one a request has. [`master_key`] has the
//! signatures of clients of the document service.

pub mod access;
pub mod bearer;
pub mod delegation;
mod key;
pub mod master_key;
pub mod namespace_sas;
pub mod sas;
pub mod service_sas;
pub mod shared_key;
pub mod table_sas;

pub use key::{Accounts, BadKey, KEY_BYTES_MAX, Key, Keys, key_bytes};
pub use shared_key::{Authorization, Dialect, Scheme, sign, signed_date};

/// Why a request is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The request is not signed.
    Missing,
    /// The header is not of the form `SharedKey account:signature`, or a parameter of a shared access signature makes
    /// no sense.
    Malformed,
    /// There is no such account.
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
