//! Scripts of the cache: Lua 5.1 in a sandbox. A script sees the libraries of Redis, no files, no clock and no other script's
//! variables; its memory is bounded, and it can be ended from outside.
//!
//! What a script calls goes to a [`Host`]; what it returns is an [`Answer`]. `prelude.lua` builds the world that scripts see
//! out of functions in Rust (`bits`, `json`, `msgpack`, `pack`).

mod bits;
mod convert;
mod json;
mod limits;
mod msgpack;
mod number;
mod pack;
mod sandbox;
pub mod sha1;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lazuli_resp::Answer;
use mlua::chunk::ChunkMode;
use mlua::{Function, Lua, MultiValue, Table, Value};

pub use number::double;

/// Who runs what scripts call.
pub trait Host {
    /// Runs a command and gives its reply, in RESP3 if the script asked for that.
    fn call(&mut self, args: Vec<Vec<u8>>, is_resp3: bool) -> Answer;
    /// Whether the user of the script may run a command.
    fn may_call(&mut self, args: Vec<Vec<u8>>) -> bool;
    fn log(&mut self, level: i64, text: &str);
    /// The version of the service, as text.
    fn version(&self) -> &'static str;
}

/// Why a script gave no result: the whole text of the error, its code first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptError(pub String);

/// What a script is run with.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// The name that errors give it.
    pub name: &'a str,
    pub keys: &'a [Vec<u8>],
    pub args: &'a [Vec<u8>],
}

/// Ends the script that runs, from any thread.
#[derive(Clone, Debug, Default)]
pub struct Switch(Arc<AtomicBool>);

