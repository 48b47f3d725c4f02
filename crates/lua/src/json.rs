//! The library `cjson`.

use mlua::{Lua, Table, Value};

use crate::limits::DEPTH_MAX;
use crate::number::{self, double};
use crate::sandbox::{done, failed, functions};

/// Digits of numbers in texts.
const DIGITS: usize = 14;
/// An array may be so many times longer than it has elements, once it is longer than `DENSE_LENGTH`.
const SPARSE_RATIO: f64 = 2.0;
const DENSE_LENGTH: f64 = 10.0;

pub(crate) fn library(lua: &Lua) -> mlua::Result<Table> {
    functions(
        lua,
        vec![
            ("encode", |lua, args| {
                let mut text = Vec::new();
                match encode(args.front().unwrap_or(&Value::Nil), &mut text, 0) {
                    Ok(()) => done(lua, lua.create_string(&text)?),
                    Err(message) => failed(lua, &message),
                }
            }),
            ("decode", |lua, args| {
                let Some(Value::String(text)) = args.front() else {
                    return failed(lua, "bad argument #1 to 'decode' (string expected)");
                };
                let bytes = text.as_bytes();
                let mut parser = Parser { lua, text: &bytes, at: 0 };
                match parser.whole() {
                    Ok(value) => done(lua, value),
                    Err(message) => failed(lua, &message),
                }
            }),
            // The settings of the library that scripts may call are taken as they are by default.
            ("encode_keep_buffer", |lua, _| done(lua, true)),
            ("encode_max_depth", |lua, _| done(lua, DEPTH_MAX)),
            ("decode_max_depth", |lua, _| done(lua, DEPTH_MAX)),
        ],
    )
}

fn encode(value: &Value, out: &mut Vec<u8>, depth: usize) -> Result<(), String> {
    if depth > DEPTH_MAX {
        return Err(format!("Cannot serialise, excessive depth ({depth})"));
    }
    match value {
        Value::Nil => out.extend_from_slice(b"null"),
        Value::LightUserData(pointer) if pointer.0.is_null() => out.extend_from_slice(b"null"),
        Value::Boolean(is_true) => out.extend_from_slice(if *is_true { b"true" } else { b"false" }),
        Value::Integer(number) => out.extend_from_slice(number.to_string().as_bytes()),
        Value::Number(number) => {
            if !number.is_finite() {
                return Err("Cannot serialise number: must not be NaN or Inf".into());
            }
            out.extend_from_slice(double(*number, DIGITS).as_bytes());
        }
        Value::String(text) => encode_text(&text.as_bytes(), out),
        Value::Table(table) => encode_table(table, out, depth)?,
        other => {
            return Err(format!("Cannot serialise {}: type not supported", other.type_name()));
        }
    }
    Ok(())
}

fn encode_text(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for byte in text {
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'/' => out.extend_from_slice(b"\\/"),
            8 => out.extend_from_slice(b"\\b"),
            9 => out.extend_from_slice(b"\\t"),
            10 => out.extend_from_slice(b"\\n"),
            12 => out.extend_from_slice(b"\\f"),
            13 => out.extend_from_slice(b"\\r"),
            0..32 | 127 => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => out.push(*byte),
        }
    }
    out.push(b'"');
}

/// The length of a table that is an array, or none.
fn array_length(table: &Table) -> Result<Option<usize>, String> {
    let (mut highest, mut count) = (0.0_f64, 0.0);
    for pair in table.pairs::<Value, Value>() {
        let (key, _) = pair.map_err(|error| error.to_string())?;
        match number::of(&key).filter(|_| !key.is_string()) {
            Some(index) if index > 0.0 && index == index.floor() => {
                highest = highest.max(index);
                count += 1.0;
            }
            _ => return Ok(None),
        }
    }
    if highest > DENSE_LENGTH && highest > count * SPARSE_RATIO {
        return Err("Cannot serialise table: excessively sparse array".into());
    }
    Ok((count > 0.0).then_some(highest as usize))
}

fn encode_table(table: &Table, out: &mut Vec<u8>, depth: usize) -> Result<(), String> {
    if let Some(length) = array_length(table)? {
        out.push(b'[');
        for index in 1..=length {
            if index > 1 {
                out.push(b',');
            }
            let item: Value = table.raw_get(index).map_err(|error| error.to_string())?;
            encode(&item, out, depth + 1)?;
        }
        out.push(b']');
        return Ok(());
    }
    out.push(b'{');
    let mut is_first = true;
    for pair in table.pairs::<Value, Value>() {
        let (key, value) = pair.map_err(|error| error.to_string())?;
        if !std::mem::take(&mut is_first) {
            out.push(b',');
        }
        match &key {
            Value::String(text) => encode_text(&text.as_bytes(), out),
            Value::Integer(_) | Value::Number(_) => {
                let number = number::of(&key).unwrap_or_default();
                encode_text(double(number, DIGITS).as_bytes(), out);
            }
            _ => {
                return Err("Cannot serialise table: table key must be a number or string".into());
            }
        }
        out.push(b':');
        encode(&value, out, depth + 1)?;
    }
    out.push(b'}');
    Ok(())
}

struct Parser<'a> {
    lua: &'a Lua,
    text: &'a [u8],
    at: usize,
}

