//! One run of a procedure or a trigger, from call to call.
//!
//! A run needs no thread and no task of its own: [`Run::start`] and [`Run::resume`] go on until the script waits for an
//! answer or has ended. `thread.rs` has the loop around it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use lazuli_value::{Object, Value};
use rquickjs::object::Property;
use rquickjs::{Ctx, Function};

use crate::call::{self, Answer, Call};
use crate::error::{Exception, ScriptError};
use crate::limits::{LOG_BYTES_MAX, Limits};
use crate::sandbox::{self, Sandbox};

/// The API that scripts see, as a function of what the host offers and of the input.
const SERVER: &str = include_str!("server.js");

/// The property of the global object that holds what `SERVER` returns.
const SERVER_NAME: &str = "$server";

/// What a run is given.
#[derive(Clone, Debug)]
pub struct Input {
    pub role: Role,
    /// The link of the container by resource ids, `dbs/…/colls/…/`.
    pub self_link: String,
    /// The link of the container by names.
    pub alt_link: String,
    /// The request: its headers as the script may see them. The body is the item of a trigger, the arguments of a
    /// procedure.
    pub request: Message,
    /// Whether `console.log` is kept.
    pub logging: bool,
}

/// What the script is run as.
#[derive(Clone, Debug)]
pub enum Role {
    Procedure {
        arguments: Vec<Value>,
    },
    /// Runs before the operation and may change its body.
    PreTrigger {
        operation: TriggerOperation,
    },
    /// Runs after the operation, in its transaction.
    PostTrigger {
        operation: TriggerOperation,
        response: Message,
    },
}

/// The operation that a trigger belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TriggerOperation {
    Create,
    Replace,
    Upsert,
    Delete,
}

impl TriggerOperation {
    fn name(self) -> &'static str {
        match self {
            Self::Create => "Create",
            Self::Replace => "Replace",
            Self::Upsert => "Upsert",
            Self::Delete => "Delete",
        }
    }
}

/// A request or a response.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Message {
    pub body: Option<Value>,
    pub headers: Vec<(String, String)>,
}

/// What a run waits for.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// The answer to this call.
    Call(Call),
    /// Nothing: the script has ended, and its transaction may be committed.
    Done(Outcome),
}

/// What a script leaves behind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// The body of the request: what a pre-trigger has made of it.
    pub request: Option<Value>,
    /// The body of the response.
    pub response: Option<Value>,
    pub log: String,
    /// How many calls of the host were answered.
    pub calls: usize,
}

/// What the script's functions and the run share.
#[derive(Default)]
struct Shared {
    calls: VecDeque<(Call, usize)>,
    pending_bytes: usize,
    accepted: usize,
    log: String,
    aborted: Option<Exception>,
}

pub struct Run {
    sandbox: Sandbox,
    shared: Arc<Mutex<Shared>>,
    limits: Limits,
    answered: usize,
}

impl Run {
    /// Compiles the script, calls its function, and goes on to its first call of the host, or to its end.
    pub fn start(source: &str, input: Input, limits: &Limits) -> Result<(Self, Step), ScriptError> {
        let sandbox = Sandbox::new(limits)?;
        let shared = Arc::new(Mutex::new(Shared::default()));
        let mut run = Self { sandbox, shared, limits: limits.clone(), answered: 0 };
        run.install(input)?;
        run.sandbox.compile(source)?;
        let called = run.sandbox.with(|ctx| {
            let start: Function<'_> = server(ctx)?.get("start")?;
            start.call::<_, ()>((sandbox::entry(ctx)?,))
        });
        let step = run.proceed(called)?;
        Ok((run, step))
    }

    /// Gives the script the answer to its call.
    pub fn resume(&mut self, answer: Answer) -> Result<Step, ScriptError> {
        self.answered += 1;
        let text = answer_text(answer);
        let called = self.sandbox.with(|ctx| {
            let deliver: Function<'_> = server(ctx)?.get("deliver")?;
            deliver.call::<_, ()>((text,))
        });
        self.proceed(called)
    }