impl Switch {
    pub fn kill(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_on(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn reset(&self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// A function of a library, as FUNCTION LOAD registers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registered {
    pub name: String,
    pub description: Option<String>,
    pub flags: Vec<String>,
}

/// One interpreter with its compiled scripts. Scripts run one at a time.
pub struct Interpreter {
    lua: Lua,
    /// What the prelude gives back: runs a function and catches its errors.
    world: Table,
    scripts: HashMap<String, Function>,
    functions: HashMap<String, Function>,
    switch: Switch,
}

impl Interpreter {
    /// An interpreter without scripts; the seed is that of `math.random`.
    pub fn new(switch: Switch, seed: u64) -> Result<Self, ScriptError> {
        let (lua, world) = sandbox::build(&switch, seed).map_err(internal)?;
        let (scripts, functions) = (HashMap::new(), HashMap::new());
        Ok(Self { lua, world, scripts, functions, switch })
    }

    /// Compiles a script under a name, if that was not done before.
    pub fn load(&mut self, name: &str, body: &[u8]) -> Result<(), ScriptError> {
        if self.scripts.contains_key(name) {
            return Ok(());
        }
        let function = self.compile(body, "@user_script").map_err(|message| {
            ScriptError(format!("ERR Error compiling script (new function): {message}"))
        })?;
        self.scripts.insert(name.to_owned(), function);
        Ok(())
    }

    fn compile(&self, body: &[u8], chunk: &str) -> Result<Function, String> {
        let environment: Table = self.world.get("environment").map_err(|it| it.to_string())?;
        let chunk = self.lua.load(body).set_name(chunk).set_mode(ChunkMode::Text);
        chunk.set_environment(environment).into_function().map_err(|error| match error {
            mlua::Error::SyntaxError { message, .. } => message,
            other => other.to_string(),
        })
    }

    /// Forgets all scripts.
    pub fn flush(&mut self) {
        self.scripts.clear();
        let _ = self.lua.gc_collect();
    }

    pub fn memory_bytes(&self) -> usize {
        self.lua.used_memory()
    }

    /// Runs a script that was loaded.
    pub fn run(&mut self, input: Input<'_>, host: &mut dyn Host) -> Result<Answer, ScriptError> {
        let Some(script) = self.scripts.get(input.name).cloned() else {
            return Err(ScriptError("NOSCRIPT No matching script. Please use EVAL.".into()));
        };
        let set = || -> mlua::Result<()> {
            let globals: Table = self.world.get("globals")?;
            globals.set("KEYS", self.texts(input.keys)?)?;
            globals.set("ARGV", self.texts(input.args)?)
        };
        set().map_err(internal)?;
        self.execute(&script, MultiValue::new(), input.name, host)
    }

    /// Runs a function of a library.
    pub fn call(&mut self, input: Input<'_>, host: &mut dyn Host) -> Result<Answer, ScriptError> {
        let Some(function) = self.functions.get(input.name).cloned() else {
            return Err(ScriptError("ERR Function not found".into()));
        };
        let keys = self.texts(input.keys).map_err(internal)?;
        let args = self.texts(input.args).map_err(internal)?;
        let arguments = MultiValue::from_iter([Value::Table(keys), Value::Table(args)]);
        self.execute(&function, arguments, input.name, host)
    }

    fn texts(&self, texts: &[Vec<u8>]) -> mlua::Result<Table> {
        let strings = texts.iter().map(|text| self.lua.create_string(text));
        self.lua.create_sequence_from(strings.collect::<mlua::Result<Vec<_>>>()?)
    }

    fn execute(
        &self,
        function: &Function,
        arguments: MultiValue,
        name: &str,
        host: &mut dyn Host,
    ) -> Result<Answer, ScriptError> {
        self.switch.reset();
        let outcome = sandbox::with_host(&self.lua, &self.world, host, || {
            let run: Function = self.world.get("run")?;
            run.call::<(bool, Value)>((function.clone(), arguments))
        });
        match outcome {
            Ok(((true, value), is_resp3)) => Ok(convert::answer(&value, is_resp3, 0)),
            Ok(((false, value), _)) => Err(convert::failure(&value, name)),
            Err(error) => {
                let message = sandbox::plain(&error);
                Err(ScriptError(format!("ERR {message} script: {name}")))
            }
        }
    }

    /// Runs the code of a library, which registers its functions; they can be called when this has succeeded. Functions of
    /// other libraries stay as they are.
    pub fn load_library(
        &mut self,
        body: &[u8],
        host: &mut dyn Host,
    ) -> Result<Vec<Registered>, ScriptError> {
        let compile = |message| ScriptError(format!("ERR Error compiling function: {message}"));
        let chunk = self.compile(body, "@user_function").map_err(compile)?;
        let begin: Function = self.world.get("begin_library").map_err(internal)?;
        begin.call::<()>(()).map_err(internal)?;
        let loaded = self.execute(&chunk, MultiValue::new(), "", host);
        let end: Function = self.world.get("end_library").map_err(internal)?;
        let registered: Table = end.call(()).map_err(internal)?;
        loaded.map_err(|error| {
            let text = error.0.strip_prefix("ERR ").unwrap_or(&error.0);
            let text = text.split(" script: ").next().unwrap_or(text);
            ScriptError(format!("ERR Error registering functions: {text}"))
        })?;
        let mut functions = Vec::new();
        let mut found = HashMap::new();
        for entry in registered.sequence_values::<Table>() {
            let read = |entry: Table| -> mlua::Result<(Registered, Function)> {
                let flags: Vec<String> = entry.get("flags")?;
                let description = entry.get("description")?;
                let name: String = entry.get("name")?;
                Ok((Registered { name, description, flags }, entry.get("callback")?))
            };
            let (registered, callback) = entry.and_then(read).map_err(internal)?;
            found.insert(registered.name.clone(), callback);
            functions.push(registered);
        }
        if functions.is_empty() {
            return Err(ScriptError("ERR No functions registered".into()));
        }
        self.functions.extend(found);
        Ok(functions)
    }

    /// Forgets a function of a library.
    pub fn forget(&mut self, function: &str) {
        self.functions.remove(function);
    }
}

fn internal(error: mlua::Error) -> ScriptError {
    ScriptError(format!("ERR {}", sandbox::plain(&error)))
}

#[cfg(test)]
mod tests;
