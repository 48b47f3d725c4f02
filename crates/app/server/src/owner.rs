//! Requests to the fronts from within the server, in the name of an account's owner.
//!
//! They are signed with the account's key and checked by the front, like requests of clients. So there is no way around
//! signatures, and each request has one meaning.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use lazuli_azure::auth::master_key::authorization;
use lazuli_azure::auth::{self, Accounts, Dialect, Key};
use lazuli_http::date::format_rfc1123;
use lazuli_http::uri::{percent_decode, percent_encode};
use lazuli_http::{
    Body, Handler, HeaderMap, HeaderName, HeaderValue, Method, Request, RequestId, Response,
};

use crate::failure::{Failure, FailureReason, Result};
use crate::registry::Registry;

/// The version of the Table service that the official SDKs ask for.
const TABLES_VERSION: &str = "2019-02-02";
/// A version of the Blob and Queue services that knows all that is asked for here.
const STORAGE_VERSION: &str = "2021-12-02";

/// The version of the document service that the official SDKs ask for.
const DOCUMENTS_VERSION: &str = "2020-07-15";

/// The version of the Search service, which it takes as a parameter.
pub(crate) const SEARCH_VERSION: &str = "2024-07-01";

/// Whom to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Service {
    Blobs,
    Queues,
    Tables,
    Documents,
    Search,
}

impl Service {
    fn name(self) -> &'static str {
        match self {
            Self::Blobs => "blobs",
            Self::Queues => "queues",
            Self::Tables => "tables",
            Self::Documents => "documents",
            Self::Search => "search",
        }
    }
}

/// What to ask of an account.
#[derive(Debug)]
pub(crate) struct Ask {
    service: Service,
    account: String,
    method: Method,
    path: String,
    query: String,
    headers: Vec<(&'static str, String)>,
    body: Body,
}

impl Ask {
    /// The path is what stands behind the account, escaped.
    pub(crate) fn new(service: Service, method: Method, account: &str, path: String) -> Self {
        let (account, query) = (account.to_owned(), String::new());
        Self { service, account, method, path, query, headers: Vec::new(), body: Body::empty() }
    }

    pub(crate) fn query(mut self, name: &str, value: &str) -> Self {
        let between = if self.query.is_empty() { "" } else { "&" };
        self.query = format!("{}{between}{name}={}", self.query, percent_encode(value));
        self
    }

    pub(crate) fn maybe_query(self, name: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.query(name, value),
            None => self,
        }
    }

    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(crate) fn maybe_header(self, name: &'static str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.header(name, value),
            None => self,
        }
    }

    pub(crate) fn body(mut self, body: Body) -> Self {
        self.body = body;
        self
    }

    fn request(self) -> Result<Request> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let seconds = i64::try_from(now.as_secs()).unwrap_or(0);
        let mut headers = HeaderMap::new();
        let version = match self.service {
            Service::Tables => TABLES_VERSION,
            Service::Blobs | Service::Queues => STORAGE_VERSION,
            Service::Documents => DOCUMENTS_VERSION,
            Service::Search => SEARCH_VERSION,
        };
        let usual = [("host", "localhost"), ("x-ms-version", version)];
        let usual = usual.map(|(name, value)| (name, value.to_owned()));
        let date = ("x-ms-date", format_rfc1123(seconds));
        let length = self.body.length().map(|length| ("content-length", length.to_string()));
        for (name, value) in usual.into_iter().chain([date]).chain(length).chain(self.headers) {
            let value = HeaderValue::try_from(value).map_err(|_| {
                Failure::of(
                    FailureReason::BadRequest,
                    format!("{name} has signs that no header can carry"),
                )
            })?;
            headers.append(HeaderName::from_static(name), value);
        }
        Ok(Request {
            method: self.method,
            path: match self.service {
                // An account of documents or of Search is known by its key alone.
                Service::Documents | Service::Search => self.path,
                _ => format!("/{}{}", percent_encode(&self.account), self.path),
            },
            query: self.query,
            headers,
            body: self.body,
            peer: ([127, 0, 0, 1], 0).into(),
            secure: false,
            received_ms: u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
            id: RequestId(0),
        })
    }
}

/// Signs a request to the front of documents: over the kind and the link of what its path addresses.
fn sign_documents(request: &mut Request, key: &Key) -> Option<()> {
    let path = request.path.trim_matches('/');
    let decoded = |part: &str| percent_decode(part).ok().map(|part| part.into_owned());
    let parts: Vec<String> = path.split('/').map(decoded).collect::<Option<_>>()?;
    let (kind, link) = match parts.len() {
        2 if parts[0] == "offers" => ("offers", parts[1].to_lowercase()),
        length if length % 2 == 0 => (parts[length - 2].as_str(), parts.join("/")),
        length => (parts[length - 1].as_str(), parts[..length - 1].join("/")),
    };
    let date = request.header("x-ms-date")?.to_owned();
    let header = authorization(key, request.method.as_str(), kind, &link, &date);
    request.headers.insert("authorization", HeaderValue::try_from(header).ok()?);
    Some(())
}

/// Asks the fronts as the owner of each account.
#[derive(Clone)]
pub(crate) struct Owner {
    fronts: Arc<[(&'static str, Handler)]>,
    accounts: Arc<Accounts>,
    registry: Arc<Registry>,
}

impl Owner {
    pub(crate) fn new(fronts: Vec<(&'static str, Handler)>, registry: Arc<Registry>) -> Self {
        Self { fronts: fronts.into(), accounts: registry.signing(), registry }
    }

    /// The first key of an account as clients have it.
    async fn key(&self, account: &str) -> Option<String> {
        let accounts = self.registry.list().await;
        let found = accounts.iter().find(|(one, _)| one.name == account);
        found.map(|(one, _)| one.key1.reveal().to_owned())
    }

    /// The response of the front, whatever it is. Unknown accounts are refused here.
    pub(crate) async fn ask(&self, ask: Ask) -> Result<Response> {
        let (service, account) = (ask.service, ask.account.clone());
        let Some(keys) = self.accounts.get(&account) else {
            return Err(Failure::of(
                FailureReason::AccountNotFound,
                format!("there is no account {account}"),
            )
            .hint("`lazuli account list` lists those there are"));
        };
        let mut request = ask.request()?;
        let unsigned = || Failure::of(FailureReason::BadRequest, "the request cannot be signed");
        let dialect = match service {
            Service::Tables => Some(Dialect::Tables),
            Service::Blobs | Service::Queues => Some(Dialect::Storage),
            Service::Documents | Service::Search => None,
        };
        match (dialect, service) {
            (Some(dialect), _) => {
                auth::sign(&mut request, dialect, &account, &keys.first).map_err(|_| unsigned())?
            }
            (None, Service::Search) => {
                let key = self.key(&account).await.ok_or_else(unsigned)?;
                let key = HeaderValue::try_from(key).map_err(|_| unsigned())?;
                request.headers.insert("api-key", key);
            }
            (None, _) => sign_documents(&mut request, &keys.first).ok_or_else(unsigned)?,
        }
        let front = self.fronts.iter().find(|(name, _)| *name == service.name());
        match front {
            Some((_, handler)) => Ok(handler(request).await),
            None => Err(Failure::new("no-front", format!("{} are not served", service.name()))),
        }
    }
}
