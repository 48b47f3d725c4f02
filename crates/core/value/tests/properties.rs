//! Properties of values over many random ones: bytes, texts and orders agree with one another.

use std::cmp::Ordering;

use lazuli_env::SplitMix64;
use lazuli_value::{
    Object, Value, ValueRef, View, bson, canonical, compare, encode_json, equal, key_is_cut,
    order_key, order_key_length, string_prefix_key,
};

struct Chance(SplitMix64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0.next_u64() % bound
    }

    fn string(&mut self) -> String {
        const PIECES: &[&str] = &["a", "b", "", "\0", "é", "😀", "\u{ffff}", "ab", "\u{1}", "\"\\"];
        let length = if self.below(12) == 0 { 200 + self.below(200) } else { self.below(5) };
        (0..length).map(|_| PIECES[self.below(PIECES.len() as u64) as usize]).collect()
    }

    fn number(&mut self) -> Value {
        let small = self.below(7) as i64 - 3;
        match self.below(8) {
            0 => Value::Int64(small),
            1 => Value::Int32(small as i32),
            2 => Value::Double(small as f64 / 2.0),
            3 => Value::Double(f64::from_bits(self.0.next_u64())),
            4 => Value::Int64(self.0.next_u64() as i64),
            5 => Value::Int64(i64::MAX - self.below(2000) as i64),
            6 => decimal(self.below(2) == 0, u128::from(self.below(100)), -1),
            _ => {
                let wide = u128::from(self.0.next_u64()) << 40 | u128::from(self.0.next_u64());
                decimal(self.below(2) == 0, wide, self.below(40) as i32 - 30)
            }
        }
    }

    fn value(&mut self, depth: u64, json: bool) -> Value {
        let choice = self.below(if depth == 0 { 5 } else { 8 });
        match choice {
            0 => Value::Null,
            1 => Value::Bool(self.below(2) == 0),
            2 if json => loop {
                match self.number() {
                    Value::Double(number) if !number.is_finite() => {}
                    number @ (Value::Double(_) | Value::Int64(_)) => break number,
                    _ => {}
                }
            },
            2 => self.number(),
            3 | 4 => Value::String(self.string()),
            5 if !json => self.rare(),
            5 | 6 => {
                let length = self.below(4);
                Value::Array((0..length).map(|_| self.value(depth - 1, json)).collect())
            }
            _ => Value::Object(self.object(depth, json)),
        }
    }

    fn object(&mut self, depth: u64, json: bool) -> Object {
        let length = self.below(4);
        let name = |chance: &mut Self| ["a", "b", "c", "é"][chance.below(4) as usize].to_owned();
        (0..length).map(|_| (name(self), self.value(depth.max(1) - 1, json))).collect()
    }

    fn rare(&mut self) -> Value {
        match self.below(9) {
            0 => Value::DateTime(self.below(5) as i64 - 2),
            1 => Value::ObjectId([self.below(3) as u8; 12]),
            2 => Value::Binary {
                subtype: self.below(3) as u8,
                bytes: vec![0; self.below(3) as usize],
            },
            3 => Value::Timestamp(self.below(3) << 32),
            4 => Value::Regex { pattern: "a".repeat(self.below(3) as usize), options: "i".into() },
            5 => Value::JavaScript("x".repeat(self.below(3) as usize)),
            6 => Value::Symbol(self.string()),
            7 => Value::MinKey,
            _ => Value::MaxKey,
        }
    }
}

fn decimal(negative: bool, coefficient: u128, exponent: i32) -> Value {
    let bits = u128::from(negative) << 127 | ((exponent + 6176) as u128) << 113 | coefficient;
    Value::Decimal128(bits.to_le_bytes())
}

fn key(value: &Value) -> Vec<u8> {
    let mut key = Vec::new();
    order_key(value.into(), &mut key);
    key
}

/// NaN is not equal to itself, so values are compared by their bytes.
fn same(one: &Value, two: &Value) -> bool {
    one.encode() == two.encode()
}

#[test]
fn json_in_is_the_same_json_out() {
    let mut chance = Chance(SplitMix64::new(1));
    for _ in 0..4000 {
        let value = chance.value(4, true);
        let text = value.to_json();
        assert!(same(&Value::from_json(text.as_bytes()).unwrap(), &value), "{text}");
        let bytes = encode_json(text.as_bytes()).unwrap();
        assert_eq!(bytes, value.encode());
        let view = View::parse(&bytes).unwrap();
        assert_eq!(view.to_json(), text);
        assert!(same(&view.to_value(), &value));
    }
}

