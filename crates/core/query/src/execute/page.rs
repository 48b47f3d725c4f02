//! Pages: what a caller asks for and what it gets.

use crate::continuation::Continuation;
use crate::limits::{PAGE_BYTES_MAX, PAGE_ROWS_DEFAULT, PAGE_ROWS_MAX};

/// How much one page may hold, and how results are shown.
#[derive(Clone, Debug)]
pub struct PageOptions {
    pub rows: usize,
    pub bytes: usize,
    /// Whether MIN and MAX of no values are null and not undefined, as clients show them that merge partitions.
    pub has_null_extremes: bool,
}

impl Default for PageOptions {
    fn default() -> Self {
        Self { rows: PAGE_ROWS_DEFAULT, bytes: PAGE_BYTES_MAX, has_null_extremes: false }
    }
}

impl PageOptions {
    /// A page of so many rows, within the limit.
    pub fn of_rows(rows: usize) -> Self {
        Self { rows: rows.clamp(1, PAGE_ROWS_MAX), ..Self::default() }
    }
}

/// Some rows of a query's result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Encoded values ([`lazuli_value::View::parse`] reads them).
    pub rows: Vec<Vec<u8>>,
    /// Where to go on; none if the result is complete.
    pub continuation: Option<Continuation>,
    /// Items that were pushed.
    pub items: u64,
}
