//! Tests of execution: small items in, rows out, on one page and on many.

use std::sync::Arc;

use lazuli_value::{View, encode_json};

use super::{Execution, PageOptions, Wants};
use crate::check::Parameters;
use crate::error::QueryError;
use crate::evaluate::Context;
use crate::{Continuation, Query};

const ITEMS: &[&str] = &[
    r#"{"id":"1","k":"a","n":3,"tags":["x","y"],"o":{"p":1}}"#,
    r#"{"id":"2","k":"b","n":1,"tags":["y"],"o":{"p":2}}"#,
    r#"{"id":"3","k":"a","n":2.5,"tags":[]}"#,
    r#"{"id":"4","k":"b","tags":"none"}"#,
    r#"{"id":"5","k":"a","n":null}"#,
];

/// The rows of a query as JSON, made in pages of so many rows.
fn rows_in_pages(text: &str, rows: usize) -> Result<Vec<String>, QueryError> {
    rows_of(text, ITEMS, rows)
}

/// The same over other items.
fn rows_of(text: &str, items: &[&str], rows: usize) -> Result<Vec<String>, QueryError> {
    let query = Query::parse(text).map_err(|errors| errors.0[0].clone())?;
    let parameters = Parameters::from([("@two".to_owned(), 2.into())]);
    let checked = Arc::new(query.check(&parameters).map_err(|errors| errors.0[0].clone())?);
    let fingerprint = query.fingerprint(&parameters);
    let mut all = Vec::new();
    let mut continuation: Option<Continuation> = None;
    for _ in 0..100 {
        let options = PageOptions::of_rows(rows);
        let start = continuation.clone();
        let mut execution = Execution::new(
            checked.clone(),
            fingerprint,
            Context::new(0, 0),
            options,
            false,
            continuation,
        )?;
        let is_end = push_items(&mut execution, items, start.as_ref())?;
        let page = execution.finish(is_end)?;
        assert!(page.rows.len() <= rows);
        all.extend(page.rows.iter().map(|row| View::parse(row).unwrap().to_json()));
        match page.continuation {
            Some(next) => {
                assert_eq!(Continuation::decode(&next.encode()).as_ref(), Ok(&next));
                continuation = Some(next);
            }
            None => return Ok(all),
        }
    }
    panic!("{text} has no end");
}

fn push_items(
    execution: &mut Execution,
    items: &[&str],
    start: Option<&Continuation>,
) -> Result<bool, QueryError> {
    if execution.reads_nothing() {
        execution.push_nothing()?;
        return Ok(true);
    }
    for (place, item) in items.iter().enumerate() {
        let place = [place as u8];
        if start.is_some_and(|start| start.is_behind(&place)) {
            continue;
        }
        let bytes = encode_json(item.as_bytes()).unwrap();
        if execution.push(&place, View::parse(&bytes).unwrap())? == Wants::NoMore {
            return Ok(false);
        }
    }
    Ok(true)
}

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    for rows in [100, 1, 2, 3] {
        match rows_in_pages(text, rows) {
            Ok(found) => assert_eq!(found, expected, "{text} in pages of {rows}"),
            Err(error) => panic!("{text}: {error}"),
        }
    }
}

#[test]
fn filters_and_projections_give_what_the_service_gives() {
    check("SELECT VALUE c.id FROM c WHERE c.n > 1", &["\"1\"", "\"3\""]);
    check("SELECT c.n FROM c", &["{\"n\":3}", "{\"n\":1}", "{\"n\":2.5}", "{}", "{\"n\":null}"]);
    check("SELECT VALUE c.n FROM c", &["3", "1", "2.5", "null"]);
    check("SELECT c.id, c.n + 1 FROM c WHERE c.id = '2'", &["{\"id\":\"2\",\"$1\":2}"]);
    check(
        "SELECT VALUE {a: c.o.p, b: [c.x, c.id]} FROM c WHERE c.id IN ('1', '3')",
        &["{\"a\":1,\"b\":[\"1\"]}", "{\"b\":[\"3\"]}"],
    );
    check("SELECT * FROM c WHERE c.id = '5'", &[ITEMS[4]]);
    check("SELECT VALUE c.id FROM c WHERE NOT (c.n > 1)", &["\"2\""]);
    check(
        "SELECT VALUE c.id FROM c WHERE c.n BETWEEN 2 AND 3 AND c.k LIKE 'a%'",
        &["\"1\"", "\"3\""],
    );
    check("SELECT VALUE c.n ?? 'none' FROM c WHERE c.k = 'b'", &["1", "\"none\""]);
    check("SELECT VALUE 1 + @two", &["3"]);
    check("SELECT 1 AS a, undefined AS b", &["{\"a\":1}"]);
    check("SELECT VALUE undefined", &[]);
}

