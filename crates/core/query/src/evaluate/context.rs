//! What a query gets from outside, and what it may use: time, a seed for chance, user-defined functions, a budget.

use std::cell::Cell;

use lazuli_value::Value;

use crate::error::QueryError;
use crate::limits::{MEMORY_BYTES_MAX, ROWS_PER_ITEM_MAX};

/// The user-defined functions of a container.
pub trait UserFunctions: Send {
    /// Calls a function; an undefined argument and an undefined result are `None`.
    fn call(&self, name: &str, arguments: &[Option<Value>]) -> Result<Option<Value>, QueryError>;
}

/// The surroundings of one execution of a query. With the same context and the same items a query gives the same rows.
pub struct Context {
    /// Milliseconds since the Unix epoch at which the query began.
    pub now_ms: i64,
    pub functions: Option<Box<dyn UserFunctions>>,
    /// The state of the generator behind RAND.
    chance: Cell<u64>,
    /// Bytes that the query holds.
    held: Cell<usize>,
    /// Rows that were made of the current item.
    rows: Cell<usize>,
}

impl Context {
    pub fn new(now_ms: i64, seed: u64) -> Self {
        Self {
            now_ms,
            functions: None,
            chance: Cell::new(seed),
            held: Cell::new(0),
            rows: Cell::new(0),
        }
    }

    /// A number from 0 up to, not including, 1.
    pub fn random(&self) -> f64 {
        // SplitMix64: a counter that is mixed thoroughly.
        let state = self.chance.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.chance.set(state);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Takes memory out of the query's budget.
    pub(crate) fn hold(&self, bytes: usize) -> Result<(), QueryError> {
        let held = self.held.get() + bytes;
        if held > MEMORY_BYTES_MAX {
            let limit = MEMORY_BYTES_MAX / (1024 * 1024);
            let message = format!("The query needs more memory than its limit of {limit} MB.");
            return Err(QueryError::too_large(message));
        }
        self.held.set(held);
        Ok(())
    }

    /// Gives memory back to the budget.
    pub(crate) fn release(&self, bytes: usize) {
        self.held.set(self.held.get().saturating_sub(bytes));
    }

    pub(crate) fn held(&self) -> usize {
        self.held.get()
    }

    pub(crate) fn begin_item(&self) {
        self.rows.set(0);
    }

    /// Counts a row against the limit of rows per item.
    pub(crate) fn count_row(&self) -> Result<(), QueryError> {
        let rows = self.rows.get() + 1;
        if rows > ROWS_PER_ITEM_MAX {
            let message =
                format!("The query makes more than {ROWS_PER_ITEM_MAX} rows of one item.");
            return Err(QueryError::too_large(message));
        }
        self.rows.set(rows);
        Ok(())
    }
}
