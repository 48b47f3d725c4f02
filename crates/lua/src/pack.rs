//! The library `struct`: numbers and texts in binary formats.

use mlua::{Lua, MultiValue, Table, Value};

use crate::number;
use crate::sandbox::{Settled, done, failed, functions};

pub(crate) fn library(lua: &Lua) -> mlua::Result<Table> {
    functions(lua, vec![("pack", pack), ("unpack", unpack), ("size", size)])
}

/// One thing that a format asks for.
#[derive(Clone, Copy)]
enum Item {
    Integer {
        width: usize,
        is_signed: bool,
    },
    Float,
    Double,
    /// A text of so many bytes; 0 takes all of it, or as many as the number before says.
    Text(usize),
    /// A text that ends with a zero byte.
    Zero,
    Padding,
}

impl Item {
    fn width(self) -> usize {
        match self {
            Self::Integer { width, .. } => width,
            Self::Float => 4,
            Self::Double => 8,
            Self::Text(width) => width,
            Self::Zero => 0,
            Self::Padding => 1,
        }
    }
}

/// The items of a format, each with whether its bytes come with the highest first, and with its alignment.
fn items(format: &[u8]) -> Result<Vec<(Item, bool, usize)>, String> {
    let (mut found, mut is_big, mut alignment) = (Vec::new(), false, 1);
    let mut at = 0;
    while at < format.len() {
        let letter = format[at];
        at += 1;
        let digits = format[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let text = std::str::from_utf8(&format[at..at + digits]).unwrap_or_default();
        let number: Option<usize> = text.parse().ok();
        let has_number = matches!(letter, b'i' | b'I' | b'c' | b's' | b'!');
        if has_number {
            at += digits;
        }
        let integer =
            |width: usize| Item::Integer { width, is_signed: letter.is_ascii_lowercase() };
        let item = match letter {
            b' ' => continue,
            b'>' => {
                is_big = true;
                continue;
            }
            b'<' => {
                is_big = false;
                continue;
            }
            b'!' => {
                alignment = number.unwrap_or(8);
                if !alignment.is_power_of_two() || alignment > 64 {
                    return Err("alignment is not a power of 2".into());
                }
                continue;
            }
            b'b' | b'B' => integer(1),
            b'h' | b'H' => integer(2),
            b'l' | b'L' | b'T' => integer(8),
            b'i' | b'I' => {
                let width = number.unwrap_or(4);
                if !(1..=32).contains(&width) {
                    return Err(format!("integral size {width} is larger than limit of 32"));
                }
                integer(width.min(8).max(if width > 8 { 8 } else { width }))
            }
            b'f' => Item::Float,
            b'd' => Item::Double,
            b'c' => Item::Text(number.unwrap_or(1)),
            b's' => Item::Zero,
            b'x' => Item::Padding,
            other => return Err(format!("invalid format option '{}'", other as char)),
        };
        found.push((item, is_big, alignment));
    }
    Ok(found)
}

fn format(args: &MultiValue) -> Result<Vec<(Item, bool, usize)>, String> {
    match args.front() {
        Some(Value::String(format)) => items(&format.as_bytes()),
        _ => Err("bad argument #1 (string expected)".into()),
    }
}

/// How many bytes come before an item of a width so that it begins where it may.
fn gap(item: Item, alignment: usize, length: usize) -> usize {
    let width = item.width();
    let is_number = matches!(item, Item::Integer { .. } | Item::Float | Item::Double);
    let step = width.min(alignment);
    if !is_number || step <= 1 || !step.is_power_of_two() {
        return 0;
    }
    (step - length % step) % step
}

fn order(mut bytes: Vec<u8>, is_big: bool) -> Vec<u8> {
    if is_big {
        bytes.reverse();
    }
    bytes
}

fn pack(lua: &Lua, args: MultiValue) -> Settled {
    match packed(&args) {
        Ok(bytes) => done(lua, lua.create_string(&bytes)?),
        Err(message) => failed(lua, &message),
    }
}

fn packed(args: &MultiValue) -> Result<Vec<u8>, String> {
    let mut out: Vec<u8> = Vec::new();
    let mut at = 1;
    for (item, is_big, alignment) in format(args)? {
        out.resize(out.len() + gap(item, alignment, out.len()), 0);
        let number = || {
            let value = args.get(at).and_then(number::of);
            value.ok_or_else(|| format!("bad argument #{at} to 'pack' (number expected)"))
        };
        let text = || match args.get(at) {
            Some(Value::String(text)) => Ok(text.as_bytes().to_vec()),
            _ => Err(format!("bad argument #{at} to 'pack' (string expected)")),
        };
        match item {
            Item::Integer { width, .. } => {
                let number = number()?;
                let bits = if number < 0.0 { number as i64 as u64 } else { number as u64 };
                out.extend(order(bits.to_le_bytes()[..width].to_vec(), is_big));
            }
            Item::Float => out.extend(order((number()? as f32).to_le_bytes().to_vec(), is_big)),
            Item::Double => out.extend(order(number()?.to_le_bytes().to_vec(), is_big)),
            Item::Text(width) => {
                let text = text()?;
                let width = if width == 0 { text.len() } else { width };
                let taken = text
                    .get(..width)
                    .ok_or_else(|| format!("bad argument #{at} to 'pack' (string too short)"))?;
                out.extend_from_slice(taken);
            }
            Item::Zero => {
                out.extend(text()?);
                out.push(0);
            }
            Item::Padding => {
                out.push(0);
                continue;
            }
        }
        at += 1;
    }
    Ok(out)
}

fn unpack(lua: &Lua, args: MultiValue) -> Settled {
    match unpacked(lua, &args) {
        Ok(values) => done(lua, values),
        Err(message) => failed(lua, &message),
    }
}

fn unpacked(lua: &Lua, args: &MultiValue) -> Result<MultiValue, String> {
    let Some(Value::String(data)) = args.get(1) else {
        return Err("bad argument #2 to 'unpack' (string expected)".into());
    };
    let data = data.as_bytes();
    let from = args.get(2).and_then(number::of).unwrap_or(1.0);
    if from < 1.0 {
        return Err("offset must be 1 or greater".into());
    }
    let mut at = from as usize - 1;
    let mut values: Vec<Value> = Vec::new();
    for (item, is_big, alignment) in format(args)? {
        at += gap(item, alignment, at);
        let rest = data.get(at..).unwrap_or_default();
        let too_short = || "data string too short".to_owned();
        let bytes = |width: usize| {
            rest.get(..width).map(|it| order(it.to_vec(), is_big)).ok_or_else(too_short)
        };
        let text =
            |text: &[u8]| lua.create_string(text).map(Value::String).map_err(|it| it.to_string());
        let mut width = item.width();
        match item {
            Item::Integer { width, is_signed } => {
                let mut wide = [0; 8];
                wide[..width].copy_from_slice(&bytes(width)?);
                let (bits, shift) = (u64::from_le_bytes(wide), 64 - 8 * width as u32);
                let number = match is_signed {
                    true => ((bits << shift) as i64 >> shift) as f64,
                    false => bits as f64,
                };
                values.push(Value::Number(number));
            }
            Item::Float => {
                let number: [u8; 4] = bytes(4)?.try_into().unwrap_or_default();
                values.push(Value::Number(f64::from(f32::from_le_bytes(number))));
            }
            Item::Double => {
                let number: [u8; 8] = bytes(8)?.try_into().unwrap_or_default();
                values.push(Value::Number(f64::from_le_bytes(number)));
            }
            Item::Text(0) => {
                // The number before it is its length.
                let length = values.pop().and_then(|value| number::of(&value));
                let length =
                    length.ok_or_else(|| "format 'c0' needs a previous size".to_owned())?;
                width = length as usize;
                values.push(text(rest.get(..width).ok_or_else(too_short)?)?);
            }
            Item::Text(width) => values.push(text(rest.get(..width).ok_or_else(too_short)?)?),
            Item::Zero => {
                let end = rest.iter().position(|byte| *byte == 0);
                let end = end.ok_or_else(|| "unfinished string in data".to_owned())?;
                values.push(text(&rest[..end])?);
                width = end + 1;
            }
            Item::Padding => {
                rest.first().ok_or_else(too_short)?;
            }
        }
        at += width;
    }
    values.push(Value::Number((at + 1) as f64));
    Ok(MultiValue::from_iter(values))
}

fn size(lua: &Lua, args: MultiValue) -> Settled {
    let counted = format(&args).and_then(|items| {
        let mut length = 0;
        for (item, _, alignment) in items {
            if matches!(item, Item::Zero | Item::Text(0)) {
                return Err("variable-size format in 'size'".to_owned());
            }
            length += gap(item, alignment, length) + item.width();
        }
        Ok(length)
    });
    match counted {
        Ok(length) => done(lua, length as f64),
        Err(message) => failed(lua, &message),
    }
}
