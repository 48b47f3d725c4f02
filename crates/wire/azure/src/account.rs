//! Which account a request is sent to: by the path, as emulators have it, or by the host name, as the services do.

use std::sync::Arc;

use crate::auth::Accounts;
use lazuli_http::message::Request;

/// What the account's name has behind it at the endpoint that only reads.
const SECONDARY: &str = "-secondary";

/// The account that a request is sent to, and by which way. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub account: Arc<str>,
    /// Whether it came by the read-only secondary endpoint.
    pub secondary: bool,
    /// The account's own address, with which links in answers begin.
    pub base: Arc<str>,
    /// What every path of this account begins with: nothing, or a slash and the account.
    root: Arc<str>,
}

impl Target {
    /// The account, and the path behind it as it was sent. A host is taken at its word if its first label is an account
    /// that we have. None if neither host nor path name one.
    pub fn of<'r>(request: &'r Request, accounts: &Accounts) -> Option<(Self, &'r str)> {
        let host = request.header("host").unwrap_or("localhost");
        let scheme = if request.secure { "https" } else { "http" };
        let (label, more) = host.split_once('.').unwrap_or((host, ""));
        let is_ip = label.bytes().all(|byte| byte.is_ascii_digit());
        if !is_ip && !more.is_empty() && accounts.contains(primary(label).0) {
            let (account, secondary) = primary(label);
            let base = format!("{scheme}://{host}").into();
            let target = Self { account: account.into(), secondary, base, root: "".into() };
            return Some((target, &request.path));
        }
        let path = request.path.strip_prefix('/').unwrap_or(&request.path);
        let (first, rest) = path.split_once('/').unwrap_or((path, ""));
        if first.is_empty() {
            return None;
        }
        let (account, secondary) = primary(first);
        let base = format!("{scheme}://{host}/{first}").into();
        let root = format!("/{first}").into();
        Some((Self { account: account.into(), secondary, base, root }, rest))
    }

    /// The path behind the account of a request inside this one, which must be to the same account by the same way.
    pub fn inside<'p>(&self, path: &'p str) -> Option<&'p str> {
        path.strip_prefix(&*self.root).filter(|rest| rest.starts_with('/'))
    }
}

fn primary(name: &str) -> (&str, bool) {
    match name.strip_suffix(SECONDARY) {
        Some(account) => (account, true),
        None => (name, false),
    }
}

#[cfg(test)]
mod tests {
    use lazuli_http::{HeaderMap, HeaderValue, Method};

    use super::*;
    use crate::auth::{Key, Keys};
    use lazuli_http::body::Body;
    use lazuli_http::message::RequestId;

    fn target(host: &'static str, path: &str) -> Option<(String, bool, String, String)> {
        let accounts = Accounts::new();
        accounts.set("dev", Keys { first: Key::from_base64("a2V5").unwrap(), second: None });
        let request = Request {
            method: Method::GET,
            path: path.to_owned(),
            query: String::new(),
            headers: HeaderMap::from_iter([(
                lazuli_http::header::HOST,
                HeaderValue::from_static(host),
            )]),
            body: Body::empty(),
            peer: ([127, 0, 0, 1], 1).into(),
            secure: false,
            received_ms: 0,
            id: RequestId(1),
        };
        let (target, rest) = Target::of(&request, &accounts)?;
        Some((target.account.to_string(), target.secondary, target.base.to_string(), rest.into()))
    }

    #[test]
    fn the_account_stands_in_the_path_or_in_the_host() {
        let is = |host, path: &str, expected: (&str, bool, &str, &str)| {
            let (account, secondary, base, rest) = expected;
            let expected = (account.to_owned(), secondary, base.to_owned(), rest.to_owned());
            assert_eq!(target(host, path), Some(expected), "{host} {path}");
        };
        is("127.0.0.1:1", "/dev/a/b", ("dev", false, "http://127.0.0.1:1/dev", "a/b"));
        is("localhost", "/dev-secondary", ("dev", true, "http://localhost/dev-secondary", ""));
        is("dev.queue.test", "/a", ("dev", false, "http://dev.queue.test", "/a"));
        is("dev-secondary.x.y", "/a", ("dev", true, "http://dev-secondary.x.y", "/a"));
        is("other.queue.test", "/a/b", ("a", false, "http://other.queue.test/a", "b"));
        assert_eq!(target("localhost", "/"), None);
    }

    #[test]
    fn a_request_inside_another_keeps_to_its_account() {
        let by_path = Target {
            account: "dev".into(),
            secondary: false,
            base: "http://localhost/dev".into(),
            root: "/dev".into(),
        };
        assert_eq!(by_path.inside("/dev/a"), Some("/a"));
        for other in ["/dev", "/device/a", "/other/a", "a"] {
            assert_eq!(by_path.inside(other), None, "{other}");
        }
        let by_host = Target { root: "".into(), ..by_path };
        assert_eq!(by_host.inside("/a"), Some("/a"));
    }
}
