//! What a fuzzer calls for keys: any bytes in, a panic if something that must hold does not. The target in `fuzz/` is
//! this function; `tests.rs` runs the same one on seeded draws.

use lazuli_store::Kind;

use super::{KEY_PARTS_MAX, KeySchema, KeyType};

/// The first byte says how many parts the key has, the next ones their types, and the rest is the key. Bytes that decode
/// have one encoding and one text; all others are refused as corrupt.
pub fn key(data: &[u8]) {
    let Some((count, rest)) = data.split_first() else { return };
    let Some((types, bytes)) = rest.split_at_checked(1 + usize::from(*count) % KEY_PARTS_MAX)
    else {
        return;
    };
    let types = types.iter().map(|byte| KeyType::ALL[usize::from(*byte) % KeyType::ALL.len()]);
    let schema = KeySchema::new(types.collect::<Vec<_>>()).expect("it has one to eight parts");
    if let Ok((key, rest)) = schema.split(bytes) {
        assert_eq!([key, rest].concat(), bytes);
    }
    match schema.decode(bytes) {
        Ok(key) => {
            assert_eq!(schema.encode(&key).ok().as_deref(), Some(bytes), "{schema}: {key:?}");
            assert_eq!(schema.split(bytes).ok(), Some((bytes, &[][..])));
            let text = KeySchema::print(&key);
            assert!(!text.chars().any(char::is_control), "{text:?}");
            assert_eq!(schema.parse(&text).ok().as_ref(), Some(&key), "{text}");
        }
        Err(error) => assert_eq!((error.kind(), error.code()), (Kind::Corrupt, "key-corrupt")),
    }
    let text = String::from_utf8_lossy(bytes);
    match schema.parse(&text) {
        Ok(key) => assert_eq!(schema.parse(&KeySchema::print(&key)).ok(), Some(key), "{text}"),
        Err(error) => assert_eq!((error.kind(), error.code()), (Kind::Invalid, "key-type")),
    }
}
