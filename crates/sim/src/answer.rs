//! What a client knows after a request: it was done, it was not done, or the outcome is unknown.

use lazuli_store::{Error, Kind};

/// The outcome of a request for its client.
#[derive(Clone, Debug)]
pub enum Answer<T> {
    Done(T),
    /// Nothing was written.
    Refused(Error),
    /// It may or may not have happened: the connection broke, or the store did not know.
    Unknown,
}

impl<T> Answer<T> {
    /// Classifies an error by its kind. Kinds that no simulated fault explains are bugs.
    pub fn of(result: Result<T, Error>) -> Result<Self, String> {
        match result {
            Ok(value) => Ok(Self::Done(value)),
            Err(error) => match error.kind() {
                Kind::NotFound
                | Kind::Exists
                | Kind::Precondition
                | Kind::Invalid
                | Kind::TooLarge
                | Kind::Throttled { .. }
                | Kind::Moved => Ok(Self::Refused(error)),
                Kind::Unavailable { .. } => Ok(Self::Unknown),
                Kind::Corrupt | Kind::Internal => Err(format!("nothing explains: {error}")),
            },
        }
    }

    pub fn done(self) -> Option<T> {
        match self {
            Self::Done(value) => Some(value),
            Self::Refused(_) | Self::Unknown => None,
        }
    }
}
