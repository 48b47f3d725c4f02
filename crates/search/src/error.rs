//! The errors of the search engine: few kinds, which say what the caller must do.

use std::fmt;

/// What a caller must do about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The request is wrong and will stay wrong: answer 400 with the message.
    Invalid,
    /// The files of an index cannot be used: drop them and feed the documents again.
    Lost,
    /// The operation failed for now (disk full, writer gone): try again later.
    Unavailable,
}

/// An error of the search engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchError {
    pub kind: ErrorKind,
    pub message: String,
}

/// What every function of this crate that can fail returns.
pub type Result<T> = std::result::Result<T, SearchError>;

impl SearchError {
    /// The request is wrong.
    pub fn invalid(message: impl Into<String>) -> SearchError {
        SearchError { kind: ErrorKind::Invalid, message: message.into() }
    }

    /// The files of an index are of no use.
    pub fn lost(message: impl Into<String>) -> SearchError {
        SearchError { kind: ErrorKind::Lost, message: message.into() }
    }

    /// The operation failed and may succeed later.
    pub fn unavailable(message: impl Into<String>) -> SearchError {
        SearchError { kind: ErrorKind::Unavailable, message: message.into() }
    }

    /// The same error with a place in front of its message.
    pub(crate) fn within(self, place: &str) -> SearchError {
        SearchError { kind: self.kind, message: format!("{place}: {}", self.message) }
    }
}

impl fmt::Display for SearchError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for SearchError {}

/// Errors of the inverted index: damaged files are lost, everything else may pass.
impl From<tantivy::TantivyError> for SearchError {
    fn from(error: tantivy::TantivyError) -> SearchError {
        use tantivy::TantivyError as E;
        let message = format!("inverted index: {error}");
        match error {
            E::DataCorruption(_) | E::IncompatibleIndex(_) | E::OpenReadError(_) => {
                SearchError::lost(message)
            }
            E::SchemaError(_) | E::FieldNotFound(_) | E::DeserializeError(_) => {
                SearchError::lost(message)
            }
            _ => SearchError::unavailable(message),
        }
    }
}

impl From<std::io::Error> for SearchError {
    fn from(error: std::io::Error) -> SearchError {
        SearchError::unavailable(format!("inverted index: {error}"))
    }
}
