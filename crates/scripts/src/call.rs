//! What a script asks of its host, and what the host answers.

use lazuli_value::{Object, Value};

/// One operation on the items of the script's container and partition key, in the script's transaction.
#[derive(Clone, Debug, PartialEq)]
pub enum Call {
    Read { item: Link, if_none_match: Option<String> },
    ReadFeed(Page),
    Query { text: String, parameters: Vec<(String, Value)>, page: Page },
    Create(Write),
    Upsert(Write),
    Replace { item: Link, write: Write },
    Delete { item: Link, etag: Option<String> },
}

/// How a script names an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Link {
    /// By its `id`.
    Id(String),
    /// By its `_rid`.
    Rid(String),
}

/// A body to be written.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    pub body: Object,
    /// The etag that the present item must have.
    pub etag: Option<String>,
    /// Whether an absent `id` gets a random one.
    pub generates_id: bool,
    pub index: IndexAction,
}

/// Whether an item is indexed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IndexAction {
    #[default]
    Default,
    Include,
    Exclude,
}

/// Which page of a feed or a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    pub size: u32,
    pub continuation: Option<String>,
}

/// What came of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The item that was read or written, with its system properties.
    Item(Value),
    /// The item has the etag that the script knows.
    NotModified,
    Feed {
        items: Vec<Value>,
        continuation: Option<String>,
    },
    Deleted,
    /// The script gets it as the error of the callback, and decides.
    Failed {
        status: u16,
        message: String,
    },
}

/// What a script's calls go to: the one transaction that the script runs in.
pub trait Host: Send {
    /// Performs a call. An error that must end the script whatever it does is kept by the host, which answers `Failed`.
    fn perform(&mut self, call: Call) -> impl Future<Output = Answer> + Send;
}

/// Reads a call from the text that `server.js` makes of it. Nothing but `server.js` makes such texts, yet the script could
/// have changed the functions that it uses, so nothing is taken for granted.
pub(crate) fn read(text: &str) -> Option<Call> {
    let Ok(Value::Object(mut call)) = Value::from_json(text.as_bytes()) else { return None };
    let kind = take_string(&mut call, "kind")?;
    Some(match kind.as_str() {
        "read" => Call::Read {
            item: link(&mut call)?,
            if_none_match: take_string(&mut call, "ifNoneMatch"),
        },
        "readFeed" => Call::ReadFeed(page(&mut call)),
        "query" => query(&mut call)?,
        "create" => Call::Create(write(&mut call)?),
        "upsert" => Call::Upsert(write(&mut call)?),
        "replace" => Call::Replace { item: link(&mut call)?, write: write(&mut call)? },
        "delete" => Call::Delete { item: link(&mut call)?, etag: take_string(&mut call, "etag") },
        _ => return None,
    })
}

fn link(call: &mut Object) -> Option<Link> {
    match take_string(call, "id") {
        Some(id) => Some(Link::Id(id)),
        None => take_string(call, "rid").map(Link::Rid),
    }
}

fn page(call: &mut Object) -> Page {
    const SIZE_DEFAULT: u32 = 100;
    let size = match call.get("pageSize") {
        Some(Value::Int64(size)) => u32::try_from(*size).unwrap_or(SIZE_DEFAULT),
        _ => SIZE_DEFAULT,
    };
    let continuation = take_string(call, "continuation").filter(|token| !token.is_empty());
    Page { size: size.max(1), continuation }
}

fn query(call: &mut Object) -> Option<Call> {
    let page = page(call);
    let (text, parameters) = match call.remove("query")? {
        Value::String(text) => (text, Vec::new()),
        Value::Object(mut query) => {
            let text = take_string(&mut query, "query")?;
            let given = match query.remove("parameters") {
                Some(Value::Array(given)) => given,
                None | Some(Value::Null) => Vec::new(),
                Some(_) => return None,
            };
            (text, given.into_iter().map(parameter).collect::<Option<_>>()?)
        }
        _ => return None,
    };
    Some(Call::Query { text, parameters, page })
}

fn parameter(given: Value) -> Option<(String, Value)> {
    let Value::Object(mut given) = given else { return None };
    Some((take_string(&mut given, "name")?, given.remove("value").unwrap_or(Value::Null)))
}

fn write(call: &mut Object) -> Option<Write> {
    let Some(Value::Object(body)) = call.remove("body") else { return None };
    let index = match take_string(call, "indexAction").as_deref() {
        Some("include") => IndexAction::Include,
        Some("exclude") => IndexAction::Exclude,
        None | Some("" | "default") => IndexAction::Default,
        Some(_) => return None,
    };
    let generates_id = call.get("generatesId") == Some(&Value::Bool(true));
    let etag = take_string(call, "etag").filter(|etag| !etag.is_empty());
    Some(Write { body, etag, generates_id, index })
}

fn take_string(object: &mut Object, name: &str) -> Option<String> {
    match object.remove(name) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}
