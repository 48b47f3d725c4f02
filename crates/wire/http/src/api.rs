//! The skeleton of every HTTP front: one request from its head to its response.
//!
//! A front brings its address parser, its closed enum of operations, one `match` over it, and its error table ([`Api`]).
//! Everything around these is written here, once: the order of the steps, the operation's name for the metrics, the log
//! line of a failed request, errors as responses, CORS.

use std::sync::Arc;

use crate::cors::Visitor;
use crate::message::{Request, Response};
use crate::serve::{Handler, handler};

/// What a front brings.
pub trait Api: Send + Sync + 'static {
    /// What operations need to know of an admitted request beside their own arguments.
    type Call: Send + Sync;
    /// A closed enum.
    type Operation: Send;
    /// What can go wrong, in the front's own words.
    type Fault: Send + Sync;

    /// Whether the body of a refused request is read and discarded before the response, so that a client that is still
    /// sending gets to read why. Without it the connection is closed behind the response.
    const DISCARDS_BODY: bool = false;

    /// Decides by the head of a request: what is addressed, which operation is meant, and whether the sender may do it.
    fn admit(
        &self,
        request: &Request,
    ) -> impl Future<Output = Result<(Self::Call, Self::Operation), Self::Fault>> + Send;

    /// The name of an operation in metrics and in the front's table of operations.
    fn name(operation: &Self::Operation) -> &'static str;

    /// Runs the operation: the front's one `match`.
    fn run(
        &self,
        call: &Self::Call,
        operation: Self::Operation,
        request: &mut Request,
    ) -> impl Future<Output = Result<Response, Self::Fault>> + Send;

    /// The response of a refusal.
    fn refuse(&self, request: &Request, fault: &Self::Fault) -> Response;

    /// What an operator should know about a refusal and a client should not. It is logged.
    fn cause(_fault: &Self::Fault) -> Option<&str> {
        None
    }

    /// Tells a page of another origin whether it may read the response.
    fn greet(
        &self,
        _call: &Self::Call,
        _visitor: &Visitor,
        response: Response,
    ) -> impl Future<Output = Response> + Send {
        std::future::ready(response)
    }

    /// Adds the headers that every response of the front has.
    fn finish(&self, _request: &Request, response: Response) -> Response {
        response
    }
}

/// The handler of a front.
pub fn serve_api<A: Api>(api: A) -> Handler {
    let api = Arc::new(api);
    handler(move |request| {
        let api = api.clone();
        async move { answer(&*api, request).await }
    })
}

async fn answer<A: Api>(api: &A, mut request: Request) -> Response {
    let visitor = Visitor::of(&request);
    let (mut admitted, mut operation_name) = (None, None);
    let result = match api.admit(&request).await {
        Ok((call, operation)) => {
            operation_name = Some(A::name(&operation));
            let result = api.run(&call, operation, &mut request).await;
            admitted = Some(call);
            result
        }
        Err(fault) => Err(fault),
    };
    let mut response = match result {
        Ok(response) => response,
        Err(fault) => {
            if let Some(cause) = A::cause(&fault) {
                let request_id = request.id.to_string();
                tracing::error!(request_id, cause, "a request failed");
            }
            if A::DISCARDS_BODY {
                request.body.discard().await;
            }
            api.refuse(&request, &fault)
        }
    };
    response.operation = operation_name;
    if let (Some(visitor), Some(call)) = (visitor, admitted) {
        response = api.greet(&call, &visitor, response).await;
    }
    api.finish(&request, response)
}
