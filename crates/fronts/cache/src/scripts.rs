//! Lua scripts and functions: one interpreter, its scripts and libraries, and the one script that may run at a time.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use lazuli_lua::{Host, Input, Interpreter, Registered, ScriptError, Switch};
use lazuli_resp::{Answer, OwnedArgs, Reply, read_answer};

use crate::call::Call;
use crate::command::{Flags, TABLE};
use crate::dispatch::{find, run_nested};
use crate::failure::Failure;

/// After this time a script can be killed, and others are told that the server is busy.
pub(crate) const BUSY_AFTER_MS: u64 = 5000;
/// What all scripts and libraries together may take as text.
const BODIES_BYTES_MAX: usize = 64 * 1024 * 1024;

const TOO_MANY: Failure = Failure::of("ERR too many scripts: SCRIPT FLUSH makes room");

/// A library of functions.
pub(crate) struct Library {
    pub(crate) code: Vec<u8>,
    pub(crate) functions: Vec<Registered>,
}

#[derive(Default)]
struct State {
    /// Made with the first script.
    interpreter: Option<Interpreter>,
    bodies: BTreeMap<String, Vec<u8>>,
    bytes: usize,
    libraries: BTreeMap<String, Library>,
}

#[derive(Default)]
pub(crate) struct Scripts {
    state: Mutex<State>,
    switch: Switch,
    /// When the script that runs began; 0 if none runs.
    since_ms: AtomicU64,
    has_written: AtomicBool,
}

