//! Objects: properties in the order in which they were written.

use crate::Value;

/// Up to this many properties, names are compared one by one to find duplicates; above it they are sorted.
pub(crate) const FEW_PROPERTIES_MAX: usize = 16;

/// The properties of an object in the order in which they were written. Names are unique: a later property of the same
/// name replaces the value of the former, in its place.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Object(Vec<(String, Value)>);

impl Object {
    pub fn new() -> Self {
        Self::default()
    }

    /// An object of properties whose names need not be unique: the last value of a name wins, in the first one's place.
    pub fn from_properties(mut properties: Vec<(String, Value)>) -> Self {
        if has_duplicates(&properties) {
            properties = without_duplicates(properties);
        }
        Self(properties)
    }

    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    pub fn get_mut(&mut self, name: &str) -> Option<&mut Value> {
        self.0.iter_mut().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// Sets a property and answers the value that it had.
    pub fn insert(&mut self, name: impl Into<String>, value: Value) -> Option<Value> {
        let name = name.into();
        if let Some(there) = self.get_mut(&name) {
            return Some(std::mem::replace(there, value));
        }
        self.0.push((name, value));
        None
    }

    pub fn remove(&mut self, name: &str) -> Option<Value> {
        let at = self.0.iter().position(|(key, _)| key == name)?;
        Some(self.0.remove(at).1)
    }

    pub fn iter(&self) -> std::slice::Iter<'_, (String, Value)> {
        self.0.iter()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl IntoIterator for Object {
    type Item = (String, Value);
    type IntoIter = std::vec::IntoIter<(String, Value)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl FromIterator<(String, Value)> for Object {
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(properties: I) -> Self {
        Self::from_properties(properties.into_iter().collect())
    }
}

fn has_duplicates(properties: &[(String, Value)]) -> bool {
    if properties.len() <= FEW_PROPERTIES_MAX {
        let mut rest = properties;
        while let Some(((name, _), others)) = rest.split_first() {
            if others.iter().any(|(other, _)| other == name) {
                return true;
            }
            rest = others;
        }
        return false;
    }
    let mut names: Vec<&str> = properties.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    names.windows(2).any(|pair| pair[0] == pair[1])
}

fn without_duplicates(properties: Vec<(String, Value)>) -> Vec<(String, Value)> {
    let mut places = std::collections::BTreeMap::<String, usize>::new();
    let mut unique: Vec<(String, Value)> = Vec::with_capacity(properties.len());
    for (name, value) in properties {
        match places.get(&name) {
            Some(at) => unique[*at].1 = value,
            None => {
                places.insert(name.clone(), unique.len());
                unique.push((name, value));
            }
        }
    }
    unique
}
