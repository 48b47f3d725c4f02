//! What can go wrong, by what the caller must do.

use std::fmt;

use lazuli_sharded_sql::ShardRefusal;

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug)]
pub enum Error {
    /// No such sharded database, map, shard or table.
    Unknown(String),
    /// No mapping covers the key.
    MappingNotFound,
    /// The mapping of the key is offline.
    MappingOffline { mapping: u64 },
    /// The map went on changing while the connection was opened, or the range is at the end of a move. Try again.
    Busy,
    /// Rows moved while shards were asked, so that some may be missing or there twice. Ask again, or name `{owned …}`.
    Moved,
    /// The key or the call is not one that the map can take.
    Invalid(String),
    /// The admin API has refused, with its code.
    Refused { code: String, message: String },
    /// The admin API or a shard does not answer.
    Unavailable(String),
    /// Columns of one shard's rows are not those of another's.
    SchemaMismatch { shard: String },
    /// Shards that failed, each with its error; with the policy that takes what it gets, all of them.
    Shards(Vec<crate::ShardFailure>),
    /// A shard has answered a statement with an error.
    Shard(tokio_postgres::Error),
}

impl Error {
    /// Why a shard's own fence has refused a statement, if it has: [`ShardRefusal::is_worth_retrying`] says whether a new
    /// connection for the key may succeed.
    pub fn refusal(&self) -> Option<ShardRefusal> {
        match self {
            Self::Shard(error) => refusal(error),
            _ => None,
        }
    }
}

/// Why a shard's own fence has refused a statement, if it has.
pub(crate) fn refusal(error: &tokio_postgres::Error) -> Option<ShardRefusal> {
    ShardRefusal::of_sqlstate(error.code()?.code())
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(what) => write!(f, "there is no {what}"),
            Self::MappingNotFound => f.write_str("no mapping covers the key"),
            Self::MappingOffline { mapping } => write!(f, "mapping {mapping} is offline"),
            Self::Busy => f.write_str("the mapping of the key is changing; try again"),
            Self::Moved => f.write_str("rows moved between shards while they were asked"),
            Self::Invalid(why) | Self::Unavailable(why) => f.write_str(why),
            Self::Refused { code, message } => write!(f, "{message} ({code})"),
            Self::SchemaMismatch { shard } => {
                write!(f, "the columns of shard {shard} are not those of the others")
            }
            Self::Shards(failures) => {
                let texts: Vec<String> = failures.iter().map(ToString::to_string).collect();
                f.write_str(&texts.join("; "))
            }
            Self::Shard(error) => match error.as_db_error() {
                Some(told) => write!(f, "{} ({})", told.message(), told.code().code()),
                None => error.fmt(f),
            },
        }
    }
}

impl std::error::Error for Error {}

impl From<tokio_postgres::Error> for Error {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Shard(error)
    }
}

impl From<lazuli_store::Error> for Error {
    fn from(error: lazuli_store::Error) -> Self {
        match error.kind() {
            lazuli_store::Kind::Invalid => Self::Invalid(error.to_string()),
            _ => Self::Unavailable(error.to_string()),
        }
    }
}
