//! What a table is on a shard: columns, key, foreign keys. Moves need it, and it must be the same on both shards.

use std::collections::{BTreeMap, BTreeSet};

use lazuli_sharded_sql::{TableName, quote_ident, quote_literal};
use lazuli_store::{Error, Result};

use crate::install::quoted;
use crate::link::Link;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) name: TableName,
    /// Columns whose values are stored: all but generated ones.
    pub(crate) columns: Vec<Column>,
    /// The primary key, or a unique key of columns that are never null.
    pub(crate) key: Vec<Column>,
    pub(crate) is_partitioned: bool,
    /// Tables that it refers to by foreign keys.
    pub(crate) parents: Vec<ForeignKey>,
    /// Triggers of the user's that fire for each row or statement.
    pub(crate) has_user_triggers: bool,
    pub(crate) has_identity_always: bool,
    /// Everything that must be equal on all shards, one line each.
    pub(crate) lines: BTreeSet<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) sql_type: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ForeignKey {
    pub(crate) parent: TableName,
    pub(crate) columns: Vec<String>,
    pub(crate) parent_columns: Vec<String>,
}

impl Shape {
    /// Reads a table of a shard; none if it is not there.
    pub(crate) async fn read(link: &Link, name: &TableName) -> Result<Option<Self>> {
        let regclass = format!("to_regclass({})", quote_literal(&quoted(name)));
        let kind = link
            .text(&format!("SELECT relkind::text FROM pg_class WHERE oid = {regclass}"))
            .await?;
        let is_partitioned = match &*kind {
            "" => return Ok(None),
            "r" => false,
            "p" => true,
            _ => {
                let message = format!("{name} on shard {} is no table", link.name);
                return Err(Error::invalid("not-a-table", message));
            }
        };
        let columns = columns(link, &regclass).await?;
        let lines = lines(link, &regclass).await?;
        let key = key(link, &regclass).await?;
        let by_name = |name: &String| columns.iter().find(|it| it.0.name == *name);
        let key = key.iter().filter_map(by_name).map(|it| it.0.clone()).collect();
        let triggers = format!(
            "SELECT count(*)::text FROM pg_trigger WHERE tgrelid = {regclass} AND NOT tgisinternal \
             AND tgname NOT LIKE 'zz\\_lazuli\\_%'"
        );
        Ok(Some(Self {
            name: name.clone(),
            key,
            has_identity_always: columns.iter().any(|it| it.2 == "a"),
            columns: columns.into_iter().filter(|it| it.1.is_empty()).map(|it| it.0).collect(),
            is_partitioned,
            parents: foreign_keys(link, &regclass).await?,
            has_user_triggers: link.text(&triggers).await? != "0",
            lines,
        }))
    }

    pub(crate) fn table(&self) -> String {
        quoted(&self.name)
    }

    /// Names of columns in a statement.
    pub(crate) fn names(columns: &[Column], alias: &str) -> String {
        let dot = if alias.is_empty() { "" } else { "." };
        let names: Vec<String> =
            columns.iter().map(|it| format!("{alias}{dot}{}", quote_ident(&it.name))).collect();
        names.join(", ")
    }

    /// Refuses a table that is another one on another shard, and says where they differ.
    pub(crate) fn must_equal(&self, other: &Self, here: &str, there: &str) -> Result<()> {
        let only_here = self.lines.difference(&other.lines).next();
        let only_there = other.lines.difference(&self.lines).next();
        let what = match (only_here, only_there) {
            (None, None) => return Ok(()),
            (Some(line), _) => format!("only {here} has: {line}"),
            (None, Some(line)) => format!("only {there} has: {line}"),
        };
        let message = format!("table {} differs between shards: {what}", self.name);
        Err(Error::precondition("sql-schemas-differ", message))
    }
}

/// Stored and generated columns: the column, how it is generated, and its kind of identity.
async fn columns(link: &Link, regclass: &str) -> Result<Vec<(Column, String, String)>> {
    let query = format!(
        "SELECT attname::text, format_type(atttypid, atttypmod), attgenerated::text, attidentity::text \
         FROM pg_attribute WHERE attrelid = {regclass} AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
    );
    let rows = link.rows(&query).await?;
    Ok(rows
        .iter()
        .map(|row| (Column { name: row.get(0), sql_type: row.get(1) }, row.get(2), row.get(3)))
        .collect())
}