impl Parser<'_> {
    fn whole(&mut self) -> Result<Value, String> {
        let value = self.value(0)?;
        self.blanks();
        if self.at < self.text.len() {
            return Err(self.expected("the end"));
        }
        Ok(value)
    }

    fn blanks(&mut self) {
        while self.text.get(self.at).is_some_and(|byte| b" \t\r\n".contains(byte)) {
            self.at += 1;
        }
    }

    fn expected(&self, what: &str) -> String {
        let found = match self.text.get(self.at) {
            None => "T_END",
            Some(b'{') => "T_OBJ_BEGIN",
            Some(b'}') => "T_OBJ_END",
            Some(b'[') => "T_ARR_BEGIN",
            Some(b']') => "T_ARR_END",
            Some(b',') => "T_COMMA",
            Some(b':') => "T_COLON",
            Some(b'"') => "T_STRING",
            Some(b'0'..=b'9' | b'-') => "T_NUMBER",
            Some(_) => "invalid token",
        };
        format!("Expected {what} but found {found} at character {}", self.at + 1)
    }

    fn word(&mut self, word: &str, value: Value) -> Result<Value, String> {
        if self.text[self.at..].starts_with(word.as_bytes()) {
            self.at += word.len();
            return Ok(value);
        }
        Err(self.expected("value"))
    }

    fn value(&mut self, depth: usize) -> Result<Value, String> {
        if depth > DEPTH_MAX {
            return Err("Found too many nested data structures".into());
        }
        self.blanks();
        match self.text.get(self.at) {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => {
                let text = self.string()?;
                self.lua.create_string(text).map(Value::String).map_err(|it| it.to_string())
            }
            Some(b't') => self.word("true", Value::Boolean(true)),
            Some(b'f') => self.word("false", Value::Boolean(false)),
            Some(b'n') => self.word("null", Value::NULL),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => Err(self.expected("value")),
        }
    }

    fn number(&mut self) -> Result<Value, String> {
        let is_part = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
        let end = self.text[self.at..].iter().position(|byte| !is_part(byte));
        let end = end.map_or(self.text.len(), |length| self.at + length);
        let text = std::str::from_utf8(&self.text[self.at..end]).unwrap_or_default();
        match text.parse::<f64>() {
            Ok(number) => {
                self.at = end;
                Ok(Value::Number(number))
            }
            Err(_) => Err(self.expected("value")),
        }
    }

    fn array(&mut self, depth: usize) -> Result<Value, String> {
        let table = self.lua.create_table().map_err(|error| error.to_string())?;
        self.at += 1;
        self.blanks();
        if self.text.get(self.at) == Some(&b']') {
            self.at += 1;
            return Ok(Value::Table(table));
        }
        for index in 1.. {
            let item = self.value(depth + 1)?;
            table.raw_set(index, item).map_err(|error| error.to_string())?;
            self.blanks();
            match self.text.get(self.at) {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    break;
                }
                _ => return Err(self.expected("comma or array end")),
            }
        }
        Ok(Value::Table(table))
    }

    fn object(&mut self, depth: usize) -> Result<Value, String> {
        let table = self.lua.create_table().map_err(|error| error.to_string())?;
        self.at += 1;
        self.blanks();
        if self.text.get(self.at) == Some(&b'}') {
            self.at += 1;
            return Ok(Value::Table(table));
        }
        loop {
            self.blanks();
            if self.text.get(self.at) != Some(&b'"') {
                return Err(self.expected("object key string"));
            }
            let key = self.string()?;
            let key = self.lua.create_string(key).map_err(|error| error.to_string())?;
            self.blanks();
            if self.text.get(self.at) != Some(&b':') {
                return Err(self.expected("colon"));
            }
            self.at += 1;
            let value = self.value(depth + 1)?;
            table.raw_set(key, value).map_err(|error| error.to_string())?;
            self.blanks();
            match self.text.get(self.at) {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(Value::Table(table));
                }
                _ => return Err(self.expected("comma or object end")),
            }
        }
    }

    fn string(&mut self) -> Result<Vec<u8>, String> {
        let mut text = Vec::new();
        self.at += 1;
        loop {
            let byte = *self.text.get(self.at).ok_or_else(|| self.expected("string end"))?;
            self.at += 1;
            match byte {
                b'"' => return Ok(text),
                b'\\' => self.escape(&mut text)?,
                byte => text.push(byte),
            }
        }
    }

    fn escape(&mut self, text: &mut Vec<u8>) -> Result<(), String> {
        let byte = *self.text.get(self.at).ok_or_else(|| self.expected("string end"))?;
        self.at += 1;
        match byte {
            b'"' | b'\\' | b'/' => text.push(byte),
            b'b' => text.push(8),
            b'f' => text.push(12),
            b'n' => text.push(10),
            b'r' => text.push(13),
            b't' => text.push(9),
            b'u' => {
                let mut code = self.hex()?;
                if (0xd800..0xdc00).contains(&code) && self.text[self.at..].starts_with(b"\\u") {
                    self.at += 2;
                    let low = self.hex()?;
                    code = 0x10000 + ((code - 0xd800) << 10) + (low.wrapping_sub(0xdc00) & 0x3ff);
                }
                let letter = char::from_u32(code).ok_or_else(|| {
                    "Expected value but found invalid unicode escape code".to_owned()
                })?;
                text.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
            }
            _ => return Err("Expected value but found invalid escape code".into()),
        }
        Ok(())
    }

    fn hex(&mut self) -> Result<u32, String> {
        let digits =
            self.text.get(self.at..self.at + 4).and_then(|it| std::str::from_utf8(it).ok());
        let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        self.at += 4;
        code.ok_or_else(|| "Expected value but found invalid unicode escape code".to_owned())
    }
}