#[test]
fn joins_and_subqueries_see_the_arrays_of_their_item() {
    check(
        "SELECT VALUE [c.id, t] FROM c JOIN t IN c.tags",
        &["[\"1\",\"x\"]", "[\"1\",\"y\"]", "[\"2\",\"y\"]"],
    );
    check("SELECT VALUE t FROM t IN c.tags", &["\"x\"", "\"y\"", "\"y\""]);
    check("SELECT VALUE o FROM c.o", &["{\"p\":1}", "{\"p\":2}"]);
    check(
        "SELECT VALUE c.id FROM c WHERE EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t = 'y')",
        &["\"1\"", "\"2\""],
    );
    check(
        "SELECT VALUE ARRAY(SELECT VALUE t || '!' FROM t IN c.tags) FROM c WHERE c.id < '3'",
        &["[\"x!\",\"y!\"]", "[\"y!\"]"],
    );
    check(
        "SELECT VALUE (SELECT VALUE COUNT(1) FROM t IN c.tags) FROM c",
        &["2", "1", "0", "0", "0"],
    );
    check(
        "SELECT VALUE s FROM c JOIN (SELECT TOP 1 VALUE t FROM t IN c.tags) AS s",
        &["\"x\"", "\"y\""],
    );
    check(
        "SELECT VALUE FIRST(SELECT VALUE t FROM t IN c.tags ORDER BY t DESC) FROM c",
        &["\"y\"", "\"y\""],
    );
    check(
        "SELECT VALUE s.a FROM (SELECT c.n AS a FROM c WHERE c.k = 'a') AS s",
        &["3", "2.5", "null"],
    );
    check("SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.k FROM c) AS s", &["2"]);
    check(
        "SELECT VALUE s || '!' FROM (SELECT DISTINCT VALUE c.k FROM c) AS s",
        &["\"a!\"", "\"b!\""],
    );
    let error = rows_in_pages("SELECT VALUE (SELECT VALUE t FROM t IN c.tags) FROM c", 10);
    assert!(error.is_err_and(|error| error.message.contains("scalar subquery")));
}

#[test]
fn orders_have_the_order_of_types_and_go_on_from_page_to_page() {
    check("SELECT VALUE c.id FROM c ORDER BY c.n", &["\"4\"", "\"5\"", "\"2\"", "\"3\"", "\"1\""]);
    check(
        "SELECT VALUE c.id FROM c ORDER BY c.n DESC",
        &["\"1\"", "\"3\"", "\"2\"", "\"5\"", "\"4\""],
    );
    check(
        "SELECT VALUE c.id FROM c ORDER BY c.k DESC, c.n",
        &["\"4\"", "\"2\"", "\"5\"", "\"3\"", "\"1\""],
    );
    check("SELECT TOP 2 VALUE c.id FROM c ORDER BY c.n DESC", &["\"1\"", "\"3\""]);
    check("SELECT VALUE c.id FROM c ORDER BY c.n OFFSET 1 LIMIT 3", &["\"5\"", "\"2\"", "\"3\""]);
    check("SELECT VALUE c.id FROM c OFFSET 1 LIMIT @two", &["\"2\"", "\"3\""]);
    check(
        "SELECT VALUE t FROM c JOIN t IN c.tags ORDER BY c.id DESC",
        &["\"y\"", "\"x\"", "\"y\""],
    );
    check("SELECT TOP 0 * FROM c", &[]);
}

