//! The user-defined functions of a container, as a query calls them.

use std::cell::RefCell;
use std::collections::BTreeMap;

use lazuli_query::evaluate::UserFunctions;
use lazuli_query::{ErrorKind, QueryError};
use lazuli_value::Value;

use crate::error::ScriptError;
use crate::limits::Limits;
use crate::udf::Udf;

/// Functions by name, compiled when a query first calls them. They are made for one query and dropped with it.
pub struct Functions {
    sources: BTreeMap<String, String>,
    compiled: RefCell<BTreeMap<String, Udf>>,
    limits: Limits,
}

impl Functions {
    /// Functions by name with their texts.
    pub fn new(sources: BTreeMap<String, String>, limits: Limits) -> Self {
        Self { sources, compiled: RefCell::default(), limits }
    }
}

impl UserFunctions for Functions {
    fn call(&self, name: &str, arguments: &[Option<Value>]) -> Result<Option<Value>, QueryError> {
        let mut compiled = self.compiled.borrow_mut();
        if let Some(function) = compiled.get_mut(name) {
            return function.call(arguments).map_err(|error| failed(name, &error));
        }
        let Some(source) = self.sources.get(name) else {
            let message = format!("The user-defined function '{name}' was not found.");
            return Err(QueryError::new(ErrorKind::Function, message));
        };
        let made = Udf::compile(source, &self.limits).map_err(|error| failed(name, &error))?;
        let function = compiled.entry(name.to_owned()).or_insert(made);
        function.call(arguments).map_err(|error| failed(name, &error))
    }
}

fn failed(name: &str, error: &ScriptError) -> QueryError {
    let message = format!("The user-defined function '{name}' failed. {error}");
    QueryError::new(ErrorKind::Function, message)
}
