//! From the head of a request to one of the service's operations: a closed enum that `lib.rs` matches on.

use lazuli_azure::Row;
use lazuli_azure::auth::access::Need;
use lazuli_azure::storage;
use lazuli_azure::storage_error::CommonCode;
use lazuli_http::uri::Query;
use lazuli_http::{HeaderMap, Method};
use lazuli_shapes::queue::{MessageId, Metadata, Receipt};

use crate::address::Resource;
use crate::address::check_metadata;
use crate::error::{Code, Fault, Result};
use crate::limits::{
    HIDDEN_SECONDS_DEFAULT, LIVES_SECONDS_DEFAULT, Limits, METADATA_BYTES_MAX,
    VERSION_WITH_LONG_LIVES,
};

const METADATA_PREFIX: &str = "x-ms-meta-";

/// Every operation of the service. `operations.toml` has one row for each.
#[derive(Debug, PartialEq)]
pub(crate) enum Operation {
    ListQueues(QueueQuery),
    GetServiceProperties,
    SetServiceProperties,
    GetServiceStats,
    GetUserDelegationKey,
    Preflight,
    CreateQueue { queue: String, metadata: Metadata },
    DeleteQueue { queue: String },
    GetQueueMetadata { queue: String },
    SetQueueMetadata { queue: String, metadata: Metadata },
    GetQueueAcl { queue: String },
    SetQueueAcl { queue: String },
    PutMessage { queue: String, hidden_seconds: u64, lives_seconds: Option<u64> },
    GetMessages { queue: String, most: usize, hidden_seconds: u64 },
    PeekMessages { queue: String, most: usize },
    ClearMessages { queue: String },
    UpdateMessage { queue: String, id: MessageId, receipt: Receipt, hidden_seconds: u64 },
    DeleteMessage { queue: String, id: MessageId, receipt: Receipt },
}

/// Which queues to list.
#[derive(Debug, PartialEq)]
pub(crate) struct QueueQuery {
    pub(crate) prefix: String,
    /// The name of the first queue, as the page before said.
    pub(crate) marker: Option<String>,
    pub(crate) most: Option<usize>,
    pub(crate) with_metadata: bool,
}

impl Operation {
    pub(crate) fn parse(
        method: &Method,
        headers: &HeaderMap,
        resource: Resource,
        query: &Query<'_>,
        limits: &Limits,
    ) -> Result<Self> {
        // What `HEAD` answers differs in the body alone, which is left out on the way.
        let method = if method == Method::HEAD { "GET" } else { method.as_str() };
        match (method, resource, query.get("comp")) {
            ("OPTIONS", ..) => Ok(Self::Preflight),
            (method, Resource::Service, Some(component)) => {
                service(method, component, query, limits)
            }
            (method, Resource::Queue(queue), component) => {
                self::queue(method, component, queue, headers)
            }
            (_, Resource::Service, None) => Err(Fault::new(CommonCode::InvalidUri)),
            ("POST", Resource::Messages(queue), None) => put(queue, headers, query, limits),
            ("GET", Resource::Messages(queue), None) => get(queue, query, limits),
            ("DELETE", Resource::Messages(queue), None) => Ok(Self::ClearMessages { queue }),
            ("PUT", Resource::Message(queue, id), None) => {
                let (id, receipt) = (message_id(&id)?, receipt(query)?);
                let name = "visibilitytimeout";
                let given = number(query, name)?.ok_or_else(|| missing(name))?;
                let hidden_seconds = in_range(name, given, 0, limits.hidden_seconds_max)?;
                Ok(Self::UpdateMessage { queue, id, receipt, hidden_seconds })
            }
            ("DELETE", Resource::Message(queue, id), None) => {
                Ok(Self::DeleteMessage { queue, id: message_id(&id)?, receipt: receipt(query)? })
            }
            (_, _, Some(component)) => Err(bad("comp", component)),
            _ => Err(Fault::new(CommonCode::UnsupportedHttpVerb)),
        }
    }

    /// The queue whose rate of messages the operation counts towards.
    pub(crate) fn throttled_queue(&self) -> Option<&str> {
        match self {
            Self::PutMessage { queue, .. }
            | Self::GetMessages { queue, .. }
            | Self::PeekMessages { queue, .. }
            | Self::UpdateMessage { queue, .. }
            | Self::DeleteMessage { queue, .. } => Some(queue),
            _ => None,
        }
    }

    /// As what a queue's own signature counts: the types of resource it stands for.
    pub(crate) fn granted_types(&self) -> &'static str {
        match self {
            Self::GetQueueMetadata { .. } => "c",
            _ if self.throttled_queue().is_some() => "o",
            _ => "",
        }
    }
}

