//! The interpreter and the functions in Rust that the prelude makes the world of scripts of.

use std::cell::{Cell, RefCell};
use std::sync::Mutex;

use lazuli_resp::Answer;
use mlua::chunk::ChunkMode;
use mlua::{
    Function, HookTriggers, IntoLuaMulti, Lua, LuaOptions, MultiValue, StdLib, Table, Value,
    VmState,
};

use crate::limits::{ARGUMENTS_MAX, MEMORY_BYTES_MAX, STEPS_BETWEEN_LOOKS};
use crate::{Host, Switch, bits, convert, json, msgpack, number, pack};

/// What functions of libraries give back.
pub(crate) type Settled = mlua::Result<MultiValue>;

pub(crate) fn done(lua: &Lua, results: impl IntoLuaMulti) -> Settled {
    results.into_lua_multi(lua)
}

/// Fails with a message behind the place that the function was called from.
pub(crate) fn failed(lua: &Lua, message: &str) -> Settled {
    let place = lua.inspect_stack(1, |frame| {
        let source = frame.source().short_src.map(|source| source.into_owned());
        source.zip(frame.current_line())
    });
    Err(mlua::Error::runtime(match place.flatten() {
        Some((source, line)) => format!("{source}:{line}: {message}"),
        None => message.to_owned(),
    }))
}

/// The text of an error without what the binding adds to it.
pub(crate) fn plain(error: &mlua::Error) -> String {
    if let Some(text) = refusal(error) {
        return text;
    }
    match error {
        mlua::Error::CallbackError { cause, .. } => plain(cause),
        mlua::Error::RuntimeError(text) | mlua::Error::MemoryError(text) => {
            text.split("\nstack traceback:").next().unwrap_or_default().to_owned()
        }
        other => other.to_string(),
    }
}

pub(crate) fn build(switch: &Switch, seed: u64) -> mlua::Result<(Lua, Table)> {
    let libraries = StdLib::STRING | StdLib::TABLE | StdLib::MATH;
    let lua = Lua::new_with(libraries, LuaOptions::default().catch_rust_panics(false))?;
    let rust = lua.create_table()?;
    rust.set("bit", bits::library(&lua)?)?;
    rust.set("cjson", json::library(&lua)?)?;
    rust.set("cmsgpack", msgpack::library(&lua)?)?;
    rust.set("struct", pack::library(&lua)?)?;
    rust.set("null", Value::NULL)?;
    rust.set("version", "7.0.15")?;
    rust.set("version_number", 0x0007_000f)?;
    randomness(&lua, &rust, seed)?;
    rust.set("compile", lua.create_function(compile)?)?;
    rust.set("handler", lua.create_function(handler)?)?;
    rust.set("plain", lua.create_function(|lua, value: Value| plain_value(lua, value))?)?;
    rust.set(
        "sha1hex",
        lua.create_function(|_, text: mlua::LuaString| Ok(crate::sha1::hex(&text.as_bytes())))?,
    )?;
    let own = switch.clone();
    rust.set("is_killed", lua.create_function(move |_, ()| Ok(own.is_on()))?)?;
    let own = switch.clone();
    let triggers = HookTriggers::new().every_nth_instruction(STEPS_BETWEEN_LOOKS);
    lua.set_global_hook(triggers, move |_, _| match own.is_on() {
        true => Err(mlua::Error::runtime("Script killed by user with SCRIPT KILL.")),
        false => Ok(VmState::Continue),
    })?;
    let prelude = lua.load(include_str!("prelude.lua")).set_name("=prelude");
    let world: Table = prelude.call(rust.clone())?;
    lua.set_memory_limit(MEMORY_BYTES_MAX)?;
    Ok((lua, world))
}

