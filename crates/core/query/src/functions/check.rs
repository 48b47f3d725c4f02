//! Tests of functions as a table: an expression of the query language, and the JSON of its value or `undefined`.

use lazuli_value::Value;

use crate::Query;
use crate::evaluate::{Context, Flow, run};

/// Milliseconds since the Unix epoch at which the queries of the tests begin.
const NOW_MS: i64 = 1_700_000_000_000;

/// Checks each expression.
#[track_caller]
pub(super) fn check_all(table: &[(&str, &str)]) {
    for (text, expected) in table {
        let found = evaluate(text);
        let expected = match *expected {
            "undefined" => None,
            json => Some(Value::from_json(json.as_bytes()).expect("the expected value is JSON")),
        };
        let as_text = |value: &Option<Value>| match value {
            Some(value) => value.to_json(),
            None => "undefined".to_owned(),
        };
        assert_eq!(as_text(&found), as_text(&expected), "{text}");
    }
}

/// The value of an expression: read, checked and evaluated as in a query.
#[track_caller]
pub(super) fn evaluate(text: &str) -> Option<Value> {
    let query = Query::parse(&format!("SELECT VALUE {text}"));
    let query = query.unwrap_or_else(|errors| panic!("{text}: {errors:?}"));
    let checked = query.check(&crate::Parameters::new());
    let checked = checked.unwrap_or_else(|errors| panic!("{text}: {errors:?}"));
    let mut rows = Vec::new();
    let context = Context::new(NOW_MS, 1);
    let ran = run(&checked.level, None, &context, &mut |row| {
        rows.push(row.into_value());
        Ok(Flow::Continue)
    });
    ran.unwrap_or_else(|error| panic!("{text}: {error:?}"));
    rows.pop()
}
