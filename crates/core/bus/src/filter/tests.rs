//! Filters by example, and with random texts.

use std::collections::BTreeMap;

use lazuli_env::SplitMix64;

use super::*;
use crate::message::{Override, SystemProperty};

#[derive(Default)]
struct Sample {
    system: BTreeMap<SystemProperty, &'static str>,
    user: BTreeMap<&'static str, Value>,
}

impl Properties for Sample {
    fn get(&self, name: &PropertyName) -> Result<Option<Value>> {
        Ok(match name {
            PropertyName::System(property) => self.system.get(property).map(|it| Value::text(*it)),
            PropertyName::User(name) => self.user.get(name.as_str()).cloned(),
        })
    }

    fn new_id(&self) -> [u8; 16] {
        [1; 16]
    }
}

fn sample() -> Sample {
    let system = [(SystemProperty::Label, "urgent"), (SystemProperty::CorrelationId, "c-1")];
    let user = [
        ("color", Value::text("blue")),
        ("quantity", Value::Integer(50)),
        ("price", Value::Double(2.5)),
        ("yes", Value::Boolean(true)),
        ("name with space", Value::Integer(1)),
        ("percent", Value::text("10%")),
        ("order", Value::text("o")),
    ];
    Sample { system: system.into(), user: user.into() }
}

fn outcome(text: &str) -> String {
    match Filter::sql(text) {
        Err(_) => "refused".to_owned(),
        Ok(filter) => match filter.matches(&sample()) {
            Ok(matches) => matches.to_string(),
            Err(_) => "error".to_owned(),
        },
    }
}

/// Conditions, and what becomes of them on the sample.
const CONDITIONS: &[(&str, &str)] = &[
    ("1=1", "true"),
    ("1 = 0", "false"),
    ("color = 'blue'", "true"),
    ("user.color = 'blue'", "true"),
    ("COLOR = 'blue'", "false"),
    ("color <> 'red' AND quantity > 10", "true"),
    ("color != 'blue' OR quantity >= 50", "true"),
    ("NOT color = 'blue'", "false"),
    ("not (color = 'red' and quantity = 50)", "true"),
    ("sys.Label = 'urgent'", "true"),
    ("sys.subject LIKE 'urg%'", "true"),
    ("sys.label = 'other'", "false"),
    ("sys.Nothing = 'x'", "refused"),
    ("other.color = 'blue'", "refused"),
    ("quantity IN (10, 50)", "true"),
    ("quantity NOT IN (10, 50)", "false"),
    ("missing IN (1)", "false"),
    ("missing NOT IN (1)", "false"),
    ("quantity IN (missing, 50)", "true"),
    ("quantity IN (missing, 51)", "false"),
    ("color LIKE 'b_ue'", "true"),
    ("color LIKE '%'", "true"),
    ("color NOT LIKE 'r%'", "true"),
    ("percent LIKE '10\\%' ESCAPE '\\'", "true"),
    ("color LIKE 'bl\\%' ESCAPE '\\'", "false"),
    ("color LIKE 'b%' ESCAPE 'xy'", "error"),
    ("color LIKE 'b%' ESCAPE", "refused"),
    ("missing LIKE 'b%'", "false"),
    ("missing IS NULL", "true"),
    ("missing IS NOT NULL", "false"),
    ("color IS NOT NULL", "true"),
    ("EXISTS(color)", "true"),
    ("EXISTS(missing)", "false"),
    ("EXISTS(sys.Label) AND NOT EXISTS(sys.To)", "true"),
    ("missing = 1 OR 1 = 1", "true"),
    ("missing = 1 AND 1 = 1", "false"),
    ("NOT (missing = 1)", "false"),
    ("missing = missing", "false"),
    ("quantity + 10 * 2 = 70", "true"),
    ("(quantity + 10) * 2 = 120", "true"),
    ("quantity / 7 = 7", "true"),
    ("quantity % 7 = 1", "true"),
    ("-quantity = - 50", "true"),
    ("+quantity = 50", "true"),
    ("price * 2 = 5", "true"),
    ("price * 2 = 5.0", "true"),
    ("price > 2 AND price < 3", "true"),
    ("1.5e1 = 15", "true"),
    (".5 = 0.5", "true"),
    ("quantity / 0 = 1", "error"),
    ("9223372036854775807 + 1 = 0", "error"),
    ("color + quantity = 'x'", "error"),
    ("color + '!' = 'blue!'", "true"),
    ("color = 5", "false"),
    ("color <> 5", "false"),
    ("yes", "true"),
    ("yes = TRUE", "true"),
    ("NOT yes OR false", "false"),
    ("color", "error"),
    ("quantity AND yes", "error"),
    ("1 = 0 AND quantity", "false"),
    ("[name with space] = 1", "true"),
    ("\"name with space\" = 1", "true"),
    ("[order] = 'o'", "true"),
    ("order = 'o'", "true"),
    ("property('color') = 'blue'", "true"),
    ("p('quantity') = 50", "true"),
    ("property('sys.Label') = 'urgent'", "true"),
    ("property(5) = 1", "error"),
    ("newid() = newid()", "true"),
    ("newid() = '01010101-0101-0101-0101-010101010101'", "true"),
    ("'it''s' = 'it''s'", "true"),
    ("", "refused"),
    ("color =", "refused"),
    ("= 'blue'", "refused"),
    ("color = 'blue", "refused"),
    ("color = 'blue')", "refused"),
    ("(color = 'blue'", "refused"),
    ("color == 'blue'", "refused"),
    ("color NOT 'blue'", "refused"),
    ("color IS 5", "refused"),
    ("color IN ()", "refused"),
    ("color IN 5", "refused"),
    ("nothing()", "refused"),
    ("1e", "refused"),
    ("1e999 = 1", "refused"),
    ("color = 'blue'; drop", "refused"),
    ("AND", "refused"),
    ("#", "refused"),
];

