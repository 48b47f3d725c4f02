//! From the text of a statement to what is done with it. Nothing here does IO.
//!
//! `split` cuts a Query into statements, `command` recognises what the endpoint answers by itself, `walk` and `relations` read a parsed
//! statement into tables and equalities, `scope` says which tables are bound to which keys, `fanout` writes the statements
//! for several shards, `gather` cuts a query into parts,
//! `views` puts views' queries in their places, `write` looks at INSERT, UPDATE and DELETE, `copy` at COPY, `cursor` at DECLARE. The rule behind all of them: what is not
//! certain to give PostgreSQL's own answer is refused with a sentence that says why and how to write it.

mod aggregate;
mod command;
mod constants;
mod copy;
mod cursor;
mod fanout;
mod functions;
mod gather;
mod query;
mod reference;
mod relations;
mod scope;
pub(crate) mod split;
#[cfg(test)]
mod tests;
pub(crate) mod views;
mod walk;
mod windows;
mod write;

use std::collections::BTreeMap;

use lazuli_sharded_sql::{ColumnType, Snapshot, TableName};
use sqlparser::ast::Statement as Parsed;
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::Parser;

use crate::error::{SqlError, code};
use crate::limits::DEPTH_MAX;

pub(crate) use command::{Command, SetScope};
pub(crate) use copy::{CopyFormat, CopyPlan, CopyQuery, CopyShape};
pub(crate) use fanout::{FanOut, Last, OrderKey, expression};
pub(crate) use gather::Gather;
pub(crate) use write::InsertRows;

/// What is known of the columns of the tables, read from the catalog shard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) tables: BTreeMap<TableName, TableFacts>,
    /// The queries of views, with the schemas of all names in them.
    pub(crate) views: BTreeMap<TableName, sqlparser::ast::Query>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TableFacts {
    pub(crate) columns: Vec<ColumnFacts>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ColumnFacts {
    pub(crate) name: String,
    /// The number of its type.
    pub(crate) oid: u32,
    /// Whether its texts sort or compare by another collation than that of the database.
    pub(crate) is_collated: bool,
    /// Whether a row that does not name it gets a value that differs from shard to shard.
    pub(crate) is_volatile: bool,
}

/// What the planner knows beside the text.
pub(crate) struct Context<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) facts: &'a Facts,
    /// The schemas in which names without one are looked for, in order.
    pub(crate) search_path: &'a [String],
}

#[derive(Clone, Debug)]
pub(crate) enum Plan {
    /// Nothing but comments.
    Empty,
    /// What the endpoint does by itself.
    Command(Command),
    /// Names no table of users': any shard knows the answer, and all are asked the same one.
    Anywhere,
    Routed(Box<Routed>),
    Copy(Box<CopyPlan>),
    CopyQuery(Box<CopyQuery>),
    /// About a cursor, which is on the shard of the transaction.
    Cursor,
}

/// A statement over tables of users.
#[derive(Clone, Debug)]
pub(crate) struct Routed {
    /// The keys that each sharded table is bound to; none: some table is bound to nothing.
    pub(crate) bounds: Option<Vec<Bound>>,
    /// The shard of tables that are on one shard.
    pub(crate) fixed: Option<usize>,
    /// The maps of the sharded tables, each once.
    pub(crate) maps: Vec<usize>,
    /// Whether rows are written, or locked.
    pub(crate) is_write: bool,
    /// What to do if the rows are on several shards.
    pub(crate) spread: Spread,
}

#[derive(Clone, Debug)]
pub(crate) enum Spread {
    Refused(SqlError),
    Select(FanOut),
    /// Parts that are fetched by plans of their own, and a statement over their rows.
    Gather(Gather),
    /// Rows of VALUES, each for its own shard.
    Insert(InsertRows),
    /// The same UPDATE or DELETE on every shard of the map; the name of the table, for the condition while rows move.
    Write(WriteEverywhere),
    /// A write to a reference table: the same on every shard there is.
    Reference,
}

#[derive(Clone, Debug)]
pub(crate) struct WriteEverywhere {
    pub(crate) table: TableName,
    /// What the statement calls it.
    pub(crate) alias: String,
    /// The statement up to its condition, the condition, and what follows.
    pub(crate) statement: Box<Parsed>,
}

