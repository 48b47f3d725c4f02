//! Stored procedures, triggers and user-defined functions: checked when they are kept, run by `lazuli_scripts`.
//!
//! What a script does is one transaction ([`Attempt`]). If others have changed what it has read, it is run again.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use lazuli_http::uri::percent_encode;
use lazuli_http::{Response, StatusCode};
use lazuli_query::evaluate::UserFunctions;
use lazuli_query::{ErrorKind, QueryError};
use lazuli_scripts::{Input, Message, Role, ScriptError, TriggerOperation, Udf};
use lazuli_shapes::document::{Etag, Operation, Outcome, PartitionKey, Resource, ResourceKind};
use lazuli_value::{Object, Value};

use crate::address::ContainerName;
use crate::attempt::{Attempt, Change};
use crate::charge;
use crate::containers::Opened;
use crate::error::{Fault, Result, Status};
use crate::items::{of_container, parse};
use crate::request::Kind;
use crate::resources::{all, link};
use crate::session::Seen;
use crate::{Call, Front, response};

/// How often a script is run if what it has read was changed meanwhile.
const ATTEMPTS_MAX: usize = 10;

/// Checks the body of a script.
pub(crate) fn checked(kind: Kind, body: Object) -> Result<Object> {
    let Some(Value::String(source)) = body.get("body") else {
        return Err(Fault::bad_input("a script needs a text 'body'"));
    };
    lazuli_scripts::check(source, &Default::default()).map_err(failed)?;
    let is_one_of = |name: &str, words: &[&str]| match body.get(name) {
        Some(Value::String(text)) => words.iter().any(|word| text.eq_ignore_ascii_case(word)),
        _ => false,
    };
    let is_good = kind != Kind::Trigger
        || (is_one_of("triggerType", &["Pre", "Post"])
            && is_one_of("triggerOperation", &["All", "Create", "Update", "Delete", "Replace"]));
    if is_good {
        return Ok(body);
    }
    Err(Fault::bad_input("a trigger needs a triggerType and a triggerOperation"))
}

/// The end of a script that did not end well.
fn failed(error: ScriptError) -> Fault {
    let status = match error.status() {
        403 => Status::Forbidden,
        408 => Status::RequestTimeout,
        413 => Status::RequestEntityTooLarge,
        500 => Status::InternalServerError,
        503 => Status::ServiceUnavailable,
        _ => Status::BadRequest,
    };
    let fault =
        Fault::new(status, format!("Encountered exception while executing Javascript. {error}"));
    match error.substatus().and_then(|number| u32::try_from(number).ok()) {
        Some(number) => fault.substatus(number),
        None => fault,
    }
}

fn source(script: &Resource) -> Arc<str> {
    match &script.body {
        Value::Object(body) => match body.get("body") {
            Some(Value::String(source)) => Arc::from(source.as_str()),
            _ => Arc::from(""),
        },
        _ => Arc::from(""),
    }
}

fn input(call: &Call, opened: &Opened, role: Role, body: Option<Value>) -> Input {
    Input {
        role,
        self_link: link(Kind::Container, &opened.resource.rid),
        alt_link: opened.path(),
        request: Message { body, headers: Vec::new() },
        logging: call.headers.logs_scripts,
    }
}

/// Runs a stored procedure on one partition key.
pub(crate) async fn execute(
    front: &Front,
    call: &Call,
    container: &ContainerName,
    id: &str,
    body: &[u8],
) -> Result<Response> {
    let began = Instant::now();
    let opened = front.open(call, container).await?;
    let key = front.key(call, &opened)?;
    let account = &call.sender.account;
    let parent = Some(&opened.resource.rid);
    let found = front.find(account, ResourceKind::Procedure, parent, id).await?;
    let source = source(&found.ok_or_else(Fault::not_found)?);
    let arguments = arguments(body)?;
    let budget = front.admit_key(call, &opened, &key).await?;
    for _ in 0..ATTEMPTS_MAX {
        let mut attempt = Attempt::new(front, call, &opened, &key)?;
        let role = Role::Procedure { arguments: arguments.clone() };
        let input = input(call, &opened, role, Some(Value::Array(arguments.clone())));
        let ended = front.scripts.run(source.clone(), input, &mut attempt).await;
        if attempt.is_stale() {
            continue;
        }
        let ended = ended.map_err(failed)?;
        let Some((outcomes, units)) = attempt.commit().await? else { continue };
        let units = charge::script(began.elapsed().as_millis() as u64, units);
        budget.take(units);
        let body = ended.response.map_or_else(|| "\"\"".to_owned(), |body| body.to_json());
        let mut response = response::text(StatusCode::OK, body);
        if call.headers.logs_scripts {
            response =
                response.with("x-ms-documentdb-script-log-results", percent_encode(&ended.log));
        }
        let last = outcomes.last();
        let seen = last.map(|last| Seen { range: last.range.0, lsn: last.lsn.0 });
        return Ok(response::charged(of_container(&opened, response, seen), units));
    }
    Err(conflict())
}

fn conflict() -> Fault {
    Fault::new(
        Status::RetryWith,
        "Conflicting request to resource has been attempted. Retry to avoid conflicts.",
    )
}

fn arguments(body: &[u8]) -> Result<Vec<Value>> {
    if body.is_empty() {
        return Ok(Vec::new());
    }
    match parse(body)? {
        Value::Array(arguments) => Ok(arguments),
        Value::Null => Ok(Vec::new()),
        one => Ok(vec![one]),
    }
}

