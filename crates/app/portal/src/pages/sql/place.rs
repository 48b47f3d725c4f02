//! The pages of sharded SQL databases and their paths.

use lazuli_http::uri::percent_encode;

use crate::page::Part;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SqlPage {
    Index,
    Database(String),
    /// What a change of a mapping, a shard or a job would do, and with a form that was sent the change itself.
    Change(String, SqlChange),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SqlChange {
    /// Moves the rows of a mapping to another shard.
    Move,
    /// Cuts a mapping at a key.
    Split,
    /// Moves everything away from a shard.
    Drain,
    Fill,
    Cancel,
    Ddl,
}

impl SqlChange {
    const ALL: [Self; 6] =
        [Self::Move, Self::Split, Self::Drain, Self::Fill, Self::Cancel, Self::Ddl];

    /// As paths have it, here and in the admin API.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Move => "move",
            Self::Split => "split",
            Self::Drain => "drain",
            Self::Fill => "fill",
            Self::Cancel => "cancel",
            Self::Ddl => "ddl",
        }
    }
}

impl SqlPage {
    /// The page at these pieces of a path, behind `sql`.
    pub(crate) fn parse(pieces: &[&str]) -> Option<Self> {
        Some(match *pieces {
            [] => Self::Index,
            [database] => Self::Database(database.to_owned()),
            [database, word] => {
                let change = SqlChange::ALL.into_iter().find(|one| one.word() == word)?;
                Self::Change(database.to_owned(), change)
            }
            _ => return None,
        })
    }

    pub(crate) fn changes(&self) -> bool {
        matches!(self, Self::Change(..))
    }
}

pub(super) fn link(database: &str) -> String {
    format!("{}/{}", Part::Sql.path(), percent_encode(database))
}

/// The page of a change, with what it is of.
pub(super) fn change(database: &str, change: SqlChange, query: &[(&str, &str)]) -> String {
    let mut to = format!("{}/{}", link(database), change.word());
    for (at, (name, value)) in query.iter().enumerate() {
        to.push(if at == 0 { '?' } else { '&' });
        to.push_str(&format!("{name}={}", percent_encode(value)));
    }
    to
}
