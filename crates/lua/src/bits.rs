//! The library `bit`: operations on 32 bits.

use mlua::{Lua, MultiValue, Table, Value};

use crate::number;
use crate::sandbox::{Settled, done, failed, functions};

pub(crate) fn library(lua: &Lua) -> mlua::Result<Table> {
    functions(
        lua,
        vec![
            ("tobit", |lua, args| unary(lua, &args, |a| a)),
            ("bnot", |lua, args| unary(lua, &args, |a| !a)),
            ("bswap", |lua, args| unary(lua, &args, i32::swap_bytes)),
            ("band", |lua, args| fold(lua, &args, |a, b| a & b)),
            ("bor", |lua, args| fold(lua, &args, |a, b| a | b)),
            ("bxor", |lua, args| fold(lua, &args, |a, b| a ^ b)),
            ("lshift", |lua, args| shift(lua, &args, |a, by| ((a as u32) << by) as i32)),
            ("rshift", |lua, args| shift(lua, &args, |a, by| ((a as u32) >> by) as i32)),
            ("arshift", |lua, args| shift(lua, &args, |a, by| a >> by)),
            ("rol", |lua, args| shift(lua, &args, |a, by| a.rotate_left(by))),
            ("ror", |lua, args| shift(lua, &args, |a, by| a.rotate_right(by))),
            ("tohex", tohex),
        ],
    )
}

fn bits(args: &MultiValue, at: usize) -> Option<i32> {
    let value = args.get(at)?;
    let number = match value {
        Value::String(text) => text.to_str().ok()?.trim().parse().ok()?,
        other => number::of(other)?,
    };
    // Numbers count modulo 2^32.
    Some(number.rem_euclid(4_294_967_296.0) as u64 as u32 as i32)
}

fn unary(lua: &Lua, args: &MultiValue, operation: fn(i32) -> i32) -> Settled {
    match bits(args, 0) {
        Some(a) => done(lua, f64::from(operation(a))),
        None => failed(lua, "bad argument #1 (number expected)"),
    }
}

fn fold(lua: &Lua, args: &MultiValue, operation: fn(i32, i32) -> i32) -> Settled {
    let all: Option<Vec<i32>> = (0..args.len()).map(|at| bits(args, at)).collect();
    match all.and_then(|all| all.into_iter().reduce(operation)) {
        Some(result) => done(lua, f64::from(result)),
        None => failed(lua, "bad argument #1 (number expected)"),
    }
}

fn shift(lua: &Lua, args: &MultiValue, operation: fn(i32, u32) -> i32) -> Settled {
    match (bits(args, 0), bits(args, 1)) {
        (Some(a), Some(by)) => done(lua, f64::from(operation(a, by as u32 & 31))),
        _ => failed(lua, "bad argument #2 (number expected)"),
    }
}

fn tohex(lua: &Lua, args: MultiValue) -> Settled {
    let Some(number) = bits(&args, 0) else {
        return failed(lua, "bad argument #1 to 'tohex' (number expected)");
    };
    let digits = bits(&args, 1).unwrap_or(8);
    let width = digits.unsigned_abs().min(8) as usize;
    let text = format!("{:08x}", number as u32);
    let text = &text[8 - width..];
    done(lua, if digits < 0 { text.to_ascii_uppercase() } else { text.to_owned() })
}
