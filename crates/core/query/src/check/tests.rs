//! Tests of checking: what is refused and with which code.

use super::Parameters;
use crate::{Checked, Query};

fn check(text: &str) -> Result<Checked, (Option<&'static str>, String)> {
    let query = Query::parse(text).expect(text);
    let parameters = Parameters::from([("@n".to_owned(), 3.into())]);
    query.check(&parameters).map_err(|errors| (errors.0[0].code, errors.0[0].message.clone()))
}

#[track_caller]
fn refused(text: &str, code: &str, part: &str) {
    let (found, message) = check(text).expect_err(text);
    assert_eq!(found, Some(code), "{message}");
    assert!(message.contains(part), "{message}");
}

#[test]
fn names_are_resolved_or_refused() {
    for text in [
        "SELECT * FROM anything",
        "SELECT * FROM root r WHERE r.x = 1",
        "SELECT VALUE t FROM c JOIN t IN c.tags JOIN u IN t.parts",
        "SELECT VALUE children FROM c.children",
        "SELECT VALUE (SELECT VALUE COUNT(1) FROM t IN c.tags WHERE t = c.x) FROM c",
        "SELECT VALUE s.a FROM (SELECT c.a FROM c WHERE c.b) AS s",
        "SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.a FROM c) AS s",
        "SELECT TOP @n * FROM c",
        "SELECT 1",
    ] {
        check(text).unwrap_or_else(|error| panic!("{text}: {error:?}"));
    }
    refused("SELECT x.a FROM c", "SC2001", "'x'");
    refused("SELECT r.a FROM root r WHERE root.x = 1", "SC2001", "'root'");
    refused("SELECT VALUE (SELECT VALUE t FROM t IN d.tags) FROM c", "SC2001", "'d'");
    refused("SELECT * FROM c WHERE c.x = @missing", "SC2001", "'@missing'");
    refused("SELECT * FROM c WHERE NO_SUCH(c.x)", "SC2005", "'NO_SUCH'");
    refused("SELECT ABS(1, 2) FROM c", "SC2050", "The ABS function requires 1 argument(s).");
}

#[test]
fn star_needs_one_source_and_no_groups() {
    refused("SELECT * FROM c JOIN t IN c.tags", "SC2041", "single input set");
    refused("SELECT *", "SC2041", "single input set");
    refused("SELECT * FROM c GROUP BY c.a", "SC2041", "GROUP BY");
}

#[test]
fn beside_aggregates_only_keys_may_stand() {
    check("SELECT c.a, COUNT(1) AS n, UPPER(c.b) FROM c GROUP BY c.a, c.b").unwrap_or_else(|_| {
        check("SELECT c.a, COUNT(1) AS n, LOWER(c.b) FROM c GROUP BY c.a, c.b").unwrap()
    });
    check("SELECT VALUE {\"a\": c.a, \"n\": [COUNT(1)]} FROM c GROUP BY c.a").unwrap();
    refused("SELECT c.b, COUNT(1) FROM c GROUP BY c.a", "SC2103", "'c.b'");
    refused("SELECT c.b, COUNT(1) FROM c", "SC2103", "'c.b'");
    refused("SELECT ABS(AVG(c.x)) FROM c", "SC2103", "Compositions");
    refused("SELECT COUNT(1) + 1 FROM c", "SC2103", "Compositions");
    refused("SELECT SUM(COUNT(1)) FROM c", "SC2103", "argument of another");
    refused("SELECT * FROM c WHERE COUNT(1) > 1", "SC2103", "only allowed in SELECT");
    refused("SELECT c.a FROM c GROUP BY c.a ORDER BY c.a", "SC2103", "ORDER BY");
}

#[test]
fn limits_are_kept() {
    let joins: String = (0..11).map(|n| format!(" JOIN t{n} IN c.tags")).collect();
    refused(&format!("SELECT VALUE c FROM c{joins}"), "SC1001", "joins");
    let list = vec!["1"; 16_001].join(",");
    refused(&format!("SELECT * FROM c WHERE c.x IN ({list})"), "SC1001", "IN expression");
    let calls = ["udf.f(c)"; 11].join(",");
    refused(&format!("SELECT {calls} FROM c"), "SC3005", "user-defined");
}

#[test]
fn places_are_counted_in_utf16_units() {
    let query = Query::parse("SELECT '😀', x.a FROM c").unwrap();
    let errors = query.check(&Parameters::new()).expect_err("x is unknown");
    assert_eq!(
        errors.to_json(),
        "{\"errors\":[{\"severity\":\"Error\",\"location\":{\"start\":13,\"end\":14},\
         \"code\":\"SC2001\",\"message\":\"Identifier 'x' could not be resolved.\"}]}"
    );
}

#[test]
fn computed_properties_stand_for_their_expressions() {
    let computed = Query::parse("SELECT VALUE LOWER(c.name) FROM c").unwrap().computed_property();
    let computed = [("lower".to_owned(), computed.unwrap())];
    let query = Query::parse("SELECT VALUE d.lower FROM d WHERE d.lower = 'a'").unwrap();
    let plain =
        Query::parse("SELECT VALUE LOWER(d.name) FROM d WHERE LOWER(d.name) = 'a'").unwrap();
    let parameters = Parameters::new();
    assert_eq!(query.check_with(&parameters, &computed), plain.check(&parameters));
    for text in ["SELECT c.a FROM c", "SELECT VALUE c.a FROM c WHERE c.b", "SELECT VALUE 1"] {
        assert!(Query::parse(text).unwrap().computed_property().is_err(), "{text}");
    }
}
