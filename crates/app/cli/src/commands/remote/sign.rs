//! The head of a request as it is sent: with the headers of its protocol, and with what it proves itself with.

use std::io;

use lazuli_http::auth::{self, Dialect};
use lazuli_http::date::format_rfc1123;
use lazuli_http::{Body, HeaderMap, HeaderName, HeaderValue, Request, RequestId};

use super::place::{Credential, Place, Protocol};
use super::session::Ask;

/// The version of the Table service that the official SDKs ask for.
const TABLES_VERSION: &str = "2019-02-02";
/// A version of the Blob service that all its emulators know.
const BLOBS_VERSION: &str = "2021-12-02";

/// The bytes up to the body, of a request sent at this moment (seconds since the Unix epoch).
pub(super) fn head(place: &Place, ask: Ask<'_>, seconds: i64) -> io::Result<Vec<u8>> {
    let date = format_rfc1123(seconds);
    let mut request = request(place, ask, &date)?;
    match &place.credential {
        Credential::Key(key) => {
            let dialect = match place.protocol {
                Protocol::Tables => Dialect::Tables,
                Protocol::Blobs => Dialect::Storage,
            };
            let signed = auth::sign(&mut request, dialect, &place.account, key);
            signed.map_err(|_| invalid("the query is wrong"))?;
        }
        Credential::Sas(sas) => {
            let between = if request.query.is_empty() { "" } else { "&" };
            request.query = format!("{}{between}{sas}", request.query);
        }
    }
    Ok(text(&request))
}

fn request(place: &Place, ask: Ask<'_>, date: &str) -> io::Result<Request> {
    let mut headers = HeaderMap::new();
    add(&mut headers, "host", &place.authority)?;
    add(&mut headers, "x-ms-date", date)?;
    let mut content_type = ask.content_type;
    match place.protocol {
        Protocol::Tables => {
            add(&mut headers, "x-ms-version", TABLES_VERSION)?;
            add(&mut headers, "dataserviceversion", "3.0")?;
            add(&mut headers, "accept", "application/json;odata=minimalmetadata")?;
            add(&mut headers, "prefer", "return-no-content")?;
            if content_type.is_empty() {
                content_type = "application/json";
            }
        }
        Protocol::Blobs => add(&mut headers, "x-ms-version", BLOBS_VERSION)?,
    }
    for (name, value) in ask.headers {
        add(&mut headers, name, value)?;
    }
    if !content_type.is_empty() {
        add(&mut headers, "content-type", content_type)?;
    }
    add(&mut headers, "content-length", &ask.body.len().to_string())?;
    Ok(Request {
        method: ask.method.parse().map_err(|_| invalid("no such method"))?,
        path: format!("{}{}", place.root, ask.path),
        query: ask.query.to_owned(),
        headers,
        // The rest is what a service sees of a request, and is in no signature.
        body: Body::empty(),
        peer: ([0, 0, 0, 0], 0).into(),
        secure: place.secure,
        received_ms: 0,
        id: RequestId(0),
    })
}

fn add(headers: &mut HeaderMap, name: &str, value: &str) -> io::Result<()> {
    let name = HeaderName::try_from(name).map_err(|_| invalid("the name of a header is wrong"))?;
    let value = HeaderValue::try_from(value).map_err(|_| invalid("a header is wrong"))?;
    headers.append(name, value);
    Ok(())
}

fn text(request: &Request) -> Vec<u8> {
    let mark = if request.query.is_empty() { "" } else { "?" };
    let first = format!("{} {}{mark}{} HTTP/1.1\r\n", request.method, request.path, request.query);
    let mut out = first.into_bytes();
    for (name, value) in &request.headers {
        out.extend_from_slice(name.as_str().as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
    out
}

fn invalid(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, reason)
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use lazuli_http::auth::Key;

    use super::*;

    fn place(protocol: Protocol, credential: Credential) -> Place {
        Place {
            protocol,
            secure: false,
            authority: "127.0.0.1:1".to_owned(),
            root: "/dev".to_owned(),
            account: "dev".to_owned(),
            credential,
            certificate: None,
        }
    }

    fn sent(place: &Place, ask: Ask<'_>) -> String {
        String::from_utf8(head(place, ask, 0).unwrap()).unwrap()
    }

    #[test]
    fn requests_are_signed_as_their_service_asks_for() {
        let key = || Credential::Key(Key::from_base64("a2V5MQ==").unwrap());
        let sign = |text: &str| STANDARD.encode(Key::from_base64("a2V5MQ==").unwrap().sign(text));
        let date = "Thu, 01 Jan 1970 00:00:00 GMT";
        let tables = sent(&place(Protocol::Tables, key()), Ask::new("GET", "/Tables"));
        assert!(
            tables.starts_with("GET /dev/Tables HTTP/1.1\r\nhost: 127.0.0.1:1\r\n"),
            "{tables}"
        );
        let expected =
            format!("SharedKeyLite dev:{}\r\n", sign(&format!("{date}\n/dev/dev/Tables")));
        assert!(tables.contains(&expected), "{tables}");
        let ask = Ask {
            query: "comp=block&blockid=QQ%3D%3D",
            headers: &[("x-ms-blob-type", "BlockBlob"), ("content-md5", "M")],
            content_type: "text/plain",
            body: b"abc",
            ..Ask::new("PUT", "/c/a%20b")
        };
        let blobs = sent(&place(Protocol::Blobs, key()), ask);
        let signed = format!(
            "PUT\n\n\n3\nM\ntext/plain\n\n\n\n\n\n\nx-ms-blob-type:BlockBlob\nx-ms-date:{date}\n\
             x-ms-version:{BLOBS_VERSION}\n/dev/dev/c/a%20b\nblockid:QQ==\ncomp:block"
        );
        assert!(blobs.contains(&format!("SharedKey dev:{}\r\n", sign(&signed))), "{blobs}");
    }

    #[test]
    fn signatures_join_the_query_and_no_header_can_be_smuggled_in() {
        let place = place(Protocol::Blobs, Credential::Sas("sv=1&sig=a%3D".to_owned()));
        let ask = Ask { query: "comp=list", ..Ask::new("GET", "/") };
        assert!(sent(&place, ask).starts_with("GET /dev/?comp=list&sv=1&sig=a%3D HTTP/1.1\r\n"));
        let ask = Ask { headers: &[("x-ms-meta-a", "b\r\nc: d")], ..Ask::new("GET", "/") };
        assert!(head(&place, ask, 0).is_err());
    }
}
