//! Statements that the endpoint answers by itself, or refuses by name, recognised by their first words.

use super::split::{tokens, words};
use crate::error::SqlError;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// BEGIN or START TRANSACTION, with its modes as written.
    Begin(String),
    Commit,
    Rollback,
    Savepoint(String),
    RollbackTo(String),
    Release(String),
    Set {
        scope: SetScope,
        name: String,
        value: String,
    },
    Reset(Option<String>),
    /// SHOW of a setting of ours; others are answered by a shard.
    ShowOwn(String),
    DiscardAll,
    DeallocateAll,
    Deallocate(String),
    /// Statements of connection pools that reset what a session of ours never has.
    Nothing(&'static str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SetScope {
    Session,
    Local,
}

/// What settings of the endpoint's own begin with.
pub(crate) const OWN_SETTINGS: &str = "lazuli.";

fn ddl(word: &str) -> SqlError {
    SqlError::refused(format!("{word} is not run through the router"))
        .detail(
            "Changes of the schema run on all shards, one after the other, with a canary first.",
        )
        .hint("Use `lazuli sql ddl`.")
}

fn one_shard(what: &str) -> SqlError {
    SqlError::refused(format!("{what} is not supported by the router"))
        .hint("It belongs to one connection of one server; connect to a shard directly.")
}

pub(crate) fn command(text: &str, first: &[String]) -> Result<Option<Command>, SqlError> {
    let word = |index: usize| first.get(index).map_or("", String::as_str);
    let rest = |count: usize| words(text, usize::MAX).into_iter().skip(count).collect::<Vec<_>>();
    Ok(Some(match word(0) {
        "BEGIN" => Command::Begin(rest_text(text, 1)),
        "START" if word(1) == "TRANSACTION" => Command::Begin(rest_text(text, 2)),
        "COMMIT" | "END" => match rest(1).last().map(String::as_str) {
            None | Some("WORK" | "TRANSACTION") => Command::Commit,
            _ => {
                return Err(SqlError::refused(
                    "this form of COMMIT is not supported by the router",
                ));
            }
        },
        "ROLLBACK" | "ABORT" => rollback(&rest(1))?,
        "SAVEPOINT" => Command::Savepoint(name(&rest(1))?),
        "RELEASE" => match rest(1) {
            list if list.first().is_some_and(|it| it == "SAVEPOINT") => {
                Command::Release(name(&list[1..])?)
            }
            list => Command::Release(name(&list)?),
        },
        "SET" => return set(text, first),
        "RESET" => match word(1) {
            "ALL" => Command::Reset(None),
            name => Command::Reset(Some(setting(name))),
        },
        "SHOW" => {
            let shown = rest(1).concat().to_lowercase();
            match shown.strip_prefix(OWN_SETTINGS) {
                Some(_) => Command::ShowOwn(shown),
                None => return Ok(None),
            }
        }
        "DISCARD" if word(1) == "ALL" => Command::DiscardAll,
        "DISCARD" => Command::Nothing("DISCARD"),
        "DEALLOCATE" => {
            let list = rest(1);
            let list = list.strip_prefix(&["PREPARE".to_owned()]).unwrap_or(&list);
            match list.first().map(String::as_str) {
                Some("ALL") => Command::DeallocateAll,
                _ => Command::Deallocate(name(list)?),
            }
        }
        "UNLISTEN" => Command::Nothing("UNLISTEN"),
        "CREATE" | "ALTER" | "DROP" | "TRUNCATE" | "GRANT" | "REVOKE" | "COMMENT" | "VACUUM"
        | "ANALYZE" | "REINDEX" | "CLUSTER" | "REFRESH" | "SECURITY" | "IMPORT" | "REASSIGN" => {
            return Err(ddl(word(0)));
        }
        "LISTEN" | "NOTIFY" | "LOAD" | "CHECKPOINT" => return Err(one_shard(word(0))),
        "PREPARE" | "EXECUTE" => {
            return Err(one_shard(word(0)).hint("Prepare by the protocol, as drivers do."));
        }
        "LOCK" | "DO" | "CALL" | "MERGE" => {
            return Err(SqlError::refused(format!("{} is not supported by the router", word(0))));
        }
        _ => return Ok(None),
    }))
}

/// The text behind the first words.
fn rest_text(text: &str, count: usize) -> String {
    tokens(text, usize::MAX)[count..].join(" ")
}

fn rollback(rest: &[String]) -> Result<Command, SqlError> {
    let is = |index: usize, word: &str| rest.get(index).is_some_and(|it| it == word);
    let skipped = usize::from(is(0, "WORK") || is(0, "TRANSACTION"));
    let rest = &rest[skipped..];
    match rest.first().map(String::as_str) {
        None => Ok(Command::Rollback),
        Some("TO") => {
            let skipped = if rest.get(1).is_some_and(|it| it == "SAVEPOINT") { 2 } else { 1 };
            Ok(Command::RollbackTo(name(&rest[skipped..])?))
        }
        Some(_) => Err(SqlError::refused("this form of ROLLBACK is not supported by the router")),
    }
}

/// One name as it is written: upper case is what an unquoted name became here, and PostgreSQL folds it again.
fn name(words: &[String]) -> Result<String, SqlError> {
    match words {
        [one] if one.starts_with('"') => Ok(one.clone()),
        [one] => Ok(one.to_lowercase()),
        _ => Err(SqlError::new(crate::error::code::SYNTAX, "one name is expected here")),
    }
}

fn setting(word: &str) -> String {
    word.trim_matches('"').to_lowercase()
}

fn set(text: &str, first: &[String]) -> Result<Option<Command>, SqlError> {
    let second = first.get(1).map_or("", String::as_str);
    let (scope, skipped) = match second {
        "LOCAL" => (SetScope::Local, 2),
        "SESSION" => (SetScope::Session, 2),
        _ => (SetScope::Session, 1),
    };
    let raw = tokens(text, usize::MAX);
    let at = |index: usize| raw.get(skipped + index).copied().unwrap_or_default();
    let head = at(0).to_uppercase();
    let set =
        |name: &str, value: String| Ok(Some(Command::Set { scope, name: setting(name), value }));
    match head.as_str() {
        "CHARACTERISTICS" => Err(SqlError::refused("SET SESSION CHARACTERISTICS is not supported")
            .hint("SET default_transaction_isolation or default_transaction_read_only.")),
        "AUTHORIZATION" | "ROLE" => {
            Err(SqlError::refused("the role of a session is that of its login")
                .hint("Log in as another user."))
        }
        "TRANSACTION" => {
            let modes = raw[skipped + 1..].join(" ");
            Ok(Some(Command::Set {
                scope: SetScope::Local,
                name: "transaction".into(),
                value: modes,
            }))
        }
        "TIME" => set("timezone", raw.get(skipped + 2..).unwrap_or_default().join(" ")),
        "NAMES" => set("client_encoding", at(1).to_owned()),
        "CONSTRAINTS" => Err(SqlError::refused("SET CONSTRAINTS is not supported by the router")),
        _ => {
            let rest = raw.get(skipped..).unwrap_or_default();
            let equal = rest.iter().position(|it| *it == "=" || it.eq_ignore_ascii_case("to"));
            let Some(equal) = equal else {
                return Err(SqlError::new(crate::error::code::SYNTAX, "SET without a value"));
            };
            let name = rest[..equal].concat();
            set(&name, rest[equal + 1..].join(" "))
        }
    }
}