/// The columns of the key by which rows are told apart: the primary key, else the first unique index that can do it.
async fn key(link: &Link, regclass: &str) -> Result<Vec<String>> {
    let query = format!(
        "SELECT (SELECT array_agg(a.attname::text ORDER BY k.nth) \
             FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS k(att, nth) \
             JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.att \
             WHERE k.nth <= i.indnkeyatts) \
         FROM pg_index i WHERE i.indrelid = {regclass} AND i.indisunique AND i.indimmediate AND i.indisvalid \
         AND i.indpred IS NULL AND i.indexprs IS NULL \
         AND NOT EXISTS (SELECT 1 FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS k(att, nth) \
             JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.att \
             WHERE k.nth <= i.indnkeyatts AND NOT a.attnotnull) \
         ORDER BY i.indisprimary DESC, i.indexrelid LIMIT 1"
    );
    Ok(link.rows(&query).await?.first().map(|row| row.get(0)).unwrap_or_default())
}

async fn foreign_keys(link: &Link, regclass: &str) -> Result<Vec<ForeignKey>> {
    let names = |relation: &str, key: &str| {
        format!(
            "(SELECT array_agg(a.attname::text ORDER BY k.nth) FROM unnest(c.{key}) WITH ORDINALITY AS k(att, nth) \
             JOIN pg_attribute a ON a.attrelid = c.{relation} AND a.attnum = k.att)"
        )
    };
    let query = format!(
        "SELECT n.nspname::text, p.relname::text, {}, {} FROM pg_constraint c \
         JOIN pg_class p ON p.oid = c.confrelid JOIN pg_namespace n ON n.oid = p.relnamespace \
         WHERE c.conrelid = {regclass} AND c.contype = 'f' AND c.conparentid = 0 ORDER BY c.conname",
        names("conrelid", "conkey"),
        names("confrelid", "confkey")
    );
    let rows = link.rows(&query).await?;
    Ok(rows
        .iter()
        .map(|row| ForeignKey {
            parent: TableName { schema: row.get(0), name: row.get(1) },
            columns: row.get(2),
            parent_columns: row.get(3),
        })
        .collect())
}

/// Columns, constraints and indexes as lines that are compared between shards.
async fn lines(link: &Link, regclass: &str) -> Result<BTreeSet<String>> {
    let query = format!(
        "SELECT 'column ' || attname || ' ' || format_type(atttypid, atttypmod) \
             || CASE WHEN attnotnull THEN ' not null' ELSE '' END \
             || CASE attgenerated::text WHEN '' THEN '' ELSE ' generated ' || pg_get_expr(d.adbin, d.adrelid) END \
             || CASE attidentity::text WHEN '' THEN '' ELSE ' identity ' || attidentity::text END \
             FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum \
             WHERE attrelid = {regclass} AND attnum > 0 AND NOT attisdropped \
         UNION ALL SELECT 'constraint ' || conname || ' ' || pg_get_constraintdef(oid) \
             FROM pg_constraint WHERE conrelid = {regclass} AND contype <> 't' \
         UNION ALL SELECT 'index ' || pg_get_indexdef(indexrelid) FROM pg_index \
             WHERE indrelid = {regclass} AND indisunique"
    );
    Ok(link.rows(&query).await?.iter().map(|row| row.get(0)).collect())
}

/// Tables with parents before children. Refuses circles.
pub(crate) fn in_order(shapes: &BTreeMap<TableName, Shape>) -> Result<Vec<TableName>> {
    let mut order: Vec<TableName> = Vec::new();
    while order.len() < shapes.len() {
        let is_free = |shape: &&Shape| {
            let mut parents = shape.parents.iter().map(|it| &it.parent);
            !order.contains(&shape.name)
                && parents
                    .all(|it| *it == shape.name || !shapes.contains_key(it) || order.contains(it))
        };
        let Some(next) = shapes.values().find(is_free) else {
            let message = "foreign keys between sharded tables form a circle";
            return Err(Error::invalid("sql-foreign-key-circle", message));
        };
        order.push(next.name.clone());
    }
    Ok(order)
}
