//! What filters mean, which keys they look at, and that no text makes them panic.

use lazuli_azure::odata::{Guid, Value};

use super::plan::Interval;
use super::*;
use crate::limits::{FILTER_BYTES_MAX, FILTER_DEPTH_MAX};

fn entity(name: &str) -> Option<Value<'static>> {
    Some(match name {
        "PartitionKey" => Value::String("p".into()),
        "RowKey" => Value::String("r'1".into()),
        "I" => Value::Int32(5),
        "L" => Value::Int64(9_007_199_254_740_993),
        "D" => Value::Double(2.5),
        "N" => Value::Double(f64::NAN),
        "Yes" => Value::Boolean(true),
        "At" => Value::DateTime(17_149_792_890_000_000),
        "Id" => Value::Guid(Guid::parse("c9da6455-213d-42c9-9a79-3e9149a57833")?),
        "Raw" => Value::Binary(vec![1, 0xab].into()),
        "Name" => Value::String("Müller".into()),
        _ => return None,
    })
}

#[track_caller]
fn check(text: &str, expected: bool) {
    let filter = Filter::parse(text).unwrap_or_else(|error| panic!("{text}: {error:?}"));
    assert_eq!(filter.matches(&entity), expected, "{text}");
}

#[test]
fn every_literal_type_compares() {
    check("RowKey eq 'r''1'", true);
    check("I eq 5 and I ne 6 and I gt 4 and I ge 5 and I lt 6 and I le 5", true);
    check("I eq 5L", true);
    check("I eq 5.0", true);
    check("L eq 9007199254740993L", true);
    check("L eq 9007199254740992.0", false);
    check("L gt 9007199254740992.0", true);
    check("D gt 2", true);
    check("D lt 2.6 and D gt -1e3", true);
    check("I lt INF and I gt -INF", true);
    check("Yes eq true", true);
    check("At eq datetime'2024-05-06T07:08:09Z'", true);
    check("At lt datetime'2024-05-06T07:08:09.0000001Z'", true);
    check("Id eq guid'C9DA6455-213D-42C9-9A79-3E9149A57833'", true);
    check("Raw eq X'01AB' and Raw eq binary'01ab' and Raw gt X'01'", true);
    check("Name eq 'Müller'", true);
    check("N ne 1", true);
    check("N eq NaN", false);
}

#[test]
fn words_bind_as_they_should() {
    check("I eq 1 and I eq 2 or I eq 5", true);
    check("I eq 5 or I eq 1 and I eq 2", true);
    check("(I eq 5 or I eq 1) and I eq 2", false);
    check("not I eq 5 or I eq 5", true);
    check("not (I eq 5)", false);
    check("not not (I eq 5)", true);
    check("((((I eq 5))))", true);
}

#[test]
fn either_side_may_be_the_literal_and_a_boolean_may_stand_alone() {
    check("5 eq I and 4 lt I and 6 ge I", true);
    check("Yes", true);
    check("not Yes", false);
    check("Yes and I eq 5", true);
    check("true", true);
    check("1 eq 1", true);
    check("'a' gt 'b'", false);
}

#[test]
fn what_has_another_type_or_is_missing_meets_no_comparison() {
    check("Name eq 5", false);
    check("Name ne 5", false);
    check("Missing eq 'a'", false);
    check("Missing ne 'a'", false);
    check("not (Missing eq 'a')", true);
}

#[test]
fn what_is_no_filter_is_refused() {
    for bad in [
        "",
        " ",
        "(",
        ")",
        "()",
        "I",
        "I eq",
        "eq 5",
        "I eq 5 and",
        "I eq 5 6",
        "I == 5",
        "5",
        "I eq 'a",
        "I eq J",
        "I eq 5x",
        "I eq datetime'x'",
        "I eq guid'x'",
        "I eq X'abc'",
        "I eq decimal'1'",
        "not",
        "I eq 99999999999999999999L",
        "I eq \"a\"",
        "a,b",
        "I EQ 5",
    ] {
        let parsed = Filter::parse(bad);
        let alone = bad == "I";
        assert_eq!(parsed.is_err(), !alone, "{bad}: {parsed:?}");
    }
}

