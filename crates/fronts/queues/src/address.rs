//! What a request addresses behind its account, the service, a queue or its messages, and the rules for names.

use lazuli_azure::storage_error::CommonCode;
use lazuli_http::uri::percent_decode;

use crate::error::{Fault, Result};
use crate::limits::QUEUE_NAME_LENGTHS;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Resource {
    Service,
    Queue(String),
    /// The messages of a queue.
    Messages(String),
    /// A queue, and the name of one of its messages.
    Message(String, String),
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

/// Small letters, digits and single hyphens between them.
pub(crate) fn check_queue(name: &str) -> Result<()> {
    if !QUEUE_NAME_LENGTHS.contains(&name.chars().count()) {
        return Err(Fault::new(CommonCode::OutOfRangeInput));
    }
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    if name.split('-').all(|part| !part.is_empty() && part.chars().all(is_plain)) {
        Ok(())
    } else {
        Err(Fault::new(CommonCode::InvalidResourceName))
    }
}

/// What programming languages take as an identifier.
pub(crate) fn check_metadata(name: &str) -> Result<()> {
    if name.is_empty() {
        return Err(Fault::new(CommonCode::EmptyMetadataKey));
    }
    let letter_first = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if letter_first && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        Ok(())
    } else {
        Err(Fault::new(CommonCode::InvalidMetadata))
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

#[cfg(test)]
mod names_tests {
    use super::*;
    use crate::error::Code;

    #[test]
    fn names_of_queues_follow_the_rules() {
        for good in ["abc", "a-b", "1-2-3", "0rders", &"a".repeat(63)] {
            assert!(check_queue(good).is_ok(), "{good}");
        }
        let code = |name: &str| check_queue(name).unwrap_err().code;
        for bad in ["", "ab", &"a".repeat(64)] {
            assert_eq!(code(bad), Code::Common(CommonCode::OutOfRangeInput), "{bad}");
        }
        for bad in ["Abc", "a--b", "-abc", "abc-", "a_b", "a.b", "äbc", "a b"] {
            assert_eq!(code(bad), Code::Common(CommonCode::InvalidResourceName), "{bad}");
        }
    }

    #[test]
    fn names_of_metadata_are_identifiers() {
        for good in ["a", "_a", "a1", "long_name"] {
            assert!(check_metadata(good).is_ok(), "{good}");
        }
        let code = |name: &str| check_metadata(name).unwrap_err().code;
        assert_eq!(code(""), Code::Common(CommonCode::EmptyMetadataKey));
        for bad in ["1a", "a-b", "a.b", "a b"] {
            assert_eq!(code(bad), Code::Common(CommonCode::InvalidMetadata), "{bad}");
        }
    }
}
