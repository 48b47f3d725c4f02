//! Tests of operators: a table of expressions and the values that the service gives for them.

use std::sync::Arc;

use lazuli_value::View;

use super::Context;
use crate::execute::{Execution, PageOptions};
use crate::{Parameters, Query};

/// The JSON of an expression's value; `undefined` if it has none.
fn value(expression: &str) -> String {
    // The row comes from a subquery, so that the expression is not computed when it is checked.
    let texts = [
        format!("SELECT VALUE {expression}"),
        format!("SELECT VALUE {expression} FROM (SELECT VALUE {{n: 1}}) AS c"),
    ];
    let values = texts.map(|text| {
        let query = Query::parse(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let checked = query.check(&Parameters::new());
        let checked = checked.unwrap_or_else(|error| panic!("{text}: {error}"));
        let context = Context::new(0, 0);
        let options = PageOptions::default();
        let execution = Execution::new(Arc::new(checked), 0, context, options, false, None);
        let mut execution = execution.unwrap();
        execution.push_nothing().unwrap();
        let rows = execution.finish(true).unwrap().rows;
        let row = rows.first().map(|row| View::parse(row).unwrap().to_json());
        row.unwrap_or_else(|| "undefined".into())
    });
    assert_eq!(values[0], values[1], "{expression}");
    values[0].clone()
}

#[track_caller]
fn check(cases: &[(&str, &str)]) {
    for (expression, expected) in cases {
        assert_eq!(value(expression), *expected, "{expression}");
    }
}

#[test]
fn false_decides_and_and_true_decides_or_even_beside_undefined() {
    let values = ["true", "false", "undefined", "1"];
    // Rows and columns in the order of the values above.
    let and = [
        ["true", "false", "undefined", "undefined"],
        ["false", "false", "false", "false"],
        ["undefined", "false", "undefined", "undefined"],
        ["undefined", "false", "undefined", "undefined"],
    ];
    let or = [
        ["true", "true", "true", "true"],
        ["true", "false", "undefined", "undefined"],
        ["true", "undefined", "undefined", "undefined"],
        ["true", "undefined", "undefined", "undefined"],
    ];
    for (row, one) in values.iter().enumerate() {
        for (column, two) in values.iter().enumerate() {
            assert_eq!(value(&format!("({one} AND {two})")), and[row][column], "{one} AND {two}");
            assert_eq!(value(&format!("({one} OR {two})")), or[row][column], "{one} OR {two}");
        }
    }
    check(&[
        ("NOT true", "false"),
        ("NOT undefined", "undefined"),
        ("NOT 1", "undefined"),
        ("NOT null", "undefined"),
    ]);
}

#[test]
fn comparisons_are_defined_within_a_type() {
    check(&[
        ("1 = 1.0", "true"),
        ("1 = '1'", "undefined"),
        ("null = null", "true"),
        ("null = undefined", "undefined"),
        ("null = false", "undefined"),
        ("undefined = undefined", "undefined"),
        ("1 != 2", "true"),
        ("1 <> 1", "false"),
        ("1 != 'a'", "undefined"),
        ("'a' < 'b'", "true"),
        ("'B' < 'a'", "true"),
        ("false < true", "true"),
        ("null <= null", "true"),
        ("2 >= 2", "true"),
        ("1 < 'a'", "undefined"),
        ("[1, {a: 2}] = [1, {a: 2.0}]", "true"),
        ("{a: 1, b: 2} = {b: 2, a: 1}", "true"),
        ("{a: 1} != {a: 2}", "true"),
        ("[1] < [2]", "undefined"),
        ("{a: 1} >= {a: 1}", "undefined"),
        ("9007199254740993 = 9007199254740992", "false"),
    ]);
}

#[test]
fn arithmetic_is_of_doubles_and_bits_are_of_32() {
    check(&[
        ("1 + 2 * 3", "7"),
        ("7 / 2", "3.5"),
        ("6 / 2", "3"),
        ("-7 % 3", "-1"),
        ("5.5 % 2", "1.5"),
        ("1 / 0", "undefined"),
        ("0 / 0", "undefined"),
        ("1 + 'a'", "undefined"),
        ("'a' + 'b'", "undefined"),
        ("null + 1", "undefined"),
        ("0.1 + 0.2", "0.30000000000000004"),
        ("-(3)", "-3"),
        ("+'3'", "undefined"),
        ("+3", "3"),
        ("~5", "-6"),
        ("5 & 3", "1"),
        ("5 | 3", "7"),
        ("5 ^ 3", "6"),
        ("1 << 31", "-2147483648"),
        ("1 << 33", "2"),
        ("-8 >> 1", "-4"),
        ("-1 >>> 0", "4294967295"),
        ("4294967297 | 0", "1"),
        ("5.9 | 0", "5"),
        ("'a' & 1", "undefined"),
        ("'a' || 'b' || 'c'", "\"abc\""),
        ("'a' || 1", "undefined"),
    ]);
}

#[test]
fn tests_and_choices_know_undefined() {
    check(&[
        ("2 BETWEEN 1 AND 3", "true"),
        ("4 NOT BETWEEN 1 AND 3", "true"),
        ("2 BETWEEN 'a' AND 3", "undefined"),
        ("9 BETWEEN 'a' AND 3", "false"),
        ("'b' BETWEEN 'a' AND 'c'", "true"),
        ("1 IN (2, 1)", "true"),
        ("1 IN (2, 'a')", "undefined"),
        ("1 IN ('a', 1)", "true"),
        ("1 NOT IN (2, 3)", "true"),
        ("undefined IN (1, undefined)", "undefined"),
        ("'abc' LIKE 'a%'", "true"),
        ("'abc' NOT LIKE '_b%'", "false"),
        ("1 LIKE '1'", "undefined"),
        ("undefined ?? 1", "1"),
        ("null ?? 1", "null"),
        ("undefined ?? undefined ?? 2", "2"),
        ("true ? 1 : 2", "1"),
        ("false ? 1 : 2", "2"),
        ("1 ? 1 : 2", "undefined"),
        ("undefined ? 1 : 2", "undefined"),
        ("1 < 2 ? 'a' : 'b'", "\"a\""),
    ]);
}

#[test]
fn members_and_made_values_leave_undefined_out() {
    check(&[
        ("{a: {b: [1, 2]}}.a.b[1]", "2"),
        ("{a: 1}['a']", "1"),
        ("{a: 1}.b", "undefined"),
        ("[1, 2][2]", "undefined"),
        ("[1, 2][-1]", "undefined"),
        ("[1, 2][0.5]", "undefined"),
        ("[1, 2]['0']", "undefined"),
        ("'abc'[0]", "undefined"),
        ("[1, undefined, 2]", "[1,2]"),
        ("{a: undefined, b: null}", "{\"b\":null}"),
        ("{a: 1, a: 2}", "{\"a\":2}"),
        ("(SELECT VALUE 1 WHERE false)", "undefined"),
        ("EXISTS(SELECT VALUE 1 WHERE false)", "false"),
        ("ARRAY(SELECT VALUE x FROM x IN (SELECT VALUE [3, 1, 2]))", "[3,1,2]"),
    ]);
}
