//! Paths into items, as indexes know them.

use std::fmt;

use lazuli_value::ValueRef;

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// Into the property of this name.
    Name(String),
    /// Into every element of an array.
    Element,
}

/// Steps from a whole item to a place in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path(pub Vec<Step>);

impl Path {
    /// A path of property names.
    pub fn of(names: &[&str]) -> Self {
        Self(names.iter().map(|name| Step::Name((*name).to_owned())).collect())
    }

    /// The path one step further.
    #[must_use]
    pub fn then(&self, step: Step) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        Self(steps)
    }

    /// Calls back with every value at the end of the path.
    pub fn visit<'a>(&self, item: ValueRef<'a>, found: &mut dyn FnMut(ValueRef<'a>)) {
        visit(&self.0, item, found);
    }

    /// Whether an item can have several values at the path.
    pub fn has_elements(&self) -> bool {
        self.0.contains(&Step::Element)
    }
}

fn visit<'a>(steps: &[Step], value: ValueRef<'a>, found: &mut dyn FnMut(ValueRef<'a>)) {
    match steps.split_first() {
        None => found(value),
        Some((Step::Name(name), rest)) => {
            if let Some(inside) = value.get(name) {
                visit(rest, inside, found);
            }
        }
        Some((Step::Element, rest)) => {
            if let Some(array) = value.as_array() {
                array.iter().for_each(|element| visit(rest, element, found));
            }
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.0 {
            match step {
                Step::Name(name) => write!(f, "/{name}")?,
                Step::Element => f.write_str("/[]")?,
            }
        }
        Ok(())
    }
}