#[test]
fn a_condition_holds_as_the_table_says() {
    for (text, wanted) in CONDITIONS {
        assert_eq!(outcome(text), *wanted, "{text}");
    }
}

#[test]
fn limits_on_length_depth_and_size_are_refusals() {
    let long = format!("color = '{}'", "x".repeat(1_024));
    let deep = format!("{}1=1{}", "(".repeat(65), ")".repeat(65));
    let signs = format!("{}1 = 1", "-".repeat(100));
    let nots = format!("{} 1=1", "NOT ".repeat(65));
    for text in [long, deep, signs, nots] {
        assert_eq!(outcome(&text), "refused", "{text}");
    }
    let fits = format!("{}1=1{}", "(".repeat(64), ")".repeat(64));
    assert_eq!(outcome(&fits), "true");
    let error = Filter::sql("color ==").unwrap_err();
    assert!(error.is(BusReason::BadFilter));
}

fn run(text: &str) -> Option<Vec<(String, Option<Value>)>> {
    let action = Action::parse(text).ok()?;
    let overrides = action.run(&sample(), &[]).ok()?;
    let name = |name: PropertyName| match name {
        PropertyName::System(property) => format!("sys.{}", property.name()),
        PropertyName::User(name) => name,
    };
    Some(overrides.into_iter().map(|Override { name: of, value }| (name(of), value)).collect())
}

#[test]
fn an_action_changes_what_its_statements_say() {
    let one = |name: &str, value| Some(vec![(name.to_owned(), value)]);
    assert_eq!(run("SET color = 'red'"), one("color", Some(Value::text("red"))));
    assert_eq!(run("set a = quantity * 2;"), one("a", Some(Value::Integer(100))));
    assert_eq!(run("REMOVE color"), one("color", None));
    assert_eq!(run("SET sys.To = sys.Label"), one("sys.To", Some(Value::text("urgent"))));
    assert_eq!(run("SET a = 1; SET a = a + 1"), one("a", Some(Value::Integer(2))));
    assert_eq!(run("SET a = missing"), one("a", None));
    assert_eq!(run("SET a = 1, REMOVE a"), one("a", None));
    for refused in [
        "",
        ";",
        "SET",
        "SET a",
        "SET a = ",
        "REMOVE",
        "color = 'red'",
        "SET sys.PartitionKey = 'x'",
        "SET sys.To = 5",
        "SET a = 1 / 0",
    ] {
        assert_eq!(run(refused), None, "{refused}");
    }
    let many = "SET a = 1;".repeat(33);
    assert_eq!(run(&many), None);
}

