//! What no script can exceed, and what no script can reach.

use std::time::{Duration, Instant};

use lazuli_scripts::limits::SOURCE_BYTES_MAX;
use lazuli_scripts::{Limits, Outcome, ScriptError, Scripts, Udf};
use lazuli_value::Value;

use crate::container::{Container, procedure, response, run_with};

fn short() -> Limits {
    Limits {
        time: Duration::from_millis(300),
        accept_time: Duration::from_millis(200),
        grace: Duration::from_millis(300),
        memory_bytes: 8 * 1024 * 1024,
        ..Limits::default()
    }
}

/// For tests of other limits than time, on machines that are busy.
fn patient() -> Limits {
    let long = Duration::from_secs(60);
    Limits { time: long, accept_time: long, ..short() }
}

fn run(source: &str, limits: Limits) -> Result<Outcome, ScriptError> {
    run_with(&mut Container::default(), source, procedure("[]"), limits)
}

#[test]
fn a_script_that_does_not_end_is_ended() {
    for body in [
        "while (true) {}",
        "for (;;) { try { throw 1; } catch (e) {} }",
        "while (true) { try { while (true) {} } catch (e) {} finally { continue; } }",
        "(function again() { Promise.resolve().then(again); })();",
        "/(a+)+$/.test('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab');",
        "[1].sort(function () { while (true) {} }); [2, 1].sort(function () { while (true) {} });",
        "JSON.stringify({ toJSON: function () { while (true) {} } });",
        "(function* () { while (true) yield 1; })().forEach(function () {});",
        "__.response.setBody({ toJSON: function () { while (true) {} } });",
        "var e = new Error(); Object.defineProperty(e, 'message', { get() { while (true) {} } }); throw e;",
    ] {
        let began = Instant::now();
        let failed = run(&format!("function () {{ {body} }}"), short());
        let is_ended = matches!(failed, Err(ScriptError::Time | ScriptError::Thrown(_)));
        assert!(is_ended, "{body}: {failed:?}");
        assert!(began.elapsed() < Duration::from_secs(5), "{body}: {:?}", began.elapsed());
    }
}

#[test]
fn native_loops_over_invented_lengths_are_refused() {
    for body in [
        "Array.prototype.indexOf.call({length: 9007199254740991}, 1)",
        "Array.prototype.forEach.call({length: 9007199254740991}, function () {})",
        "Array.prototype.fill.call({length: 9007199254740991}, 1)",
        "Array.prototype.includes.call(Object.defineProperty(() => 1, 'length', {value: 9007199254740991}), 1)",
        "[].concat({length: 9007199254740991, [Symbol.isConcatSpreadable]: true})",
        "var a = []; a.length = 4294967295; a.indexOf(1)",
        "var a = []; a.length = 4294967295; [].concat(a)",
        "var a = []; a.length = 4294967295; a.sort()",
        "var a = 'a'.repeat(1000000); a.indexOf(a.slice(1) + 'b')",
        "var a = 'a'.repeat(1000000); a.replace(a.slice(1) + 'b', '')",
    ] {
        let began = Instant::now();
        let failed = run(&format!("function () {{ {body}; }}"), patient());
        assert!(matches!(failed, Err(ScriptError::Thrown(_))), "{body}: {failed:?}");
        assert!(began.elapsed() < Duration::from_secs(5), "{body}");
    }
}

#[test]
fn guarded_functions_do_what_they_did() {
    let source = "function () { __.response.setBody([
        [1, 2, 3].indexOf(2), [1, [2, [3]]].flat(Infinity), [3, 1, 2].sort(), [1].concat([2], 3),
        'a,b'.split(','), 'aXbX'.replace('X', '-'), 'aXbX'.replaceAll('X', '-'), 'abc'.includes('c'),
        'a1b2'.replace(/[0-9]/g, function (d) { return d * 2; }), 'abcabc'.lastIndexOf('b'), 'x'.split(),
        Array.prototype.map.call('ab', function (c) { return c + c; }),
        Array.prototype.slice.call({0: 'a', 1: 'b', length: 2}, 1), [1, 2].toString(), 'a-b'.replace('-', '$&$&'),
        (function () { return Array.prototype.join.call(arguments, '+'); })(1, 2)]); }";
    let expected = "[1,[1,2,3],[1,2,3],[1,2,3],[\"a\",\"b\"],\"a-bX\",\"a-b-\",true,\"a2b4\",4,[\"x\"],\
                    [\"aa\",\"bb\"],[\"b\"],\"1,2\",\"a--b\",\"1+2\"]";
    assert_eq!(response(&mut Container::default(), source, "[]"), expected);
}

