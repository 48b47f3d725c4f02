//! Which rows a shard owns, as an SQL condition.

use std::fmt::Write;

use crate::key::ColumnType;
use crate::model::{MapKind, ShardMap, Snapshot, Table, TableKind};

/// A name in a statement: always quoted.
pub fn quote_ident(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text in a statement.
pub fn quote_literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    match quoted.contains('\\') {
        true => format!(" E'{}'", quoted.replace('\\', "\\\\")),
        false => format!("'{quoted}'"),
    }
}

impl Snapshot {
    /// A condition that keeps, of a sharded table's rows on a shard, those that the shard owns: to be added to every
    /// statement that reads or writes such a table without being bound to one key. None where no rows can lie on two
    /// shards. `alias` is how the statement calls the table, quoted if need be.
    pub fn owned_sql(&self, table: &Table, shard: usize, alias: &str) -> Option<String> {
        let TableKind::Sharded { map, key } = &table.kind else { return None };
        let map = self.maps.get(*map).filter(|map| map.is_in_transit)?;
        let columns: Vec<_> = key
            .iter()
            .map(|(name, column)| (*column, format!("{alias}.{}", quote_ident(name))))
            .collect();
        let columns: Vec<_> =
            columns.iter().map(|(column, name)| (*column, name.as_str())).collect();
        Some(map.owned_sql(shard, &columns))
    }
}

impl ShardMap {
    /// A condition that keeps, of rows with these key columns (already quoted), those that the shard owns.
    pub fn owned_sql(&self, shard: usize, columns: &[(ColumnType, &str)]) -> String {
        let route = match self.kind {
            MapKind::Hash => ColumnType::slot_sql(columns),
            MapKind::List | MapKind::Range => {
                let values: Vec<_> = columns.iter().map(|(_, name)| *name).collect();
                format!("lazuli.route_{}({})", self.id, values.join(", "))
            }
        };
        let mut condition = String::new();
        for mapping in self.mappings.iter().filter(|mapping| mapping.shard == shard) {
            let or = if condition.is_empty() { "" } else { " OR " };
            let low = self.bound(&mapping.low);
            let _ = write!(condition, "{or}({route} >= {low}");
            if let Some(high) = &mapping.high {
                let _ = write!(condition, " AND {route} < {}", self.bound(high));
            }
            condition.push(')');
        }
        if condition.is_empty() { "false".to_owned() } else { format!("({condition})") }
    }

    /// A route as the expression is compared with: the number of a slot, or bytes.
    fn bound(&self, route: &[u8]) -> String {
        match (self.kind, route) {
            (MapKind::Hash, [high, low]) => (u32::from(*high) * 256 + u32::from(*low)).to_string(),
            (MapKind::Hash, _) => "0".to_owned(),
            _ => {
                let hex: String = route.iter().map(|byte| format!("{byte:02x}")).collect();
                format!("'\\x{hex}'::bytea")
            }
        }
    }
}
