//! Cursors of SQL: on the shard of a transaction, which ends them.

use super::split::{tokens, words};
use super::{Context, Plan, Spread, plan};
use crate::error::{SqlError, code};

/// DECLARE: the whole statement goes where its query does, if that is one shard.
pub(super) fn declare(text: &str, context: &Context<'_>) -> Result<Plan, SqlError> {
    let all = words(text, usize::MAX);
    let Some(at) = all.iter().position(|word| word == "FOR") else {
        return Err(SqlError::new(code::SYNTAX, "DECLARE without FOR"));
    };
    if all[..at].windows(2).any(|pair| pair[0] == "WITH" && pair[1] == "HOLD") {
        return Err(SqlError::refused("a cursor WITH HOLD is not supported by the router")
            .hint("It would outlive the transaction that has the shard's connection."));
    }
    let begin = tokens(text, at + 1)
        .last()
        .map_or(text.len(), |word| word.as_ptr() as usize - text.as_ptr() as usize + word.len());
    let is_query =
        matches!(all.get(at + 1).map(String::as_str), Some("SELECT" | "WITH" | "VALUES" | "("));
    match plan(text.get(begin..).unwrap_or_default(), context)? {
        Plan::Routed(mut routed) if is_query => {
            if !matches!(routed.spread, Spread::Refused(_)) {
                let refused = SqlError::refused(
                    "a cursor over several shards is not supported by the router",
                );
                let hint = "Name one key, or read by a portal of the protocol, as drivers do.";
                routed.spread = Spread::Refused(refused.hint(hint));
            }
            Ok(Plan::Routed(routed))
        }
        _ => Err(SqlError::refused("a cursor over this query is not supported by the router")),
    }
}
