//! JSON text: read into a value or straight into stored bytes, and written from either.

mod read;
mod write;

use crate::{Object, ReadError, Value};

pub(crate) use read::parse;
pub use write::{string as write_string, write};

/// Takes the parts of a JSON text in the order of the text.
pub trait Sink {
    fn null(&mut self);
    fn bool(&mut self, value: bool);
    fn int64(&mut self, number: i64);
    fn double(&mut self, number: f64);
    fn string(&mut self, text: &str);
    fn begin_array(&mut self);
    fn end_array(&mut self);
    fn begin_object(&mut self);
    fn name(&mut self, name: &str);
    fn end_object(&mut self);
}

/// How many bytes of a text stand for themselves in a string: up to a quote, a backslash or a control character.
fn plain_length(text: &[u8]) -> usize {
    const LOW: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    // Eight bytes at once: the lowest high bit that is set belongs to the first byte that is below the bound. Bits above
    // it may be wrong, because the subtraction borrows.
    let below = |word: u64, bound: u64| word.wrapping_sub(LOW * bound) & !word & HIGH;
    let (words, rest) = text.as_chunks::<8>();
    for (place, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let quote = below(word ^ (LOW * u64::from(b'"')), 1);
        let backslash = below(word ^ (LOW * u64::from(b'\\')), 1);
        let found = below(word, 0x20) | quote | backslash;
        if found != 0 {
            return place * 8 + found.trailing_zeros() as usize / 8;
        }
    }
    let end = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f));
    text.len() - rest.len() + end.unwrap_or(rest.len())
}

/// The value of a JSON text.
pub fn read(text: &[u8]) -> Result<Value, ReadError> {
    let mut builder = Builder::default();
    parse(text, &mut builder)?;
    builder.done.ok_or_else(|| ReadError::new(0, "the text has no value"))
}

/// Builds a [`Value`] from the parts of a text.
#[derive(Default)]
struct Builder {
    done: Option<Value>,
    open: Vec<Open>,
    names: Vec<String>,
}

enum Open {
    Array(Vec<Value>),
    Object(Vec<(String, Value)>),
}

impl Builder {
    fn put(&mut self, value: Value) {
        match self.open.last_mut() {
            None => self.done = Some(value),
            Some(Open::Array(elements)) => elements.push(value),
            Some(Open::Object(properties)) => {
                let name = self.names.pop().unwrap_or_default();
                properties.push((name, value));
            }
        }
    }

    fn end(&mut self) {
        match self.open.pop() {
            Some(Open::Array(elements)) => self.put(Value::Array(elements)),
            Some(Open::Object(properties)) => {
                self.put(Value::Object(Object::from_properties(properties)));
            }
            None => {}
        }
    }
}

impl Sink for Builder {
    fn null(&mut self) {
        self.put(Value::Null);
    }

    fn bool(&mut self, value: bool) {
        self.put(Value::Bool(value));
    }

    fn int64(&mut self, number: i64) {
        self.put(Value::Int64(number));
    }

    fn double(&mut self, number: f64) {
        self.put(Value::Double(number));
    }

    fn string(&mut self, text: &str) {
        self.put(Value::String(text.to_owned()));
    }

    fn begin_array(&mut self) {
        self.open.push(Open::Array(Vec::new()));
    }

    fn end_array(&mut self) {
        self.end();
    }

    fn begin_object(&mut self) {
        self.open.push(Open::Object(Vec::new()));
    }

    fn name(&mut self, name: &str) {
        self.names.push(name.to_owned());
    }

    fn end_object(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn plain_text_ends_at_the_first_special_byte_wherever_it_is() {
        for length in 0..40 {
            let plain = "aé\u{7f}~!#[] ".repeat(4).into_bytes()[..length].to_vec();
            assert_eq!(super::plain_length(&plain), length);
            for at in 0..length {
                for special in [b'"', b'\\', 0, 0x1f, b'\n'] {
                    let mut text = plain.clone();
                    text[at] = special;
                    text[length - 1] = if at < length - 1 { b'"' } else { special };
                    assert_eq!(super::plain_length(&text), at);
                }
            }
        }
    }
}
