//! What must hold for any bytes that come from a network or a disk. The targets in `fuzz/` call these functions.

use crate::node::{Node, ValueRef};
use crate::{Value, View, compare, encode_json, equal, json, order_key, order_key_length};

/// A JSON text is refused, or it comes back the same from its value, its stored bytes and its own text.
pub fn json_text(data: &[u8]) {
    let value = Value::from_json(data);
    let encoded = encode_json(data);
    let (value, encoded) = match (value, encoded) {
        (Ok(value), Ok(encoded)) => (value, encoded),
        (Err(one), Err(two)) => return assert_eq!(one, two),
        (value, encoded) => panic!("read differently: {value:?}, {encoded:?}"),
    };
    assert_eq!(value.encode(), encoded);
    let text = value.to_json();
    assert_eq!(json::read(text.as_bytes()).as_ref(), Ok(&value));
    assert_eq!(encode_json(text.as_bytes()), Ok(encoded));
}

/// Stored bytes are refused, or everything in them can be read, and reading and writing them again changes nothing but
/// names that occur twice.
pub fn stored_value(data: &[u8]) {
    let Ok(view) = View::parse(data) else { return };
    let value = view.to_value();
    let text = view.to_json();
    let again = value.encode();
    let view_again = View::parse(&again).expect("what was encoded can be read");
    assert_eq!(view_again.to_value().encode(), again);
    walk(view.into());
    if again == data {
        assert_eq!(text, value.to_json());
        assert!(equal(view.into(), ValueRef::from(&value)));
        let mut key = Vec::new();
        order_key(view.into(), &mut key);
        assert_eq!(order_key_length(&key), Some(key.len()));
    }
}

fn walk(value: ValueRef<'_>) {
    match value.node() {
        Node::Array(array) => {
            for (place, element) in array.iter().enumerate().take(8) {
                let found = value.at(place).expect("an element is found by its place");
                assert!(compare(found, element).is_eq());
                walk(element);
            }
        }
        Node::Object(object) => {
            for (name, inside) in object.iter() {
                assert!(value.get(name).is_some());
                walk(inside);
            }
        }
        _ => {}
    }
}

/// BSON is refused, or it comes back byte by byte, unless a name occurs twice or an array has names of its own.
pub fn bson_document(data: &[u8]) {
    let Ok(object) = crate::bson::read(data) else { return };
    let mut written = Vec::new();
    let value = Value::Object(object);
    let object = ValueRef::from(&value).as_object().expect("it is an object");
    crate::bson::write(object, &mut written).expect("names that were read can be written");
    let again = crate::bson::read(&written).expect("what was written can be read");
    let again = Value::Object(again).encode();
    assert_eq!(again, value.encode());
}

#[cfg(test)]
mod tests {
    use lazuli_env::SplitMix64;

    /// Runs a check on seeds and on random changes of them.
    fn on_seeds(seeds: &[&[u8]], check: fn(&[u8])) {
        let mut chance = SplitMix64::new(7);
        for seed in seeds {
            check(seed);
            for _ in 0..2000 {
                let mut changed = seed.to_vec();
                for _ in 0..=chance.below(3) {
                    let at = chance.below(changed.len() + 1);
                    match chance.below(3) {
                        0 if at < changed.len() => changed[at] = chance.next_u64() as u8,
                        1 if at < changed.len() => drop(changed.remove(at)),
                        _ => changed.insert(at, seed[chance.below(seed.len())]),
                    }
                }
                check(&changed);
            }
        }
    }

    #[test]
    fn texts_and_changes_of_them_are_read_or_refused() {
        on_seeds(
            &[
                include_bytes!("../../../../fuzz/seeds/json_text/document"),
                include_bytes!("../../../../fuzz/seeds/json_text/numbers"),
            ],
            super::json_text,
        );
    }

    #[test]
    fn stored_values_and_changes_of_them_are_read_or_refused() {
        let seeds: &[&[u8]] = &[
            include_bytes!("../../../../fuzz/seeds/stored_value/object"),
            include_bytes!("../../../../fuzz/seeds/stored_value/types"),
        ];
        assert!(seeds.iter().all(|seed| crate::View::parse(seed).is_ok()));
        on_seeds(seeds, super::stored_value);
    }

    #[test]
    fn documents_and_changes_of_them_are_read_or_refused() {
        let seed = include_bytes!("../../../../fuzz/seeds/bson_document/document");
        assert!(crate::bson::read(seed).is_ok());
        on_seeds(&[seed], super::bson_document);
    }
}
