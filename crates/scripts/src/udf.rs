//! User-defined functions of the query language.

use std::time::{Duration, Instant};

use lazuli_value::Value;
use rquickjs::function::Args;
use rquickjs::{Ctx, Function};

use crate::error::ScriptError;
use crate::limits::Limits;
use crate::sandbox::{self, Sandbox};

/// A compiled function. A query makes one, calls it for each row, and drops it.
pub struct Udf {
    sandbox: Sandbox,
    /// What is left of the time of all calls together.
    time_left: Duration,
    result_bytes: usize,
}

impl Udf {
    pub fn compile(source: &str, limits: &Limits) -> Result<Self, ScriptError> {
        let sandbox = Sandbox::new(limits)?;
        sandbox.compile(source)?;
        Ok(Self { sandbox, time_left: limits.time, result_bytes: limits.result_bytes })
    }

    /// Calls the function. An absent argument is `undefined`, and so is an absent result.
    pub fn call(&mut self, arguments: &[Option<Value>]) -> Result<Option<Value>, ScriptError> {
        if self.time_left.is_zero() {
            return Err(ScriptError::Time);
        }
        let began = Instant::now();
        self.sandbox.watch.allow(self.time_left);
        let result = self.sandbox.with(|ctx| {
            let function: Function<'_> = sandbox::entry(ctx)?;
            let mut given = Args::new(ctx.clone(), arguments.len());
            for argument in arguments {
                given.push_arg(to_script(ctx, argument.as_ref())?)?;
            }
            let value: rquickjs::Value<'_> = given.apply(&function)?;
            from_script(ctx, value)
        });
        self.time_left = self.time_left.saturating_sub(began.elapsed());
        match result? {
            Returned::Value(value) => Ok(value),
            Returned::Json(text) if text.len() > self.result_bytes => Err(ScriptError::TooLarge),
            // JSON has no form for half of a surrogate pair, and a result may not nest deeper than an item.
            Returned::Json(text) => Ok(Value::from_json(text.as_bytes()).ok()),
        }
    }
}

/// A result as it leaves the engine.
enum Returned {
    Value(Option<Value>),
    Json(String),
}

fn to_script<'js>(ctx: &Ctx<'js>, value: Option<&Value>) -> rquickjs::Result<rquickjs::Value<'js>> {
    Ok(match value {
        None => rquickjs::Value::new_undefined(ctx.clone()),
        Some(Value::Null) => rquickjs::Value::new_null(ctx.clone()),
        Some(Value::Bool(value)) => rquickjs::Value::new_bool(ctx.clone(), *value),
        // A script has doubles only, as the service's have.
        Some(Value::Int64(number)) => rquickjs::Value::new_number(ctx.clone(), *number as f64),
        Some(Value::Double(number)) => rquickjs::Value::new_number(ctx.clone(), *number),
        Some(Value::String(text)) => rquickjs::String::from_str(ctx.clone(), text)?.into_value(),
        Some(other) => ctx.json_parse(other.to_json())?,
    })
}

fn from_script<'js>(ctx: &Ctx<'js>, value: rquickjs::Value<'js>) -> rquickjs::Result<Returned> {
    if value.is_undefined() || value.is_function() || value.is_symbol() {
        return Ok(Returned::Value(None));
    }
    if value.is_null() {
        return Ok(Returned::Value(Some(Value::Null)));
    }
    if let Some(value) = value.as_bool() {
        return Ok(Returned::Value(Some(Value::Bool(value))));
    }
    if let Some(number) = value.as_number() {
        return Ok(Returned::Value(Some(Value::number(number).unwrap_or(Value::Null))));
    }
    match ctx.json_stringify(value)? {
        Some(text) => Ok(Returned::Json(text.to_string()?)),
        None => Ok(Returned::Value(None)),
    }
}