    /// Builds the API inside of the sandbox.
    fn install(&mut self, input: Input) -> Result<(), ScriptError> {
        let setup = setup_text(input, self.limits.result_bytes);
        let (watch, limits) = (Arc::clone(&self.sandbox.watch), self.limits.clone());
        let shared = Arc::clone(&self.shared);
        let request = move |text: String| -> i32 {
            let mut shared = lock(&shared);
            let is_late = watch.elapsed() >= limits.accept_time;
            if is_late || shared.accepted >= limits.calls {
                return 0;
            }
            if shared.pending_bytes.saturating_add(text.len()) > limits.pending_bytes {
                return 0;
            }
            let Some(call) = call::read(&text) else { return -1 };
            shared.accepted += 1;
            shared.pending_bytes += text.len();
            shared.calls.push_back((call, text.len()));
            1
        };
        let shared = Arc::clone(&self.shared);
        let log = move |text: String| -> bool {
            let mut shared = lock(&shared);
            let fits = shared.log.len() + text.len() <= LOG_BYTES_MAX;
            if fits {
                shared.log.push_str(&text);
            }
            fits
        };
        let shared = Arc::clone(&self.shared);
        let abort = move |reason: rquickjs::Value<'_>| {
            lock(&shared).aborted = Some(sandbox::read_exception(&reason));
        };
        self.sandbox.with(|ctx| {
            let native = rquickjs::Object::new(ctx.clone())?;
            native.set("request", Function::new(ctx.clone(), request)?)?;
            native.set("log", Function::new(ctx.clone(), log)?)?;
            native.set("abort", Function::new(ctx.clone(), abort)?)?;
            let make: Function<'_> = ctx.eval_with_options(SERVER, sandbox::strict())?;
            let made: rquickjs::Object<'_> = make.call((native, ctx.json_parse(setup)?))?;
            ctx.globals().prop(SERVER_NAME, Property::from(made))
        })
    }

    /// After the script has run for a while: what it waits for now.
    fn proceed(&mut self, called: Result<(), ScriptError>) -> Result<Step, ScriptError> {
        let settled = called.and_then(|()| self.sandbox.settle());
        let mut shared = lock(&self.shared);
        if let Some(reason) = shared.aborted.take() {
            return Err(ScriptError::Thrown(reason));
        }
        settled?;
        if self.sandbox.watch.is_over() {
            return Err(ScriptError::Time);
        }
        if let Some((call, bytes)) = shared.calls.pop_front() {
            shared.pending_bytes -= bytes;
            return Ok(Step::Call(call));
        }
        let log = std::mem::take(&mut shared.log);
        drop(shared);
        self.outcome(log).map(Step::Done)
    }

    fn outcome(&self, log: String) -> Result<Outcome, ScriptError> {
        let text: String = self.sandbox.with(|ctx| {
            let outcome: Function<'_> = server(ctx)?.get("outcome")?;
            outcome.call(())
        })?;
        if text.len() > self.limits.result_bytes {
            return Err(ScriptError::TooLarge);
        }
        let Ok(Value::Object(mut bodies)) = Value::from_json(text.as_bytes()) else {
            return Err(ScriptError::Engine("the outcome of a script is no JSON".to_owned()));
        };
        let (request, response) = (bodies.remove("request"), bodies.remove("response"));
        Ok(Outcome { request, response, log, calls: self.answered })
    }
}

fn server<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<rquickjs::Object<'js>> {
    ctx.globals().get(SERVER_NAME)
}

/// Nothing that holds the lock can panic half-way through a change.
fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn setup_text(input: Input, body_max: usize) -> String {
    let mut setup = Object::new();
    let Input { role, self_link, alt_link, mut request, logging } = input;
    let (kind, arguments, operation, response) = match role {
        Role::Procedure { arguments } => {
            request.body.get_or_insert_with(|| Value::Array(arguments.clone()));
            ("procedure", arguments, None, Some(Message::default()))
        }
        Role::PreTrigger { operation } => ("pre", Vec::new(), Some(operation), None),
        Role::PostTrigger { operation, response } => {
            ("post", Vec::new(), Some(operation), Some(response))
        }
    };
    setup.insert("kind", Value::from(kind));
    setup.insert("selfLink", Value::String(self_link));
    setup.insert("altLink", Value::String(alt_link));
    setup.insert("logging", Value::Bool(logging));
    setup.insert("bodyMax", Value::Int64(i64::try_from(body_max).unwrap_or(i64::MAX)));
    setup.insert("arguments", Value::Array(arguments));
    setup.insert("request", message(request));
    if let Some(operation) = operation {
        setup.insert("operation", Value::from(operation.name()));
    }
    if let Some(response) = response {
        setup.insert("response", message(response));
    }
    Value::Object(setup).to_json()
}

fn message(message: Message) -> Value {
    let mut headers = Object::new();
    for (name, value) in message.headers {
        headers.insert(name, Value::String(value));
    }
    let mut object = Object::new();
    object.insert("headers", Value::Object(headers));
    if let Some(body) = message.body {
        object.insert("body", body);
    }
    Value::Object(object)
}

fn answer_text(answer: Answer) -> String {
    let mut object = Object::new();
    match answer {
        Answer::Item(item) => {
            object.insert("item", item);
        }
        Answer::NotModified => {
            object.insert("notModified", Value::Bool(true));
        }
        Answer::Feed { items, continuation } => {
            object.insert("items", Value::Array(items));
            if let Some(continuation) = continuation {
                object.insert("continuation", Value::String(continuation));
            }
        }
        Answer::Deleted => {}
        Answer::Failed { status, message } => {
            object.insert("status", Value::Int64(i64::from(status)));
            object.insert("message", Value::String(message));
        }
    }
    Value::Object(object).to_json()
}
