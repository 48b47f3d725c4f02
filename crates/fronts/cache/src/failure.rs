//! Errors of commands. Their texts are part of the protocol: clients and libraries compare them.

use std::borrow::Cow;

use lazuli_keyspace::WrongType;

/// Why a command did nothing: the whole text, its code first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure(pub(crate) Cow<'static, str>);

impl Failure {
    pub(crate) const SYNTAX: Self = Self::of("ERR syntax error");
    pub(crate) const NOT_INTEGER: Self = Self::of("ERR value is not an integer or out of range");
    pub(crate) const NOT_FLOAT: Self = Self::of("ERR value is not a valid float");
    pub(crate) const WRONG_TYPE: Self =
        Self::of("WRONGTYPE Operation against a key holding the wrong kind of value");
    pub(crate) const NO_SUCH_KEY: Self = Self::of("ERR no such key");
    pub(crate) const INDEX_OUT_OF_RANGE: Self = Self::of("ERR index out of range");
    pub(crate) const OUT_OF_RANGE: Self = Self::of("ERR value is out of range");
    pub(crate) const NOT_POSITIVE: Self = Self::of("ERR value is out of range, must be positive");
    pub(crate) const OVERFLOW: Self = Self::of("ERR increment or decrement would overflow");
    pub(crate) const NOT_A_NUMBER: Self = Self::of("ERR increment would produce NaN or Infinity");
    pub(crate) const STRING_TOO_LONG: Self =
        Self::of("ERR string exceeds maximum allowed size (proto-max-bulk-len)");
    pub(crate) const NO_MEMORY: Self =
        Self::of("OOM command not allowed when used memory > 'maxmemory'.");
    pub(crate) const BAD_DATABASE: Self = Self::of("ERR DB index is out of range");
    pub(crate) const BAD_TIMEOUT: Self = Self::of("ERR timeout is not a float or out of range");
    pub(crate) const NEGATIVE_TIMEOUT: Self = Self::of("ERR timeout is negative");

    pub(crate) const fn of(text: &'static str) -> Self {
        Self(Cow::Borrowed(text))
    }

    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(Cow::Owned(text.into()))
    }

    /// The word that programs tell errors apart by.
    pub(crate) fn code(&self) -> &str {
        self.0.split(' ').next().unwrap_or_default()
    }
}

impl From<WrongType> for Failure {
    fn from(_: WrongType) -> Self {
        Self::WRONG_TYPE
    }
}
