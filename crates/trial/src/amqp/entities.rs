//! The administration that makes what trials talk to.

use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use lazuli_azure::auth::Key;
use lazuli_http::uri::percent_encode;

use super::{KEY, RULE};
use crate::Result;
use crate::client::Client;

/// The moment as servers write it.
pub fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// A token for a whole namespace.
pub fn token() -> String {
    let (resource, expires) = ("sb%3A%2F%2Flocalhost%2F", now_ms() / 1_000 + 3_600);
    let signature = Key::from_text(KEY).sign_by_text(&format!("{resource}\n{expires}"));
    let signature = percent_encode(&STANDARD.encode(signature));
    format!("SharedAccessSignature sr={resource}&sig={signature}&se={expires}&skn={RULE}")
}

/// Makes a queue, topic or hub by its description: the element's name, and the elements in it.
pub fn make(address: SocketAddr, path: &str, element: &str, inside: &str) -> Result {
    let space = "http://schemas.microsoft.com/netservices/2010/10/servicebus/connect";
    let body = format!(
        "<entry xmlns=\"http://www.w3.org/2005/Atom\"><content type=\"application/xml\">\
         <{element} xmlns=\"{space}\">{inside}</{element}></content></entry>"
    );
    let request = format!(
        "PUT /{path}?api-version=2021-05 HTTP/1.1\r\nhost: localhost\r\nauthorization: {}\r\n\
         content-type: application/atom+xml\r\ncontent-length: {}\r\n\r\n{body}",
        token(),
        body.len()
    );
    let answer = Client::connect(address)?.exchange(request.as_bytes())?;
    match answer.status {
        200 | 201 => Ok(()),
        status => Err(format!("PUT {path}: {status} {}", answer.text())),
    }
}