#[test]
fn a_correlation_asks_for_all_of_its_values() {
    let message = sample();
    let matches = |system: &[(SystemProperty, &str)], user: &[(&str, Value)]| {
        let system = system.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        let properties = user.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        let filter = CorrelationFilter { system, properties: properties.collect() };
        filter.check().unwrap();
        Filter::Correlation(filter).matches(&message).unwrap()
    };
    let label = (SystemProperty::Label, "urgent");
    assert!(matches(&[], &[]));
    assert!(matches(&[label], &[]));
    assert!(matches(&[label, (SystemProperty::CorrelationId, "c-1")], &[]));
    assert!(!matches(&[label, (SystemProperty::To, "x")], &[]));
    assert!(matches(&[], &[("quantity", Value::Double(50.0))]));
    assert!(!matches(&[label], &[("color", Value::text("Blue"))]));
    assert!(!matches(&[], &[("missing", Value::text("x"))]));
    let many = CorrelationFilter {
        system: Vec::new(),
        properties: (0..129).map(|n| (n.to_string(), Value::Integer(n))).collect(),
    };
    assert!(many.check().is_err());
}

/// Random trees of operators over known values, printed and parsed, against a plain evaluation of three truth values.
#[test]
fn three_valued_logic_is_that_of_a_plain_evaluation() {
    let mut random = SplitMix64::new(7);
    for _ in 0..5_000 {
        let (text, truth) = random_condition(&mut random, 4);
        if text.len() <= 1_024 {
            assert_eq!(outcome(&text), (truth == Some(true)).to_string(), "{text}");
        }
    }
}

fn random_condition(random: &mut SplitMix64, depth: u32) -> (String, Option<bool>) {
    if depth == 0 {
        return match random.next_u64() % 3 {
            0 => ("1=1".to_owned(), Some(true)),
            1 => ("quantity < 0".to_owned(), Some(false)),
            _ => ("missing = 1".to_owned(), None),
        };
    }
    let (a, left) = random_condition(random, depth - 1);
    let (b, right) = random_condition(random, depth - 1);
    let numbers = |truth| match truth {
        Some(false) => 0,
        None => 1,
        Some(true) => 2,
    };
    let truth = |number| [Some(false), None, Some(true)][number];
    match random.next_u64() % 3 {
        0 => (format!("({a} AND {b})"), truth(numbers(left).min(numbers(right)))),
        1 => (format!("({a} OR {b})"), truth(numbers(left).max(numbers(right)))),
        _ => (format!("NOT ({a})"), left.map(|truth| !truth)),
    }
}

#[test]
fn no_text_makes_parsing_or_evaluation_panic() {
    let pieces = [
        "color",
        "quantity",
        "'x'",
        "5",
        "1.5",
        "(",
        ")",
        "AND",
        "OR",
        "NOT",
        "IN",
        "LIKE",
        "=",
        "<",
        ">=",
        "+",
        "-",
        "*",
        "/",
        "%",
        "IS",
        "NULL",
        "EXISTS",
        "sys.",
        "SET",
        "REMOVE",
        ";",
        ",",
        "[",
        "]",
        "\"",
        "'",
        "é",
        "newid()",
        "property(",
        "ESCAPE",
        ".",
        "e",
        "1e",
        "@",
    ];
    let mut random = SplitMix64::new(11);
    for _ in 0..20_000 {
        let count = random.next_u64() % 12;
        let text: String = (0..count)
            .map(|_| pieces[(random.next_u64() % pieces.len() as u64) as usize])
            .collect::<Vec<_>>()
            .join(if random.next_u64().is_multiple_of(2) { " " } else { "" });
        super::fuzzing::bus_filter(text.as_bytes());
    }
}
