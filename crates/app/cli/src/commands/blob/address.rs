//! Places as they are typed: `az://CONTAINER/NAME`, or a local path.

use std::fmt;
use std::path::{Path, PathBuf};

use lazuli_http::uri::percent_encode;

use crate::failure::{Failure, Result};

const SCHEME: &str = "az://";
/// The longest name that the service gives a blob, in characters.
const NAME_CHARS_MAX: usize = 1024;
/// Containers whose names are no ordinary ones.
const SPECIAL: [&str; 3] = ["$root", "$web", "$logs"];

/// Where something is copied from or to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::commands) enum Spot {
    Remote(Address),
    Local(PathBuf),
}

impl Spot {
    pub(in crate::commands) fn read(text: &str) -> Result<Self> {
        match text.starts_with(SCHEME) {
            true => Address::read(text).map(Self::Remote),
            false if text.is_empty() => Err(Failure::usage("a place is missing")),
            false => Ok(Self::Local(PathBuf::from(text))),
        }
    }
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Remote(address) => address.fmt(f),
            Self::Local(path) => f.write_str(&shown(&path.to_string_lossy())),
        }
    }
}

/// A blob, or the beginning of the names of many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::commands) struct Address {
    pub(in crate::commands) container: String,
    pub(in crate::commands) name: String,
}

impl Address {
    pub(super) fn read(text: &str) -> Result<Self> {
        let rest = text.strip_prefix(SCHEME).ok_or_else(|| {
            Failure::usage(format!("`{}` is no place such as az://container/name", shown(text)))
        })?;
        let (container, name) = rest.split_once('/').unwrap_or((rest, ""));
        check_container(container)?;
        if name.chars().count() > NAME_CHARS_MAX {
            let message = format!("the name of a blob has at most {NAME_CHARS_MAX} characters");
            return Err(Failure::usage(message));
        }
        Ok(Self { container: container.to_owned(), name: name.to_owned() })
    }

    /// The path of the blob behind the account, escaped. Slashes stay what they are.
    pub(in crate::commands) fn path(&self) -> String {
        let segments: Vec<String> = self.name.split('/').map(percent_encode).collect();
        format!("/{}/{}", self.container, segments.join("/"))
    }

    /// What names begin with that lie below this one: all of them, or those behind its slash.
    pub(in crate::commands) fn below(&self) -> Self {
        let mut name = self.name.clone();
        if !name.is_empty() && !name.ends_with('/') {
            name.push('/');
        }
        Self { container: self.container.clone(), name }
    }

    pub(in crate::commands) fn with(&self, end: &str) -> Self {
        Self { container: self.container.clone(), name: format!("{}{end}", self.name) }
    }

    /// Whether something is to be put into it, and not in its place.
    pub(in crate::commands) fn is_folder(&self) -> bool {
        self.name.is_empty() || self.name.ends_with('/')
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}/{}", self.container, shown(&self.name))
    }
}

/// The name of a container, with or without the scheme before it.
pub(super) fn container(text: &str) -> Result<&str> {
    let name = text.strip_prefix(SCHEME).unwrap_or(text);
    let name = name.strip_suffix('/').unwrap_or(name);
    check_container(name)?;
    Ok(name)
}

/// Refuses names that would be something else in a path.
fn check_container(name: &str) -> Result<()> {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if SPECIAL.contains(&name) || (!name.is_empty() && name.bytes().all(fits)) {
        return Ok(());
    }
    Err(Failure::usage("the name of a container has lower-case letters, digits and hyphens")
        .hint("places are written az://container/name"))
}

/// A name as a line can show it: what would move the cursor or end the line is escaped.
pub(super) fn shown(text: &str) -> String {
    let escape = |c: char| match c.is_control() {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    text.chars().map(escape).collect()
}

/// The last part of a path or a name.
pub(super) fn last(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// The name of a file as blobs can have it.
pub(super) fn text_of(path: &Path) -> std::result::Result<&str, String> {
    path.to_str().ok_or_else(|| format!("the name {path:?} is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_containers_with_names_or_local_paths() {
        let remote = |text: &str| match Spot::read(text).unwrap() {
            Spot::Remote(address) => (address.container, address.name),
            Spot::Local(path) => panic!("{path:?}"),
        };
        let pair = |one: &str, two: &str| (one.to_owned(), two.to_owned());
        assert_eq!(remote("az://c1"), pair("c1", ""));
        assert_eq!(remote("az://c1/"), pair("c1", ""));
        assert_eq!(remote("az://$web/a//b c/"), pair("$web", "a//b c/"));
        for local in ["c1/a", "./az:", "/az://"] {
            assert_eq!(Spot::read(local).unwrap(), Spot::Local(PathBuf::from(local)));
        }
        let long = format!("az://c1/{}", "x".repeat(1025));
        for bad in ["az://", "az:///x", "az://A/x", "az://a b/x", "az://../x", "", &long] {
            assert!(Spot::read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn any_name_is_escaped_and_what_lies_below_begins_behind_a_slash() {
        let at = |name: &str| Address { container: "c".to_owned(), name: name.to_owned() };
        assert_eq!(at("a b/%?#ä/'").path(), "/c/a%20b/%25%3F%23%C3%A4/%27");
        assert_eq!(at("a").below().name, "a/");
        assert_eq!(at("a/").below().name, "a/");
        assert_eq!(at("").below().name, "");
        assert_eq!(at("a\n\u{1b}[m").to_string(), "az://c/a\\n\\u{1b}[m");
    }
}
