//! Requests to an account of a service: signed, and retried where that may help.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use lazuli_azure::auth::master_key::authorization;
use lazuli_azure::auth::{self, Dialect, Key};
use lazuli_console::{Failure, Result};
use lazuli_http::client::blocking::{Answer, Connection, Options, Trust, date_now};
use lazuli_http::uri::percent_decode;
use lazuli_http::{HeaderMap, HeaderName, HeaderValue, Request, xml};
use serde_json::Value;

use crate::account::{Account, Credential, Protocol};

/// The version of the Table service that the official SDKs ask for.
const TABLES_VERSION: &str = "2019-02-02";
/// A version of the Blob and Queue services that all their emulators know.
const STORAGE_VERSION: &str = "2021-12-02";
/// The version of the document service that the official SDKs ask for.
const DOCUMENTS_VERSION: &str = "2020-07-15";

/// A service that sends nothing for this long is given up. Its own limit of a request is 30 seconds.
const ANSWER_WAIT: Duration = Duration::from_secs(60);
/// Where systems keep the certificates that they trust. The variable comes first.
const BUNDLE_VARIABLE: &str = "SSL_CERT_FILE";
const BUNDLES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// How often a request is sent before it is given up.
const ATTEMPTS_MAX: u32 = 8;
const BACK_OFF_FIRST: Duration = Duration::from_millis(250);
const BACK_OFF_MAX: Duration = Duration::from_secs(10);
/// The shortest wait that a service may ask for.
const RETRY_LEAST: Duration = Duration::from_millis(10);
/// How long requests beyond a budget are sent again.
const THROTTLED_MAX: Duration = Duration::from_secs(600);
/// The longest wait that a service may ask for.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);

/// A request to an account; `path` and `query` are escaped, and begin behind the account.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    pub method: &'a str,
    pub path: &'a str,
    pub query: &'a str,
    /// Empty for the usual one of the protocol.
    pub content_type: &'a str,
    pub headers: &'a [(&'a str, &'a str)],
    pub body: &'a [u8],
}

impl<'a> Call<'a> {
    pub fn new(method: &'a str, path: &'a str) -> Self {
        Self { method, path, query: "", content_type: "", headers: &[], body: b"" }
    }
}

/// An answer, and whether an earlier attempt may have been carried out although its answer was lost.
pub struct Answered {
    pub answer: Answer,
    pub in_doubt: bool,
}

/// The error of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceError {
    pub status: u16,
    /// What Documents says beside the status.
    pub substatus: Option<u32>,
    pub code: String,
    pub message: String,
}

impl ServiceError {
    pub fn of(answer: &Answer) -> Self {
        let told = json_error(&answer.body).or_else(|| xml_error(&answer.body));
        let substatus = answer.header("x-ms-substatus").and_then(|text| text.parse().ok());
        let (code, text) = told.unwrap_or_default();
        let header = answer.header("x-ms-error-code").unwrap_or("no code");
        let code = if code.is_empty() { header.to_owned() } else { code };
        // The first line is the sentence; the others name the request and the time. In transactions it begins with
        // the index of the change.
        let line = text.lines().next().unwrap_or_default();
        let sentence = match line.split_once(':') {
            Some((index, rest)) if index.parse::<u32>().is_ok() => rest,
            _ => line,
        };
        Self { status: answer.status, substatus, code, message: sentence.trim().to_owned() }
    }

    pub fn sentence(&self) -> String {
        if self.message.is_empty() {
            return format!("the service answered with status {} ({})", self.status, self.code);
        }
        format!("{} ({})", self.message.trim_end_matches('.'), self.code)
    }

    pub fn failure(&self) -> Failure {
        Failure::failed(self.sentence())
    }
}

/// Code and message of an error as the Table service tells it.
fn json_error(body: &[u8]) -> Option<(String, String)> {
    let value: Value = serde_json::from_slice(body).ok()?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    if value["code"].is_string() {
        // So does the service of documents.
        return Some((text(&value["code"]), text(&value["message"])));
    }
    let error = &value["odata.error"];
    Some((text(&error["code"]), text(&error["message"]["value"])))
}

