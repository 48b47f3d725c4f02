//! Locations as they are typed: `az://CONTAINER/NAME`, or a local path.

use std::fmt;
use std::path::{Path, PathBuf};

use lazuli_console::{Failure, Result};
use lazuli_http::uri::percent_encode;

const SCHEME: &str = "az://";
/// The longest name that the service gives a blob, in characters.
const NAME_CHARS_MAX: usize = 1024;
/// Containers with special names.
const SPECIAL: [&str; 3] = ["$root", "$web", "$logs"];

/// A file, a folder, a blob, or the prefix of many blobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    Remote(BlobAddress),
    Local(PathBuf),
}

impl Location {
    pub fn read(text: &str) -> Result<Self> {
        match text.starts_with(SCHEME) {
            true => BlobAddress::read(text).map(Self::Remote),
            false if text.is_empty() => Err(Failure::usage("a location is missing")),
            false => Ok(Self::Local(PathBuf::from(text))),
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Remote(address) => address.fmt(f),
            Self::Local(path) => f.write_str(&shown(&path.to_string_lossy())),
        }
    }
}

/// A blob, or the prefix of many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobAddress {
    pub container: String,
    pub name: String,
}

impl BlobAddress {
    pub fn read(text: &str) -> Result<Self> {
        let rest = text.strip_prefix(SCHEME).ok_or_else(|| {
            Failure::usage(format!("`{}` is not of the form az://container/name", shown(text)))
        })?;
        let (container, name) = rest.split_once('/').unwrap_or((rest, ""));
        check_container(container)?;
        if name.chars().count() > NAME_CHARS_MAX {
            let message = format!("the name of a blob has at most {NAME_CHARS_MAX} characters");
            return Err(Failure::usage(message));
        }
        Ok(Self { container: container.to_owned(), name: name.to_owned() })
    }

    /// The path of the blob behind the account, escaped. Slashes are kept.
    pub fn path(&self) -> String {
        let segments: Vec<String> = self.name.split('/').map(percent_encode).collect();
        format!("/{}/{}", self.container, segments.join("/"))
    }

    /// The prefix of all names below this one.
    pub fn below(&self) -> Self {
        let mut name = self.name.clone();
        if !name.is_empty() && !name.ends_with('/') {
            name.push('/');
        }
        Self { container: self.container.clone(), name }
    }

    pub fn with(&self, end: &str) -> Self {
        Self { container: self.container.clone(), name: format!("{}{end}", self.name) }
    }

    /// Whether it is a folder to copy into, and not the name of a copy.
    pub fn is_folder(&self) -> bool {
        self.name.is_empty() || self.name.ends_with('/')
    }
}

impl fmt::Display for BlobAddress {
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

/// Refuses names that would change the path of a request.
fn check_container(name: &str) -> Result<()> {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if SPECIAL.contains(&name) || (!name.is_empty() && name.bytes().all(fits)) {
        return Ok(());
    }
    Err(Failure::usage("the name of a container has lower-case letters, digits and hyphens")
        .hint("locations are written az://container/name"))
}

/// A name for one line of output: control characters are escaped.
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
        let remote = |text: &str| match Location::read(text).unwrap() {
            Location::Remote(address) => (address.container, address.name),
            Location::Local(path) => panic!("{path:?}"),
        };
        let pair = |one: &str, two: &str| (one.to_owned(), two.to_owned());
        assert_eq!(remote("az://c1"), pair("c1", ""));
        assert_eq!(remote("az://c1/"), pair("c1", ""));
        assert_eq!(remote("az://$web/a//b c/"), pair("$web", "a//b c/"));
        for local in ["c1/a", "./az:", "/az://"] {
            assert_eq!(Location::read(local).unwrap(), Location::Local(PathBuf::from(local)));
        }
        let long = format!("az://c1/{}", "x".repeat(1025));
        for bad in ["az://", "az:///x", "az://A/x", "az://a b/x", "az://../x", "", &long] {
            assert!(Location::read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn any_name_is_escaped_and_what_lies_below_begins_behind_a_slash() {
        let at = |name: &str| BlobAddress { container: "c".to_owned(), name: name.to_owned() };
        assert_eq!(at("a b/%?#ä/'").path(), "/c/a%20b/%25%3F%23%C3%A4/%27");
        assert_eq!(at("a").below().name, "a/");
        assert_eq!(at("a/").below().name, "a/");
        assert_eq!(at("").below().name, "");
        assert_eq!(at("a\n\u{1b}[m").to_string(), "az://c/a\\n\\u{1b}[m");
    }
}
