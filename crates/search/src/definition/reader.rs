//! Reads typed properties out of JSON objects, with errors that name the place.

use crate::error::{Result, SearchError};
use serde_json::{Map, Value};

/// A JSON object and where it stands.
pub(crate) struct Reader<'a> {
    object: &'a Map<String, Value>,
    place: String,
}

impl<'a> Reader<'a> {
    /// The value as an object.
    pub(crate) fn object(value: &'a Value, place: &str) -> Result<Reader<'a>> {
        match value {
            Value::Object(object) => Ok(Reader { object, place: place.to_owned() }),
            _ => Err(SearchError::invalid(format!("{place}: must be an object"))),
        }
    }

    /// The same object, with a better name for its place.
    pub(crate) fn named(self, place: String) -> Reader<'a> {
        Reader { object: self.object, place }
    }

    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    /// The error that a property is wrong.
    pub(crate) fn wrong(&self, property: &str, what: &str) -> SearchError {
        SearchError::invalid(format!("{}: '{property}' {what}", self.place))
    }

    /// The value of a property; absent and null are the same.
    pub(crate) fn get(&self, property: &str) -> Option<&'a Value> {
        self.object.get(property).filter(|it| !it.is_null())
    }

    pub(crate) fn string(&self, property: &str) -> Result<Option<String>> {
        match self.get(property) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(self.wrong(property, "must be a string")),
        }
    }

    pub(crate) fn required_string(&self, property: &str) -> Result<String> {
        self.string(property)?.ok_or_else(|| self.wrong(property, "is required"))
    }

    pub(crate) fn boolean(&self, property: &str) -> Result<Option<bool>> {
        match self.get(property) {
            None => Ok(None),
            Some(Value::Bool(value)) => Ok(Some(*value)),
            Some(_) => Err(self.wrong(property, "must be true or false")),
        }
    }

    pub(crate) fn number(&self, property: &str) -> Result<Option<f64>> {
        match self.get(property) {
            None => Ok(None),
            Some(Value::Number(number)) => Ok(number.as_f64()),
            Some(_) => Err(self.wrong(property, "must be a number")),
        }
    }

    /// A whole number between two bounds.
    pub(crate) fn whole(&self, property: &str, min: u64, max: u64) -> Result<Option<usize>> {
        let Some(value) = self.get(property) else { return Ok(None) };
        match value.as_u64() {
            Some(number) if (min..=max).contains(&number) => Ok(usize::try_from(number).ok()),
            _ => Err(self.wrong(property, &format!("must be a number from {min} to {max}"))),
        }
    }

    pub(crate) fn array(&self, property: &str) -> Result<&'a [Value]> {
        match self.get(property) {
            None => Ok(&[]),
            Some(Value::Array(items)) => Ok(items),
            Some(_) => Err(self.wrong(property, "must be an array")),
        }
    }

    pub(crate) fn strings(&self, property: &str) -> Result<Vec<String>> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let strings: Option<Vec<String>> = self.array(property)?.iter().map(text).collect();
        strings.ok_or_else(|| self.wrong(property, "must be an array of strings"))
    }

    /// The items of an array of objects, each named by its own `name` where it has one.
    pub(crate) fn objects(&self, property: &str) -> Result<Vec<Reader<'a>>> {
        let mut readers = Vec::new();
        for (number, item) in self.array(property)?.iter().enumerate() {
            let place = match item.get("name").and_then(Value::as_str) {
                Some(name) => format!("{}: {property} '{name}'", self.place),
                None => format!("{}: {property}[{number}]", self.place),
            };
            readers.push(Reader::object(item, &place)?);
        }
        Ok(readers)
    }

    pub(crate) fn object_of(&self, property: &str) -> Result<Option<Reader<'a>>> {
        let place = format!("{}: {property}", self.place);
        self.get(property).map(|value| Reader::object(value, &place)).transpose()
    }

    /// All properties.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&'a String, &'a Value)> {
        self.object.iter()
    }
}