/// An operation on an item with the triggers that the request names, all in one transaction.
pub(crate) async fn with_triggers(
    front: &Front,
    call: &Call,
    opened: &Opened,
    key: &PartitionKey,
    operation: &Operation,
) -> Result<Outcome> {
    let change = Change::of(operation)?;
    let pre = triggers(front, call, opened, &call.headers.pre_triggers, "Pre", &change).await?;
    let post = triggers(front, call, opened, &call.headers.post_triggers, "Post", &change).await?;
    for _ in 0..ATTEMPTS_MAX {
        let mut attempt = Attempt::new(front, call, opened, key)?;
        let done = in_attempt(front, call, opened, &mut attempt, change.clone(), &pre, &post).await;
        if attempt.is_stale() {
            continue;
        }
        let place = done?;
        let Some((mut outcomes, _)) = attempt.commit().await? else { continue };
        if place < outcomes.len() {
            return Ok(outcomes.swap_remove(place));
        }
        return Err(Fault::internal("an operation without an outcome"));
    }
    Err(conflict())
}

/// The triggers and their operation. Answers the place of the operation among all that were made.
async fn in_attempt(
    front: &Front,
    call: &Call,
    opened: &Opened,
    attempt: &mut Attempt<'_>,
    mut change: Change,
    pre: &[Arc<str>],
    post: &[Arc<str>],
) -> Result<usize> {
    for source in pre {
        let role = Role::PreTrigger { operation: change.trigger() };
        let input = input(call, opened, role, change.body());
        let ended = front.scripts.run(source.clone(), input, attempt).await;
        if let Some(body) = ended.map_err(failed)?.request {
            change.set_body(body);
        }
    }
    let place = attempt.made();
    let written = attempt.apply(&change).await?;
    for source in post {
        let response = Message { body: written.clone(), headers: Vec::new() };
        let role = Role::PostTrigger { operation: change.trigger(), response };
        let input = input(call, opened, role, change.body());
        front.scripts.run(source.clone(), input, attempt).await.map_err(failed)?;
    }
    Ok(place)
}

/// The sources of triggers that the request names.
async fn triggers(
    front: &Front,
    call: &Call,
    opened: &Opened,
    names: &[String],
    kind: &str,
    change: &Change,
) -> Result<Vec<Arc<str>>> {
    let mut sources = Vec::new();
    for name in names {
        let parent = Some(&opened.resource.rid);
        let found = front.find(&call.sender.account, ResourceKind::Trigger, parent, name).await?;
        let Some(found) = found else {
            return Err(Fault::bad_request(format!("The trigger '{name}' does not exist.")));
        };
        let says = |property: &str, word: &str| match &found.body {
            Value::Object(body) => {
                matches!(body.get(property), Some(Value::String(text)) if text.eq_ignore_ascii_case(word))
            }
            _ => false,
        };
        if !says("triggerType", kind) {
            let message = format!("The trigger '{name}' is no {kind}-trigger.");
            return Err(Fault::bad_request(message));
        }
        let words: &[&str] = match change.trigger() {
            TriggerOperation::Create => &["All", "Create"],
            TriggerOperation::Replace => &["All", "Replace", "Update"],
            TriggerOperation::Upsert => &["All", "Create", "Update"],
            TriggerOperation::Delete => &["All", "Delete"],
        };
        if !words.iter().any(|word| says("triggerOperation", word)) {
            return Err(Fault::bad_request(format!(
                "The trigger '{name}' is not for this type of operation."
            )));
        }
        sources.push(source(&found));
    }
    Ok(sources)
}

/// The user-defined functions of a container, for a query that calls some.
pub(crate) async fn functions(
    front: &Front,
    call: &Call,
    opened: &Opened,
) -> Result<Box<dyn UserFunctions>> {
    let found = all(front, call, ResourceKind::Function, Some(&opened.resource)).await?;
    let sources = found.iter().map(|one| (one.id.clone(), source(one))).collect();
    Ok(Box::new(Functions { sources, compiled: RefCell::default() }))
}

/// Functions that are compiled at their first call.
struct Functions {
    sources: BTreeMap<String, Arc<str>>,
    compiled: RefCell<BTreeMap<String, Udf>>,
}

impl UserFunctions for Functions {
    fn call(
        &self,
        name: &str,
        arguments: &[Option<Value>],
    ) -> std::result::Result<Option<Value>, QueryError> {
        let bad = |error: String| QueryError::new(ErrorKind::Function, error);
        let mut compiled = self.compiled.borrow_mut();
        if !compiled.contains_key(name) {
            let Some(source) = self.sources.get(name) else {
                return Err(bad(format!("There is no user-defined function '{name}'.")));
            };
            let udf = Udf::compile(source, &Default::default());
            compiled.insert(name.to_owned(), udf.map_err(|error| bad(error.to_string()))?);
        }
        let Some(udf) = compiled.get_mut(name) else { return Ok(None) };
        udf.call(arguments).map_err(|error| bad(error.to_string()))
    }
}

/// The condition of an etag that a script names.
pub(crate) fn etag_condition(text: Option<&str>) -> Result<Etag> {
    match text.filter(|text| !text.is_empty() && *text != "*") {
        None => Ok(Etag::Any),
        Some(text) => {
            let version = lazuli_shapes::document::etag_version(text);
            version.map(Etag::Is).ok_or_else(Fault::precondition)
        }
    }
}
