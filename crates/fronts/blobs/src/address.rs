//! What a request addresses behind its account, the service, a container or a blob, and the rules for their names.

use lazuli_http::uri::percent_decode;

use crate::error::{Common, Fault, Result};
use crate::lake;
use crate::limits::{BLOB_NAME_CHARS_MAX, BLOB_NAME_SEGMENTS_MAX, CONTAINER_NAME_LENGTHS};
use crate::request::Head;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Resource {
    Service,
    Container(String),
    /// The container and the name in it.
    Blob(String, String),
}

impl Resource {
    /// The path behind the account, as it was sent. A single name is a container where the request says so, and else a
    /// blob of the root container.
    pub(crate) fn parse(path: &str, head: Head<'_>) -> Result<Self> {
        let path = path.strip_prefix('/').unwrap_or(path);
        let (first, rest) = match path.split_once('/') {
            Some((first, rest)) => (first, rest),
            None => (path, ""),
        };
        let first = percent_decode(first)?.into_owned();
        if first.is_empty() && rest.is_empty() {
            return Ok(Self::Service);
        }
        let restype = head.parameter("restype");
        if rest.is_empty() {
            let is_container = restype.is_some_and(|kind| kind.eq_ignore_ascii_case("container"));
            let is_account = restype.is_some_and(|kind| kind.eq_ignore_ascii_case("account"));
            return Ok(match is_container || is_account || lake::is_meant(head) {
                true => Self::Container(first),
                false => Self::Blob(ROOT.to_owned(), first),
            });
        }
        // Some clients escape the slashes in the names of blobs, others do not: they are the same.
        Ok(Self::Blob(first, percent_decode(rest)?.into_owned()))
    }
}

/// The container of blobs whose address names none.
pub(crate) const ROOT: &str = "$root";
/// The container that a static website is served from.
pub(crate) const WEB: &str = "$web";
/// Containers of the service's own. Clients may use them like others; only their names break the rules.
const SYSTEM: [&str; 4] = [ROOT, WEB, "$logs", "$blobchangefeed"];

/// Small letters, digits and single hyphens between them.
pub(crate) fn check_container(name: &str) -> Result<()> {
    if SYSTEM.contains(&name) {
        return Ok(());
    }
    if !CONTAINER_NAME_LENGTHS.contains(&name.chars().count()) {
        return Err(Fault::new(Common::OutOfRangeInput)
            .say("The specified resource name length is not within the permissible limits."));
    }
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_good = name.bytes().all(plain)
        && !name.starts_with('-')
        && !name.ends_with('-')
        && !name.contains("--");
    if is_good { Ok(()) } else { Err(Fault::new(Common::InvalidResourceName)) }
}

/// Any text that is neither empty nor too long. Blobs of the root container have no folders.
pub(crate) fn check_blob(container: &str, name: &str) -> Result<()> {
    let length = name.chars().count();
    if length == 0 || length > BLOB_NAME_CHARS_MAX {
        return Err(Fault::new(Common::OutOfRangeInput)
            .say("The specified resource name length is not within the permissible limits."));
    }
    let segments = name.split('/').count();
    if segments > BLOB_NAME_SEGMENTS_MAX || (container == ROOT && segments > 1) {
        return Err(Fault::new(Common::InvalidUri));
    }
    if name.contains(['\0', '\u{fffe}', '\u{ffff}']) {
        return Err(Fault::new(Common::InvalidUri));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use lazuli_http::uri::Query;
    use lazuli_http::{HeaderMap, Method};

    use super::*;

    fn parse(path: &str, query: &str) -> Resource {
        let query = Query::parse(query).unwrap();
        let head = Head { method: &Method::GET, headers: &HeaderMap::new(), query: &query };
        Resource::parse(path, head).unwrap()
    }

    #[test]
    fn a_path_names_a_container_or_a_blob() {
        let blob = |container: &str, name: &str| Resource::Blob(container.into(), name.into());
        assert_eq!(parse("", ""), Resource::Service);
        assert_eq!(parse("/", "comp=list"), Resource::Service);
        assert_eq!(parse("con", "restype=container"), Resource::Container("con".into()));
        assert_eq!(parse("/con/", "restype=Container"), Resource::Container("con".into()));
        assert_eq!(parse("name", ""), blob(ROOT, "name"));
        assert_eq!(parse("con/a/b%20c", ""), blob("con", "a/b c"));
        assert_eq!(parse("/con/a%2Fb", ""), blob("con", "a/b"));
        assert_eq!(parse("con/a//", ""), blob("con", "a//"));
        assert_eq!(parse("%24web/a", ""), blob("$web", "a"));
        assert_eq!(parse("con/", "action=getAccessControl"), Resource::Container("con".into()));
        assert_eq!(parse("con", "action=other"), blob(ROOT, "con"));
    }
}

#[cfg(test)]
mod names_tests {
    use lazuli_azure::storage_error::ErrorCode as _;

    use super::*;

    #[test]
    fn names_of_containers_follow_the_rules() {
        for good in ["abc", "a-b-c", "0ab", &"a".repeat(63), ROOT, WEB, "$logs"] {
            assert_eq!(check_container(good), Ok(()), "{good}");
        }
        let code = |name: &str| check_container(name).unwrap_err().code.name();
        for bad in ["", "ab", &"a".repeat(64)] {
            assert_eq!(code(bad), "OutOfRangeInput", "{bad}");
        }
        for bad in ["Abc", "a--b", "-abc", "abc-", "a_b", "a.b", "äbc", "$abc", "a b"] {
            assert_eq!(code(bad), "InvalidResourceName", "{bad}");
        }
    }

    #[test]
    fn names_of_blobs_may_be_almost_anything() {
        for good in ["a", "a/b/c", "ä😀", "a b.", "..", &"x".repeat(1024)] {
            assert_eq!(check_blob("con", good), Ok(()), "{good}");
        }
        let code =
            |container: &str, name: &str| check_blob(container, name).unwrap_err().code.name();
        assert_eq!(code("con", ""), "OutOfRangeInput");
        assert_eq!(code("con", &"x".repeat(1025)), "OutOfRangeInput");
        assert_eq!(code("con", &"x/".repeat(254)), "InvalidUri");
        assert_eq!(code(ROOT, "a/b"), "InvalidUri");
        assert_eq!(code("con", "a\0"), "InvalidUri");
    }
}
