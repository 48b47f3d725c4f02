//! EVAL and its siblings, SCRIPT, FUNCTION and FCALL.

use lazuli_keyspace::rdb;

use crate::call::Call;
use crate::command::Run;
use crate::failure::Failure;
use crate::glob;
use crate::scripts::Program;

pub(super) const RUNS: &[(&str, Run)] = &[
    ("eval", |call| eval(call, false)),
    ("eval_ro", |call| eval(call, true)),
    ("evalsha", |call| evalsha(call, false)),
    ("evalsha_ro", |call| evalsha(call, true)),
    ("fcall", |call| fcall(call, false)),
    ("fcall_ro", |call| fcall(call, true)),
    ("function|delete", function_delete),
    ("function|dump", function_dump),
    ("function|flush", function_flush),
    ("function|kill", kill),
    ("function|list", function_list),
    ("function|load", function_load),
    ("function|restore", function_restore),
    ("function|stats", function_stats),
    ("script|exists", script_exists),
    ("script|flush", script_flush),
    ("script|kill", kill),
    ("script|load", script_load),
];

/// Arguments of a script.
type Texts = Vec<Vec<u8>>;

/// The keys and the arguments behind them.
fn inputs(call: &Call<'_, '_>) -> Result<(Texts, Texts), Failure> {
    let number = call.integer(2)?;
    let number = usize::try_from(number)
        .map_err(|_| const { Failure::of("ERR Number of keys can't be negative") })?;
    if number > call.args.len() - 3 {
        return Err(Failure::of("ERR Number of keys can't be greater than number of args"));
    }
    let mut all: Vec<Vec<u8>> = call.args.from(3).iter().map(<[u8]>::to_vec).collect();
    let args = all.split_off(number);
    Ok((all, args))
}

fn eval(call: &mut Call<'_, '_>, is_readonly: bool) -> Result<(), Failure> {
    let (keys, args) = inputs(call)?;
    let program = Program::Body(call.args.at(1));
    call.server.scripts.run(call, program, &keys, &args, is_readonly)
}

fn evalsha(call: &mut Call<'_, '_>, is_readonly: bool) -> Result<(), Failure> {
    let (keys, args) = inputs(call)?;
    let digest = String::from_utf8_lossy(call.args.at(1)).into_owned();
    call.server.scripts.run(call, Program::Digest(&digest), &keys, &args, is_readonly)
}

fn fcall(call: &mut Call<'_, '_>, is_readonly: bool) -> Result<(), Failure> {
    let name = String::from_utf8_lossy(call.args.at(1)).into_owned();
    let writes_none = call.server.scripts.function(&name);
    let writes_none = writes_none.ok_or(const { Failure::of("ERR Function not found") })?;
    let (keys, args) = inputs(call)?;
    if is_readonly && !writes_none {
        return Err(Failure::of(
            "ERR Can not execute a script with write flag using *_ro command.",
        ));
    }
    call.server.scripts.run(call, Program::Function(&name), &keys, &args, writes_none)
}

fn kill(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    call.server.scripts.kill()?;
    call.out.ok();
    Ok(())
}

fn script_load(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let digest = call.server.scripts.load(call.args.at(2), call.server.keyspace.random())?;
    call.out.text(&digest);
    Ok(())
}

fn script_exists(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let digests = call.args.from(2);
    call.out.array(digests.len());
    for digest in digests.iter() {
        let digest = String::from_utf8_lossy(digest).to_ascii_lowercase();
        call.out.integer(i64::from(call.server.scripts.has(&digest)));
    }
    Ok(())
}

/// The mode of a flush is checked; either way everything is gone when the reply comes.
fn check_mode(call: &Call<'_, '_>, refused: &'static str) -> Result<(), Failure> {
    match call.args.len() {
        2 => Ok(()),
        3 if call.args.is(2, "async") || call.args.is(2, "sync") => Ok(()),
        _ => Err(Failure::of(refused)),
    }
}

fn script_flush(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    check_mode(call, "ERR SCRIPT FLUSH only support SYNC|ASYNC option")?;
    call.server.scripts.flush();
    call.out.ok();
    Ok(())
}

fn function_flush(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    check_mode(call, "ERR FUNCTION FLUSH only supports SYNC|ASYNC option")?;
    flush_libraries(call);
    call.out.ok();
    Ok(())
}

fn flush_libraries(call: &mut Call<'_, '_>) {
    for name in call.server.scripts.flush_libraries() {
        call.space.write_library(name.as_bytes(), None);
    }
}