#[test]
fn aggregates_skip_undefined_and_are_poisoned_by_other_types() {
    check("SELECT VALUE COUNT(1) FROM c", &["5"]);
    check("SELECT VALUE COUNT(c.n) FROM c", &["4"]);
    check("SELECT VALUE SUM(c.n) FROM c", &[]);
    check("SELECT VALUE SUM(c.n) FROM c WHERE c.n > 0", &["6.5"]);
    check("SELECT VALUE AVG(c.o.p) FROM c", &["1.5"]);
    check(
        "SELECT MIN(c.n) AS a, MAX(c.n) AS b, COUNT(1) FROM c",
        &["{\"a\":null,\"b\":3,\"$1\":5}"],
    );
    check("SELECT VALUE MAX(c.n) FROM c WHERE false", &[]);
    check("SELECT VALUE COUNT(1) FROM c WHERE false", &["0"]);
    check("SELECT VALUE MAX(c.tags) FROM c", &[]);
    check("SELECT VALUE COUNTIF(c.k = 'a') FROM c", &["3"]);
    check("SELECT VALUE MAKELIST(c.k) FROM c", &["[\"a\",\"b\",\"a\",\"b\",\"a\"]"]);
    check("SELECT VALUE MAKESET(c.k) FROM c", &["[\"a\",\"b\"]"]);
    check("SELECT VALUE [{\"item\": COUNT(1)}] FROM c", &["[{\"item\":5}]"]);
    check(
        "SELECT VALUE {\"sum\": SUM(c.o.p), \"count\": COUNT(c.o.p)} FROM c",
        &["{\"sum\":3,\"count\":2}"],
    );
}

#[test]
fn groups_and_distinct_rows_come_once() {
    check(
        "SELECT c.k, COUNT(1) AS n FROM c GROUP BY c.k",
        &["{\"k\":\"a\",\"n\":3}", "{\"k\":\"b\",\"n\":2}"],
    );
    check(
        "SELECT c.o.p, COUNT(1) AS n FROM c GROUP BY c.o.p",
        &["{\"n\":3}", "{\"p\":1,\"n\":1}", "{\"p\":2,\"n\":1}"],
    );
    check("SELECT VALUE c.k FROM c GROUP BY c.k OFFSET 1 LIMIT 1", &["\"b\""]);
    check("SELECT DISTINCT VALUE c.k FROM c", &["\"a\"", "\"b\""]);
    check("SELECT DISTINCT VALUE c.k FROM c ORDER BY c.k DESC", &["\"b\"", "\"a\""]);
    check("SELECT DISTINCT c.k FROM c GROUP BY c.k, c.id", &["{\"k\":\"a\"}", "{\"k\":\"b\"}"]);
    check("SELECT DISTINCT TOP 1 VALUE c.k FROM c", &["\"a\""]);
}

#[test]
fn ranked_rows_come_by_score_on_one_page_and_on_many() {
    let ranked = |order: &str| format!("SELECT VALUE s.t FROM s IN c.texts ORDER BY RANK {order}");
    let texts = r#"{"id":"1","texts":[
        {"t":"red bicycle","v":[1,0]}, {"t":"a green bicycle and a green helmet","v":[0.9,0.1]},
        {"t":"red red rose","v":[0,1]}, {"v":[0.5,0.5]}, {"t":"blue","v":[0.7,0.7]}]}"#;
    for (order, expected) in [
        ("FullTextScore(s.t, 'red')", vec!["red red rose", "red bicycle"]),
        ("FullTextScore(s.t, 'bicycle', 'green')", vec!["a green bicycle and a green helmet"]),
        ("VectorDistance(s.v, [1, 0])", vec!["red bicycle", "a green bicycle and a green helmet"]),
        ("RRF(FullTextScore(s.t, 'red'), VectorDistance(s.v, [1, 0]))", vec!["red bicycle"]),
        (
            "RRF(FullTextScore(s.t, 'red'), VectorDistance(s.v, [0, 1]), [1, 3])",
            vec!["red red rose"],
        ),
    ] {
        let text = ranked(order);
        let found = rows_of(&text, &[texts], 100).unwrap();
        let expected: Vec<String> = expected.iter().map(|it| format!("\"{it}\"")).collect();
        assert_eq!(found[..expected.len()], expected, "{text}");
        assert_eq!(found.len(), 4, "{text}");
        for rows in 1..4 {
            assert_eq!(rows_of(&text, &[texts], rows).unwrap(), found, "{text} by {rows}");
        }
    }
}

