//! Requests from pages of other origins: which of a service's rules lets one in, and what its answer must say.

use http::HeaderMap;

use crate::message::Response;

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
        items(&self.origins).any(|allowed| allowed == "*" || allowed == origin)
            && items(&self.methods).any(|allowed| allowed.eq_ignore_ascii_case(method))
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
        if items(&self.origins).any(|allowed| allowed == "*") {
            return response.with("access-control-allow-origin", "*");
        }
        response
            .with("access-control-allow-origin", origin)
            .with("access-control-allow-credentials", "true")
    }
}

/// Tells a browser whether the page that asked may read the answer.
pub fn expose(rules: &[CorsRule], origin: &str, method: &str, response: Response) -> Response {
    if rules.is_empty() {
        return response;
    }
    let response = response.with("vary", "Origin");
    match rules.iter().find(|rule| rule.allows(origin, method)) {
        Some(rule) => rule
            .grant(origin, response)
            .with("access-control-expose-headers", &rule.exposed_headers),
        None => response,
    }
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
    fn an_answer_names_the_origin_or_everyone() {
        let header = |response: &Response, name: &str| {
            response.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
        };
        let ok = || Response::new(http::StatusCode::OK);
        let named = expose(&[rule("http://a")], "http://a", "GET", ok());
        assert_eq!(header(&named, "access-control-allow-origin").as_deref(), Some("http://a"));
        assert_eq!(header(&named, "access-control-expose-headers").as_deref(), Some("etag"));
        let all = expose(&[rule("*")], "http://a", "GET", ok());
        assert_eq!(header(&all, "access-control-allow-origin").as_deref(), Some("*"));
        assert_eq!(header(&all, "access-control-allow-credentials"), None);
        let other = expose(&[rule("http://a")], "http://b", "GET", ok());
        assert_eq!(header(&other, "access-control-allow-origin"), None);
        assert_eq!(header(&other, "vary").as_deref(), Some("Origin"));
        assert!(expose(&[], "http://b", "GET", ok()).headers.is_empty());
    }
}
