//! Whom and what a request is sent to: the account, and the queue or message behind it.

use lazuli_http::Request;
use lazuli_http::account::Target;
use lazuli_http::auth::Accounts;
use lazuli_http::storage_error::CommonCode;
use lazuli_http::uri::percent_decode;

use crate::error::{Fault, Result};
use crate::names::check_queue;

/// Where a request was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) target: Target,
    pub(crate) resource: Resource,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Resource {
    Service,
    Queue(String),
    /// The messages of a queue.
    Messages(String),
    /// A queue, and the name of one of its messages.
    Message(String, String),
}

impl Address {
    pub(crate) fn of(request: &Request, accounts: &Accounts) -> Result<Self> {
        let found = Target::of(request, accounts);
        let (target, path) = found.ok_or_else(|| Fault::new(CommonCode::InvalidUri))?;
        Ok(Self { resource: Resource::parse(path)?, target })
    }
}

impl Resource {
    /// The path behind the account, as it was sent.
    pub(crate) fn parse(path: &str) -> Result<Self> {
        let path = path.strip_prefix('/').unwrap_or(path);
        let mut parts = path.split('/').map(percent_decode);
        let mut next = || parts.next().transpose();
        let (queue, messages, id, more) = (next()?, next()?, next()?, next()?);
        let resource = match (queue.as_deref(), messages.as_deref(), id, more) {
            (Some("") | None, None, None, None) => return Ok(Self::Service),
            (Some(queue), None | Some(""), None, None) => Self::Queue(queue.to_owned()),
            (Some(queue), Some("messages"), None, None) => Self::Messages(queue.to_owned()),
            (Some(queue), Some("messages"), Some(id), None) if !id.is_empty() => {
                Self::Message(queue.to_owned(), id.into_owned())
            }
            (Some(queue), Some("messages"), Some(_), None) => Self::Messages(queue.to_owned()),
            _ => return Err(Fault::new(CommonCode::InvalidUri)),
        };
        if let Some(queue) = resource.queue() {
            check_queue(queue)?;
        }
        Ok(resource)
    }

    pub(crate) fn queue(&self) -> Option<&str> {
        match self {
            Self::Service => None,
            Self::Queue(queue) | Self::Messages(queue) | Self::Message(queue, _) => Some(queue),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Code;

    #[test]
    fn resources_are_told_apart() {
        let parse = |path: &str| Resource::parse(path).map_err(|fault| fault.code);
        assert_eq!(parse(""), Ok(Resource::Service));
        assert_eq!(parse("/"), Ok(Resource::Service));
        assert_eq!(parse("orders"), Ok(Resource::Queue("orders".into())));
        assert_eq!(parse("/orders/"), Ok(Resource::Queue("orders".into())));
        assert_eq!(parse("orders/messages"), Ok(Resource::Messages("orders".into())));
        assert_eq!(parse("orders/messages/"), Ok(Resource::Messages("orders".into())));
        let message = Resource::Message("orders".into(), "a b".into());
        assert_eq!(parse("orders/messages/a%20b"), Ok(message));
        let bad = |path: &str, code| assert_eq!(parse(path), Err(Code::Common(code)), "{path}");
        bad("orders/other", CommonCode::InvalidUri);
        bad("orders/messages/1/2", CommonCode::InvalidUri);
        bad("Orders", CommonCode::InvalidResourceName);
        bad("orders%2fmessages", CommonCode::InvalidResourceName);
        bad("%zz", CommonCode::RequestUrlFailedToParse);
    }
}
