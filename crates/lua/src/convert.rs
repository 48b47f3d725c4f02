//! Replies as values of Lua, and values of Lua as replies.

use lazuli_resp::Answer;
use mlua::{Lua, Table, Value};

use crate::ScriptError;
use crate::limits::DEPTH_MAX;
use crate::number::{self, double};

/// An argument of a command: a string, or a number as Lua writes it (whole numbers in full).
pub(crate) fn argument(value: &Value) -> Vec<u8> {
    match value {
        Value::String(text) => text.as_bytes().to_vec(),
        Value::Integer(number) => number.to_string().into_bytes(),
        Value::Number(number) => number_text(*number).into_bytes(),
        _ => Vec::new(),
    }
}

fn number_text(number: f64) -> String {
    if number == number.trunc() && number.abs() < 9e17 {
        return (number as i64).to_string();
    }
    double(number, 17)
}

fn tagged(lua: &Lua, tag: &str, content: Value) -> mlua::Result<Value> {
    let table = lua.create_table()?;
    table.set(tag, content)?;
    Ok(Value::Table(table))
}

fn string(lua: &Lua, bytes: &[u8]) -> mlua::Result<Value> {
    lua.create_string(bytes).map(Value::String)
}

/// A reply as a script sees it.
pub(crate) fn value(lua: &Lua, answer: &Answer, is_resp3: bool) -> mlua::Result<Value> {
    let list = |answers: &[Answer]| -> mlua::Result<Value> {
        let table = lua.create_table_with_capacity(answers.len(), 0)?;
        for (index, answer) in answers.iter().enumerate() {
            table.raw_set(index + 1, value(lua, answer, is_resp3)?)?;
        }
        Ok(Value::Table(table))
    };
    match answer {
        Answer::Simple(text) => tagged(lua, "ok", string(lua, text)?),
        Answer::Error(text) => tagged(lua, "err", string(lua, text)?),
        Answer::Integer(number) => Ok(Value::Number(*number as f64)),
        Answer::Bulk(text) => string(lua, text),
        Answer::Null(_) if is_resp3 => Ok(Value::Nil),
        Answer::Null(_) => Ok(Value::Boolean(false)),
        Answer::Array(answers) | Answer::Push(answers) => list(answers),
        Answer::Map(pairs) => {
            let table = lua.create_table()?;
            for (key, content) in pairs {
                table.raw_set(value(lua, key, is_resp3)?, value(lua, content, is_resp3)?)?;
            }
            tagged(lua, "map", Value::Table(table))
        }
        Answer::Set(members) => {
            let table = lua.create_table()?;
            for member in members {
                table.raw_set(value(lua, member, is_resp3)?, true)?;
            }
            tagged(lua, "set", Value::Table(table))
        }
        Answer::Double(number) => tagged(lua, "double", Value::Number(*number)),
        Answer::Boolean(is_true) => Ok(Value::Boolean(*is_true)),
        Answer::BigNumber(digits) => tagged(lua, "big_number", string(lua, digits)?),
        Answer::Verbatim(format, text) => {
            let table = lua.create_table()?;
            table.set("format", string(lua, format)?)?;
            table.set("string", string(lua, text)?)?;
            tagged(lua, "verbatim_string", Value::Table(table))
        }
    }
}

fn bytes(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::String(text) => Some(text.as_bytes().to_vec()),
        _ => None,
    }
}

/// What a script returned, as a reply.
pub(crate) fn answer(value: &Value, is_resp3: bool, depth: usize) -> Answer {
    if depth > DEPTH_MAX {
        return Answer::Error(b"ERR reached lua stack limit".to_vec());
    }
    match value {
        Value::String(text) => Answer::Bulk(text.as_bytes().to_vec()),
        Value::Integer(number) => Answer::Integer(*number),
        Value::Number(number) => Answer::Integer(*number as i64),
        Value::Boolean(is_true) if is_resp3 => Answer::Boolean(*is_true),
        Value::Boolean(true) => Answer::Integer(1),
        Value::Table(table) => table_answer(table, is_resp3, depth),
        _ => Answer::Null(false),
    }
}

fn table_answer(table: &Table, is_resp3: bool, depth: usize) -> Answer {
    let field = |name: &str| table.raw_get::<Value>(name).unwrap_or(Value::Nil);
    if let Some(text) = bytes(&field("err")) {
        return Answer::Error(text);
    }
    if let Some(text) = bytes(&field("ok")) {
        return Answer::Simple(
            text.into_iter().filter(|it| !matches!(it, b'\r' | b'\n')).collect(),
        );
    }
    if let Some(number) = number::of(&field("double")) {
        return Answer::Double(number);
    }
    let next = |value: &Value| answer(value, is_resp3, depth + 1);
    if let Value::Table(map) = field("map") {
        let pairs = map.pairs::<Value, Value>().filter_map(Result::ok);
        return Answer::Map(pairs.map(|(key, value)| (next(&key), next(&value))).collect());
    }
    if let Value::Table(set) = field("set") {
        let pairs = set.pairs::<Value, Value>().filter_map(Result::ok);
        return Answer::Set(pairs.map(|(member, _)| next(&member)).collect());
    }
    if let Some(digits) = bytes(&field("big_number")) {
        return Answer::BigNumber(digits);
    }
    if let Value::Table(verbatim) = field("verbatim_string") {
        let part = |name: &str| bytes(&verbatim.raw_get::<Value>(name).unwrap_or(Value::Nil));
        if let (Some(format), Some(text)) = (part("format"), part("string")) {
            return Answer::Verbatim(format, text);
        }
    }
    let mut items = Vec::new();
    for index in 1.. {
        match table.raw_get::<Value>(index).unwrap_or(Value::Nil) {
            Value::Nil => break,
            item => items.push(next(&item)),
        }
    }
    Answer::Array(items)
}

/// The error of a script that failed, with the place it failed at.
pub(crate) fn failure(value: &Value, name: &str) -> ScriptError {
    let Value::Table(table) = value else {
        // A script that has no memory left cannot even say where.
        let text = value.to_string().unwrap_or_default();
        return ScriptError(format!("ERR {text} script: {name}"));
    };
    let text = |field: &str| {
        let value = table.raw_get::<Value>(field).unwrap_or(Value::Nil);
        value.to_string().ok().filter(|_| !value.is_nil())
    };
    let message = text("err").unwrap_or_else(|| "ERR unknown error".into());
    let place = text("source").zip(text("line"));
    let place = place.map(|(source, line)| format!(", on {source}:{line}.")).unwrap_or_default();
    ScriptError(format!("{message} script: {name}{place}"))
}