#[test]
fn bson_in_is_the_same_bson_out() {
    let mut chance = Chance(SplitMix64::new(2));
    let mut written = 0;
    for _ in 0..4000 {
        let value = Value::Object(chance.object(4, false));
        let mut bytes = Vec::new();
        if bson::write(ValueRef::from(&value).as_object().unwrap(), &mut bytes).is_err() {
            continue;
        }
        written += 1;
        let read = Value::Object(bson::read(&bytes).unwrap());
        assert!(same(&read, &value));
        let stored = value.encode();
        let view = ValueRef::from(View::parse(&stored).unwrap());
        let mut again = Vec::new();
        bson::write(view.as_object().unwrap(), &mut again).unwrap();
        assert_eq!(again, bytes);
    }
    assert!(written > 3000);
}

#[test]
fn order_keys_sort_as_values_compare() {
    let mut chance = Chance(SplitMix64::new(3));
    let mut compared = 0;
    for round in 0..20_000 {
        let (one, two) = if round % 3 == 0 {
            (chance.number(), chance.number())
        } else {
            (chance.value(3, false), chance.value(3, false))
        };
        let (key_one, key_two) = (key(&one), key(&two));
        assert_eq!(order_key_length(&key_one), Some(key_one.len()), "{one:?}");
        let order = compare((&one).into(), (&two).into());
        assert_eq!(order == Ordering::Equal, key_one == key_two, "{one:?} and {two:?}");
        assert_eq!(order == Ordering::Equal, equal((&one).into(), (&two).into()));
        assert_eq!(compare((&two).into(), (&one).into()), order.reverse());
        if !key_is_cut(&key_one) || !key_is_cut(&key_two) {
            assert_eq!(key_one.cmp(&key_two), order, "{one:?} and {two:?}");
            compared += 1;
        }
        let (mut whole_one, mut whole_two) = (Vec::new(), Vec::new());
        canonical((&one).into(), &mut whole_one);
        canonical((&two).into(), &mut whole_two);
        assert_eq!(whole_one.cmp(&whole_two), order);
        let stored = one.encode();
        let mut key_stored = Vec::new();
        order_key(View::parse(&stored).unwrap().into(), &mut key_stored);
        assert_eq!(key_stored, key_one);
    }
    assert!(compared > 18_000);
}

#[test]
fn numbers_beyond_the_doubles_have_their_own_place() {
    let numbers = [
        Value::Double(f64::NAN),
        Value::Double(f64::NEG_INFINITY),
        decimal(true, 1, 6000),
        Value::Double(f64::MIN),
        Value::Int64(i64::MIN),
        Value::Int64(i64::MIN + 1),
        Value::Int64(-9_007_199_254_740_993),
        Value::Double(-9_007_199_254_740_992.0),
        decimal(true, 1, -6000),
        Value::Int32(0),
        decimal(false, 1, -6000),
        decimal(false, 1, -1),
        Value::Double(0.1),
        Value::Int64(9_007_199_254_740_992),
        Value::Int64(9_007_199_254_740_993),
        decimal(false, 90_071_992_547_409_931, -1),
        Value::Int64(9_007_199_254_740_994),
        Value::Int64(i64::MAX),
        Value::Double(9_223_372_036_854_775_808.0),
        decimal(false, 1, 6000),
        Value::Double(f64::INFINITY),
    ];
    for pair in numbers.windows(2) {
        assert_eq!(compare((&pair[0]).into(), (&pair[1]).into()), Ordering::Less, "{pair:?}");
        assert!(key(&pair[0]) < key(&pair[1]), "{pair:?}");
    }
    assert!(equal((&Value::Int32(5)).into(), (&Value::Double(5.0)).into()));
    assert_eq!(key(&decimal(false, 50, -1)), key(&Value::Int64(5)));
}

#[test]
fn keys_of_strings_begin_with_the_keys_of_their_beginnings() {
    let prefix = |text: &str| {
        let mut bytes = Vec::new();
        string_prefix_key(text, &mut bytes);
        bytes
    };
    assert!(key(&"ab\0c".into()).starts_with(&prefix("ab\0")));
    assert!(!key(&"ab".into()).starts_with(&prefix("abc")));
    let long = "x".repeat(1000);
    assert!(key_is_cut(&key(&long.as_str().into())));
    assert!(key(&long.as_str().into()).starts_with(&prefix(&long)));
    assert!(key(&"x".repeat(256).into()) < key(&long.into()));
}

#[test]
fn bytes_that_are_cut_or_changed_are_refused_or_read_without_a_panic() {
    let mut chance = Chance(SplitMix64::new(4));
    for _ in 0..500 {
        let value = chance.value(3, false);
        let bytes = value.encode();
        for length in 0..bytes.len() {
            assert!(View::parse(&bytes[..length]).is_err());
        }
        for _ in 0..20 {
            let mut changed = bytes.clone();
            let at = chance.below(changed.len() as u64) as usize;
            changed[at] = chance.below(256) as u8;
            if let Ok(view) = View::parse(&changed) {
                let _ = (view.to_value(), view.to_json(), key(&view.to_value()));
            }
        }
    }
}
