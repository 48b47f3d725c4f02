//! What a shard itself answers when its triggers refuse a statement.

/// Set by a program that writes to reference tables on every shard: `SET LOCAL lazuli.reference = 'on'`. Without it a
/// shard refuses writes to reference tables, because the other shards would not get them.
pub const SETTING_REFERENCE: &str = "lazuli.reference";

/// Why a shard's trigger refused a row. Nothing of the statement was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShardRefusal {
    /// The mapping is about to be another shard's. Wait a little, refresh, and try again.
    Fenced,
    /// The shard does not hold this key. Refresh and try again.
    Elsewhere,
    /// The mapping is offline or read-only; it stays so until somebody brings it online.
    Offline,
    /// The session's mapping has another epoch by now, or the row is of another mapping.
    Stale,
    /// A statement that shards never take from a direct connection.
    Forbidden,
}

impl ShardRefusal {
    pub const ALL: [Self; 5] =
        [Self::Fenced, Self::Elsewhere, Self::Offline, Self::Stale, Self::Forbidden];

    /// The SQLSTATE of the error.
    pub fn sqlstate(self) -> &'static str {
        match self {
            Self::Fenced => "LZ001",
            Self::Elsewhere => "LZ002",
            Self::Offline => "LZ003",
            Self::Stale => "LZ004",
            Self::Forbidden => "LZ005",
        }
    }

    pub fn of_sqlstate(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|refusal| refusal.sqlstate() == code)
    }

    /// Whether a router with a newer snapshot may succeed with the same statement.
    pub fn is_worth_retrying(self) -> bool {
        matches!(self, Self::Fenced | Self::Elsewhere | Self::Stale)
    }
}
