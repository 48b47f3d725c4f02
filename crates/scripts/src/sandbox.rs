//! One engine with one script in it: its heap, its deadline, and how its exceptions are read.
//!
//! A sandbox has the language and nothing else: no files, no network, no modules, no timers. It is made for one script
//! and dropped with it, so no script finds anything that another one left behind.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rquickjs::context::{EvalOptions, intrinsic};
use rquickjs::object::Property;
use rquickjs::{Context, Ctx, Function, Object, Runtime, Value};

use crate::error::{Exception, ScriptError};
use crate::limits::{Limits, MESSAGE_BYTES_MAX, SOURCE_BYTES_MAX};

/// What a script may use of the language. `Proxy` is left out: functions of the engine that loop natively trust the
/// length that an object says it has, and `guard.js` could not check it.
type Language = (
    intrinsic::Date,
    intrinsic::Eval,
    intrinsic::RegExpCompiler,
    intrinsic::RegExp,
    intrinsic::Json,
    intrinsic::MapSet,
    intrinsic::TypedArrays,
    intrinsic::Promise,
);

/// Keeps functions of the language whose time grows without bound from running past the deadline.
const GUARD: &str = include_str!("guard.js");

/// The property of the global object that holds the script's function. It can be seen by the script and not be changed.
const ENTRY: &str = "$script";

/// The deadline of a script, shared with the handler that the engine calls every few thousand steps.
pub(crate) struct Watch {
    started: Instant,
    /// Nanoseconds after `started`.
    deadline_ns: AtomicU64,
}

impl Watch {
    fn new() -> Self {
        Self { started: Instant::now(), deadline_ns: AtomicU64::new(0) }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Sets the deadline to this time after now.
    pub(crate) fn allow(&self, time: Duration) {
        let deadline = self.started.elapsed().saturating_add(time);
        let nanos = u64::try_from(deadline.as_nanos()).unwrap_or(u64::MAX);
        self.deadline_ns.store(nanos, Ordering::Relaxed);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.started.elapsed().as_nanos() >= u128::from(self.deadline_ns.load(Ordering::Relaxed))
    }
}

pub(crate) struct Sandbox {
    context: Context,
    runtime: Runtime,
    pub(crate) watch: Arc<Watch>,
}

impl Sandbox {
    pub(crate) fn new(limits: &Limits) -> Result<Self, ScriptError> {
        let runtime = Runtime::new().map_err(engine)?;
        runtime.set_memory_limit(limits.memory_bytes);
        runtime.set_max_stack_size(limits.stack_bytes);
        let watch = Arc::new(Watch::new());
        watch.allow(limits.time);
        let deadline = Arc::clone(&watch);
        runtime.set_interrupt_handler(Some(Box::new(move || deadline.is_over())));
        let context = Context::custom::<Language>(&runtime).map_err(engine)?;
        let sandbox = Self { context, runtime, watch };
        sandbox.with(|ctx| ctx.eval_with_options::<(), _>(GUARD, strict()))?;
        Ok(sandbox)
    }

