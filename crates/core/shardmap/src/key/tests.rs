//! What the codec promises, on drawn keys of every schema. Group i of the semantics that shard maps
//! are known by: round trip, order of every type, trailing zeros, the key after the last.

use lazuli_store::{Kind, after_prefix};

use super::*;
use crate::draw::Draw;

const DRAWS: usize = 20_000;

fn schema(text: &str) -> KeySchema {
    text.parse().unwrap()
}

#[test]
fn every_key_decodes_to_itself() {
    let mut draw = Draw::new(1);
    for _ in 0..DRAWS {
        let schema = draw.schema();
        let key = draw.key(&schema);
        let encoded = schema.encode(&key).unwrap();
        assert_eq!(schema.decode(&encoded).unwrap(), key);
    }
}

#[test]
fn encoded_keys_sort_as_their_parts_do() {
    let mut draw = Draw::new(2);
    for _ in 0..DRAWS {
        let schema = draw.schema();
        let (a, b) = (draw.key(&schema), draw.key(&schema));
        let (encoded_a, encoded_b) = (schema.encode(&a).unwrap(), schema.encode(&b).unwrap());
        assert_eq!(a.cmp(&b), encoded_a.cmp(&encoded_b), "{a:?} {b:?}");
    }
}

#[test]
fn no_encoded_key_begins_with_another() {
    let mut draw = Draw::new(3);
    for _ in 0..DRAWS {
        let schema = draw.schema();
        let (a, b) = (draw.key(&schema), draw.key(&schema));
        let (encoded_a, encoded_b) = (schema.encode(&a).unwrap(), schema.encode(&b).unwrap());
        assert!(a == b || !encoded_b.starts_with(&encoded_a), "{a:?} {b:?}");
    }
}

#[test]
fn nothing_lies_between_a_key_and_its_successor() {
    let mut draw = Draw::new(4);
    for _ in 0..DRAWS {
        let schema = draw.schema();
        let (key, other) = (draw.key(&schema), draw.key(&schema));
        let (encoded, encoded_other) =
            (schema.encode(&key).unwrap(), schema.encode(&other).unwrap());
        let below_successor = after_prefix(&encoded).is_none_or(|next| encoded_other < next);
        assert_eq!(other <= key, below_successor, "{key:?} {other:?}");
    }
}

#[test]
fn the_key_after_the_largest_number_is_the_end_of_all_keys() {
    let encoded = schema("int64").encode(&[KeyPart::Int64(i64::MAX)]).unwrap();
    assert_eq!(after_prefix(&encoded), None);
    let encoded = schema("int32").encode(&[KeyPart::Int32(i32::MAX)]).unwrap();
    assert_eq!(after_prefix(&encoded), None);
}

#[test]
fn trailing_zeros_make_another_key() {
    let schema = schema("bytes");
    let encode = |bytes: &'static [u8]| schema.encode(&[KeyPart::Bytes(bytes.into())]).unwrap();
    assert!(encode(b"a") < encode(b"a\0"));
    assert!(encode(b"a\0") < encode(b"a\0\0"));
    assert!(encode(b"a\0\0") < encode(b"a\x01"));
}

#[test]
fn each_type_has_the_bytes_that_the_format_page_draws() {
    for (types, text, bytes) in [
        ("int32", "-2", &b"\x7f\xff\xff\xfe"[..]),
        ("int64", "1", b"\x80\0\0\0\0\0\0\x01"),
        ("bool", "true", b"\x01"),
        ("datetime", "0001-01-01T00:00:00.0000002Z", b"\x80\0\0\0\0\0\0\x02"),
        ("bytes", "0061ff", b"\0\xff\x61\xff\0\x01"),
        ("text", "é", b"\xc3\xa9\0\x01"),
        (
            "uuid",
            "00112233-4455-6677-8899-aabbccddeeff",
            b"\0\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff",
        ),
        ("text,bool", "a,false", b"a\0\x01\0"),
    ] {
        let schema = schema(types);
        let key = schema.parse(text).unwrap();
        assert_eq!(schema.encode(&key).unwrap(), bytes, "{types} {text}");
        assert_eq!(KeySchema::print(&key), text);
    }
}

#[test]
fn a_key_splits_from_what_follows_it() {
    let mut draw = Draw::new(5);
    for _ in 0..DRAWS {
        let schema = draw.schema();
        let encoded = schema.encode(&draw.key(&schema)).unwrap();
        let rest = draw.bytes();
        let whole = [&encoded[..], &rest].concat();
        assert_eq!(schema.split(&whole).unwrap(), (&encoded[..], &rest[..]));
    }
}

