//! Entry points of the fuzzer: one function for each parser. Each takes any bytes and panics if an invariant does not
//! hold. The targets in `fuzz/` are these functions; the tests here run the same ones on fixed seeds.

use bytes::{Bytes, BytesMut};

use crate::decode::Decoder;
use crate::encode;
use crate::frame;
use crate::limits::DEPTH_MAX;
use crate::message::Sections;
use crate::performative::Performative;
use crate::transaction;
use crate::value::Value;

const FRAME_BYTES_MAX: usize = 64 * 1024;

/// Values: what is read is written and read the same again, and `skip` goes as far as `value` does.
pub fn amqp_value(data: &[u8]) {
    let mut decoder = Decoder::new(data);
    let Ok(value) = decoder.value() else { return };
    let used = data.len() - decoder.rest().len();
    let mut skipping = Decoder::new(data);
    assert_eq!(skipping.skip(), Ok(()), "{value:?}");
    assert_eq!(data.len() - skipping.rest().len(), used, "{value:?}");
    // Elements of an array may have a descriptor that stands once before all of them.
    assert!(depth(&value) <= 2 * DEPTH_MAX, "{value:?}");
    let mut written = BytesMut::new();
    encode::value(&mut written, &value);
    let again = Decoder::new(&written).value();
    // Compared by what they are written as, because a float may be no number, which is not even itself.
    let mut twice = BytesMut::new();
    encode::value(&mut twice, &again.unwrap_or_else(|error| panic!("{error}: {value:?}")));
    assert_eq!(written, twice, "{value:?}");
}

fn depth(value: &Value) -> u32 {
    let inside: Vec<&Value> = match value {
        Value::List(elements) | Value::Array(elements) => elements.iter().collect(),
        Value::Map(map) => map.0.iter().flat_map(|(key, value)| [key, value]).collect(),
        Value::Described(pair) => vec![&pair.0, &pair.1],
        _ => Vec::new(),
    };
    1 + inside.into_iter().map(depth).max().unwrap_or(0)
}

/// Frames: however many bytes there are, a frame is found, refused or waited for; its performative is written and read the
/// same again.
pub fn amqp_frame(data: &[u8]) {
    let Ok(Some(framed)) = frame::split(data, FRAME_BYTES_MAX) else { return };
    assert!(framed.size <= data.len() && framed.body.len() <= framed.size);
    for end in 0..framed.size.min(64) {
        assert!(!matches!(frame::split(&data[..end], FRAME_BYTES_MAX), Ok(Some(_))));
    }
    amqp_performative(framed.body);
}

/// Performatives: what is read is written and read the same again.
pub fn amqp_performative(data: &[u8]) {
    let Ok(read) = Performative::read(&mut Decoder::new(data)) else { return };
    let mut written = BytesMut::new();
    read.write(&mut written);
    let again = Performative::read(&mut Decoder::new(&written));
    let again = again.unwrap_or_else(|error| panic!("{error}: {read:?}"));
    let mut twice = BytesMut::new();
    again.write(&mut twice);
    assert_eq!(written, twice, "{read:?}");
}

/// Messages: sections lie in the bytes that came, and put together they are the message.
pub fn amqp_message(data: &[u8]) {
    let message = Bytes::copy_from_slice(data);
    let _ = transaction::Request::read(&message);
    let Ok(sections) = Sections::split(&message) else { return };
    assert!(sections.bare().len() + sections.footer_bytes().len() <= message.len());
    assert!(sections.body_bytes().len() <= sections.bare().len());
    let _ = (sections.header(), sections.delivery_annotations(), sections.message_annotations());
    let _ = (sections.properties(), sections.application_properties(), sections.body());
    let rest = [sections.bare(), sections.footer_bytes()].map(|bytes| &bytes[..]).concat();
    assert!(message.ends_with(&rest), "{message:?}");
}

#[cfg(test)]
mod tests {
    use lazuli_env::SplitMix64;
    use lazuli_http::mutate::corpus;

    use super::*;
    use crate::value::{Map, Symbol};

    /// Texts of each kind that a target is tried on here; `cargo fuzz` has no end.
    const ROUNDS: u32 = 10_000;

    const WORDS: [&str; 12] = [
        "\0",
        "\0S\u{10}",
        "\0Sp",
        "\0Ss",
        "\0Su",
        "@",
        "A",
        "E",
        "\u{c}",
        "C",
        "R\u{1}",
        "S\u{2}",
    ];

    #[test]
    fn values_are_read_or_refused() {
        corpus("amqp_value", &WORDS, ROUNDS, amqp_value);
    }

    #[test]
    fn frames_are_read_or_refused() {
        corpus("amqp_frame", &WORDS, ROUNDS, amqp_frame);
    }

    #[test]
    fn performatives_are_read_or_refused() {
        corpus("amqp_performative", &WORDS, ROUNDS, amqp_performative);
    }

    #[test]
    fn messages_are_read_or_refused() {
        corpus("amqp_message", &WORDS, ROUNDS, amqp_message);
    }

    /// Any value, of at most this depth.
    fn any(random: &mut SplitMix64, depth: usize) -> Value {
        let text = |random: &mut SplitMix64| {
            let count = random.below(300);
            (0..count).map(|_| char::from(b'a' + random.below(26) as u8)).collect::<String>()
        };
        let number = random.next_u64() >> random.below(64);
        match random.below(if depth == 0 { 16 } else { 20 }) {
            0 => Value::Null,
            1 => Value::Bool(random.below(2) == 0),
            2 => Value::Ubyte(number as u8),
            3 => Value::Ushort(number as u16),
            4 => Value::Uint(number as u32),
            5 => Value::Ulong(number),
            6 => Value::Short(number as i16),
            7 => Value::Int(number as i32),
            8 => Value::Long(number.cast_signed()),
            9 => Value::Double(number as f64),
            10 => Value::Char('\u{1F980}'),
            11 => Value::Timestamp(number.cast_signed()),
            12 => Value::Uuid((u128::from(number) << 7).to_be_bytes()),
            13 => Value::Binary(text(random).into_bytes().into()),
            14 => Value::String(text(random)),
            15 => Value::Symbol(Symbol(text(random))),
            16 => Value::List((0..random.below(5)).map(|_| any(random, depth - 1)).collect()),
            17 => {
                let pair = |random: &mut SplitMix64| (any(random, 0), any(random, depth - 1));
                Value::Map(Map((0..random.below(5)).map(|_| pair(random)).collect()))
            }
            18 => {
                let one = any(random, 0);
                let one = if random.below(2) == 0 { one } else { Value::described(7u64, one) };
                Value::Array(vec![one; random.below(4)])
            }
            _ => Value::described(number, any(random, depth - 1)),
        }
    }

    #[test]
    fn what_is_written_is_read_the_same_again() {
        let mut random = SplitMix64::new(7);
        for _ in 0..20_000 {
            let value = any(&mut random, 4);
            let mut written = BytesMut::new();
            encode::value(&mut written, &value);
            let mut decoder = Decoder::new(&written);
            assert_eq!(decoder.value().as_ref(), Ok(&value));
            assert!(decoder.is_empty(), "{value:?}");
            for end in 0..written.len().min(40) {
                assert!(Decoder::new(&written[..end]).value().is_err(), "{value:?} up to {end}");
            }
        }
    }
}
