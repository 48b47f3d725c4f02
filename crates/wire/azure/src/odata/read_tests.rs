//! What the JSON reader takes and refuses.

use super::*;

fn one(json: &str) -> Result<Value<'_>, JsonError> {
    let mut properties = read_entity(json.as_bytes())?;
    assert_eq!(properties.len(), 1, "{json}");
    Ok(properties.remove(0).1)
}

#[test]
fn types_are_inferred_without_a_note() {
    assert_eq!(one(r#"{"A":1}"#), Ok(Value::Int32(1)));
    assert_eq!(one(r#"{"A":2147483648}"#), Ok(Value::Double(2_147_483_648.0)));
    assert_eq!(one(r#"{"A":1.0}"#), Ok(Value::Double(1.0)));
    assert_eq!(one(r#"{"A":true}"#), Ok(Value::Boolean(true)));
    assert_eq!(one(r#"{"A":"ä\n"}"#), Ok(Value::String("ä\n".into())));
}

#[test]
fn a_note_says_the_type_wherever_it_stands() {
    let before = r#"{"A@odata.type":"Edm.Int64","A":"9223372036854775807"}"#;
    let after = r#"{"A":"9223372036854775807","A@odata.type":"Edm.Int64"}"#;
    assert_eq!(one(before), Ok(Value::Int64(i64::MAX)));
    assert_eq!(one(after), Ok(Value::Int64(i64::MAX)));
    let with = |kind: &str, value: &str| {
        let text = format!(r#"{{"A@odata.type":"{kind}","A":{value}}}"#);
        one(&text).map(|value| format!("{value:?}"))
    };
    assert_eq!(with("Edm.Double", "\"NaN\"").unwrap(), "Double(NaN)");
    assert_eq!(with("Edm.Double", "\"-Infinity\"").unwrap(), "Double(-inf)");
    assert_eq!(with("Edm.Double", "3").unwrap(), "Double(3.0)");
    assert_eq!(with("Edm.Binary", "\"AAEC\"").unwrap(), "Binary([0, 1, 2])");
    assert_eq!(with("Edm.DateTime", "\"1970-01-01T00:00:01Z\"").unwrap(), "DateTime(10000000)");
    assert!(with("Edm.Guid", "\"c9da6455-213d-42c9-9a79-3e9149a57833\"").is_ok());
    assert!(with("Edm.String", "\"x\"").is_ok());
    assert_eq!(with("Edm.Boolean", "\"true\"").unwrap(), "Boolean(true)");
    assert_eq!(with("Edm.Boolean", "\"False\"").unwrap(), "Boolean(false)");
    let wrong = Err(JsonError::WrongValue("A".into()));
    for (kind, value) in [
        ("Edm.Int32", "2147483648"),
        ("Edm.Int64", "\"1.5\""),
        ("Edm.Boolean", "\"maybe\""),
        ("Edm.Boolean", "1"),
        ("Edm.Guid", "\"x\""),
        ("Edm.Binary", "\"?\""),
        ("Edm.String", "1"),
    ] {
        assert_eq!(with(kind, value), wrong, "{kind} {value}");
    }
    assert_eq!(with("Edm.Decimal", "1"), Err(JsonError::UnknownType("Edm.Decimal".into())));
    assert_eq!(
        with("Edm.DateTime", "\"1600-12-31T00:00:00Z\""),
        Err(JsonError::OutOfRange("A".into()))
    );
}

#[test]
fn nulls_and_the_notes_of_odata_are_no_properties() {
    let text = r#"{"odata.etag":"W/\"x\"","A":null,"B@odata.mediaType":"x","B":1}"#;
    assert_eq!(one(text), Ok(Value::Int32(1)));
}

#[test]
fn what_is_no_flat_object_is_refused() {
    for bad in ["", "{", "[]", "1", r#"{"A":{}}"#, r#"{"A":[1]}"#, r#"{"A":1} x"#, r#"{"A":1,}"#] {
        assert_eq!(read_entity(bad.as_bytes()), Err(JsonError::Syntax), "{bad}");
    }
    assert_eq!(read_entity(b"{\"A\":\"\xff\"}"), Err(JsonError::Syntax));
    let twice = r#"{"A":1,"B":2,"A":3}"#;
    assert_eq!(read_entity(twice.as_bytes()), Err(JsonError::Duplicate("A".into())));
}

#[test]
fn depth_and_members_are_bounded() {
    let deep = format!(r#"{{"A":{}"#, "[".repeat(1_000_000));
    assert_eq!(read_entity(deep.as_bytes()), Err(JsonError::Syntax));
    let members: Vec<_> = (0..=ENTITY_MEMBERS_MAX).map(|n| format!("\"P{n}\":1")).collect();
    let wide = format!("{{{}}}", members.join(","));
    assert_eq!(read_entity(wide.as_bytes()), Err(JsonError::TooManyMembers));
}
