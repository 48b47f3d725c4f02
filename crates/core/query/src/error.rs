//! Errors of queries, with the service's codes and the place in the text.

use std::fmt::{self, Write as _};

use lazuli_value::json;

/// A piece of a query's text, in bytes from its start; the end is behind it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    pub start: usize,
    pub end: usize,
}

impl Span {
    pub fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }

    /// From the start of this one to the end of the other.
    #[must_use]
    pub fn to(self, other: Span) -> Self {
        Self { start: self.start, end: other.end }
    }
}

/// Codes as the service has them.
pub mod code {
    pub const SYNTAX: &str = "SC1001";
    pub const BAD_LITERAL: &str = "SC1010";
    pub const UNRESOLVED: &str = "SC2001";
    pub const UNKNOWN_FUNCTION: &str = "SC2005";
    pub const STAR_NEEDS_ONE_SOURCE: &str = "SC2041";
    pub const ARGUMENTS: &str = "SC2050";
    pub const NOT_IN_GROUP: &str = "SC2103";
    pub const UDF_CALLS: &str = "SC3005";
}

/// What a caller must do about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The query cannot be run as it is.
    Invalid,
    /// The query needs more memory than it may have.
    TooLarge,
    /// A user-defined function failed.
    Function,
    /// What was given to go on with does not belong to this query.
    Continuation,
}

/// One error of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryError {
    pub kind: ErrorKind,
    pub code: Option<&'static str>,
    pub message: String,
    pub span: Option<Span>,
}

impl QueryError {
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, code: None, message: message.into(), span: None }
    }

    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }

    pub fn too_large(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::TooLarge, message)
    }

    #[must_use]
    pub fn at(mut self, code: &'static str, span: Span) -> Self {
        self.code = Some(code);
        self.span = Some(span);
        self
    }

    /// The same error with its place counted in UTF-16 units of the text, as the service counts.
    pub(crate) fn in_units_of(mut self, text: &str) -> Self {
        let units = |bytes: usize| match text.get(..bytes) {
            Some(before) => before.encode_utf16().count(),
            None => bytes,
        };
        self.span = self.span.map(|span| Span::new(units(span.start), units(span.end)));
        self
    }
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code {
            Some(code) => write!(f, "{code}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for QueryError {}

/// Why a query was refused: at least one error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryErrors(pub Vec<QueryError>);

impl From<QueryError> for QueryErrors {
    fn from(error: QueryError) -> Self {
        Self(vec![error])
    }
}

impl QueryErrors {
    /// The errors as the service's message has them: a JSON text.
    pub fn to_json(&self) -> String {
        let mut out = String::from("{\"errors\":[");
        for (place, error) in self.0.iter().enumerate() {
            if place > 0 {
                out.push(',');
            }
            out.push_str("{\"severity\":\"Error\"");
            // Writing to a string cannot fail.
            if let Some(span) = error.span {
                let (start, end) = (span.start, span.end);
                let _ = write!(out, ",\"location\":{{\"start\":{start},\"end\":{end}}}");
            }
            if let Some(code) = error.code {
                let _ = write!(out, ",\"code\":\"{code}\"");
            }
            out.push_str(",\"message\":");
            json::write_string(&error.message, &mut out);
            out.push('}');
        }
        out.push_str("]}");
        out
    }
}

impl fmt::Display for QueryErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_json())
    }
}

impl std::error::Error for QueryErrors {}
