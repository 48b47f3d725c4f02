//! What all storage services do alike with a request's headers: the version, the ids, the media type.

use lazuli_http::{HeaderMap, Method, StatusCode, header};

use lazuli_http::body::Body;
use lazuli_http::date::{Fraction, TICKS_PER_MILLI, format_iso8601};
use lazuli_http::message::{Request, Response};

/// The version that a request without one is answered as.
pub const VERSION_DEFAULT: &str = "2019-02-02";
/// The longest client request id that is echoed.
pub const CLIENT_REQUEST_ID_BYTES_MAX: usize = 1024;

/// The version header was not a date such as `2021-12-02`.
#[derive(Debug, PartialEq, Eq)]
pub struct BadVersion;

/// The protocol version of a request. Any date will do: a version newer than this program is served as the newest we know
/// and echoed, so that tomorrow's clients keep working.
pub fn version(headers: &HeaderMap) -> Result<&str, BadVersion> {
    let Some(value) = headers.get("x-ms-version") else { return Ok(VERSION_DEFAULT) };
    let text = value.to_str().map_err(|_| BadVersion)?;
    let shape = text.bytes().enumerate().all(|(at, byte)| match at {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    });
    if text.len() == 10 && shape { Ok(text) } else { Err(BadVersion) }
}

/// The headers that every answer of a storage service carries. Taken from the request before it is used up.
#[derive(Clone, Debug)]
pub struct Echo {
    pub request_id: String,
    pub version: String,
    pub client_request_id: Option<String>,
    /// Whether the answer ends with its headers.
    pub is_head: bool,
}

impl Echo {
    pub fn of(request: &Request) -> Self {
        let client_request_id = request
            .header("x-ms-client-request-id")
            .filter(|id| id.len() <= CLIENT_REQUEST_ID_BYTES_MAX);
        Self {
            request_id: request.id.to_string(),
            version: version(&request.headers).unwrap_or(VERSION_DEFAULT).to_owned(),
            client_request_id: client_request_id.map(str::to_owned),
            is_head: request.method == Method::HEAD,
        }
    }

    pub fn apply(&self, mut response: Response) -> Response {
        // A refusal of HEAD has no document, and clients that are told the type of one try to read it.
        if self.is_head && !response.status.is_success() {
            response.headers.remove(header::CONTENT_TYPE);
            response.body = Body::empty();
        }
        let response =
            response.with("x-ms-request-id", &self.request_id).with("x-ms-version", &self.version);
        match &self.client_request_id {
            Some(id) => response.with("x-ms-client-request-id", id),
            None => response,
        }
    }
}

/// A response with an XML document.
pub fn xml(status: StatusCode, document: String) -> Response {
    Response::new(status).with("content-type", "application/xml").with_body(document)
}

/// A time as errors say it.
pub fn time_text(ms: u64) -> String {
    let ticks = i64::try_from(ms).unwrap_or(0).saturating_mul(TICKS_PER_MILLI);
    format_iso8601(ticks, Fraction::Seven)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_date_is_a_version_and_nothing_else_is() {
        let check = |text: &'static str| {
            let headers = HeaderMap::from_iter([(
                lazuli_http::HeaderName::from_static("x-ms-version"),
                lazuli_http::HeaderValue::from_static(text),
            )]);
            version(&headers).map(str::to_owned)
        };
        for good in ["2009-09-19", "2026-10-06", "9999-12-31"] {
            assert_eq!(check(good).as_deref(), Ok(good));
        }
        for bad in ["", "2026", "2026-10-6", "2026-10-066", "2026/10/06", "latest-one"] {
            assert_eq!(check(bad), Err(BadVersion), "{bad}");
        }
        assert_eq!(version(&HeaderMap::new()), Ok(VERSION_DEFAULT));
    }
}
