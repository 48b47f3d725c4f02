//! The front of documents: Cosmos DB for NoSQL over its gateway protocol, on the document shape.
//!
//! One request: `Target::parse` says what is addressed, `access` who sent it, `Operation::parse` what is asked for; the one
//! `match` below calls the operation, the operation makes one call of the shape, `response` or `error` writes the response.
//! `operations.toml` lists every operation of the service and whether it is done.

mod access;
mod account;
mod address;
mod charge;
mod error;
mod headers;
pub mod limits;
mod patch;
mod request;
mod response;
mod session;

use std::sync::Arc;

use lazuli_azure::auth::Accounts;
use lazuli_http::{Api, Handler, Request, Response, serve_api};

use access::Sender;
use address::{Address, Target};
use error::{Fault, Result};
use headers::Headers;
pub use access::Published;
pub use limits::Limits;
use request::Operation;

/// What the front is put together from.
pub struct Parts {
    pub accounts: Arc<Accounts>,
    /// The key that emulators publish, where it is taken.
    pub published: Option<Published>,
    /// The certificate of the listener (PEM).
    pub certificate: Option<String>,
    pub limits: Limits,
}

/// The handler of the service.
pub fn handler(parts: Parts) -> Handler {
    serve_api(Front { parts })
}

struct Front {
    parts: Parts,
}

/// What operations need to know of the request beside their own arguments.
struct Call {
    sender: Sender,
    headers: Headers,
}

impl Api for Front {
    type Call = Call;
    type Operation = Operation;
    type Fault = Fault;

    const DISCARDS_BODY: bool = true;

    async fn admit(&self, request: &Request) -> Result<(Call, Operation)> {
        let target = Target::parse(&request.path)?;
        let sender = match target.address {
            // It proves who the server is to clients that have not connected yet.
            Address::Certificate => Sender { account: String::new(), grant: None },
            _ => {
                let published = self.parts.published.as_ref();
                access::check(request, &target, &self.parts.accounts, published)?
            }
        };
        let headers = Headers::parse(&request.headers)?;
        let operation = Operation::parse(&request.method, target.address, &headers)?;
        Ok((Call { sender, headers }, operation))
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
            Operation::ReadAccount => Ok(account::read(&call.sender.account, request)),
            Operation::ReadCertificate => account::certificate(self.parts.certificate.as_deref()),
            _ => Err(Fault::gap("This")),
        }
    }

    fn refuse(&self, request: &Request, fault: &Fault) -> Response {
        response::refusal(request, fault)
    }

    fn cause(fault: &Fault) -> Option<&str> {
        fault.cause()
    }

    fn finish(&self, request: &Request, response: Response) -> Response {
        response::finish(request, response)
    }
}
