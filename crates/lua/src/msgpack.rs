//! The library `cmsgpack`: MessagePack.

use mlua::{Lua, MultiValue, Table, Value};

use crate::limits::DEPTH_MAX;
use crate::number;
use crate::sandbox::{Settled, done, failed, functions};

pub(crate) fn library(lua: &Lua) -> mlua::Result<Table> {
    functions(
        lua,
        vec![
            ("pack", |lua, args| {
                let mut out = Vec::new();
                for value in args.iter() {
                    if let Err(message) = pack(value, &mut out, 0) {
                        return failed(lua, &message);
                    }
                }
                done(lua, lua.create_string(&out)?)
            }),
            ("unpack", |lua, args| unpack(lua, &args, None)),
            ("unpack_one", |lua, args| unpack(lua, &args, Some(1))),
            ("unpack_limit", |lua, args| {
                let limit = args.get(1).and_then(number::of).map_or(0, |limit| limit as usize);
                unpack(lua, &args, Some(limit))
            }),
        ],
    )
}

fn head(out: &mut Vec<u8>, length: usize, (small, most): (u8, usize), wide: [Option<u8>; 3]) {
    if length <= most {
        out.push(small | length as u8);
    } else if let (Some(tag), true) = (wide[0], length <= 0xff) {
        out.extend_from_slice(&[tag, length as u8]);
    } else if let (Some(tag), true) = (wide[1], length <= 0xffff) {
        out.push(tag);
        out.extend_from_slice(&(length as u16).to_be_bytes());
    } else if let Some(tag) = wide[2] {
        out.push(tag);
        out.extend_from_slice(&(length as u32).to_be_bytes());
    }
}

fn pack(value: &Value, out: &mut Vec<u8>, depth: usize) -> Result<(), String> {
    if depth > DEPTH_MAX {
        out.push(0xc0);
        return Ok(());
    }
    match value {
        Value::String(text) => {
            let bytes = text.as_bytes();
            head(out, bytes.len(), (0xa0, 31), [Some(0xd9), Some(0xda), Some(0xdb)]);
            out.extend_from_slice(&bytes);
        }
        Value::Boolean(is_true) => out.push(if *is_true { 0xc3 } else { 0xc2 }),
        Value::Integer(number) => pack_integer(*number, out),
        Value::Number(number) if *number == number.trunc() && number.abs() < 9.2e18 => {
            pack_integer(*number as i64, out);
        }
        Value::Number(number) => {
            let short = *number as f32;
            if f64::from(short) == *number {
                out.push(0xca);
                out.extend_from_slice(&short.to_be_bytes());
            } else {
                out.push(0xcb);
                out.extend_from_slice(&number.to_be_bytes());
            }
        }
        Value::Table(table) => pack_table(table, out, depth)?,
        _ => out.push(0xc0),
    }
    Ok(())
}

fn pack_integer(number: i64, out: &mut Vec<u8>) {
    match number {
        0..=0x7f => out.push(number as u8),
        -32..0 => out.push(number as u8),
        0x80..=0xff => out.extend_from_slice(&[0xcc, number as u8]),
        0x100..=0xffff => {
            out.push(0xcd);
            out.extend_from_slice(&(number as u16).to_be_bytes());
        }
        0x1_0000..=0xffff_ffff => {
            out.push(0xce);
            out.extend_from_slice(&(number as u32).to_be_bytes());
        }
        0x1_0000_0000.. => {
            out.push(0xcf);
            out.extend_from_slice(&number.to_be_bytes());
        }
        -128..-32 => out.extend_from_slice(&[0xd0, number as u8]),
        -0x8000..-128 => {
            out.push(0xd1);
            out.extend_from_slice(&(number as i16).to_be_bytes());
        }
        -0x8000_0000..-0x8000 => {
            out.push(0xd2);
            out.extend_from_slice(&(number as i32).to_be_bytes());
        }
        _ => {
            out.push(0xd3);
            out.extend_from_slice(&number.to_be_bytes());
        }
    }
}

fn pack_table(table: &Table, out: &mut Vec<u8>, depth: usize) -> Result<(), String> {
    let mut pairs = Vec::new();
    for pair in table.pairs::<Value, Value>() {
        pairs.push(pair.map_err(|error| error.to_string())?);
    }
    // A table is an array if its keys are the numbers from 1 to its size.
    let is_index = |key: &Value| {
        let index = number::of(key).filter(|_| !key.is_string());
        index.is_some_and(|it| it >= 1.0 && it == it.floor() && it <= pairs.len() as f64)
    };
    if pairs.iter().all(|(key, _)| is_index(key)) {
        head(out, pairs.len(), (0x90, 15), [None, Some(0xdc), Some(0xdd)]);
        for index in 1..=pairs.len() {
            let item: Value = table.raw_get(index).map_err(|error| error.to_string())?;
            pack(&item, out, depth + 1)?;
        }
        return Ok(());
    }
    head(out, pairs.len(), (0x80, 15), [None, Some(0xde), Some(0xdf)]);
    for (key, value) in &pairs {
        pack(key, out, depth + 1)?;
        pack(value, out, depth + 1)?;
    }
    Ok(())
}