#[test]
fn the_nearest_vectors_come_first_whatever_the_measure() {
    let items = [r#"{"id":"1","v":[5,0]}"#, r#"{"id":"2","v":[1,1]}"#, r#"{"id":"3","v":[1,0.5]}"#];
    let by = |options: &str| {
        let order = format!("VectorDistance(c.v, [1, 0.4]{options})");
        rows_of(&format!("SELECT TOP 2 VALUE c.id FROM c ORDER BY {order}"), &items, 10).unwrap()
    };
    assert_eq!(by(""), [r#""3""#, r#""1""#]);
    let measure = |name: &str| by(&format!(", true, {{'distanceFunction': '{name}'}}"));
    assert_eq!(measure("euclidean"), [r#""3""#, r#""2""#]);
    assert_eq!(measure("dotproduct"), [r#""1""#, r#""2""#]);
}

#[test]
fn scores_are_refused_where_nothing_is_ranked() {
    for text in [
        "SELECT FullTextScore(c.t, 'a') FROM c",
        "SELECT * FROM c ORDER BY FullTextScore(c.t, 'a')",
        "SELECT * FROM c WHERE RRF(1, 2)",
        "SELECT * FROM c ORDER BY RANK ABS(c.n)",
        "SELECT DISTINCT c.n FROM c ORDER BY RANK FullTextScore(c.t, 'a')",
        "SELECT VALUE ARRAY(SELECT VALUE t FROM t IN c.tags ORDER BY RANK FullTextScore(t, 'a')) FROM c",
    ] {
        assert!(rows_in_pages(text, 10).is_err(), "{text}");
    }
}

#[test]
fn a_long_list_is_the_same_as_a_short_one() {
    let numbers: Vec<String> = (100..130).map(|number| number.to_string()).collect();
    let long = numbers.join(", ");
    check(&format!("SELECT VALUE c.id FROM c WHERE c.n IN ({long}, 3.0)"), &["\"1\""]);
    // Of another kind than the list: undefined, as with a short one.
    let none = ["\"1\"", "\"2\"", "\"3\""];
    check(&format!("SELECT VALUE c.id FROM c WHERE c.n NOT IN ({long})"), &none);
    check(&format!("SELECT VALUE c.id FROM c WHERE c.n NOT IN ({long}, 'a')"), &[]);
    check("SELECT VALUE c.id FROM c WHERE c.n NOT IN (100, 'a')", &[]);
}

#[test]
fn queries_as_deep_as_the_limit_are_run() {
    let nested = |depth: usize| {
        let inner = "(SELECT VALUE ".repeat(depth) + "c.id" + &")".repeat(depth);
        format!("SELECT VALUE {inner} FROM c WHERE c.id = '1'")
    };
    check(&nested(45), &["\"1\""]);
    let joined = "(c.n + ".repeat(45) + "1" + &")".repeat(45);
    check(&format!("SELECT VALUE {joined} FROM c WHERE c.id = '2'"), &["46"]);
}

/// Doubles numbers and fails for everything else.
struct Double;

impl crate::evaluate::UserFunctions for Double {
    fn call(
        &self,
        name: &str,
        arguments: &[Option<lazuli_value::Value>],
    ) -> Result<Option<lazuli_value::Value>, QueryError> {
        match arguments {
            [Some(lazuli_value::Value::Int64(number))] if name == "double" => {
                Ok(Some((number * 2).into()))
            }
            _ => Err(QueryError::new(crate::ErrorKind::Function, "no number")),
        }
    }
}

#[test]
fn user_defined_functions_are_called_in_every_stage() {
    let text = "SELECT VALUE udf.double(s) FROM (SELECT DISTINCT VALUE udf.double(c.n) FROM c \
                WHERE IS_INTEGER(c.n)) AS s";
    let query = Query::parse(text).unwrap();
    let checked = Arc::new(query.check(&Parameters::new()).unwrap());
    let mut context = Context::new(0, 0);
    context.functions = Some(Box::new(Double));
    let options = PageOptions::default();
    let execution = Execution::new(checked, 0, context, options, false, None);
    let mut execution = execution.unwrap();
    let is_end = push_items(&mut execution, ITEMS, None).unwrap();
    let rows = execution.finish(is_end).unwrap().rows;
    let rows: Vec<String> = rows.iter().map(|row| View::parse(row).unwrap().to_json()).collect();
    assert_eq!(rows, ["4", "12"]);
    let unknown = rows_in_pages("SELECT VALUE udf.f(c) FROM c", 5).expect_err("there is none");
    assert_eq!(unknown.kind, crate::ErrorKind::Function);
}