/// What is run: a script by its text or its digest, or a function.
#[derive(Clone, Copy)]
pub(crate) enum Program<'a> {
    Body(&'a [u8]),
    Digest(&'a str),
    Function(&'a str),
}

impl Scripts {
    fn state(&self) -> MutexGuard<'_, State> {
        // A panic in one script must not take scripts from everybody else.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long a script has been running, if one is.
    pub(crate) fn running_ms(&self, now_ms: u64) -> Option<u64> {
        let since = self.since_ms.load(Ordering::Relaxed);
        (since > 0).then(|| now_ms.saturating_sub(since))
    }

    /// Asks the script that runs to end.
    pub(crate) fn kill(&self) -> Result<(), Failure> {
        if self.since_ms.load(Ordering::Relaxed) == 0 {
            return Err(Failure::of("NOTBUSY No scripts in execution right now."));
        }
        if self.has_written.load(Ordering::Relaxed) {
            return Err(Failure::of(
                "UNKILLABLE Sorry the script already executed write commands against the dataset. \
                 You can either wait the script termination or kill the server in a hard way \
                 using the SHUTDOWN NOSAVE command.",
            ));
        }
        self.switch.kill();
        Ok(())
    }

    /// Compiles a script and gives its digest.
    pub(crate) fn load(&self, body: &[u8], seed: u64) -> Result<String, Failure> {
        self.state().load(body, &self.switch, seed)
    }

    pub(crate) fn has(&self, digest: &str) -> bool {
        self.state().bodies.contains_key(digest)
    }

    pub(crate) fn flush(&self) {
        let mut state = self.state();
        state.bodies.clear();
        state.bytes = state.libraries.values().map(|it| it.code.len()).sum();
        if let Some(interpreter) = &mut state.interpreter {
            interpreter.flush();
        }
    }

    /// Runs a program with the keys and arguments of a call from places on, and writes its reply.
    pub(crate) fn run(
        &self,
        call: &mut Call<'_, '_>,
        program: Program<'_>,
        keys: &[Vec<u8>],
        args: &[Vec<u8>],
        is_readonly: bool,
    ) -> Result<(), Failure> {
        let mut state = self.state();
        let seed = call.server.keyspace.random();
        let (name, is_readonly) = match program {
            Program::Body(body) => {
                let digest = state.load(body, &self.switch, seed)?;
                let flag = Shebang::parse(body)?.is_readonly;
                (digest, is_readonly || flag)
            }
            Program::Digest(digest) => {
                let digest = digest.to_ascii_lowercase();
                let Some(body) = state.bodies.get(&digest) else {
                    return Err(Failure::of("NOSCRIPT No matching script. Please use EVAL."));
                };
                let flag = Shebang::parse(body)?.is_readonly;
                (digest, is_readonly || flag)
            }
            Program::Function(name) => (name.to_owned(), is_readonly),
        };
        self.has_written.store(false, Ordering::Relaxed);
        self.since_ms.store(call.now_ms().max(1), Ordering::Relaxed);
        let input = Input { name: &name, keys, args };
        let is_function = matches!(program, Program::Function(_));
        let result = {
            let mut host = Calls { call, is_readonly, has_written: &self.has_written };
            let interpreter = state.interpreter(&self.switch, seed)?;
            off_the_runtime(|| match is_function {
                true => interpreter.call(input, &mut host),
                false => interpreter.run(input, &mut host),
            })
        };
        self.since_ms.store(0, Ordering::Relaxed);
        write(call.out, &result.map_err(failure)?);
        Ok(())
    }

    /// Loads a library and gives its name.
    pub(crate) fn load_library(
        &self,
        call: &mut Call<'_, '_>,
        code: &[u8],
        replaces: bool,
    ) -> Result<String, Failure> {
        let Shebang { library, body, .. } = Shebang::parse(code)?;
        let Some(name) = library else {
            return Err(Failure::of("ERR Missing library metadata"));
        };
        let mut state = self.state();
        if state.libraries.contains_key(&name) && !replaces {
            return Err(Failure::new(format!("ERR Library '{name}' already exists")));
        }
        if state.bytes + code.len() > BODIES_BYTES_MAX {
            return Err(TOO_MANY);
        }
        let seed = call.server.keyspace.random();
        let is_written = AtomicBool::new(false);
        let interpreter = state.interpreter(&self.switch, seed)?;
        let mut host = Calls { call, is_readonly: true, has_written: &is_written };
        let functions = interpreter.load_library(&body, &mut host).map_err(failure)?;
        state.bytes += code.len();
        if let Some(before) = state.libraries.remove(&name) {
            state.bytes -= before.code.len();
            let is_gone = |it: &&Registered| functions.iter().all(|own| own.name != it.name);
            for gone in before.functions.iter().filter(is_gone) {
                if let Some(interpreter) = &mut state.interpreter {
                    interpreter.forget(&gone.name);
                }
            }
        }
        state.libraries.insert(name.clone(), Library { code: code.to_vec(), functions });
        Ok(name)
    }

    pub(crate) fn delete_library(&self, name: &str) -> Result<(), Failure> {
        let mut state = self.state();
        let library = state.libraries.remove(name);
        let library = library.ok_or(const { Failure::of("ERR Library not found") })?;
        state.bytes -= library.code.len();
        for function in &library.functions {
            if let Some(interpreter) = &mut state.interpreter {
                interpreter.forget(&function.name);
            }
        }
        Ok(())
    }

    /// Deletes all libraries, and gives their names.
    pub(crate) fn flush_libraries(&self) -> Vec<String> {
        let names: Vec<String> = self.state().libraries.keys().cloned().collect();
        for name in &names {
            let _ = self.delete_library(name);
        }
        names
    }

    /// The code of all libraries.
    pub(crate) fn codes(&self) -> Vec<Vec<u8>> {
        self.state().libraries.values().map(|it| it.code.clone()).collect()
    }

    /// What the texts of scripts take, and those of libraries.
    pub(crate) fn bytes(&self) -> (usize, usize) {
        let state = self.state();
        let libraries = state.libraries.values().map(|it| it.code.len()).sum();
        (state.bytes.saturating_sub(libraries), libraries)
    }

    /// Visits all libraries by name.
    pub(crate) fn libraries(&self, visit: &mut dyn FnMut(&str, &Library)) {
        self.state().libraries.iter().for_each(|(name, library)| visit(name, library));
    }

    /// Whether a function writes nothing; none if there is no such function.
    pub(crate) fn function(&self, name: &str) -> Option<bool> {
        let state = self.state();
        let mut all = state.libraries.values().flat_map(|it| &it.functions);
        all.find(|it| it.name == name).map(|it| it.flags.iter().any(|flag| flag == "no-writes"))
    }
}

impl State {
    fn interpreter(&mut self, switch: &Switch, seed: u64) -> Result<&mut Interpreter, Failure> {
        if self.interpreter.is_none() {
            self.interpreter = Some(Interpreter::new(switch.clone(), seed).map_err(failure)?);
        }
        self.interpreter.as_mut().ok_or(TOO_MANY)
    }

    fn load(&mut self, body: &[u8], switch: &Switch, seed: u64) -> Result<String, Failure> {
        let digest = lazuli_lua::sha1::hex(body);
        if self.bodies.contains_key(&digest) {
            return Ok(digest);
        }
        if self.bytes + body.len() > BODIES_BYTES_MAX {
            return Err(TOO_MANY);
        }
        let shebang = Shebang::parse(body)?;
        self.interpreter(switch, seed)?.load(&digest, &shebang.body).map_err(failure)?;
        self.bytes += body.len();
        self.bodies.insert(digest.clone(), body.to_vec());
        Ok(digest)
    }
}

fn failure(error: ScriptError) -> Failure {
    Failure::new(error.0)
}

/// Runs what may take long so that other tasks of the runtime go on.
fn off_the_runtime<T>(run: impl FnOnce() -> T) -> T {
    use tokio::runtime::{Handle, RuntimeFlavor};
    match Handle::try_current().map(|it| it.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(run),
        _ => run(),
    }
}

/// The first line of a script or library that begins with `#!`.
struct Shebang {
    library: Option<String>,
    is_readonly: bool,
    /// The text without that line, whose end stays, so that lines keep their numbers.
    body: Vec<u8>,
}

impl Shebang {
    fn parse(text: &[u8]) -> Result<Self, Failure> {
        if !text.starts_with(b"#!") {
            return Ok(Self { library: None, is_readonly: false, body: text.to_vec() });
        }
        let end = text.iter().position(|byte| *byte == b'\n').unwrap_or(text.len());
        let line = String::from_utf8_lossy(&text[2..end]).into_owned();
        let mut found = Self { library: None, is_readonly: false, body: text[end..].to_vec() };
        let mut words = line.split_whitespace();
        let engine = words.next().unwrap_or_default();
        if engine != "lua" {
            return Err(Failure::new(format!("ERR Engine '{engine}' not found")));
        }
        for word in words {
            match word.split_once('=') {
                Some(("name", name)) => found.library = Some(name.to_owned()),
                Some(("flags", flags)) => {
                    found.is_readonly = flags.split(',').any(|flag| flag == "no-writes");
                }
                _ => {
                    return Err(Failure::new(format!("ERR Unknown lua shebang option: {word}")));
                }
            }
        }
        Ok(found)
    }
}

/// Runs what a script calls.
struct Calls<'h, 'c, 'k> {
    call: &'h mut Call<'c, 'k>,
    is_readonly: bool,
    has_written: &'h AtomicBool,
}

impl Calls<'_, '_, '_> {
    fn run(&mut self, args: &OwnedArgs, out: &mut Reply) -> Result<(), Failure> {
        let args = args.args();
        let unknown = |_| Failure::of("ERR Unknown Redis command called from script");
        let command = find(&TABLE, args).map_err(unknown)?;
        if !command.takes(args.len()) {
            return Err(Failure::of("ERR Wrong number of args calling Redis command from script"));
        }
        if command.has(Flags::WRITE) {
            self.call.server.check_replica(self.call.session)?;
            if self.is_readonly {
                return Err(Failure::of(
                    "ERR Write commands are not allowed from read-only scripts.",
                ));
            }
            self.has_written.store(true, Ordering::Relaxed);
        }
        run_nested(self.call, args, out)
    }
}

