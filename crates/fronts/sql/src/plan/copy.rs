//! COPY: which table, which columns, which form.

use lazuli_sharded_sql::{TableKind, TableName};
use sqlparser::ast::{CopyOption, CopySource, CopyTarget, Query, Statement};

use super::relations::table_in_path;
use super::walk::{folded, parts};
use super::{Context, Plan};
use crate::error::{SqlError, code};

#[derive(Clone, Debug)]
pub(crate) struct CopyPlan {
    pub(crate) kind: TableKind,
    /// The columns of the data, in their order.
    pub(crate) columns: Vec<String>,
    pub(crate) is_to: bool,
    pub(crate) shape: CopyShape,
    /// The statement for a shard that has no header line in its data.
    pub(crate) bare: String,
}

/// How the lines of the data are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CopyShape {
    pub(crate) format: CopyFormat,
    pub(crate) delimiter: u8,
    pub(crate) null: String,
    pub(crate) quote: u8,
    pub(crate) escape: u8,
    pub(crate) has_header: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CopyFormat {
    Text,
    Csv,
}

/// COPY of a query: its text and plan, and how its rows are written.
#[derive(Clone, Debug)]
pub(crate) struct CopyQuery {
    pub(crate) query: String,
    pub(crate) plan: Plan,
    pub(crate) shape: CopyShape,
}

/// The rows of a query are written by the endpoint, whatever shards they come from.
fn of_query(query: Query, options: &[CopyOption], context: &Context<'_>) -> Result<Plan, SqlError> {
    let statement = Statement::Query(Box::new(query));
    if !super::walk::is_faithful(&statement) {
        return Err(SqlError::refused("COPY of this query is not supported by the router")
            .hint("Use SELECT."));
    }
    let forces = |option: &CopyOption| {
        matches!(
            option,
            CopyOption::ForceQuote(_) | CopyOption::ForceNotNull(_) | CopyOption::ForceNull(_)
        )
    };
    if options.iter().any(forces) {
        return Err(SqlError::refused("FORCE in a COPY of a query is not supported by the router"));
    }
    let (shape, _) = shape(options)?;
    let query = statement.to_string();
    match super::plan(&query, context)? {
        plan @ (Plan::Routed(_) | Plan::Anywhere) => {
            Ok(Plan::CopyQuery(Box::new(CopyQuery { query, plan, shape })))
        }
        _ => Err(SqlError::refused("COPY of this query is not supported by the router")),
    }
}

pub(crate) fn copy(text: &str, context: &Context<'_>) -> Result<Plan, SqlError> {
    let Statement::Copy { source, to, target, options, legacy_options, .. } = super::parse(text)?
    else {
        return Err(SqlError::refused("this form of COPY is not supported by the router"));
    };
    let (CopyTarget::Stdin | CopyTarget::Stdout) = target else {
        return Err(SqlError::refused("COPY from or to files of a server is not supported")
            .hint("Use COPY … FROM STDIN or TO STDOUT, as psql's \\copy does."));
    };
    if !legacy_options.is_empty() {
        return Err(SqlError::refused("the old form of COPY's options is not supported")
            .hint("Write them as WITH (FORMAT csv, …)."));
    }
    let (table_name, columns) = match source {
        CopySource::Table { table_name, columns } => (table_name, columns),
        CopySource::Query(query) => return of_query(*query, &options, context),
    };
    let unknown = || {
        let message = format!("relation \"{table_name}\" is not part of the sharded database");
        SqlError::new(code::UNDEFINED_TABLE, message)
    };
    let table = match parts(&table_name).ok_or_else(unknown)?.as_slice() {
        [one] => table_in_path(one, context).ok_or_else(unknown)?,
        [schema, name] => TableName::new(schema, name),
        _ => return Err(unknown()),
    };
    let kind = context.snapshot.tables.get(&table).ok_or_else(unknown)?.kind.clone();
    let all = context.facts.tables.get(&table);
    let columns: Vec<_> = match columns.is_empty() {
        true => all.map(|facts| facts.columns.iter().map(|it| it.name.clone()).collect()),
        false => Some(columns.iter().map(folded).collect()),
    }
    .ok_or_else(unknown)?;
    let (shape, kept) = shape(&options)?;
    let list: Vec<_> = columns.iter().map(|it| lazuli_sharded_sql::quote_ident(it)).collect();
    let direction = if to { "TO STDOUT" } else { "FROM STDIN" };
    let with = if kept.is_empty() { String::new() } else { format!(" WITH ({})", kept.join(", ")) };
    let name = format!(
        "{}.{}",
        lazuli_sharded_sql::quote_ident(&table.schema),
        lazuli_sharded_sql::quote_ident(&table.name)
    );
    let bare = format!("COPY {name} ({}) {direction}{with}", list.join(", "));
    Ok(Plan::Copy(Box::new(CopyPlan { kind, columns, is_to: to, shape, bare })))
}

/// The form of the data, and the options for shards, which get no header line.
fn shape(options: &[CopyOption]) -> Result<(CopyShape, Vec<String>), SqlError> {
    let mut format = CopyFormat::Text;
    for option in options {
        if let CopyOption::Format(name) = option {
            format = match folded(name).as_str() {
                "text" => CopyFormat::Text,
                "csv" => CopyFormat::Csv,
                other => {
                    return Err(SqlError::refused(format!(
                        "COPY in format {other} is not supported"
                    ))
                    .hint("Use text or csv."));
                }
            };
        }
    }
    let is_csv = format == CopyFormat::Csv;
    let mut shape = CopyShape {
        format,
        delimiter: if is_csv { b',' } else { b'\t' },
        null: if is_csv { String::new() } else { "\\N".to_owned() },
        quote: b'"',
        escape: b'"',
        has_header: false,
    };
    let mut kept = Vec::new();
    let ascii = |char: &char| {
        u8::try_from(*char)
            .map_err(|_| SqlError::new(code::INVALID_VALUE, "a delimiter is one byte"))
    };
    for option in options {
        match option {
            CopyOption::Header(has_header) => {
                shape.has_header = *has_header;
                continue;
            }
            CopyOption::Delimiter(char) => shape.delimiter = ascii(char)?,
            CopyOption::Null(text) => shape.null.clone_from(text),
            CopyOption::Quote(char) => {
                shape.quote = ascii(char)?;
                shape.escape = shape.quote;
            }
            CopyOption::Escape(char) => shape.escape = ascii(char)?,
            // A table that is new in a transaction is so on one shard only.
            CopyOption::Freeze(_) => continue,
            CopyOption::Encoding(name) if !name.eq_ignore_ascii_case("utf8") => {
                return Err(SqlError::refused(
                    "COPY in an encoding other than UTF8 is not supported",
                ));
            }
            CopyOption::Format(_)
            | CopyOption::Encoding(_)
            | CopyOption::ForceQuote(_)
            | CopyOption::ForceNotNull(_)
            | CopyOption::ForceNull(_) => {}
        }
        kept.push(option.to_string());
    }
    // The escape may be named before the quote.
    for option in options {
        if let CopyOption::Escape(char) = option {
            shape.escape = ascii(char)?;
        }
    }
    Ok((shape, kept))
}