    /// Runs something in the engine and reads the exception that it ends with.
    pub(crate) fn with<R>(
        &self,
        run: impl FnOnce(&Ctx<'_>) -> rquickjs::Result<R>,
    ) -> Result<R, ScriptError> {
        self.context.with(|ctx| {
            let result = run(&ctx);
            result.map_err(|error| self.read_error(&ctx, error))
        })
    }

    /// Runs what promises have left to do.
    pub(crate) fn settle(&self) -> Result<(), ScriptError> {
        loop {
            if self.watch.is_over() {
                return Err(ScriptError::Time);
            }
            match self.runtime.execute_pending_job() {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                // The engine reports here only what ends it: an exception in a promise becomes its rejection.
                Err(_) if self.watch.is_over() => return Err(ScriptError::Time),
                Err(_) => return Err(ScriptError::Memory),
            }
        }
    }

    /// Compiles a script. Its text is a function, or several of which the first is the one that is called.
    pub(crate) fn compile(&self, source: &str) -> Result<(), ScriptError> {
        if source.len() > SOURCE_BYTES_MAX {
            return Err(ScriptError::Source(format!("it has more than {SOURCE_BYTES_MAX} bytes")));
        }
        if source.contains('\0') {
            return Err(ScriptError::Source("it holds a NUL character".to_owned()));
        }
        let as_expression = self.with(|ctx| {
            ctx.eval_with_options::<Value<'_>, _>(format!("({source}\n)"), sloppy())
                .map(|value| value.into_function().map(|function| keep(ctx, function)))
        });
        match as_expression {
            Ok(Some(kept)) => return kept.map_err(engine),
            Ok(None) => {}
            Err(ScriptError::Thrown(exception)) if exception.text.starts_with("SyntaxError") => {}
            Err(error) => return Err(error),
        }
        let found = self.with(|ctx| {
            let before: Vec<String> = ctx.globals().keys().collect::<rquickjs::Result<_>>()?;
            let value: Value<'_> = ctx.eval_with_options(source, sloppy())?;
            let function = match value.into_function() {
                Some(function) => Some(function),
                None => first_function(ctx, &before)?,
            };
            function.map(|function| keep(ctx, function)).transpose()
        });
        match found {
            Ok(Some(())) => Ok(()),
            Ok(None) => Err(ScriptError::Source("it holds no function".to_owned())),
            Err(ScriptError::Thrown(exception)) => Err(ScriptError::Source(exception.text)),
            Err(error) => Err(error),
        }
    }

    fn read_error(&self, ctx: &Ctx<'_>, error: rquickjs::Error) -> ScriptError {
        match error {
            rquickjs::Error::Exception => {
                let thrown = ctx.catch();
                if self.watch.is_over() {
                    return ScriptError::Time;
                }
                let exception = read_exception(&thrown);
                if exception.text.ends_with("out of memory") || thrown.is_null() {
                    return ScriptError::Memory;
                }
                ScriptError::Thrown(exception)
            }
            rquickjs::Error::Allocation => ScriptError::Memory,
            // A text of the script with half of a surrogate pair has no form in UTF-8.
            rquickjs::Error::Utf8(_) => ScriptError::Thrown(Exception {
                text: "Error: a text of the script is not valid Unicode".to_owned(),
                ..Exception::default()
            }),
            other => ScriptError::Engine(other.to_string()),
        }
    }
}

/// The compiled function of the script.
pub(crate) fn entry<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<Function<'js>> {
    ctx.globals().get(ENTRY)
}

fn keep<'js>(ctx: &Ctx<'js>, function: Function<'js>) -> rquickjs::Result<()> {
    ctx.globals().prop(ENTRY, Property::from(function))
}

/// The first function among the global names that the script has added.
fn first_function<'js>(
    ctx: &Ctx<'js>,
    before: &[String],
) -> rquickjs::Result<Option<Function<'js>>> {
    let globals = ctx.globals();
    for name in globals.keys::<String>() {
        let name = name?;
        if before.contains(&name) {
            continue;
        }
        let value: Value<'js> = globals.get(name)?;
        if let Some(function) = value.into_function() {
            return Ok(Some(function));
        }
    }
    Ok(None)
}

/// Reads an exception. Its properties may be functions of the script: they run within its limits, and what they throw
/// counts as absent.
pub(crate) fn read_exception(thrown: &Value<'_>) -> Exception {
    if let Some(error) = thrown.as_object().filter(|object| object.is_error()) {
        let name = text_of(error, "name").unwrap_or_else(|| "Error".to_owned());
        let message = text_of(error, "message").unwrap_or_default();
        let stack = text_of(error, "stack").unwrap_or_default();
        let text = if message.is_empty() { name } else { format!("{name}: {message}") };
        let number = error.get::<_, i64>("number").ok();
        error.ctx().catch();
        return Exception { text: cut(text), stack: cut(stack), number };
    }
    let text = if let Some(text) = thrown.as_string() {
        text.to_string().unwrap_or_default()
    } else if let Some(number) = thrown.as_number() {
        number.to_string()
    } else if let Some(value) = thrown.as_bool() {
        value.to_string()
    } else if thrown.is_null() || thrown.is_undefined() {
        thrown.type_name().to_owned()
    } else {
        "[object Object]".to_owned()
    };
    Exception { text: cut(text), ..Exception::default() }
}

fn text_of(object: &Object<'_>, name: &str) -> Option<String> {
    match object.get::<_, rquickjs::String<'_>>(name) {
        Ok(text) => text.to_string().ok(),
        Err(_) => {
            object.ctx().catch();
            None
        }
    }
}

/// The text up to its limit, at the boundary of a character.
fn cut(mut text: String) -> String {
    if text.len() > MESSAGE_BYTES_MAX {
        let mut end = MESSAGE_BYTES_MAX;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
    }
    text
}

pub(crate) fn engine(error: rquickjs::Error) -> ScriptError {
    match error {
        rquickjs::Error::Allocation => ScriptError::Memory,
        other => ScriptError::Engine(other.to_string()),
    }
}

/// How the text of scripts is evaluated: as the service does, without strict mode.
fn sloppy() -> EvalOptions {
    let mut options = EvalOptions::default();
    options.strict = false;
    options.filename = Some("script.js".to_owned());
    options
}

/// How our own texts are evaluated.
pub(crate) fn strict() -> EvalOptions {
    let mut options = EvalOptions::default();
    options.filename = Some("server.js".to_owned());
    options
}
