//! Functions that choose one of their arguments, and the number of an item.

use lazuli_value::Value;

use super::{Call, Function};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("CHOOSE", 2, usize::MAX, choose).with_undefined(),
    Function::new("DOCUMENTID", 1, 1, document_id),
    Function::new("IIF", 3, 3, iif).with_undefined(),
];

/// The second argument if the first is true, else the third.
fn iif(call: &Call<'_>) -> Option<Value> {
    let place = if call.bool(0) == Some(true) { 1 } else { 2 };
    call.value(place).map(|value| value.to_value())
}

/// The argument at a place; the first one after the place itself has the number one.
fn choose(call: &Call<'_>) -> Option<Value> {
    let place = super::types::integer(call.value(0)?.as_number()?)?;
    let place = usize::try_from(place).ok().filter(|place| *place > 0)?;
    call.value(place).map(|value| value.to_value())
}

/// The number of an item within its container: the last eight bytes of its `_rid`, least first.
fn document_id(call: &Call<'_>) -> Option<Value> {
    let rid = call.object(0)?.get("_rid")?.as_str()?;
    let bytes = decode_rid(rid)?;
    let number = u64::from_le_bytes(*bytes.last_chunk()?);
    Value::number(number as f64)
}

/// The sixteen bytes of an item's `_rid`: base64 in which `-` stands for `/`.
fn decode_rid(rid: &str) -> Option<[u8; 16]> {
    let digits = rid.strip_suffix("==")?.as_bytes();
    if digits.len() != 22 {
        return None;
    }
    let mut bytes = [0; 16];
    let (mut bits, mut count, mut place) = (0_u32, 0, 0);
    for digit in digits {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'-' | b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            *bytes.get_mut(place)? = (bits >> count) as u8;
            place += 1;
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use crate::functions::check::check_all;

    #[test]
    fn a_condition_chooses_one_of_two() {
        check_all(&[
            ("IIF(true, 123, 456)", "123"),
            ("IIF(false, 123, 456)", "456"),
            ("IIF(123, 123, 456)", "456"),
            ("IIF('true', 123, 456)", "456"),
            ("IIF(null, 123, 456)", "456"),
            ("IIF(undefined, 123, 456)", "456"),
            ("IIF(true, undefined, 456)", "undefined"),
            ("IIF(true, [1], undefined)", "[1]"),
        ]);
    }

    #[test]
    fn a_number_chooses_one_of_many() {
        check_all(&[
            ("CHOOSE(1, 'abc', 1, true, [1])", "\"abc\""),
            ("CHOOSE(4, 'abc', 1, true, [1])", "[1]"),
            ("CHOOSE(0, 'abc', 1)", "undefined"),
            ("CHOOSE(3, 'abc', 1)", "undefined"),
            ("CHOOSE(-1, 'abc', 1)", "undefined"),
            ("CHOOSE(1.5, 'abc', 1)", "undefined"),
            ("CHOOSE(2, undefined, 1)", "1"),
            ("CHOOSE(1, undefined, 1)", "undefined"),
            ("CHOOSE('1', 'abc', 1)", "undefined"),
        ]);
    }

    #[test]
    fn the_number_of_an_item_is_in_its_resource_id() {
        check_all(&[
            ("DOCUMENTID({'_rid':'iAEeANrzNAAJAAAAAAAAAA=='})", "9"),
            ("DOCUMENTID({'_rid':'iAEeANrzNAA='})", "undefined"),
            ("DOCUMENTID({'_rid':5})", "undefined"),
            ("DOCUMENTID({'id':'a'})", "undefined"),
            ("DOCUMENTID('a')", "undefined"),
        ]);
    }
}