#[test]
fn memory_is_limited() {
    for body in [
        "var s = 'x'; while (true) s += s;",
        "var a = []; while (true) a.push(new Array(1000).fill(1));",
        "new ArrayBuffer(1000000000);",
        "var o = {}; for (var i = 0; ; i++) o['p' + i] = i;",
    ] {
        let failed = run(&format!("function () {{ {body} }}"), patient());
        let is_refused = matches!(&failed, Err(ScriptError::Memory | ScriptError::Thrown(_)));
        assert!(is_refused, "{body}: {failed:?}");
    }
}

#[test]
fn depth_is_limited() {
    for body in [
        "(function f() { f(); })();",
        "var a = []; for (var i = 0; i < 100000; i++) a = [a]; JSON.stringify(a);",
        "JSON.parse('['.repeat(100000));",
        "eval('('.repeat(100000));",
        "new RegExp('('.repeat(100000));",
    ] {
        let failed = run(&format!("function () {{ {body} }}"), patient());
        assert!(
            matches!(failed, Err(ScriptError::Thrown(_) | ScriptError::Memory)),
            "{body}: {failed:?}"
        );
    }
}

#[test]
fn sizes_of_source_and_result_are_limited() {
    let long = format!("function () {{ /*{}*/ }}", "x".repeat(SOURCE_BYTES_MAX));
    assert!(matches!(run(&long, patient()), Err(ScriptError::Source(_))));
    let large = "function () { __.response.setBody('x'.repeat(5000)); }";
    let limits = Limits { result_bytes: 4096, ..patient() };
    let Err(ScriptError::Thrown(exception)) = run(large, limits.clone()) else { panic!() };
    assert_eq!(exception.number, Some(413));
    let grown = "function () { var a = []; __.response.setBody(a); a.push('x'.repeat(5000)); }";
    assert_eq!(run(grown, limits.clone()), Err(ScriptError::TooLarge));
    let partial = "function () {
        var n = 0, body = __.response;
        try { while (true) { body.appendBody('x'.repeat(100)); n++; } }
        catch (e) { if (e.number !== 413) throw e; }
        body.setBody(n);
    }";
    let outcome = run(partial, limits.clone()).unwrap();
    assert_eq!(outcome.response, Some(Value::Int64(40)));
    let mut function = Udf::compile("() => ['x'.repeat(5000)]", &limits).unwrap();
    assert_eq!(function.call(&[]), Err(ScriptError::TooLarge));
    let log = "function () { while (true) console.log('xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'); }";
    let Err(ScriptError::Thrown(exception)) = run(log, patient()) else { panic!() };
    assert_eq!(exception.number, Some(413));
}

#[test]
fn calls_over_the_limit_are_not_accepted() {
    let source = "function () {
        var n = 0;
        while (__.createDocument(__.getSelfLink(), {id: 'i' + n})) n++;
        __.response.setBody(n);
    }";
    let outcome = run(source, Limits { calls: 7, ..patient() }).unwrap();
    assert_eq!((outcome.response, outcome.calls), (Some(Value::Int64(7)), 7));
    let outcome = run(source, Limits { pending_bytes: 500, ..patient() }).unwrap();
    assert!(outcome.calls < 20, "{}", outcome.calls);
}

#[test]
fn late_calls_are_not_accepted_and_the_script_can_say_so() {
    let source = "function () {
        var done = 0;
        (function next() {
            if (!__.readDocuments(__.getSelfLink(), {}, next)) __.response.setBody(done);
            done++;
        })();
    }";
    let began = Instant::now();
    let outcome =
        run(source, Limits { calls: usize::MAX, time: Duration::from_secs(60), ..short() })
            .unwrap();
    assert!(outcome.calls > 0);
    assert!(began.elapsed() >= Duration::from_millis(200));
}