/// Reads values; with a limit the place where to go on comes first, -1 at the end.
fn unpack(lua: &Lua, args: &MultiValue, limit: Option<usize>) -> Settled {
    let Some(Value::String(text)) = args.front() else {
        return failed(lua, "bad argument #1 to 'unpack' (string expected)");
    };
    let bytes = text.as_bytes();
    let place = if limit == Some(1) { 1 } else { 2 };
    let offset = match limit {
        Some(_) => args.get(place).and_then(number::of).unwrap_or(0.0),
        None => 0.0,
    };
    if offset < 0.0 || offset > bytes.len() as f64 {
        return failed(lua, "Start offset greater than input length.");
    }
    let mut reader = Reader { lua, bytes: &bytes, at: offset as usize };
    let mut values = MultiValue::new();
    while reader.at < bytes.len() && limit.is_none_or(|limit| values.len() < limit.max(1)) {
        match reader.value(0) {
            Ok(value) => values.push_back(value),
            Err(message) => return failed(lua, &message),
        }
    }
    if limit.is_some() {
        let next = if reader.at < bytes.len() { reader.at as f64 } else { -1.0 };
        values.push_front(Value::Number(next));
    }
    done(lua, values)
}

struct Reader<'a> {
    lua: &'a Lua,
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let (taken, _) =
            rest.split_first_chunk::<N>().ok_or_else(|| "Missing bytes in input.".to_owned())?;
        self.at += N;
        Ok(*taken)
    }

    fn text(&mut self, length: usize) -> Result<Value, String> {
        let end = self.at.checked_add(length).filter(|end| *end <= self.bytes.len());
        let end = end.ok_or_else(|| "Missing bytes in input.".to_owned())?;
        let text = self.lua.create_string(&self.bytes[self.at..end]);
        self.at = end;
        text.map(Value::String).map_err(|error| error.to_string())
    }

    fn value(&mut self, depth: usize) -> Result<Value, String> {
        if depth > DEPTH_MAX {
            return Err("Found too many nested data structures".into());
        }
        let [tag] = self.take()?;
        let number = |number: f64| Ok(Value::Number(number));
        match tag {
            0..=0x7f => number(f64::from(tag)),
            0xe0..=0xff => number(f64::from(tag as i8)),
            0x80..=0x8f => self.map(usize::from(tag & 15), depth),
            0x90..=0x9f => self.array(usize::from(tag & 15), depth),
            0xa0..=0xbf => self.text(usize::from(tag & 31)),
            0xc0 => Ok(Value::Nil),
            0xc2 => Ok(Value::Boolean(false)),
            0xc3 => Ok(Value::Boolean(true)),
            0xca => number(f64::from(f32::from_be_bytes(self.take()?))),
            0xcb => number(f64::from_be_bytes(self.take()?)),
            0xcc => number(f64::from(self.take::<1>()?[0])),
            0xcd => number(f64::from(u16::from_be_bytes(self.take()?))),
            0xce => number(f64::from(u32::from_be_bytes(self.take()?))),
            0xcf => number(u64::from_be_bytes(self.take()?) as f64),
            0xd0 => number(f64::from(self.take::<1>()?[0] as i8)),
            0xd1 => number(f64::from(i16::from_be_bytes(self.take()?))),
            0xd2 => number(f64::from(i32::from_be_bytes(self.take()?))),
            0xd3 => number(i64::from_be_bytes(self.take()?) as f64),
            0xc4 | 0xd9 => {
                let [length] = self.take()?;
                self.text(usize::from(length))
            }
            0xc5 | 0xda => {
                let length = u16::from_be_bytes(self.take()?);
                self.text(usize::from(length))
            }
            0xc6 | 0xdb => {
                let length = u32::from_be_bytes(self.take()?);
                self.text(length as usize)
            }
            0xdc => {
                let length = u16::from_be_bytes(self.take()?);
                self.array(usize::from(length), depth)
            }
            0xdd => {
                let length = u32::from_be_bytes(self.take()?);
                self.array(length as usize, depth)
            }
            0xde => {
                let length = u16::from_be_bytes(self.take()?);
                self.map(usize::from(length), depth)
            }
            0xdf => {
                let length = u32::from_be_bytes(self.take()?);
                self.map(length as usize, depth)
            }
            _ => Err("Bad data format in input.".into()),
        }
    }

    fn array(&mut self, length: usize, depth: usize) -> Result<Value, String> {
        let table = self.lua.create_table().map_err(|error| error.to_string())?;
        for index in 1..=length {
            let item = self.value(depth + 1)?;
            table.raw_set(index, item).map_err(|error| error.to_string())?;
        }
        Ok(Value::Table(table))
    }

    fn map(&mut self, length: usize, depth: usize) -> Result<Value, String> {
        let table = self.lua.create_table().map_err(|error| error.to_string())?;
        for _ in 0..length {
            let (key, value) = (self.value(depth + 1)?, self.value(depth + 1)?);
            if key.is_nil() || number::of(&key).is_some_and(f64::is_nan) {
                return Err("Bad data format in input.".into());
            }
            table.raw_set(key, value).map_err(|error| error.to_string())?;
        }
        Ok(Value::Table(table))
    }
}
