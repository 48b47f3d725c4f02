//! Correlation filters: properties that must have given values, all of them.

use lazuli_engine::Result;

use super::{Properties, Value, bad};
use crate::limits::CORRELATION_CONDITIONS_MAX;
use crate::{PropertyName, SystemProperty};

/// Values that the properties of a message must have. Nothing given matches every message.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CorrelationFilter {
    pub system: Vec<(SystemProperty, String)>,
    pub properties: Vec<(String, Value)>,
}

impl CorrelationFilter {
    /// Refuses more conditions than allowed.
    pub fn check(&self) -> Result<()> {
        let conditions = self.system.len() + self.properties.len();
        if conditions > CORRELATION_CONDITIONS_MAX {
            let most = CORRELATION_CONDITIONS_MAX;
            return Err(bad(format!(
                "a correlation of {conditions} conditions; {most} are allowed"
            )));
        }
        Ok(())
    }

    pub(super) fn matches(&self, message: &dyn Properties) -> Result<bool> {
        for (property, wanted) in &self.system {
            match message.get(&PropertyName::System(*property))? {
                Some(Value::Text(found)) if found == *wanted => {}
                _ => return Ok(false),
            }
        }
        for (name, wanted) in &self.properties {
            match message.get(&PropertyName::User(name.clone()))? {
                Some(found) if found.order(wanted).is_some_and(|order| order.is_eq()) => {}
                _ => return Ok(false),
            }
        }
        Ok(true)
    }
}
