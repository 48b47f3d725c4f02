//! What a request says beside its path and its body: parameters and headers that many operations share.

use lazuli_http::Request;
use lazuli_http::uri::Query;

use crate::error::{Fault, Result};
use crate::limits::URL_BYTES_MAX;

/// What a request says about the version of a resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Condition {
    /// The ETag that the resource must have; `*` means any.
    pub(crate) if_match: Option<String>,
    /// Whether the resource must not be there.
    pub(crate) if_absent: bool,
}

/// The head of a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    /// Names without the dollar sign, which some clients leave out and others encode.
    parameters: Vec<(String, String)>,
    pub(crate) condition: Condition,
    /// Whether the changed resource is wanted in the response.
    pub(crate) wants_body: bool,
    /// Whether the response may wait until the text index shows what was written.
    pub(crate) waits: Option<bool>,
    /// Scheme and authority, for links to further pages.
    pub(crate) root: String,
}

impl Options {
    pub(crate) fn parse(request: &Request) -> Result<Self> {
        if request.path.len() + request.query.len() > URL_BYTES_MAX {
            let message = format!("The address is longer than {URL_BYTES_MAX} bytes; use POST.");
            return Err(Fault::bad_request(message));
        }
        let malformed = |_| Fault::bad_request("The query string is malformed.");
        let query = Query::parse(&request.query).map_err(malformed)?;
        // One of the official SDKs encodes the dollar sign twice.
        let plain = |name: &str| {
            let rest = name.strip_prefix('$').or_else(|| name.strip_prefix("%24"));
            rest.unwrap_or(name).to_owned()
        };
        let parameters = query.iter().map(|(name, value)| (plain(name), value.to_owned()));
        let header = |name: &str| request.header(name);
        let absent = header("if-none-match");
        if absent.is_some_and(|value| value.trim() != "*") {
            return Err(Fault::bad_request("If-None-Match can only be '*'."));
        }
        let prefers = |what: &str| {
            let all = request.headers.get_all("prefer").iter();
            all.filter_map(|value| value.to_str().ok()).any(|value| value.contains(what))
        };
        let scheme = if request.secure { "https" } else { "http" };
        Ok(Self {
            parameters: parameters.collect(),
            condition: Condition {
                if_match: header("if-match").map(|value| value.trim().to_owned()),
                if_absent: absent.is_some(),
            },
            wants_body: prefers("return=representation"),
            waits: header("x-lazuli-wait").map(|value| value.eq_ignore_ascii_case("visible")),
            root: format!("{scheme}://{}", header("host").unwrap_or("localhost")),
        })
    }

    /// The first value of a parameter.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.parameters.iter().find(|(it, _)| it == name);
        found.map(|(_, value)| value.as_str())
    }

    /// All values of a parameter that may come several times.
    pub(crate) fn all(&self, name: &str) -> Vec<String> {
        let found = self.parameters.iter().filter(|(it, _)| it == name);
        found.map(|(_, value)| value.clone()).collect()
    }

    /// Refuses requests without a version. Any version is taken: newer ones add to older ones.
    pub(crate) fn check_version(&self) -> Result<()> {
        match self.get("api-version") {
            Some(version) if !version.is_empty() => Ok(()),
            _ => Err(Fault::bad_request(
                "The api-version query parameter is missing. Use for example api-version=2024-07-01.",
            )),
        }
    }
}
