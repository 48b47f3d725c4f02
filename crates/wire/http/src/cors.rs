//! CORS: which of a service's rules allows a request from a page of another origin, and the headers of its response.

use http::{HeaderMap, Method, StatusCode};

use crate::message::{Request, Response};

/// The most rules of a service.
pub const RULES_MAX: usize = 5;

/// One rule, its lists as they were written: separated by commas.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CorsRule {
    pub origins: String,
    pub methods: String,
    pub allowed_headers: String,
    pub exposed_headers: String,
    pub max_age_seconds: u32,
}

/// What a browser asks before it sends the request itself.
#[derive(Debug, PartialEq, Eq)]
pub struct Preflight<'a> {
    pub origin: &'a str,
    pub method: &'a str,
    pub headers: &'a str,
}

impl<'a> Preflight<'a> {
    /// The question in a request's headers; none without an origin and a method.
    pub fn of(headers: &'a HeaderMap) -> Option<Self> {
        Some(Self {
            origin: text(headers, "origin")?,
            method: text(headers, "access-control-request-method")?,
            headers: text(headers, "access-control-request-headers").unwrap_or_default(),
        })
    }

    /// The first rule that allows all of it.
    pub fn find<'r>(&self, rules: &'r [CorsRule]) -> Option<&'r CorsRule> {
        rules.iter().find(|rule| {
            rule.allows(self.origin, self.method)
                && items(self.headers).all(|header| rule.allows_header(header))
        })
    }

    /// Adds what the browser wants to read to the answer.
    pub fn answer(&self, rule: &CorsRule, response: Response) -> Response {
        rule.grant(self.origin, response)
            .with("access-control-allow-methods", self.method)
            .with("access-control-allow-headers", self.headers)
            .with("access-control-max-age", rule.max_age_seconds.to_string())
    }
}

impl CorsRule {
    fn allows(&self, origin: &str, method: &str) -> bool {
        items(&self.origins).any(|allowed| is_origin(allowed, origin)) && self.allows_method(method)
    }

    fn allows_method(&self, method: &str) -> bool {
        items(&self.methods).any(|allowed| allowed.eq_ignore_ascii_case(method))
    }

    fn allows_everyone(&self) -> bool {
        items(&self.origins).any(|allowed| allowed == "*")
    }

    /// A name that ends with a star stands for all that begin like it.
    fn allows_header(&self, header: &str) -> bool {
        items(&self.allowed_headers).any(|allowed| match allowed.strip_suffix('*') {
            Some(prefix) => {
                header.get(..prefix.len()).is_some_and(|head| head.eq_ignore_ascii_case(prefix))
            }
            None => header.eq_ignore_ascii_case(allowed),
        })
    }

    fn grant(&self, origin: &str, response: Response) -> Response {
        if self.allows_everyone() {
            return response.with("access-control-allow-origin", "*");
        }
        response
            .with("access-control-allow-origin", origin)
            .with("access-control-allow-credentials", "true")
    }
}

/// Why a preflight request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreflightRefusal {
    /// It has no origin or no method.
    NoQuestion,
    /// No rule allows it.
    NoRule,
}

/// Answers a preflight request by the first rule that allows what the browser wants to send.
pub fn preflight(headers: &HeaderMap, rules: &[CorsRule]) -> Result<Response, PreflightRefusal> {
    let question = Preflight::of(headers).ok_or(PreflightRefusal::NoQuestion)?;
    let rule = question.find(rules).ok_or(PreflightRefusal::NoRule)?;
    Ok(question.answer(rule, Response::new(StatusCode::OK)))
}

/// A page of another origin that sent a request, or may find its response in a cache. Responses to it say whether the page
/// may read them.
#[derive(Clone, Debug)]
pub struct Visitor {
    /// None if the request does not say which page sent it.
    origin: Option<String>,
    method: String,
}

impl Visitor {
    /// None if no page can read the response: the request is a preflight or a write without an origin, or it is signed in a
    /// header, which caches keep apart. So the rules are not looked up for requests of SDKs.
    pub fn of(request: &Request) -> Option<Self> {
        let origin = request.header("origin").map(str::to_owned);
        let is_kept = matches!(request.method, Method::GET | Method::HEAD)
            && request.header("authorization").is_none();
        (request.method != Method::OPTIONS && (origin.is_some() || is_kept))
            .then(|| Self { origin, method: request.method.as_str().to_owned() })
    }

    pub fn greet(&self, rules: &[CorsRule], response: Response) -> Response {
        expose(rules, self.origin.as_deref(), &self.method, response)
    }
}

/// Tells a browser whether the page that asked may read the answer, and caches whether the answer is good for other
/// origins too. A request without an origin gets what all origins get, because a cache may give its answer to any of them.
fn expose(rules: &[CorsRule], origin: Option<&str>, method: &str, response: Response) -> Response {
    if rules.is_empty() {
        return response;
    }
    let rule = rules.iter().find(|rule| match origin {
        Some(origin) => rule.allows(origin, method),
        None => rule.allows_everyone() && rule.allows_method(method),
    });
    // Only answers to these are kept by caches.
    let is_kept = ["GET", "HEAD"].contains(&method);
    let response = match rule {
        Some(rule) if rule.allows_everyone() => response,
        _ if is_kept => response.with("vary", "Origin"),
        _ => response,
    };
    match rule {
        Some(rule) => rule
            .grant(origin.unwrap_or_default(), response)
            .with("access-control-expose-headers", &rule.exposed_headers),
        None => response,
    }
}