impl lazuli_azure::Operation for Operation {
    /// None means a token.
    type Need = Option<Need>;

    fn row(&self) -> Row<Option<Need>> {
        let read = |name, need| Row::read(name, Some(need));
        let write = |name, need| Row::write(name, Some(need));
        match self {
            Self::ListQueues(_) => read("ListQueues", Need::All('s', "l")),
            Self::GetServiceProperties => read("GetServiceProperties", Need::All('s', "r")),
            Self::SetServiceProperties => write("SetServiceProperties", Need::All('s', "w")),
            Self::GetServiceStats => read("GetServiceStats", Need::All('s', "r")),
            Self::GetUserDelegationKey => Row::read("GetUserDelegationKey", None),
            Self::Preflight => read("Preflight", Need::Any('s', "")),
            Self::CreateQueue { .. } => write("CreateQueue", Need::Any('c', "cw")),
            Self::DeleteQueue { .. } => write("DeleteQueue", Need::All('c', "d")),
            Self::GetQueueMetadata { .. } => read("GetQueueMetadata", Need::All('c', "r")),
            Self::SetQueueMetadata { .. } => write("SetQueueMetadata", Need::All('c', "w")),
            Self::GetQueueAcl { .. } => read("GetQueueAcl", Need::Key),
            Self::SetQueueAcl { .. } => write("SetQueueAcl", Need::Key),
            Self::PutMessage { .. } => write("PutMessage", Need::All('o', "a")),
            Self::GetMessages { .. } => write("GetMessages", Need::All('o', "p")),
            Self::PeekMessages { .. } => read("PeekMessages", Need::All('o', "r")),
            Self::ClearMessages { .. } => write("ClearMessages", Need::All('o', "d")),
            Self::UpdateMessage { .. } => write("UpdateMessage", Need::All('o', "u")),
            Self::DeleteMessage { .. } => write("DeleteMessage", Need::All('o', "p")),
        }
    }
}

fn service(method: &str, component: &str, query: &Query<'_>, limits: &Limits) -> Result<Operation> {
    let is_service = query.get("restype") == Some("service");
    match (method, component, is_service) {
        ("GET", "list", false) => Ok(Operation::ListQueues(queue_query(query, limits)?)),
        ("GET", "properties", true) => Ok(Operation::GetServiceProperties),
        ("PUT", "properties", true) => Ok(Operation::SetServiceProperties),
        ("GET", "stats", true) => Ok(Operation::GetServiceStats),
        ("POST", "userdelegationkey", true) => Ok(Operation::GetUserDelegationKey),
        (_, "list" | "properties" | "stats" | "userdelegationkey", _) => {
            Err(Fault::new(CommonCode::UnsupportedHttpVerb))
        }
        _ => Err(bad("comp", component)),
    }
}

fn queue(
    method: &str,
    component: Option<&str>,
    queue: String,
    headers: &HeaderMap,
) -> Result<Operation> {
    match (method, component) {
        ("PUT", None) => Ok(Operation::CreateQueue { queue, metadata: metadata(headers)? }),
        ("DELETE", None) => Ok(Operation::DeleteQueue { queue }),
        ("GET", Some("metadata")) => Ok(Operation::GetQueueMetadata { queue }),
        ("PUT", Some("metadata")) => {
            Ok(Operation::SetQueueMetadata { queue, metadata: metadata(headers)? })
        }
        ("GET", Some("acl")) => Ok(Operation::GetQueueAcl { queue }),
        ("PUT", Some("acl")) => Ok(Operation::SetQueueAcl { queue }),
        (_, None | Some("metadata" | "acl")) => Err(Fault::new(CommonCode::UnsupportedHttpVerb)),
        (_, Some(component)) => Err(bad("comp", component)),
    }
}

fn put(
    queue: String,
    headers: &HeaderMap,
    query: &Query<'_>,
    limits: &Limits,
) -> Result<Operation> {
    let (hidden, lives) = ("visibilitytimeout", "messagettl");
    let given = number(query, hidden)?.unwrap_or(0);
    let hidden_seconds = in_range(hidden, given, 0, limits.hidden_seconds_max)?;
    let version = storage::version(headers).unwrap_or(storage::VERSION_DEFAULT);
    let lives_seconds = match number(query, lives)? {
        None => Some(LIVES_SECONDS_DEFAULT),
        Some(-1) if version >= VERSION_WITH_LONG_LIVES => None,
        Some(given) => {
            let longest = match version >= VERSION_WITH_LONG_LIVES {
                true => u64::from(u32::MAX),
                false => LIVES_SECONDS_DEFAULT,
            };
            Some(in_range(lives, given, 1, longest)?)
        }
    };
    // A message that would expire before it is visible.
    if lives_seconds.is_some_and(|lives| hidden_seconds >= lives) {
        let most = lives_seconds.unwrap_or_default().saturating_sub(1);
        return Err(out_of_range(hidden, given, 0, most));
    }
    Ok(Operation::PutMessage { queue, hidden_seconds, lives_seconds })
}

