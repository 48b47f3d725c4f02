//! Paths into documents as policies write them: `/address/city`, `/"odd name"/?`, `/tags/[]/*`.

use lazuli_engine::{Error, Result};
use lazuli_value::ValueRef;

use super::reason::DocumentReason;

/// The most steps of a path.
const STEPS_MAX: usize = 128;

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// Into the property of this name.
    Name(String),
    /// Into every element of an array.
    Element,
}

/// What a path of an indexing policy stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// `/?`: the value at its end.
    Value,
    /// `/*`: everything at its end and below.
    Below,
}

/// Steps from the whole document to a place in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path(Vec<Step>);

impl Path {
    pub fn new(steps: Vec<Step>) -> Self {
        Self(steps)
    }

    /// A path of names, as partition keys, unique keys and composite indexes have it.
    pub fn parse(text: &str) -> Result<Self> {
        match Self::parse_reach(text)? {
            (path, None) if !path.0.is_empty() && !path.0.contains(&Step::Element) => Ok(path),
            _ => Err(bad(text)),
        }
    }

    /// A path of an indexing policy, with what it stands for if it says so.
    pub fn parse_reach(text: &str) -> Result<(Self, Option<Reach>)> {
        let mut steps = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            rest = rest.strip_prefix('/').ok_or_else(|| bad(text))?;
            match rest {
                "?" => return Ok((Self(steps), Some(Reach::Value))),
                "*" => return Ok((Self(steps), Some(Reach::Below))),
                "" if steps.is_empty() => return Ok((Self(steps), None)),
                _ => {}
            }
            let (step, behind) = take_step(rest).ok_or_else(|| bad(text))?;
            steps.push(step);
            rest = behind;
            if steps.len() > STEPS_MAX {
                return Err(bad(text));
            }
        }
        if steps.is_empty() { Err(bad(text)) } else { Ok((Self(steps), None)) }
    }

    pub fn steps(&self) -> &[Step] {
        &self.0
    }

    /// The value at the end of a path of names.
    pub fn find<'a>(&self, value: ValueRef<'a>) -> Option<ValueRef<'a>> {
        self.0.iter().try_fold(value, |value, step| match step {
            Step::Name(name) => value.get(name),
            Step::Element => None,
        })
    }
}

impl std::fmt::Display for Path {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for step in &self.0 {
            match step {
                Step::Name(name) if is_plain(name) => write!(f, "/{name}")?,
                Step::Name(name) => {
                    let escaped = name.replace('\\', "\\\\").replace('"', "\\\"");
                    write!(f, "/\"{escaped}\"")?;
                }
                Step::Element => f.write_str("/[]")?,
            }
        }
        Ok(())
    }
}

fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|one| one.is_alphanumeric() || one == '_')
}

/// The first step of what follows a slash, and what is behind it.
fn take_step(text: &str) -> Option<(Step, &str)> {
    if let Some(quoted) = text.strip_prefix('"') {
        let mut name = String::new();
        let mut letters = quoted.char_indices();
        while let Some((at, letter)) = letters.next() {
            match letter {
                '"' => return Some((Step::Name(name), &quoted[at + 1..])),
                '\\' => name.push(letters.next()?.1),
                _ => name.push(letter),
            }
        }
        return None;
    }
    let end = text.find('/').unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    match name {
        "" | "?" | "*" => None,
        "[]" => Some((Step::Element, rest)),
        _ => Some((Step::Name(name.to_owned()), rest)),
    }
}

fn bad(text: &str) -> Error {
    let shown: String = text.chars().take(100).collect();
    Error::invalid(DocumentReason::BadPath, format!("{shown:?} is no path"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str) -> Step {
        Step::Name(name.into())
    }

    #[test]
    fn paths_are_read_as_policies_write_them() {
        let cases = [
            ("/*", vec![], Some(Reach::Below)),
            ("/", vec![], None),
            ("/\"_etag\"/?", vec![name("_etag")], Some(Reach::Value)),
            ("/a/b", vec![name("a"), name("b")], None),
            ("/tags/[]/?", vec![name("tags"), Step::Element], Some(Reach::Value)),
            ("/\"a/b\\\"c\"/*", vec![name("a/b\"c")], Some(Reach::Below)),
        ];
        for (text, steps, reach) in cases {
            assert_eq!(Path::parse_reach(text).unwrap(), (Path(steps), reach), "{text}");
        }
        for text in ["", "a", "/a//b", "/a/?/b", "/\"a", "/a/", "//"] {
            assert!(Path::parse_reach(text).is_err(), "{text}");
        }
        assert!(Path::parse("/a/?").is_err() && Path::parse("/").is_err());
    }

    #[test]
    fn a_path_is_printed_so_that_it_reads_the_same() {
        for text in ["/a/b", "/\"odd name\"/[]/x_1", "/\"q\\\"\\\\\""] {
            let (path, _) = Path::parse_reach(text).unwrap();
            assert_eq!(path.to_string(), text);
        }
    }
}