/// And as the Blob service does.
fn xml_error(body: &[u8]) -> Option<(String, String)> {
    let root = xml::parse(body).ok().filter(|root| root.name == "Error")?;
    let text = |name: &str| root.child_text(name).unwrap_or_default().to_owned();
    Some((text("Code"), text("Message")))
}

/// Whether a retry may succeed.
pub fn is_passing(status: u16) -> bool {
    matches!(status, 408 | 429 | 500 | 502 | 503 | 504)
}

/// One connection to an account, opened when it is needed and opened again when it is lost.
pub struct Session {
    account: Arc<Account>,
    options: Options,
    connection: Option<Connection>,
}

impl Session {
    pub fn new(account: Arc<Account>) -> Result<Self> {
        let trust =
            if account.secure { Some(trusted(account.certificate.as_deref())?) } else { None };
        let options = Options { answer_wait: ANSWER_WAIT, trust, ..Options::default() };
        Ok(Self { account, options, connection: None })
    }

    pub fn account(&self) -> &Account {
        &self.account
    }

    /// Asks, and asks again a bounded number of times while the service is busy or cannot be reached.
    pub fn ask(&mut self, call: Call<'_>) -> Result<Answered> {
        let mut back_off = BACK_OFF_FIRST;
        let mut in_doubt = false;
        let (began, mut attempt) = (Instant::now(), 0);
        while attempt < ATTEMPTS_MAX {
            let sent = self.send(call);
            // Who is over a budget has to wait, and is not failing.
            let is_throttled = sent.as_ref().is_ok_and(|answer| answer.status == 429);
            if !is_throttled || began.elapsed() > THROTTLED_MAX {
                attempt += 1;
            }
            let (wait, doubtful) = match &sent {
                Ok(answer) if !is_passing(answer.status) => (Duration::ZERO, false),
                Ok(answer) => (retry_after(answer).unwrap_or(back_off), answer.status != 429),
                Err(error) => (back_off, error.kind() != io::ErrorKind::ConnectionRefused),
            };
            match sent {
                Ok(answer) if wait.is_zero() || attempt == ATTEMPTS_MAX => {
                    return Ok(Answered { answer, in_doubt });
                }
                Err(error) if attempt == ATTEMPTS_MAX || !may_pass(&error) => {
                    let message = format!("{} cannot be asked: {error}", self.account.base());
                    return Err(Failure::failed(message));
                }
                _ => {}
            }
            in_doubt |= doubtful;
            std::thread::sleep(wait);
            if !is_throttled {
                back_off = (back_off * 2).min(BACK_OFF_MAX);
            }
        }
        Err(Failure::failed("the service does not answer"))
    }

    /// Asks and takes only success for an answer.
    pub fn expect(&mut self, call: Call<'_>) -> Result<Answer> {
        let answer = self.ask(call)?.answer;
        match answer.status {
            200..=299 => Ok(answer),
            _ => Err(ServiceError::of(&answer).failure()),
        }
    }

    /// Creates something; the error code of a service that has it already counts as success.
    pub fn ensure(&mut self, call: Call<'_>, exists: &str) -> Result<()> {
        let answer = self.ask(call)?.answer;
        let error = ServiceError::of(&answer);
        match answer.status {
            200..=299 => Ok(()),
            409 if error.code == exists => Ok(()),
            _ => Err(error.failure()),
        }
    }

    fn send(&mut self, call: Call<'_>) -> io::Result<Answer> {
        let head = head(&self.account, call, &date_now())?;
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => Connection::open(&self.account.authority, &self.options)?,
        };
        let (answer, again) = connection.exchange(&head, call.body)?;
        self.connection = again.then_some(connection);
        Ok(answer)
    }
}

fn retry_after(answer: &Answer) -> Option<Duration> {
    if let Some(text) = answer.header("x-ms-retry-after-ms") {
        let millis = text.trim().parse().ok()?;
        return Some(Duration::from_millis(millis).clamp(RETRY_LEAST, RETRY_AFTER_MAX));
    }
    let seconds = answer.header("retry-after")?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).clamp(BACK_OFF_FIRST, RETRY_AFTER_MAX))
}

/// A host that does not resolve, a certificate that is not trusted and an answer that is not HTTP do not change by retrying.
fn may_pass(error: &io::Error) -> bool {
    !matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput)
}

