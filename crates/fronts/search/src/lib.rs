//! The front of search: Azure AI Search, on the index shape and on text indexes that are derived from it.
//!
//! One request: `Address::parse` says what is addressed, `Operation::parse` what is asked for, `access` who sent it; the one
//! `match` below calls the operation, which asks the shape for documents and the text index for what queries find;
//! `response` or `error` writes the response. `operations.toml` lists every operation of the service and whether it is done.

mod access;
mod address;
mod asked;
mod cors;
mod definition;
mod documents;
mod error;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod growth;
mod indexes;
pub mod limits;
mod options;
mod records;
mod request;
mod response;
mod search;
mod service;
mod suggest;
mod text_index;
mod texts;
mod vectors;

use std::path::PathBuf;
use std::sync::Arc;

use lazuli_azure::auth::Accounts;
use lazuli_azure::auth::bearer::Tokens;
use lazuli_http::cors::Visitor;
use lazuli_http::{Api, Handler, Request, Response, serve_api};
use lazuli_index::Indexes;
use lazuli_net::BoxFuture;
use serde_json::Value;
use tokio::sync::Semaphore;

use access::{QueryKeys, Sender};
use address::{Address, Collection};
use error::{Fault, Result};
use limits::{REQUEST_BYTES_MAX, SEARCHES_AT_ONCE};
use options::Options;
use request::{Operation, Verb};
use texts::Texts;

/// What the operator chose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Whether writes are answered only when searches find them, unless a request says otherwise.
    pub waits: bool,
    /// Whether partitions and replicas are limited as by the service.
    pub is_scale_limited: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { waits: false, is_scale_limited: true }
    }
}

/// What the front is put together from.
pub struct Parts {
    pub indexes: Indexes,
    pub accounts: Arc<Accounts>,
    pub tokens: Tokens,
    pub settings: Settings,
    /// Where text indexes are kept. What is in it can be deleted: it is made anew.
    pub folder: PathBuf,
}

/// The handler of the service, and its background work, which feeds the text indexes until it is dropped. Searches wait for it.
pub fn handler(parts: Parts) -> (Handler, BoxFuture<()>) {
    let (texts, wanted) = Texts::new(parts.indexes.clone(), parts.folder);
    let feeding = Box::pin(texts.clone().run(wanted));
    let handler = serve_api(Front {
        indexes: parts.indexes,
        texts,
        accounts: parts.accounts,
        tokens: parts.tokens,
        limits: parts.settings,
        query_keys: QueryKeys::default(),
        searches: Arc::new(Semaphore::new(SEARCHES_AT_ONCE)),
    });
    (handler, feeding)
}

struct Front {
    indexes: Indexes,
    texts: Texts,
    accounts: Arc<Accounts>,
    tokens: Tokens,
    limits: Settings,
    query_keys: QueryKeys,
    /// Searches take threads; so many may have one.
    searches: Arc<Semaphore>,
}

/// What operations need to know of the request beside their own arguments.
struct Call {
    sender: Sender,
    options: Options,
    received_ms: u64,
    /// The index whose documents it is about, if any: pages of other origins may ask for these alone.
    index: Option<String>,
}

impl Api for Front {
    type Call = Call;
    type Operation = Operation;
    type Fault = Fault;

    const DISCARDS_BODY: bool = true;

    async fn admit(&self, request: &Request) -> Result<(Call, Operation)> {
        let operation = Operation::parse(&request.method, Address::parse(&request.path)?)?;
        if matches!(operation, Operation::AskForOrigin(_)) {
            let sender = Sender { account: String::new(), is_reader: true };
            let (options, received_ms) = (Options::default(), request.received_ms);
            return Ok((Call { sender, options, received_ms, index: None }, operation));
        }
        let (accounts, indexes) = (&self.accounts, &self.indexes);
        let check = access::check(request, accounts, indexes, &self.query_keys, self.tokens);
        let sender = check.await?;
        if sender.is_reader && !operation.is_query() {
            return Err(Fault::forbidden("A query key allows queries only: use an admin key."));
        }
        let options = Options::parse(request)?;
        options.check_version()?;
        let index = operation.documents_of().map(str::to_owned);
        Ok((Call { sender, options, received_ms: request.received_ms, index }, operation))
    }

