//! Tests of parser and printer: what is read, what is refused and where, and that printed text reads back the same.

use super::parse;

/// The tree as text, with parentheses around everything that has an operator.
#[track_caller]
fn check(text: &str, expected: &str) {
    let tree = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let printed = tree.to_string();
    assert_eq!(printed.replace('\n', " "), expected);
    let again = parse(&printed).unwrap_or_else(|error| panic!("{printed}: {error}"));
    assert_eq!(again.to_string(), printed);
}

#[track_caller]
fn expression(text: &str, expected: &str) {
    check(&format!("SELECT VALUE {text}"), &format!("SELECT VALUE {expected}"));
}

#[test]
fn operators_bind_as_the_grammar_says() {
    expression("1 + 2 * 3 - 4", "((1 + (2 * 3)) - 4)");
    expression("a = b AND c < d OR NOT e", "(((a = b) AND (c < d)) OR (NOT e))");
    expression("NOT a = b", "((NOT a) = b)");
    expression("a ?? b ? c : d ?? e", "((a ?? b) ? c : (d ?? e))");
    expression("a | b ^ c & d", "(a | (b ^ (c & d)))");
    expression("a || b || c", "((a || b) || c)");
    expression("1 << 2 + 3", "(1 << (2 + 3))");
    expression(
        "a NOT IN (1, 2) AND b NOT LIKE 'x%' ESCAPE '!'",
        "((a NOT IN (1, 2)) AND (b NOT LIKE \"x%\" ESCAPE \"!\"))",
    );
    expression("a BETWEEN 1 AND 2 AND b", "((a BETWEEN 1 AND 2) AND b)");
    expression("-a - -1", "((- a) - -1)");
    expression("c.a[0].b[\"x y\"][c.i]", "c.a[0].b[\"x y\"][c.i]");
    expression("{a: 1, \"b c\": [undefined, null]}", "{\"a\": 1, \"b c\": [undefined, null]}");
    expression("udf.f(LEFT('a', 1), @p)", "udf.f(LEFT(\"a\", 1), @p)");
}

#[test]
fn all_clauses_are_read() {
    check(
        "select distinct top 5 c.a, c.b as x, 1 from c",
        "SELECT DISTINCT TOP 5 c.a, c.b AS x, 1 FROM c",
    );
    check(
        "SELECT * FROM root r JOIN t IN r.tags JOIN (SELECT VALUE 1) AS s WHERE r.x",
        "SELECT * FROM root AS r JOIN t IN r.tags JOIN (SELECT VALUE 1) AS s WHERE r.x",
    );
    check(
        "SELECT COUNT(1) FROM c.a[\"order\"][3] GROUP BY c.k, LOWER(c.j)",
        "SELECT COUNT(1) FROM c.a[\"order\"][3] GROUP BY c.k, LOWER(c.j)",
    );
    check(
        "SELECT c FROM c ORDER BY c.a, c.b DESC OFFSET @o LIMIT 10",
        "SELECT c FROM c ORDER BY c.a ASC, c.b DESC OFFSET @o LIMIT 10",
    );
    check(
        "SELECT VALUE EXISTS(SELECT 1 FROM t IN c.x) AND ARRAY(SELECT VALUE t FROM t IN c.y) = [] FROM c",
        "SELECT VALUE (EXISTS(SELECT 1 FROM t IN c.x) AND (ARRAY(SELECT VALUE t FROM t IN c.y) = [])) FROM c",
    );
    check(
        "SELECT * FROM c ORDER BY RANK FullTextScore(c.text, 'a')",
        "SELECT * FROM c ORDER BY RANK FullTextScore(c.text, \"a\") ASC",
    );
}

#[test]
fn the_rewritten_texts_of_query_plans_are_read() {
    check(
        "SELECT c._rid, [{\"item\": c.n}] AS orderByItems, c AS payload FROM c WHERE (true) ORDER BY c.n",
        "SELECT c._rid, [{\"item\": c.n}] AS orderByItems, c AS payload FROM c WHERE true ORDER BY c.n ASC",
    );
    check(
        "SELECT VALUE [{\"item\": COUNT(1)}] FROM c",
        "SELECT VALUE [{\"item\": COUNT(1)}] FROM c",
    );
    check(
        "SELECT [{\"item\": c.k}] AS groupByItems, {\"$1\": {\"item\": COUNT(1)}} AS payload FROM c GROUP BY c.k",
        "SELECT [{\"item\": c.k}] AS groupByItems, {\"$1\": {\"item\": COUNT(1)}} AS payload FROM c GROUP BY c.k",
    );
}

#[test]
fn a_syntax_error_has_the_place_of_the_word_that_does_not_fit() {
    let refused = |text: &str| {
        let error = parse(text).expect_err(text);
        let span = error.span.expect("it has a place");
        (error.code.expect("it has a code"), span.start, span.end, error.message)
    };
    let near = |word: &str| format!("Syntax error, incorrect syntax near '{word}'.");
    assert_eq!(refused("SELECT * FORM c"), ("SC1001", 9, 13, near("FORM")));
    assert_eq!(refused("SELECT c.order FROM c"), ("SC1001", 9, 14, near("order")));
    assert_eq!(refused("SELECT c.value FROM c"), ("SC1001", 9, 14, near("value")));
    assert_eq!(refused("SELECT"), ("SC1001", 6, 6, near("<EOF>")));
    assert_eq!(refused("SELECT * FROM c WHERE"), ("SC1001", 21, 21, near("<EOF>")));
    assert_eq!(refused("SELECT 1 2"), ("SC1001", 9, 10, near("2")));
    assert_eq!(
        refused("SELECT 'abc"),
        ("SC1010", 7, 11, "Syntax error, invalid literal ''abc'.".into())
    );
}

#[test]
fn depth_is_limited_but_long_lists_of_conditions_are_not() {
    let deep = format!("SELECT VALUE {}1{}", "(".repeat(2000), ")".repeat(2000));
    assert!(parse(&deep).is_err());
    let minus = format!("SELECT VALUE {}1", "- ".repeat(2000));
    assert!(parse(&minus).is_err());
    let sum = format!("SELECT VALUE 1{}", " + 1".repeat(2000));
    assert!(parse(&sum).is_err());
    let many = vec!["c.a = 1"; 5000].join(" OR ");
    assert!(parse(&format!("SELECT * FROM c WHERE {many}")).is_ok());
    let nested = "(SELECT VALUE ".repeat(200) + "1" + &")".repeat(200);
    assert!(parse(&format!("SELECT VALUE {nested}")).is_err());
    let steps = format!("SELECT VALUE c{} FROM c", ".a".repeat(2000));
    assert!(parse(&steps).is_err());
}
