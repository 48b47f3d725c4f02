//! What keeps other sites out: the names that the portal answers to, where a change may come from, and the headers that
//! tell browsers to load and send nothing anywhere else.

use lazuli_http::{Request, Response};

/// The names of this machine by which browsers reach the portal. Any other one may be a name of somebody else's that
/// was made to point here (DNS rebinding).
const OWN_NAMES: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];

/// Scripts, styles and connections of the portal's own, and nothing else.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     img-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// Whether the request was sent to a name of this machine, whatever the port: tunnels change it.
pub(crate) fn is_for_us(request: &Request) -> bool {
    let Some(host) = request.header("host") else { return false };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    OWN_NAMES.iter().any(|own| own.eq_ignore_ascii_case(name))
}

/// Whether a change may come from where the browser says that it comes from. Browsers that say nothing are held to the
/// secret of the session alone.
pub(crate) fn is_from_us(request: &Request) -> bool {
    request.header("sec-fetch-site").is_none_or(|site| site == "same-origin")
}

/// Adds what every answer of the portal carries.
pub(crate) fn shield(mut response: Response) -> Response {
    for (name, value) in [
        ("content-security-policy", CONTENT_SECURITY_POLICY),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
    ] {
        response = response.with(name, value);
    }
    if !response.headers.contains_key("cache-control") {
        response = response.with("cache-control", "no-store");
    }
    response
}