    fn name(operation: &Operation) -> &'static str {
        operation.name()
    }

    async fn run(
        &self,
        call: &Call,
        operation: Operation,
        request: &mut Request,
    ) -> Result<Response> {
        match operation {
            Operation::ReadServiceStatistics => service::statistics(self, call).await,
            Operation::ListIndexStatistics => indexes::all_statistics(self, call).await,
            Operation::Named { verb, collection, name } => {
                let name = name.unwrap_or_default();
                self.run_named(call, verb, collection, &name, request).await
            }
            Operation::ReadIndexStatistics(index) => indexes::statistics(self, call, &index).await,
            Operation::ReadScale(index) => indexes::read_scale(self, call, &index).await,
            Operation::SetScale(index) => {
                indexes::scale(self, call, &index, body(request).await?).await
            }
            Operation::ReadSlices(index) => indexes::slices(self, call, &index).await,
            Operation::ExplainQuery(index) => {
                search::explain(self, call, &index, body(request).await?).await
            }
            Operation::AnalyzeText(index) => {
                search::analyze(self, call, &index, body(request).await?).await
            }
            Operation::WriteDocuments(index) => {
                documents::write(self, call, &index, body(request).await?).await
            }
            Operation::ReadDocument { index, key } => {
                documents::read(self, call, &index, &key).await
            }
            Operation::CountDocuments(index) => documents::count(self, call, &index).await,
            Operation::AskForOrigin(index) => cors::answer(self, &index, &request.headers).await,
            Operation::SearchDocuments { index, is_posted } => {
                let posted = if is_posted { Some(body(request).await?) } else { None };
                search::search(self, call, &index, posted).await
            }
            Operation::SuggestDocuments { index, is_posted } => {
                let posted = if is_posted { Some(body(request).await?) } else { None };
                suggest::suggest(self, call, &index, posted).await
            }
            Operation::CompleteText { index, is_posted } => {
                let posted = if is_posted { Some(body(request).await?) } else { None };
                suggest::complete(self, call, &index, posted).await
            }
        }
    }

    fn refuse(&self, _request: &Request, fault: &Fault) -> Response {
        response::refusal(fault)
    }

    fn cause(fault: &Fault) -> Option<&str> {
        fault.cause()
    }

    async fn greet(&self, call: &Call, visitor: &Visitor, response: Response) -> Response {
        let Some(index) = &call.index else { return response };
        match self.index(call, index).await {
            Ok(index) => visitor.greet(&cors::rules(&index), response),
            Err(_) => response,
        }
    }

    fn finish(&self, request: &Request, response: Response) -> Response {
        response::finish(request, response)
    }
}

impl Front {
    /// The operations on named things, which are alike but for what is named.
    async fn run_named(
        &self,
        call: &Call,
        verb: Verb,
        collection: Collection,
        name: &str,
        request: &mut Request,
    ) -> Result<Response> {
        let body = match verb {
            Verb::Create | Verb::Put => body(request).await?,
            Verb::List | Verb::Read | Verb::Delete => Value::Null,
        };
        let named = match collection {
            Collection::SynonymMaps => records::SYNONYM_MAPS,
            Collection::Aliases => records::ALIASES,
            Collection::Indexes => {
                return match verb {
                    Verb::List => indexes::list(self, call).await,
                    Verb::Create => indexes::create(self, call, body).await,
                    Verb::Put => indexes::put(self, call, name, body).await,
                    Verb::Read => indexes::read(self, call, name).await,
                    Verb::Delete => indexes::delete(self, call, name).await,
                };
            }
            Collection::QueryKeys => {
                return match verb {
                    Verb::List => records::list_keys(self, call).await,
                    Verb::Create => records::create_key(self, call, body).await,
                    Verb::Delete => records::delete_key(self, call, name).await,
                    Verb::Put | Verb::Read => {
                        Err(Fault::bad_request("Query keys are listed, created and deleted."))
                    }
                };
            }
        };
        match verb {
            Verb::List => records::list(self, call, named).await,
            Verb::Create => records::create(self, call, named, body).await,
            Verb::Put => records::put(self, call, named, name, body).await,
            Verb::Read => records::read(self, call, named, name).await,
            Verb::Delete => records::delete(self, call, named, name).await,
        }
    }
}

/// The body of a request, which is JSON.
async fn body(request: &mut Request) -> Result<Value> {
    let bytes = request.take_body().collect(REQUEST_BYTES_MAX).await?;
    serde_json::from_slice(&bytes)
        .map_err(|error| Fault::invalid("body", &format!("The body is no valid JSON: {error}.")))
}