/// The keys that one sharded table is bound to: every row that matters has one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bound {
    pub(crate) map: usize,
    pub(crate) types: Vec<ColumnType>,
    /// One list of values for each column of the key; the keys are all combinations.
    pub(crate) columns: Vec<Vec<KeySource>>,
}

/// Where a part of a key comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KeySource {
    Literal(String),
    /// The number of a parameter, from 1 on.
    Parameter(usize),
    /// A parameter that is an array of keys.
    ParameterArray(usize),
}

/// Parses one statement by PostgreSQL's dialect.
pub(crate) fn parse(text: &str) -> Result<Parsed, SqlError> {
    let dialect = PostgreSqlDialect {};
    let failed = |error: sqlparser::parser::ParserError| {
        let why = error.to_string();
        let why = why.strip_prefix("sql parser error: ").unwrap_or(&why);
        SqlError::new(code::SYNTAX, format!("the router cannot parse this statement: {why}"))
            .hint("Statements are read by the router before a shard sees them; write it in simpler terms.")
    };
    let mut parser =
        Parser::new(&dialect).with_recursion_limit(DEPTH_MAX).try_with_sql(text).map_err(failed)?;
    let mut statements = parser.parse_statements().map_err(failed)?;
    match (statements.pop(), statements.is_empty()) {
        (Some(statement), true) => Ok(statement),
        _ => Err(SqlError::new(code::SYNTAX, "one statement is expected here")),
    }
}

/// The plan of one statement.
pub(crate) fn plan(text: &str, context: &Context<'_>) -> Result<Plan, SqlError> {
    // A semicolon at the end is not a part of it.
    let text = match split::split(text)[..] {
        [] => return Ok(Plan::Empty),
        [one] => one,
        _ => {
            let message = "cannot insert multiple commands into a prepared statement";
            return Err(SqlError::new(code::SYNTAX, message));
        }
    };
    let words = split::words(text, 4);
    if let Some(command) = command::command(text, &words)? {
        return Ok(Plan::Command(command));
    }
    if words[0] == "SHOW" {
        return Ok(Plan::Anywhere);
    }
    match words[0].as_str() {
        "DECLARE" => return cursor::declare(text, context),
        "CLOSE" if words.get(1).is_some_and(|word| word == "ALL") => return Ok(Plan::Anywhere),
        "FETCH" | "MOVE" | "CLOSE" => return Ok(Plan::Cursor),
        _ => {}
    }
    if words[0] == "COPY" {
        return copy::copy(text, context);
    }
    let is_explained = words[0] == "EXPLAIN";
    let parsed = parse(text)?;
    let parsed = match parsed {
        Parsed::Explain { statement, .. } => *statement,
        other => other,
    };
    refuse_locks(&parsed)?;
    let mut planned = match parsed {
        Parsed::Query(mut query) => {
            views::expand(&mut query, context)?;
            query::query(&query, context)?
        }
        Parsed::Insert(insert) => write::insert(insert, context)?,
        Parsed::Update(update) => write::update(update, context)?,
        Parsed::Delete(delete) => write::delete(delete, context)?,
        _ => return Err(not_routed(&words[0])),
    };
    if let (true, Plan::Routed(routed)) = (is_explained, &mut planned) {
        let message = "EXPLAIN works for statements of one shard";
        let hint = "Name one key, or EXPLAIN on a shard directly.";
        routed.spread = Spread::Refused(SqlError::refused(message).hint(hint));
    }
    Ok(planned)
}

/// Locks of a session would stay with a connection that others use next.
fn refuse_locks(parsed: &Parsed) -> Result<(), SqlError> {
    let is_lock = |name: &String| {
        let is_session = !name.contains("xact") && !name.contains("unlock");
        is_session && (name.starts_with("pg_advisory_") || name.starts_with("pg_try_advisory_"))
    };
    match walk::function_names(parsed).into_iter().find(is_lock) {
        None => Ok(()),
        Some(name) => Err(SqlError::refused(format!(
            "{name} holds a lock for a session, which a router has none of"
        ))
        .hint("Use pg_advisory_xact_lock within a transaction.")),
    }
}

fn not_routed(word: &str) -> SqlError {
    SqlError::refused(format!("{word} is not supported by the router"))
        .hint("docs/sql.md lists the statements that are; a shard can be connected to directly.")
}