/// The certificates that a connection trusts: those of the system, and one of the server's own.
pub fn trusted(own: Option<&Path>) -> Result<Trust> {
    let named = std::env::var_os(BUNDLE_VARIABLE).map(PathBuf::from);
    let bundles = BUNDLES.iter().map(|path| Path::new(path).to_owned());
    let system = named.or_else(|| bundles.into_iter().find(|path| path.is_file()));
    let mut texts = Vec::new();
    for file in system.as_deref().into_iter().chain(own) {
        texts.push(std::fs::read(file).map_err(|error| {
            Failure::failed(format!("cannot read certificates of {}: {error}", file.display()))
        })?);
    }
    Trust::from_pem(&texts).map_err(|_| {
        let hint = format!("name a file of them in the variable {BUNDLE_VARIABLE}");
        Failure::failed("this system has no certificates to trust").hint(hint)
    })
}

/// The head of a request: with the headers of its protocol, signed with this date.
fn head(account: &Account, call: Call<'_>, date: &str) -> io::Result<Vec<u8>> {
    let mut request = request(account, call, date)?;
    match &account.credential {
        Credential::Key(key) => {
            let dialect = match account.protocol {
                Protocol::Tables => Some(Dialect::Tables),
                Protocol::Blobs | Protocol::Queues => Some(Dialect::Storage),
                Protocol::Documents => None,
            };
            match dialect {
                Some(dialect) => {
                    let signed = auth::sign(&mut request, dialect, &account.name, key);
                    signed.map_err(|_| invalid("the query is wrong"))?;
                }
                None => sign_document(&mut request, key, date)?,
            }
        }
        Credential::Sas(sas) => {
            let between = if request.query.is_empty() { "" } else { "&" };
            request.query = format!("{}{between}{sas}", request.query);
        }
    }
    Ok(text(&request))
}

fn request(account: &Account, call: Call<'_>, date: &str) -> io::Result<Request> {
    let mut headers = HeaderMap::new();
    add(&mut headers, "host", &account.authority)?;
    add(&mut headers, "x-ms-date", date)?;
    let mut content_type = call.content_type;
    match account.protocol {
        Protocol::Tables => {
            add(&mut headers, "x-ms-version", TABLES_VERSION)?;
            add(&mut headers, "dataserviceversion", "3.0")?;
            add(&mut headers, "accept", "application/json;odata=minimalmetadata")?;
            add(&mut headers, "prefer", "return-no-content")?;
            if content_type.is_empty() {
                content_type = "application/json";
            }
        }
        Protocol::Blobs | Protocol::Queues => {
            add(&mut headers, "x-ms-version", STORAGE_VERSION)?;
        }
        Protocol::Documents => {
            add(&mut headers, "x-ms-version", DOCUMENTS_VERSION)?;
            add(&mut headers, "accept", "application/json")?;
            if content_type.is_empty() {
                content_type = "application/json";
            }
        }
    }
    for (name, value) in call.headers {
        add(&mut headers, name, value)?;
    }
    if !content_type.is_empty() {
        add(&mut headers, "content-type", content_type)?;
    }
    add(&mut headers, "content-length", &call.body.len().to_string())?;
    let method = call.method.parse().map_err(|_| invalid("no such method"))?;
    let path = format!("{}{}", account.root, call.path);
    Ok(Request::outgoing(method, path, call.query.to_owned(), headers))
}

