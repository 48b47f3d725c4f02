//! Why reading failed: the database refused or lost a statement, or the store itself has an answer.

use lazuli_store::Error;

pub(crate) enum Fault {
    Statement(tokio_postgres::Error),
    Told(Error),
}

impl From<tokio_postgres::Error> for Fault {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Statement(error)
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Told(error)
    }
}