/// Whether a rule's origin is this one. A star stands for all origins, and as the first label of a host for the hosts
/// below the rest: `https://*.example.com`, or `*.example.com` with any scheme.
fn is_origin(allowed: &str, origin: &str) -> bool {
    if allowed == "*" || allowed == origin {
        return true;
    }
    let (scheme, host) = allowed.split_once("://").unwrap_or(("", allowed));
    let Some((given, name)) = origin.split_once("://") else { return false };
    let Some(below) = host.strip_prefix('*').filter(|rest| rest.starts_with('.')) else {
        return false;
    };
    let first = name.len().checked_sub(below.len()).and_then(|at| name.split_at_checked(at));
    let is_below = first.is_some_and(|(first, rest)| {
        let is_host = |c: char| c.is_ascii_alphanumeric() || "-.".contains(c);
        !first.is_empty() && first.chars().all(is_host) && rest.eq_ignore_ascii_case(below)
    });
    is_below && (scheme.is_empty() || scheme.eq_ignore_ascii_case(given))
}

fn items(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|item| !item.is_empty())
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(origins: &str) -> CorsRule {
        CorsRule {
            origins: origins.into(),
            methods: "GET, PUT".into(),
            allowed_headers: "content-type,x-ms-meta-*".into(),
            exposed_headers: "etag".into(),
            max_age_seconds: 60,
        }
    }

    #[test]
    fn origin_method_and_headers_must_all_be_allowed() {
        let rules = [rule("http://a"), rule("*")];
        let ask = |origin, method, headers| {
            let found = Preflight { origin, method, headers }.find(&rules);
            found.map(|rule| rule.origins.as_str())
        };
        assert_eq!(ask("http://a", "GET", ""), Some("http://a"));
        assert_eq!(ask("http://b", "put", "Content-Type, x-ms-meta-A"), Some("*"));
        assert_eq!(ask("http://a", "DELETE", ""), None);
        assert_eq!(ask("http://a", "GET", "authorization"), None);
    }

    #[test]
    fn a_star_stands_for_the_hosts_below_a_domain() {
        for (allowed, good) in [
            ("https://*.example.com", "https://a.example.com"),
            ("https://*.example.com", "https://a.b.Example.com"),
            ("https://*.example.com:8080", "https://a.example.com:8080"),
            ("*.example.com", "http://a.example.com"),
        ] {
            assert!(is_origin(allowed, good), "{allowed} {good}");
        }
        for (allowed, bad) in [
            ("https://*.example.com", "http://a.example.com"),
            ("https://*.example.com", "https://example.com"),
            ("https://*.example.com", "https://.example.com"),
            ("https://*.example.com", "https://a.example.com:8080"),
            ("https://*.example.com", "https://evil.com/.example.com"),
            ("https://*.example.com", "https://a.example.com.evil.com"),
            ("https://*.example.com", "null"),
            ("https://*example.com", "https://a.example.com"),
            ("https://ä.com", "https://a.com"),
        ] {
            assert!(!is_origin(allowed, bad), "{allowed} {bad}");
        }
        let rules = [rule("https://*.example.com")];
        let asked = Preflight { origin: "https://a.example.com", method: "GET", headers: "" };
        assert!(asked.find(&rules).is_some());
    }

    /// As the documentation of the service has it in a table.
    #[test]
    fn caches_are_told_what_an_answer_depends_on() {
        let told = |rules: &[CorsRule], origin, method| {
            let response = expose(rules, origin, method, Response::new(http::StatusCode::OK));
            let has = |name: &str| response.headers.contains_key(name);
            let all = response.headers.get("access-control-allow-origin").map(|it| it == "*");
            (has("vary"), all, has("access-control-expose-headers"))
        };
        let (all, named) = ([rule("*")], [rule("http://a")]);
        assert_eq!(told(&[], None, "GET"), (false, None, false));
        assert_eq!(told(&named, None, "GET"), (true, None, false));
        assert_eq!(told(&all, None, "GET"), (false, Some(true), true));
        assert_eq!(told(&[], Some("http://a"), "GET"), (false, None, false));
        assert_eq!(told(&named, Some("http://a"), "GET"), (true, Some(false), true));
        assert_eq!(told(&named, Some("http://b"), "HEAD"), (true, None, false));
        assert_eq!(told(&all, Some("http://a"), "GET"), (false, Some(true), true));
        // What no cache keeps depends on nothing.
        assert_eq!(told(&named, Some("http://a"), "PUT"), (false, Some(false), true));
        assert_eq!(told(&named, Some("http://b"), "PUT"), (false, None, false));
    }

    #[test]
    fn an_answer_names_the_origin_or_everyone() {
        let header = |response: &Response, name: &str| {
            response.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
        };
        let ok = || Response::new(http::StatusCode::OK);
        let named = expose(&[rule("http://a")], Some("http://a"), "GET", ok());
        assert_eq!(header(&named, "access-control-allow-origin").as_deref(), Some("http://a"));
        assert_eq!(header(&named, "access-control-expose-headers").as_deref(), Some("etag"));
        let all = expose(&[rule("*")], Some("http://a"), "GET", ok());
        assert_eq!(header(&all, "access-control-allow-origin").as_deref(), Some("*"));
        assert_eq!(header(&all, "access-control-allow-credentials"), None);
        let other = expose(&[rule("http://a")], Some("http://b"), "GET", ok());
        assert_eq!(header(&other, "access-control-allow-origin"), None);
        assert_eq!(header(&other, "vary").as_deref(), Some("Origin"));
        assert!(expose(&[], Some("http://b"), "GET", ok()).headers.is_empty());
    }
}
