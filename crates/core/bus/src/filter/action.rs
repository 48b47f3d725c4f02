//! Actions of rules: statements that set and remove properties of a message.

use std::sync::Arc;

use lazuli_engine::Result;

use super::tree::Expression;
use super::{Properties, Value, bad, evaluate, parser};
use crate::limits::OVERRIDES_MAX;
use crate::message::{Override, PropertyName, SystemProperty};

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Statement {
    Set(PropertyName, Expression),
    Remove(PropertyName),
}

/// An action as its owner wrote it, and as it is run.
#[derive(Clone, Debug)]
pub struct Action {
    text: String,
    statements: Arc<[Statement]>,
}

impl PartialEq for Action {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Action {
    /// Fails with [`crate::BusReason::BadFilter`].
    pub fn parse(text: &str) -> Result<Self> {
        let statements = parser::statements(text)?;
        for statement in &statements {
            let (Statement::Set(name, _) | Statement::Remove(name)) = statement;
            if *name == PropertyName::System(SystemProperty::PartitionKey) {
                return Err(bad("the partition key of a message cannot be changed"));
            }
        }
        Ok(Self { text: text.to_owned(), statements: statements.into() })
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// What the statements change of a message, one after another: each sees what those before it did.
    pub fn run(&self, message: &dyn Properties, before: &[Override]) -> Result<Vec<Override>> {
        let mut overrides = before.to_vec();
        for statement in self.statements.iter() {
            let (name, value) = match statement {
                Statement::Set(name, expression) => {
                    let seen = Overridden { message, overrides: &overrides };
                    (name, evaluate::value(expression, &seen)?)
                }
                Statement::Remove(name) => (name, None),
            };
            if let (PropertyName::System(property), Some(value)) = (name, &value)
                && !matches!(value, Value::Text(_))
            {
                return Err(bad(format!("{} takes a text, not {value:?}", property.name())));
            }
            set(&mut overrides, name.clone(), value);
            if overrides.len() > OVERRIDES_MAX {
                return Err(bad(format!("more than {OVERRIDES_MAX} properties are changed")));
            }
        }
        Ok(overrides)
    }
}

/// Adds an override, in place of an earlier one of the same property.
pub(crate) fn set(overrides: &mut Vec<Override>, name: PropertyName, value: Option<Value>) {
    match overrides.iter_mut().find(|one| is_same(&one.name, &name)) {
        Some(one) => one.value = value,
        None => overrides.push(Override { name, value }),
    }
}

/// Names of application properties are told apart without regard to case.
fn is_same(a: &PropertyName, b: &PropertyName) -> bool {
    match (a, b) {
        (PropertyName::User(a), PropertyName::User(b)) => a.eq_ignore_ascii_case(b),
        _ => a == b,
    }
}

/// A message with some of its properties changed.
pub(crate) struct Overridden<'a> {
    pub(crate) message: &'a dyn Properties,
    pub(crate) overrides: &'a [Override],
}

impl Properties for Overridden<'_> {
    fn get(&self, name: &PropertyName) -> Result<Option<Value>> {
        match self.overrides.iter().find(|one| is_same(&one.name, name)) {
            Some(one) => Ok(one.value.clone()),
            None => self.message.get(name),
        }
    }

    fn new_id(&self) -> [u8; 16] {
        self.message.new_id()
    }
}