impl Host for Calls<'_, '_, '_> {
    fn call(&mut self, args: Vec<Vec<u8>>, is_resp3: bool) -> Answer {
        let args: OwnedArgs = args.iter().collect();
        let mut reply = Reply::new(is_resp3);
        if let Err(failure) = self.run(&args, &mut reply) {
            return Answer::Error(failure.0.as_bytes().to_vec());
        }
        match read_answer(&reply.bytes) {
            Ok(Some((answer, _))) => answer,
            _ => Answer::Null(false),
        }
    }

    fn may_call(&mut self, args: Vec<Vec<u8>>) -> bool {
        let args: OwnedArgs = args.iter().collect();
        let command = find(&TABLE, args.args());
        let server = self.call.server;
        command.is_ok_and(|it| {
            let args = args.args();
            let user = self.call.session.user.as_ref();
            let may = user.is_none_or(|user| user.rights().check(it, args).is_ok());
            may && server.check_access(it, args).is_ok()
        })
    }

    fn log(&mut self, level: i64, text: &str) {
        tracing::debug!(level, text, "a script of the cache logs");
    }

    fn version(&self) -> &'static str {
        "7.0.15"
    }
}

/// Writes what a script returned.
fn write(out: &mut Reply, answer: &Answer) {
    match answer {
        Answer::Simple(text) => out.simple(&String::from_utf8_lossy(text)),
        Answer::Error(text) => out.error(&String::from_utf8_lossy(text)),
        Answer::Integer(number) => out.integer(*number),
        Answer::Bulk(text) => out.bulk(text),
        Answer::Null(_) => out.null(),
        Answer::Array(items) | Answer::Push(items) => {
            out.array(items.len());
            items.iter().for_each(|item| write(out, item));
        }
        Answer::Map(pairs) => {
            out.map(pairs.len());
            for (key, value) in pairs {
                write(out, key);
                write(out, value);
            }
        }
        Answer::Set(members) => {
            out.set(members.len());
            members.iter().for_each(|member| write(out, member));
        }
        Answer::Double(number) => out.double(*number),
        Answer::Boolean(is_true) if out.is_resp3 => out.boolean(*is_true),
        Answer::Boolean(true) => out.integer(1),
        Answer::Boolean(false) => out.null(),
        Answer::BigNumber(digits) => out.big_number(&String::from_utf8_lossy(digits)),
        Answer::Verbatim(format, text) => {
            let format = String::from_utf8_lossy(format);
            let format = if format.len() == 3 { &*format } else { "txt" };
            out.verbatim(format, &String::from_utf8_lossy(text));
        }
    }
}