/// Signs a request to the service of documents: over the kind and the link of what its path addresses.
fn sign_document(request: &mut Request, key: &Key, date: &str) -> io::Result<()> {
    let decoded = |part: &str| percent_decode(part).map(|part| part.into_owned());
    let path = request.path.trim_matches('/');
    let parts: std::result::Result<Vec<String>, _> = path.split('/').map(decoded).collect();
    let parts = parts.map_err(|_| invalid("the path is wrong"))?;
    let (kind, link) = match parts.len() {
        _ if path.is_empty() => ("", String::new()),
        2 if parts[0] == "offers" => ("offers", parts[1].to_lowercase()),
        length if length % 2 == 0 => (parts[length - 2].as_str(), parts.join("/")),
        length => (parts[length - 1].as_str(), parts[..length - 1].join("/")),
    };
    let header = authorization(key, request.method.as_str(), kind, &link, date);
    add(&mut request.headers, "authorization", &header)
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
    use lazuli_http::client::head::Head;

    use super::*;

    fn answer(status: u16, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Answer { head: Head { status, headers: headers.collect() }, body: body.to_vec() }
    }

    #[test]
    fn refusals_are_one_sentence_and_a_code() {
        let body = br#"{"odata.error":{"code":"EntityAlreadyExists","message":{"lang":"en-US",
            "value":"3:The specified entity already exists.\nRequestId:x\nTime:y"}}}"#;
        let refusal = ServiceError::of(&answer(409, &[], body));
        assert_eq!(refusal.sentence(), "The specified entity already exists (EntityAlreadyExists)");
        let other = ServiceError::of(&answer(418, &[], b"<html>"));
        assert_eq!(other.sentence(), "the service answered with status 418 (no code)");
        let body = b"<?xml version=\"1.0\"?><Error><Code>BlobNotFound</Code>\
            <Message>The specified blob does not exist.\nRequestId:x\nTime:y</Message></Error>";
        let blob = ServiceError::of(&answer(404, &[], body));
        assert_eq!(blob.sentence(), "The specified blob does not exist (BlobNotFound)");
        let bare = ServiceError::of(&answer(404, &[("x-ms-error-code", "BlobNotFound")], b""));
        assert_eq!(bare.sentence(), "the service answered with status 404 (BlobNotFound)");
    }

    const DATE: &str = "Thu, 01 Jan 1970 00:00:00 GMT";

    fn account(protocol: Protocol, credential: Credential) -> Account {
        Account {
            protocol,
            secure: false,
            authority: "127.0.0.1:1".to_owned(),
            root: "/dev".to_owned(),
            name: "dev".to_owned(),
            credential,
            certificate: None,
        }
    }

    fn sent(account: &Account, call: Call<'_>) -> String {
        String::from_utf8(head(account, call, DATE).unwrap()).unwrap()
    }

    #[test]
    fn requests_are_signed_as_their_service_asks_for() {
        let key = || Credential::Key(Box::new(Key::from_base64("a2V5MQ==").unwrap()));
        let sign = |text: &str| STANDARD.encode(Key::from_base64("a2V5MQ==").unwrap().sign(text));
        let tables = sent(&account(Protocol::Tables, key()), Call::new("GET", "/Tables"));
        assert!(
            tables.starts_with("GET /dev/Tables HTTP/1.1\r\nhost: 127.0.0.1:1\r\n"),
            "{tables}"
        );
        let expected =
            format!("SharedKeyLite dev:{}\r\n", sign(&format!("{DATE}\n/dev/dev/Tables")));
        assert!(tables.contains(&expected), "{tables}");
        let call = Call {
            query: "comp=block&blockid=QQ%3D%3D",
            headers: &[("x-ms-blob-type", "BlockBlob"), ("content-md5", "M")],
            content_type: "text/plain",
            body: b"abc",
            ..Call::new("PUT", "/c/a%20b")
        };
        let blobs = sent(&account(Protocol::Blobs, key()), call);
        let signed = format!(
            "PUT\n\n\n3\nM\ntext/plain\n\n\n\n\n\n\nx-ms-blob-type:BlockBlob\nx-ms-date:{DATE}\n\
             x-ms-version:{STORAGE_VERSION}\n/dev/dev/c/a%20b\nblockid:QQ==\ncomp:block"
        );
        assert!(blobs.contains(&format!("SharedKey dev:{}\r\n", sign(&signed))), "{blobs}");
    }

    #[test]
    fn signatures_join_the_query_and_no_header_can_be_smuggled_in() {
        let account = account(Protocol::Blobs, Credential::Sas("sv=1&sig=a%3D".to_owned()));
        let call = Call { query: "comp=list", ..Call::new("GET", "/") };
        assert!(sent(&account, call).starts_with("GET /dev/?comp=list&sv=1&sig=a%3D HTTP/1.1\r\n"));
        let call = Call { headers: &[("x-ms-meta-a", "b\r\nc: d")], ..Call::new("GET", "/") };
        assert!(head(&account, call, DATE).is_err());
    }
}
