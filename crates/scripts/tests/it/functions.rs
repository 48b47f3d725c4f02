//! User-defined functions.

use std::collections::BTreeMap;

use lazuli_query::evaluate::UserFunctions;
use lazuli_scripts::{Functions, Limits, ScriptError, Udf, check};
use lazuli_value::Value;

use crate::container::json;

fn call(source: &str, arguments: &[Option<Value>]) -> Option<Value> {
    let mut function = Udf::compile(source, &Limits::default()).expect("it compiles");
    function.call(arguments).expect("it returns")
}

#[test]
fn arguments_and_results_are_json_values_or_undefined() {
    let echo = "function (x) { return x; }";
    for text in [
        "null",
        "true",
        "0",
        "-1.5",
        "\"a\u{e9}\u{1f600}\"",
        "[1,[2],{}]",
        "{\"a\":{\"b\":[null]}}",
    ] {
        assert_eq!(call(echo, &[Some(json(text))]), Some(json(text)), "{text}");
    }
    assert_eq!(call(echo, &[None]), None);
    assert_eq!(call(echo, &[]), None);
    assert_eq!(call("x => typeof x", &[None]), Some(json("\"undefined\"")));
    assert_eq!(call("() => function () {}", &[]), None);
    assert_eq!(call("() => NaN", &[]), Some(Value::Null));
    assert_eq!(call("() => 3.0", &[]), Some(Value::Int64(3)));
    assert_eq!(call("() => new Date(0)", &[]), Some(json("\"1970-01-01T00:00:00.000Z\"")));
    assert_eq!(call("() => ({a: undefined, b: [undefined]})", &[]), Some(json("{\"b\":[null]}")));
}

#[test]
fn a_property_named_like_the_prototype_is_a_property() {
    let object = json("{\"__proto__\":{\"admin\":true}}");
    assert_eq!(call("x => x.admin", &[Some(object.clone())]), None);
    assert_eq!(call("x => x", &[Some(object.clone())]), Some(object));
}

#[test]
fn every_form_of_a_function_compiles() {
    let forms = [
        "function tax(x) { return x * 2; }",
        "  // a comment\n function tax(x) { return x * 2; } // the end",
        "function (x) { return x * 2; }",
        "x => x * 2",
        "(x) => { return x * 2; };",
        "function tax(x) { return twice(x); }\nfunction twice(x) { return x * 2; }",
        "var factor = 2; function tax(x) { return x * factor; }",
    ];
    for form in forms {
        assert_eq!(call(form, &[Some(Value::Int64(21))]), Some(Value::Int64(42)), "{form}");
    }
}

#[test]
fn a_text_without_a_function_is_refused() {
    for source in
        ["", "1", "function (", "import x from 'fs'; function f() {}", "var a = 1;", "a\0b"]
    {
        let refused = check(source, &Limits::default());
        assert!(matches!(refused, Err(ScriptError::Source(_))), "{source}: {refused:?}");
    }
}

#[test]
fn an_exception_tells_its_text_number_and_place() {
    let mut function =
        Udf::compile("function f(x) { throw new TypeError('no ' + x); }", &Limits::default())
            .unwrap();
    let Err(ScriptError::Thrown(exception)) = function.call(&[Some(Value::Int64(1))]) else {
        panic!("it must throw");
    };
    assert_eq!(exception.text, "TypeError: no 1");
    assert!(exception.stack.contains("f (script.js:1"), "{}", exception.stack);
    let thrown =
        |text: &str| Udf::compile(text, &Limits::default()).unwrap().call(&[]).unwrap_err();
    for (source, text) in [
        ("() => { throw 'plain'; }", "plain"),
        ("() => { throw {a: 1}; }", "[object Object]"),
        ("() => { throw 5; }", "5"),
        ("() => { throw undefined; }", "undefined"),
        ("() => { throw new Error(); }", "Error"),
    ] {
        let ScriptError::Thrown(exception) = thrown(source) else { panic!("{source}") };
        assert_eq!(exception.text, text);
    }
}

#[test]
fn a_function_can_be_moved_to_another_thread() {
    let mut function = Udf::compile("x => x + 1", &Limits::default()).unwrap();
    assert_eq!(function.call(&[Some(Value::Int64(1))]).unwrap(), Some(Value::Int64(2)));
    let moved = std::thread::spawn(move || function.call(&[Some(Value::Int64(2))]).unwrap());
    assert_eq!(moved.join().unwrap(), Some(Value::Int64(3)));
}

#[test]
fn a_query_finds_functions_by_name_and_learns_why_they_fail() {
    let sources =
        [("tax", "x => x * 0.2"), ("broken", "function ("), ("thrower", "() => { throw 'no'; }")];
    let sources: BTreeMap<_, _> =
        sources.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    let functions = Functions::new(sources, Limits::default());
    for income in [10, 20] {
        let tax = functions.call("tax", &[Some(Value::Int64(income))]);
        assert_eq!(tax, Ok(Some(Value::Int64(income / 5))));
    }
    for (name, part) in
        [("absent", "not found"), ("broken", "not valid"), ("thrower", "Exception = no")]
    {
        let error = functions.call(name, &[]).unwrap_err();
        assert!(error.message.contains(part), "{name}: {error}");
    }
}
