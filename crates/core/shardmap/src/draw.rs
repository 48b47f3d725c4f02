//! Seeded draws for property tests: the same seed draws the same keys, and small values are likely,
//! because that is where orders and escapes go wrong.

use bytes::Bytes;
use lazuli_env::SplitMix64;

use crate::key::{DATE_TIME_TICKS_MAX, KeyPart, KeySchema, KeyType};

pub(crate) struct Draw(SplitMix64);

impl Draw {
    pub(crate) fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    pub(crate) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0.below(bound)
    }

    pub(crate) fn of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())].clone()
    }

    /// Up to six bytes, mostly of those that codecs treat specially.
    pub(crate) fn bytes(&mut self) -> Vec<u8> {
        let length = self.below(7);
        (0..length).map(|_| self.of(&[0x00, 0x01, 0x02, 0x61, 0xfe, 0xff])).collect()
    }

    pub(crate) fn part(&mut self, key_type: KeyType) -> KeyPart {
        let wide = self.bits().cast_signed() >> self.below(64);
        let number = self.of(&[wide, 0, 1, -1, i64::MIN, i64::MAX]);
        match key_type {
            KeyType::Int32 => KeyPart::Int32(self.of(&[number as i32, i32::MIN, i32::MAX])),
            KeyType::Int64 => KeyPart::Int64(number),
            KeyType::DateTime => {
                let ticks = number.rem_euclid(DATE_TIME_TICKS_MAX + 1);
                KeyPart::DateTime(self.of(&[ticks, 0, DATE_TIME_TICKS_MAX]))
            }
            KeyType::Bool => KeyPart::Bool(number & 1 == 0),
            KeyType::Uuid => {
                let mut uuid = [self.of(&[0x00, 0x7f, 0xff]); 16];
                uuid[self.below(16)] = number as u8;
                KeyPart::Uuid(uuid)
            }
            KeyType::Bytes => KeyPart::Bytes(Bytes::from(self.bytes())),
            KeyType::Text => {
                let chars = ['\0', '\u{1}', ',', '\\', 'a', 'ÿ', '\u{ffff}', '🦀'];
                KeyPart::Text((0..self.below(5)).map(|_| self.of(&chars)).collect())
            }
        }
    }

    pub(crate) fn schema(&mut self) -> KeySchema {
        let types: Vec<_> = (0..=self.below(3)).map(|_| self.of(&KeyType::ALL)).collect();
        KeySchema::new(types).unwrap()
    }

    pub(crate) fn key(&mut self, schema: &KeySchema) -> Vec<KeyPart> {
        schema.types().iter().map(|key_type| self.part(*key_type)).collect()
    }
}