/// The fuzz target on seeded draws: garbage, and whole keys with a change in them.
#[test]
fn bytes_from_anywhere_decode_or_are_refused_and_what_decodes_has_one_encoding() {
    let mut draw = Draw::new(6);
    let mut decoded = 0;
    for _ in 0..10 * DRAWS {
        let schema = draw.schema();
        let mut bytes: Vec<u8> = match draw.below(2) {
            0 => (0..draw.below(4)).flat_map(|_| draw.bytes()).collect(),
            _ => schema.encode(&draw.key(&schema)).unwrap().into(),
        };
        if draw.below(2) == 0 && !bytes.is_empty() {
            let at = draw.below(bytes.len());
            bytes[at] = draw.of(&[0x00, 0x01, 0x61, 0xff]);
        }
        decoded += usize::from(schema.decode(&bytes).is_ok());
        let index = |part: &KeyType| KeyType::ALL.iter().position(|it| it == part).unwrap() as u8;
        let count = schema.types().len() as u8 - 1;
        let types: Vec<u8> = schema.types().iter().map(index).collect();
        super::fuzzing::key(&[&[count], &types[..], &bytes].concat());
    }
    assert!(decoded > 100, "the draw must reach the good path too: {decoded}");
}

#[test]
fn every_key_prints_to_text_that_parses_back_and_steers_no_terminal() {
    let mut draw = Draw::new(7);
    for _ in 0..DRAWS {
        let schema = draw.schema();
        let key = draw.key(&schema);
        let text = KeySchema::print(&key);
        assert!(!text.chars().any(char::is_control), "{text:?}");
        assert_eq!(schema.parse(&text).unwrap(), key, "{text}");
    }
}

#[test]
fn text_that_is_no_key_of_the_schema_is_refused() {
    for (types, text) in [
        ("int32", "2147483648"),
        ("int32", ""),
        ("int32", "1,2"),
        ("int64,text", "1"),
        ("uuid", "00112233"),
        ("bytes", "0"),
        ("bytes", "+1"),
        ("bytes", "zz"),
        ("bool", "yes"),
        ("datetime", "yesterday"),
        ("text", "a\\"),
        ("text", "a\\n"),
        ("text", "\\u{d800}"),
        ("text", "\\u{"),
    ] {
        let refused = schema(types).parse(text).unwrap_err();
        assert_eq!((refused.kind(), refused.code()), (Kind::Invalid, "key-type"), "{types} {text}");
    }
}

#[test]
fn a_key_of_another_type_or_length_is_refused() {
    let schema = schema("int64,text");
    let (one, a) = (KeyPart::Int64(1), KeyPart::from("a"));
    for key in [vec![], vec![one.clone()], vec![a.clone(), one.clone()], vec![one, a.clone(), a]] {
        assert_eq!(schema.encode(&key).unwrap_err().code(), "key-type", "{key:?}");
    }
    for ticks in [-1, DATE_TIME_TICKS_MAX + 1] {
        let schema = KeySchema::one(KeyType::DateTime);
        assert_eq!(schema.encode(&[KeyPart::DateTime(ticks)]).unwrap_err().code(), "key-type");
    }
}

#[test]
fn keys_are_as_long_as_the_limit_and_no_longer() {
    let schema = KeySchema::one(KeyType::Text);
    let fits = [KeyPart::Text("a".repeat(ENCODED_KEY_BYTES_MAX - 2))];
    let encoded = schema.encode(&fits).unwrap();
    assert_eq!(schema.decode(&encoded).unwrap(), fits);
    let longer = schema.encode(&[KeyPart::Text("a".repeat(ENCODED_KEY_BYTES_MAX - 1))]);
    assert_eq!(longer.unwrap_err().code(), "key-too-large");
    let escaped = schema.encode(&[KeyPart::Text("\0".repeat(ENCODED_KEY_BYTES_MAX / 2))]);
    assert_eq!(escaped.unwrap_err().code(), "key-too-large");
}

#[test]
fn a_schema_has_one_to_eight_parts_of_known_types() {
    assert_eq!(schema("text,int64").to_string(), "text,int64");
    for bad in ["", "text,", "string", &["bool"; 9].join(",")] {
        assert_eq!(bad.parse::<KeySchema>().unwrap_err().code(), "key-schema", "{bad}");
    }
    assert_eq!(KeySchema::new([]).unwrap_err().code(), "key-schema");
}

#[test]
fn the_leading_parts_are_all_but_the_last() {
    let schema = KeySchema::new(vec![KeyType::Text, KeyType::Int64, KeyType::Text]).unwrap();
    let key = |name: &str| schema.encode(&["a\0b".into(), KeyPart::Int64(7), name.into()]).unwrap();
    let leading = schema.leading(&key("x")).to_vec();
    assert_eq!(leading, schema.leading(&key("other")));
    assert!(key("x").starts_with(&leading) && key("x").len() == leading.len() + 3);
    assert_eq!(schema.leading(&leading[..4]), b"");
    let one = KeySchema::one(KeyType::Text);
    assert_eq!(one.leading(&one.encode(&["x".into()]).unwrap()), b"");
}