/// The numbers of `math.random`.
fn randomness(lua: &Lua, rust: &Table, seed: u64) -> mlua::Result<()> {
    const BOUND: u64 = i32::MAX as u64;
    let state = std::sync::Arc::new(Mutex::new(seed & 0xffff_ffff_ffff));
    let own = state.clone();
    let seed = lua.create_function(move |_, seed: f64| {
        *own.lock().unwrap_or_else(std::sync::PoisonError::into_inner) =
            ((seed as i64 as u32 as u64) << 16) | 0x330e;
        Ok(())
    })?;
    let random = lua.create_function(move |lua, bounds: MultiValue| {
        let mut state = state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        // The generator of POSIX' drand48.
        *state = state.wrapping_mul(0x5_deec_e66d).wrapping_add(0xb) & 0xffff_ffff_ffff;
        let fraction = ((*state >> 17) % BOUND) as f64 / BOUND as f64;
        let bound = |at: usize| bounds.get(at).and_then(number::of).map(f64::floor);
        match (bounds.len(), bound(0), bound(1)) {
            (0, ..) => done(lua, fraction),
            (1, Some(high), _) if high >= 1.0 => done(lua, (fraction * high).floor() + 1.0),
            (2, Some(low), Some(high)) if low <= high => {
                done(lua, (fraction * (high - low + 1.0)).floor() + low)
            }
            (1 | 2, ..) => failed(lua, "bad argument #1 to 'random' (interval is empty)"),
            _ => failed(lua, "wrong number of arguments"),
        }
    })?;
    rust.set("seed", seed)?;
    rust.set("random", random)
}

/// Compiles a text, never bytes of compiled code, which could break out of the interpreter.
fn compile(
    lua: &Lua,
    (text, name, environment): (mlua::LuaString, mlua::LuaString, Table),
) -> mlua::Result<MultiValue> {
    let name = name.to_string_lossy();
    let chunk = lua.load(text.as_bytes().to_vec()).set_name(name).set_mode(ChunkMode::Text);
    match chunk.set_environment(environment).into_function() {
        Ok(function) => function.into_lua_multi(lua),
        Err(mlua::Error::SyntaxError { message, .. }) => (Value::Nil, message).into_lua_multi(lua),
        Err(error) => (Value::Nil, plain(&error)).into_lua_multi(lua),
    }
}

/// An error of the binding as a text; anything else stays.
fn plain_value(lua: &Lua, value: Value) -> mlua::Result<Value> {
    match value {
        Value::Error(error) => Ok(Value::String(lua.create_string(plain(&error))?)),
        other => Ok(other),
    }
}

/// Adds to an error where in the script it came from.
fn handler(lua: &Lua, problem: Value) -> mlua::Result<Table> {
    let refusal = match &problem {
        Value::Error(error) => refusal(error),
        _ => None,
    };
    let found = match plain_value(lua, problem)? {
        Value::Table(table) => table,
        _ if refusal.is_some() => {
            let table = lua.create_table()?;
            table.set("err", refusal)?;
            table
        }
        other => {
            let text = match &other {
                Value::Nil => "nil".to_owned(),
                other => other.to_string().unwrap_or_default(),
            };
            let table = lua.create_table()?;
            table.set("err", format!("ERR {text}"))?;
            table
        }
    };
    for level in 0..64 {
        let place = lua.inspect_stack(level, |frame| {
            let source = frame.source().source.map(|source| source.into_owned());
            source.filter(|it| it.starts_with("@user_")).zip(frame.current_line())
        });
        match place {
            None => break,
            Some(None) => {}
            Some(Some((source, line))) => {
                found.raw_set("source", source)?;
                found.raw_set("line", line)?;
                break;
            }
        }
    }
    Ok(found)
}

/// An error with a code of its own, raised by a function of the table `redis`.
#[derive(Clone, Debug)]
struct Refused(String);

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

fn refused(text: impl Into<String>) -> mlua::Error {
    mlua::Error::external(Refused(text.into()))
}

