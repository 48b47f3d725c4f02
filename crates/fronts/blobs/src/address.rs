//! What a request is sent to, behind the account: the service, a container or a blob.

use lazuli_http::uri::percent_decode;

use crate::error::Result;
use crate::lake;
use crate::names::ROOT;
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
