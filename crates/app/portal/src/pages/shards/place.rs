//! The pages of shards and their paths.

use lazuli_http::uri::percent_encode;

pub(crate) const PATH: &str = "/portal/shards";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ShardsPage {
    List,
    /// What adding one would do, with what was filled in.
    Add,
    One(String, ShardAction),
}

/// What can be done to a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShardAction {
    /// Moves everything away from it.
    Drain,
    /// Lets it take partitions again.
    Fill,
    Remove,
}

impl ShardAction {
    const ALL: [Self; 3] = [Self::Drain, Self::Fill, Self::Remove];

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Drain => "drain",
            Self::Fill => "fill",
            Self::Remove => "remove",
        }
    }
}

impl ShardsPage {
    /// The page at these pieces of a path, behind `shards`.
    pub(crate) fn parse(pieces: &[&str]) -> Option<Self> {
        Some(match *pieces {
            [] => Self::List,
            ["add"] => Self::Add,
            [name, word] => {
                let action = ShardAction::ALL.into_iter().find(|one| one.word() == word)?;
                Self::One(name.to_owned(), action)
            }
            _ => return None,
        })
    }

    /// Whether it also takes POST, which does what its page says.
    pub(crate) fn changes(&self) -> bool {
        !matches!(self, Self::List)
    }
}

pub(super) fn link(shard: &str, action: ShardAction) -> String {
    format!("{PATH}/{}/{}", percent_encode(shard), action.word())
}
