//! Texts of filters and actions from anybody: whatever they are, parsing and evaluation end, and never panic.

use lazuli_engine::Result;

use super::{Action, Filter, Properties, Value};
use crate::PropertyName;

struct Sample;

impl Properties for Sample {
    fn get(&self, name: &PropertyName) -> Result<Option<Value>> {
        Ok(match name {
            PropertyName::System(_) => Some(Value::text("text")),
            PropertyName::User(name) => match name.len() % 6 {
                0 => Some(Value::Integer(i64::MAX)),
                1 => Some(Value::Integer(7)),
                2 => Some(Value::Double(-0.5)),
                3 => Some(Value::text("a%_")),
                4 => Some(Value::Boolean(true)),
                _ => None,
            },
        })
    }

    fn new_id(&self) -> [u8; 16] {
        [7; 16]
    }
}

/// Parses a text as a filter and as an action and evaluates both twice, with the same result.
pub fn bus_filter(text: &str) {
    if let Ok(filter) = Filter::sql(text) {
        let first = filter.matches(&Sample);
        let again = Filter::sql(text).expect("what parses once parses again").matches(&Sample);
        assert_eq!(first.ok(), again.ok(), "{text:?}");
    }
    if let Ok(action) = Action::parse(text) {
        let first = action.run(&Sample, &[]);
        assert_eq!(first.ok(), action.run(&Sample, &[]).ok(), "{text:?}");
    }
}