#[test]
fn a_function_has_one_time_for_all_its_calls() {
    let source = "(ms) => { var end = Date.now() + ms; while (Date.now() < end) {} return 1; }";
    let mut function = Udf::compile(source, &short()).unwrap();
    let calls = (0..20).map(|_| function.call(&[Some(Value::Int64(50))]));
    let ended: Vec<_> = calls.take_while(Result::is_ok).collect();
    assert!((1..=6).contains(&ended.len()), "{}", ended.len());
    assert_eq!(function.call(&[Some(Value::Int64(0))]), Err(ScriptError::Time));
}

#[test]
fn a_sandbox_has_no_way_out() {
    let source = "function () {
        var names = ['process', 'require', 'module', 'fetch', 'XMLHttpRequest', 'setTimeout', 'setInterval', 'std', 'os',
            'Worker', 'Deno', 'Bun', 'WebAssembly', 'Proxy', 'print', 'load', 'scriptArgs', 'performance'];
        var found = names.filter(function (name) { return typeof globalThis[name] !== 'undefined'; });
        var viaFunction = names.filter(function (name) {
            return new Function('return typeof ' + name)() !== 'undefined' || eval('typeof ' + name) !== 'undefined';
        });
        __.response.setBody([found, viaFunction]);
    }";
    assert_eq!(response(&mut Container::default(), source, "[]"), "[[],[]]");
}

#[test]
fn modules_cannot_be_imported_and_waiting_is_impossible() {
    let import = "async function () {
        try { await import('fs'); __.response.setBody('in'); } catch (e) { __.response.setBody('out'); }
    }";
    assert_eq!(response(&mut Container::default(), import, "[]"), "\"out\"");
    let wait = "function () { Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0); }";
    let began = Instant::now();
    let failed = run(wait, patient());
    assert!(matches!(failed, Err(ScriptError::Thrown(_))), "{failed:?}");
    assert!(began.elapsed() < Duration::from_secs(2));
}

#[test]
fn a_script_that_spoils_its_own_world_harms_only_itself() {
    for body in [
        "JSON.stringify = null; __.createDocument(__.getSelfLink(), {id: 'a'});",
        "Array.prototype.push = null; Object.prototype.status = 500; __.readDocuments(__.getSelfLink(), function () {});",
        "$server.deliver('{}');",
        "$server.deliver = null; __.readDocuments(__.getSelfLink());",
        "$server.outcome = function () { return 'no JSON'; };",
        "$script = 1; $server = 1;",
        "Object.defineProperty(globalThis, 'getContext', {get: function () { throw 1; }});",
    ] {
        let _ = run(&format!("function () {{ {body} }}"), patient());
    }
    assert!(run("function () {}", patient()).is_ok());
}

#[test]
fn a_text_is_checked_within_the_limits() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let scripts = Scripts::new(1, short());
    let check = |text: &str| runtime.block_on(scripts.check(text.into()));
    assert_eq!(check("function () {}"), Ok(()));
    assert!(matches!(check("function ("), Err(ScriptError::Source(_))));
    assert_eq!(check("(function () { while (true) {} })()"), Err(ScriptError::Time));
}

#[test]
fn callers_wait_for_a_free_thread_and_give_up_in_time() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let limits = Limits { grace: Duration::from_millis(50), ..short() };
    let scripts = Scripts::new(1, limits);
    let endless = std::sync::Arc::from("function () { while (true) {} }");
    runtime.block_on(async {
        let (mut first, mut second) = (Container::default(), Container::default());
        let running = scripts.run(std::sync::Arc::clone(&endless), procedure("[]"), &mut first);
        let waiting = scripts.run(endless.clone(), procedure("[]"), &mut second);
        let (first, second) = tokio::join!(running, waiting);
        assert_eq!(first, Err(ScriptError::Time));
        assert!(matches!(second, Err(ScriptError::Time | ScriptError::Busy)), "{second:?}");
    });
}
