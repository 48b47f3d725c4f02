//! What a front tells of itself beside what all fronts count: figures and tables for people, with their units, so that one
//! page can show those of any front.

use std::sync::Arc;

use crate::listener::BoxFuture;

/// One figure or name.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    Text(String),
    Count(u64),
    Bytes(u64),
    /// Times a second.
    Rate(f64),
    /// A part of a whole, from 0 to 1.
    Share(f64),
    Micros(u64),
    Seconds(u64),
    /// A shard, by its number.
    Shard(u64),
    /// Not known.
    None,
}

impl Cell {
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }
}

/// A part of a sheet: figures with their names, or a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Section {
    Figures { title: &'static str, figures: Vec<(&'static str, Cell)> },
    Table { title: &'static str, columns: Vec<&'static str>, rows: Vec<Vec<Cell>>, note: String },
}

/// Makes the sheet of a front as it is now.
pub type SheetMaker = Arc<dyn Fn() -> BoxFuture<Vec<Section>> + Send + Sync>;