fn function_dump(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let codes = call.server.scripts.codes();
    call.out.bulk(&rdb::file::dump_libraries(codes.iter().map(Vec::as_slice)));
    Ok(())
}

/// Loads all libraries of a payload, or none of them.
fn function_restore(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let replaces = match call.args.get(3) {
        None => false,
        Some(_) if call.args.len() > 4 => return Err(Failure::SYNTAX),
        Some(word) if word.eq_ignore_ascii_case(b"append") => false,
        Some(word)
            if [&b"replace"[..], b"flush"].iter().any(|it| word.eq_ignore_ascii_case(it)) =>
        {
            true
        }
        Some(_) => {
            return Err(Failure::of(
                "ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.",
            ));
        }
    };
    let codes = rdb::file::restore_libraries(call.args.at(2)).map_err(super::dump::refused)?;
    let before = call.server.scripts.codes();
    if call.args.is(3, "flush") {
        flush_libraries(call);
    }
    let loaded = codes.iter().try_for_each(|code| load(call, code, replaces).map(drop));
    if let Err(failure) = loaded {
        flush_libraries(call);
        // They were there before, so that they can be loaded.
        before.iter().try_for_each(|code| load(call, code, true).map(drop))?;
        return Err(failure);
    }
    call.out.ok();
    Ok(())
}

fn load(call: &mut Call<'_, '_>, code: &[u8], replaces: bool) -> Result<String, Failure> {
    let name = call.server.scripts.load_library(call, code, replaces)?;
    call.space.write_library(name.as_bytes(), Some(code));
    Ok(name)
}

fn function_load(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let (code, replaces) = match call.args.len() {
        3 => (call.args.at(2), false),
        4 if call.args.is(2, "replace") => (call.args.at(3), true),
        _ => {
            let option = String::from_utf8_lossy(call.args.at(2)).into_owned();
            return Err(Failure::new(format!("ERR Unknown option given: {option}")));
        }
    };
    let name = load(call, code, replaces)?;
    call.out.text(&name);
    Ok(())
}

fn function_delete(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let name = String::from_utf8_lossy(call.args.at(2)).into_owned();
    call.server.scripts.delete_library(&name)?;
    call.space.write_library(name.as_bytes(), None);
    call.out.ok();
    Ok(())
}

fn function_list(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let (mut pattern, mut has_code) = (None, false);
    let mut at = 2;
    while at < call.args.len() {
        if call.args.is(at, "withcode") && !has_code {
            has_code = true;
        } else if call.args.is(at, "libraryname") && pattern.is_none() {
            at += 1;
            let refused = Failure::of("ERR library name argument was not given");
            pattern = Some(call.args.get(at).ok_or(refused)?);
        } else {
            let word = String::from_utf8_lossy(call.args.at(at)).into_owned();
            return Err(Failure::new(format!("ERR Unknown argument {word}")));
        }
        at += 1;
    }
    let takes = |name: &str| pattern.is_none_or(|it| glob::matches_any_case(it, name.as_bytes()));
    let mut count = 0;
    call.server.scripts.libraries(&mut |name, _| count += usize::from(takes(name)));
    call.out.array(count);
    let (server, out) = (call.server, &mut *call.out);
    server.scripts.libraries(&mut |name, library| {
        if !takes(name) {
            return;
        }
        out.map(if has_code { 4 } else { 3 });
        out.text("library_name");
        out.text(name);
        out.text("engine");
        out.text("LUA");
        out.text("functions");
        out.array(library.functions.len());
        for function in &library.functions {
            out.map(3);
            out.text("name");
            out.text(&function.name);
            out.text("description");
            match &function.description {
                Some(text) => out.text(text),
                None => out.null(),
            }
            out.text("flags");
            out.set(function.flags.len());
            function.flags.iter().for_each(|flag| out.text(flag));
        }
        if has_code {
            out.text("library_code");
            out.bulk(&library.code);
        }
    });
    Ok(())
}

fn function_stats(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let (mut libraries, mut functions) = (0, 0);
    call.server.scripts.libraries(&mut |_, library| {
        libraries += 1;
        functions += library.functions.len();
    });
    call.out.map(2);
    call.out.text("running_script");
    call.out.null();
    call.out.text("engines");
    call.out.map(1);
    call.out.text("LUA");
    call.out.map(2);
    call.out.text("libraries_count");
    call.out.count(libraries);
    call.out.text("functions_count");
    call.out.count(functions);
    Ok(())
}
