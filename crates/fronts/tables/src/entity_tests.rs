//! The limits of an entity, and its stored form there and back.

use super::*;

fn parse(json: &str) -> std::result::Result<Entity<'_>, Code> {
    Entity::parse(json.as_bytes(), &Limits::default()).map_err(|fault| fault.code)
}

fn values() -> Vec<(Cow<'static, str>, Value<'static>)> {
    vec![
        ("Bin".into(), Value::Binary(vec![0, 255].into())),
        ("Yes".into(), Value::Boolean(true)),
        ("No".into(), Value::Boolean(false)),
        ("At".into(), Value::DateTime(-1)),
        ("Real".into(), Value::Double(-0.5)),
        ("Id".into(), Value::Guid(Guid([7; 16]))),
        ("Small".into(), Value::Int32(i32::MIN)),
        ("Large".into(), Value::Int64(i64::MAX)),
        ("Text".into(), Value::String("ä".repeat(200).into())),
        ("Empty".into(), Value::String("".into())),
    ]
}

#[test]
fn every_type_comes_back_from_its_stored_form() {
    let stored = encode(&values());
    let read = Properties::open(&stored).unwrap();
    for (name, value) in values() {
        assert_eq!(read.find(&name), Some(value));
    }
    assert_eq!(read.find("Nothing"), None);
    let names: Vec<_> = read.map(|property| property.unwrap().0.to_owned()).collect();
    assert_eq!(names.join(" "), "Bin Yes No At Real Id Small Large Text Empty");
}

/// The bytes of an entity that was stored in format 1: they must be readable for as long as the format is.
#[test]
fn the_stored_form_stays_what_it_is() {
    let stored = encode(&[
        ("A".into(), Value::Int32(1)),
        ("Bc".into(), Value::String("x".into())),
        ("D".into(), Value::Boolean(true)),
    ]);
    assert_eq!(&stored[..], b"\x01\x01A\x07\0\0\0\x01\x02Bc\x09\x01x\x01D\x03");
}

#[test]
fn damage_is_reported_and_never_a_panic() {
    assert_eq!(Properties::open(b"").err(), Some(Damaged));
    assert_eq!(Properties::open(b"\x02").err(), Some(Damaged));
    let stored = encode(&values());
    for length in 1..stored.len() {
        let read = Properties::open(&stored[..length]).unwrap();
        let sound = read.filter(|property| property.is_ok()).count();
        assert!(sound < values().len());
    }
    lazuli_http::mutate::each(&stored, 20_000, |bytes| {
        if let Ok(read) = Properties::open(bytes) {
            assert!(read.count() <= bytes.len());
        }
    });
}

#[test]
fn keys_are_taken_out_and_the_clients_timestamp_is_dropped() {
    let entity =
        parse(r#"{"PartitionKey":"p","RowKey":"","Timestamp":"2000-01-01","A":1}"#).unwrap();
    assert_eq!(entity.keys().unwrap(), ("p", ""));
    assert_eq!(entity.properties, [("A".into(), Value::Int32(1))]);
    let entity = parse(r#"{"PartitionKey":"p","RowKey":null}"#).unwrap();
    assert_eq!(entity.keys().unwrap_err().code, Code::PropertiesNeedValue);
    assert_eq!(parse(r#"{"PartitionKey":1}"#), Err(Common::InvalidInput.into()));
    assert_eq!(parse(r#"{"RowKey":"a/b"}"#), Err(Code::OutOfRangeInput));
}

#[test]
fn the_limits_of_the_service_hold_on_the_dot() {
    let properties = |count: usize| {
        let members: Vec<_> = (0..count).map(|n| format!("\"P{n}\":{n}")).collect();
        format!("{{{}}}", members.join(","))
    };
    let encode = |json: &str| {
        let entity = parse(json).unwrap();
        entity.encode("p", "r", &Limits::default()).map(|_| ()).map_err(|fault| fault.code)
    };
    assert_eq!(encode(&properties(252)), Ok(()));
    assert_eq!(encode(&properties(253)), Err(Code::TooManyProperties));

    let text = |length: usize| format!(r#"{{"A":"{}"}}"#, "x".repeat(length));
    assert!(parse(&text(32 * 1024)).is_ok());
    assert_eq!(parse(&text(32 * 1024 + 1)), Err(Code::PropertyValueTooLarge));

    // 16 values of 32 Ki characters are 1 MiB by themselves, so the last one must leave room for keys and names.
    let whole = |last: usize| {
        let mut members: Vec<_> =
            (10..25).map(|n| format!("\"P{n}\":\"{}\"", "x".repeat(32 * 1024))).collect();
        members.push(format!("\"Q99\":\"{}\"", "x".repeat(last)));
        format!("{{{}}}", members.join(","))
    };
    let room = 32 * 1024 - (4 + 2 + 2 + 16 * (8 + 6)) / 2;
    assert_eq!(encode(&whole(room)), Ok(()));
    assert_eq!(encode(&whole(room + 1)), Err(Code::EntityTooLarge));
}

#[test]
fn a_merge_keeps_what_was_not_sent() {
    let limits = Limits::default();
    let of = |json: &'static str| parse(json).unwrap().encode("p", "r", &limits).unwrap();
    let (stored, sent) = (of(r#"{"A":1,"B":2,"C":"x"}"#), of(r#"{"B":"new","D":true}"#));
    let merged = merge(&stored, &sent, "p", "r", &limits).unwrap();
    assert_eq!(merged, of(r#"{"A":1,"B":"new","C":"x","D":true}"#));
    assert_eq!(merge(&stored, &of("{}"), "p", "r", &limits).unwrap(), stored);

    let few = Limits { property_count_max: 3, ..Limits::default() };
    let code = |result: Result<Bytes>| result.unwrap_err().code;
    assert_eq!(code(merge(&stored, &sent, "p", "r", &few)), Code::TooManyProperties);
    assert_eq!(code(merge(b"damaged", &sent, "p", "r", &limits)), Common::InternalError.into());
}