/// The text of an error that a function of the table `redis` raised.
fn refusal(error: &mlua::Error) -> Option<String> {
    match error {
        mlua::Error::CallbackError { cause, .. } => refusal(cause),
        other => other.downcast_ref::<Refused>().map(|it| it.0.clone()),
    }
}

/// What a script calls a command with.
fn arguments(args: &MultiValue) -> Result<Vec<Vec<u8>>, String> {
    if args.is_empty() {
        return Err("ERR Please specify at least one argument for this redis lib call".into());
    }
    let is_text =
        |it: &Value| matches!(it, Value::String(_) | Value::Integer(_) | Value::Number(_));
    if !args.iter().all(is_text) || args.len() > ARGUMENTS_MAX {
        return Err("ERR Lua redis lib command arguments must be strings or integers".into());
    }
    Ok(args.iter().map(convert::argument).collect())
}

/// Makes a host reachable for scripts while something runs; says also whether the script has chosen RESP3. These functions
/// are not in Lua: a script's own frame must be on the stack when they fail, also in tail calls, so that errors name its line.
pub(crate) fn with_host<T>(
    lua: &Lua,
    world: &Table,
    host: &mut dyn Host,
    run: impl FnOnce() -> mlua::Result<T>,
) -> mlua::Result<(T, bool)> {
    let redis: Table = world.get("redis")?;
    let host = RefCell::new(host);
    let is_resp3 = Cell::new(false);
    let call = |args: &MultiValue| match arguments(args) {
        Err(text) => Answer::Error(text.into_bytes()),
        Ok(args) => match host.try_borrow_mut() {
            Ok(mut host) => host.call(args, is_resp3.get()),
            Err(_) => Answer::Error(b"ERR redis.call inside of redis.call".to_vec()),
        },
    };
    let result = lua.scope(|scope| {
        redis.set(
            "call",
            scope.create_function(|lua, args: MultiValue| match call(&args) {
                Answer::Error(text) => Err(refused(String::from_utf8_lossy(&text))),
                answer => convert::value(lua, &answer, is_resp3.get()),
            })?,
        )?;
        redis.set(
            "pcall",
            scope.create_function(|lua, args: MultiValue| {
                convert::value(lua, &call(&args), is_resp3.get())
            })?,
        )?;
        redis.set(
            "acl_check_cmd",
            scope.create_function(|_, args: MultiValue| {
                let args = arguments(&args).map_err(refused)?;
                Ok(host.borrow_mut().may_call(args))
            })?,
        )?;
        redis.set(
            "setresp",
            scope.create_function(|_, args: MultiValue| {
                if args.len() != 1 {
                    return Err(refused("ERR redis.setresp() requires one argument."));
                }
                let version = args.front().and_then(number::of).unwrap_or_default();
                if version != 2.0 && version != 3.0 {
                    return Err(refused("ERR RESP version must be 2 or 3."));
                }
                is_resp3.set(version == 3.0);
                Ok(())
            })?,
        )?;
        redis.set(
            "log",
            scope.create_function(|_, args: MultiValue| {
                let level = args.front().and_then(number::of);
                let Some(level) = level.filter(|_| args.len() > 1) else {
                    return Err(refused("ERR redis.log() requires two arguments or more."));
                };
                if !(0.0..=3.0).contains(&level) {
                    return Err(refused("ERR Invalid log level."));
                }
                let words = args.iter().skip(1).map(|it| it.to_string().unwrap_or_default());
                host.borrow_mut().log(level as i64, &words.collect::<Vec<_>>().join(" "));
                Ok(())
            })?,
        )?;
        run()
    })?;
    Ok((result, is_resp3.get()))
}

/// A function of ours that scripts call.
pub(crate) type Native = fn(&Lua, MultiValue) -> Settled;

/// A table of functions in Rust.
pub(crate) fn functions(lua: &Lua, named: Vec<(&str, Native)>) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    for (name, function) in named {
        let function: Function = lua.create_function(function)?;
        table.set(name, function)?;
    }
    Ok(table)
}