fn get(queue: String, query: &Query<'_>, limits: &Limits) -> Result<Operation> {
    let name = "numofmessages";
    let most = limits.page_messages_max as u64;
    let most = in_range(name, number(query, name)?.unwrap_or(1), 1, most)? as usize;
    match query.get("peekonly") {
        Some(text) if text.eq_ignore_ascii_case("true") => {
            return Ok(Operation::PeekMessages { queue, most });
        }
        Some(text) if !text.eq_ignore_ascii_case("false") => return Err(bad("peekonly", text)),
        _ => {}
    }
    let name = "visibilitytimeout";
    let given = number(query, name)?.unwrap_or(HIDDEN_SECONDS_DEFAULT as i64);
    let hidden_seconds = in_range(name, given, 1, limits.hidden_seconds_max)?;
    Ok(Operation::GetMessages { queue, most, hidden_seconds })
}

fn queue_query(query: &Query<'_>, limits: &Limits) -> Result<QueueQuery> {
    let some = |name| query.get(name).filter(|text| !text.is_empty());
    let name = "maxresults";
    let most = match number(query, name)? {
        None => None,
        // More than a page is a page, as the service has it.
        Some(given) => Some(in_range(name, given, 1, u64::MAX)?.min(limits.page_queues_max as u64)),
    };
    let mut with_metadata = false;
    for wish in some("include").unwrap_or_default().split(',').filter(|wish| !wish.is_empty()) {
        match wish.trim() {
            wish if wish.eq_ignore_ascii_case("metadata") => with_metadata = true,
            wish => return Err(bad("include", wish)),
        }
    }
    Ok(QueueQuery {
        prefix: some("prefix").unwrap_or_default().to_owned(),
        marker: some("marker").map(str::to_owned),
        most: most.map(|most| most as usize),
        with_metadata,
    })
}

/// What the headers say to keep about a queue. (Their names arrive in small letters.)
fn metadata(headers: &HeaderMap) -> Result<Metadata> {
    let mut metadata = Metadata::new();
    let mut bytes = 0;
    for name in headers.keys() {
        let Some(key) = name.as_str().strip_prefix(METADATA_PREFIX) else { continue };
        check_metadata(key)?;
        let values = headers.get_all(name).iter().map(|value| value.to_str());
        let values: std::result::Result<Vec<_>, _> = values.collect();
        let value = values.map_err(|_| Fault::new(CommonCode::InvalidMetadata))?.join(",");
        bytes += key.len() + value.len();
        metadata.push((key.to_owned(), value));
    }
    if bytes > METADATA_BYTES_MAX {
        return Err(Fault::new(CommonCode::MetadataTooLarge));
    }
    metadata.sort_unstable();
    Ok(metadata)
}

/// A name that was never given out is that of no message.
fn message_id(text: &str) -> Result<MessageId> {
    text.parse().map_err(|_| Fault::new(Code::MessageNotFound))
}

fn receipt(query: &Query<'_>) -> Result<Receipt> {
    let name = "popreceipt";
    let text = query.get(name).filter(|text| !text.is_empty()).ok_or_else(|| missing(name))?;
    text.parse().map_err(|_| bad(name, text))
}

/// A parameter that is a number, if it is there.
fn number(query: &Query<'_>, name: &'static str) -> Result<Option<i64>> {
    match query.get(name).map(str::trim).filter(|text| !text.is_empty()) {
        None => Ok(None),
        Some(text) => text.parse().map(Some).map_err(|_| bad(name, text)),
    }
}

fn in_range(name: &'static str, given: i64, least: u64, most: u64) -> Result<u64> {
    match u64::try_from(given) {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ => Err(out_of_range(name, given, least, most)),
    }
}

fn out_of_range(name: &'static str, given: i64, least: u64, most: u64) -> Fault {
    Fault::new(CommonCode::OutOfRangeQueryParameterValue)
        .detail("QueryParameterName", name)
        .detail("QueryParameterValue", given.to_string())
        .detail("MinimumAllowed", least.to_string())
        .detail("MaximumAllowed", most.to_string())
}

fn bad(name: &'static str, text: &str) -> Fault {
    Fault::new(CommonCode::InvalidQueryParameterValue)
        .detail("QueryParameterName", name)
        .detail("QueryParameterValue", text)
}

fn missing(name: &'static str) -> Fault {
    Fault::new(CommonCode::MissingRequiredQueryParameter).detail("QueryParameterName", name)
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