#[test]
fn length_and_depth_are_bounded() {
    let nested = |depth: usize| format!("{}I eq 5{}", "(".repeat(depth), ")".repeat(depth));
    assert!(Filter::parse(&nested(FILTER_DEPTH_MAX - 1)).is_ok());
    assert!(Filter::parse(&nested(FILTER_DEPTH_MAX)).is_err());
    assert!(Filter::parse(&format!("{}Yes", "not ".repeat(FILTER_DEPTH_MAX))).is_err());
    // Many conditions side by side are not deep.
    let wide = vec!["I eq 5"; 3000].join(" or ");
    assert!(wide.len() < FILTER_BYTES_MAX && Filter::parse(&wide).is_ok());
    assert!(Filter::parse(&vec!["I eq 5"; 4000].join(" or ")).is_err());
}

#[track_caller]
fn check_plan(text: &str, expected: &str) {
    let plan = Plan::of(Some(&Filter::parse(text).unwrap()));
    let interval = |interval: Interval| {
        format!("{}..{}", interval.from, interval.to.unwrap_or_default()).replace('\0', "+")
    };
    let shown = match plan {
        Plan::Nothing => "nothing".to_owned(),
        Plan::Point(partition, row) => format!("point {partition} {row}"),
        Plan::Rows(partition, rows) => format!("rows {partition} {}", interval(rows)),
        Plan::Partitions(partitions) => format!("partitions {}", interval(partitions)),
        Plan::Everything => "everything".to_owned(),
    };
    assert_eq!(shown, expected, "{text}");
}

#[test]
fn a_plan_that_says_it_all_needs_no_filter() {
    let is_exact = |text: &str| {
        let filter = Filter::parse(text).unwrap();
        Plan::of(Some(&filter)).is_exact(&filter)
    };
    for exact in [
        "PartitionKey eq 'p'",
        "PartitionKey eq 'p' and RowKey eq 'r'",
        "PartitionKey eq 'p' and RowKey ge 'a' and RowKey lt 'b'",
        "true and PartitionKey eq 'p'",
    ] {
        assert!(is_exact(exact), "{exact}");
    }
    for inexact in [
        "PartitionKey eq 'p' and I eq 5",
        "PartitionKey eq 'p' and RowKey ne 'r'",
        "PartitionKey eq 'p' and not (RowKey eq 'r')",
        "PartitionKey eq 'p' and (RowKey eq 'x' or RowKey eq 'z')",
        "PartitionKey ge 'a' and PartitionKey lt 'c'",
        "RowKey eq 'r'",
        "true",
    ] {
        assert!(!is_exact(inexact), "{inexact}");
    }
}

#[test]
fn conditions_on_keys_become_ranges() {
    check_plan("PartitionKey eq 'p' and RowKey eq 'r'", "point p r");
    check_plan("'r' eq RowKey and (PartitionKey eq 'p' and I gt 5)", "point p r");
    check_plan("PartitionKey eq 'p'", "rows p ..");
    check_plan("PartitionKey eq 'p' and RowKey ge 'a' and RowKey lt 'b'", "rows p a..b");
    check_plan("PartitionKey eq 'p' and RowKey gt 'a' and RowKey le 'b'", "rows p a+..b+");
    check_plan("PartitionKey gt 'a' and PartitionKey lt 'c'", "partitions a+..c");
    check_plan("PartitionKey ge 'a' and RowKey eq 'r'", "partitions a..");
    check_plan("PartitionKey eq 'a' or PartitionKey eq 'c'", "partitions a..c+");
    check_plan("(PartitionKey eq 'a' and I eq 1) or (PartitionKey eq 'a' and I eq 2)", "rows a ..");
    check_plan("PartitionKey eq 'a' and (RowKey eq 'x' or RowKey eq 'z')", "rows a x..z+");
    check_plan("PartitionKey eq 'a' or I eq 5", "everything");
    check_plan("PartitionKey ne 'a'", "everything");
    check_plan("not (PartitionKey eq 'a')", "everything");
    check_plan("RowKey eq 'r'", "everything");
    check_plan("I eq 5", "everything");
    check_plan("PartitionKey eq 'a' and PartitionKey eq 'b'", "nothing");
    check_plan("PartitionKey eq 'a' and RowKey gt 'b' and RowKey lt 'a'", "nothing");
    check_plan("PartitionKey eq 5", "nothing");
    check_plan("PartitionKey lt ''", "nothing");
    check_plan("false or PartitionKey eq 'a'", "rows a ..");
}
