//! What a query gets from outside: the time, a seed for chance, and user-defined functions.

use std::cell::Cell;

use lazuli_value::Value;

use crate::error::QueryError;

/// The user-defined functions of a container.
pub trait UserFunctions: Send {
    /// Calls a function; an undefined argument and an undefined result are `None`.
    fn call(&self, name: &str, arguments: &[Option<Value>]) -> Result<Option<Value>, QueryError>;
}

/// The surroundings of one execution of a query. With the same context and the same items a query gives the same rows.
pub struct Context {
    /// Milliseconds since the Unix epoch at which the query began.
    pub now_ms: i64,
    /// The state of the generator behind RAND.
    chance: Cell<u64>,
    pub functions: Option<Box<dyn UserFunctions>>,
}

impl Context {
    pub fn new(now_ms: i64, seed: u64) -> Self {
        Self { now_ms, chance: Cell::new(seed), functions: None }
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
}
