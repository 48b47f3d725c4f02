//! Protection against other sites: the host names that the portal answers to, the origin of changes, and the headers that
//! restrict what browsers load and send.

use lazuli_http::{Request, Response};

/// The host names of this machine by which browsers reach the portal. Any other name, unless a setting lists it, may be a
/// foreign one that resolves to this machine (DNS rebinding).
const OWN_NAMES: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];

/// Scripts, styles and connections of the portal's own, and nothing else.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     img-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// Whether the request was sent to a name of this machine. The port is not compared: tunnels change it. Names that are listed
/// in a setting are for connections over TLS alone.
pub(crate) fn is_for_us(request: &Request, listed: &[String]) -> bool {
    let Some(host) = request.header("host") else { return false };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    OWN_NAMES.iter().any(|own| own.eq_ignore_ascii_case(name))
        || (request.secure && listed.iter().any(|own| own.eq_ignore_ascii_case(name)))
}

/// Whether a change comes from the portal's own origin, as the browser says. For browsers that do not say it the CSRF token
/// alone decides.
pub(crate) fn is_from_us(request: &Request) -> bool {
    request.header("sec-fetch-site").is_none_or(|site| site == "same-origin")
}

/// Adds the security headers of every answer.
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
