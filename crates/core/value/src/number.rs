//! Numbers of all types, compared by value and not by type.

use std::cmp::Ordering;

use crate::decimal::Decimal;

/// A number of any type.
#[derive(Clone, Copy, Debug)]
pub enum Number<'a> {
    Int(i64),
    Double(f64),
    Decimal(&'a [u8; 16]),
}

/// Significant digits that the exact decimal expansion of a double can have, and some more.
const EXACT_DIGITS: usize = 780;

impl Number<'_> {
    /// The double nearest to the number.
    pub fn nearest(self) -> f64 {
        match self {
            Self::Int(number) => number as f64,
            Self::Double(number) => number,
            Self::Decimal(bytes) => match Decimal::read(bytes) {
                Decimal::NotANumber => f64::NAN,
                Decimal::Infinite { negative: false } => f64::INFINITY,
                Decimal::Infinite { negative: true } => f64::NEG_INFINITY,
                Decimal::Finite { negative, coefficient, exponent } => {
                    let sign = if negative { "-" } else { "" };
                    format!("{sign}{coefficient}e{exponent}").parse().unwrap_or(f64::NAN)
                }
            },
        }
    }

    /// Orders by value. NaN is before all other numbers and equal to itself, and both zeros are equal.
    pub fn compare(self, other: Number<'_>) -> Ordering {
        match (self, other) {
            (Self::Int(one), Number::Int(two)) => one.cmp(&two),
            (Self::Double(one), Number::Double(two)) => compare_doubles(one, two),
            _ => {
                let nearest = compare_doubles(self.nearest(), other.nearest());
                // Rounding keeps the order, so only equal doubles need a closer look.
                nearest.then_with(|| compare_exact(self, other))
            }
        }
    }

    /// Whether the nearest double is the number itself.
    pub(crate) fn is_double(self) -> bool {
        match self {
            Self::Double(_) => true,
            Self::Int(number) => {
                // The magnitudes below 2^53 are most of all numbers, and every one of them is a double.
                number.unsigned_abs() <= 1 << 53 || i128::from(number) == number as f64 as i128
            }
            Self::Decimal(_) => self.digits() == Number::Double(self.nearest()).digits(),
        }
    }

    /// The number as decimal digits, exactly.
    pub(crate) fn digits(self) -> Digits {
        let text = match self {
            Self::Int(number) => format!("{number}e0"),
            Self::Double(number) if number.is_finite() => {
                format!("{number:.digits$e}", digits = EXACT_DIGITS)
            }
            Self::Decimal(bytes) => match Decimal::read(bytes) {
                Decimal::Finite { negative, coefficient, exponent } => {
                    let sign = if negative { "-" } else { "" };
                    format!("{sign}{coefficient}e{exponent}")
                }
                Decimal::Infinite { negative } => return Digits::Infinite { negative },
                Decimal::NotANumber => return Digits::NotANumber,
            },
            Self::Double(number) if number.is_nan() => return Digits::NotANumber,
            Self::Double(number) => return Digits::Infinite { negative: number < 0.0 },
        };
        Digits::read(&text)
    }
}

/// A number as `0.DIGITS` times a power of ten, without zeros at either end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Digits {
    Finite { negative: bool, exponent: i32, digits: Vec<u8> },
    Infinite { negative: bool },
    NotANumber,
}

impl Digits {
    /// Reads `-1.25e7`, as the formats above write it.
    fn read(text: &str) -> Self {
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let exponent: i32 = exponent.parse().unwrap_or(0);
        let all: Vec<u8> = whole.bytes().chain(fraction.bytes()).map(|byte| byte - b'0').collect();
        let first = all.iter().position(|digit| *digit != 0);
        let Some(first) = first else {
            return Self::Finite { negative: false, exponent: 0, digits: Vec::new() };
        };
        let last = all.iter().rposition(|digit| *digit != 0).unwrap_or(first);
        let exponent = exponent + whole.len() as i32 - first as i32;
        Self::Finite { negative, exponent, digits: all[first..=last].to_vec() }
    }
}

/// Orders two numbers whose nearest doubles are equal.
fn compare_exact(one: Number<'_>, two: Number<'_>) -> Ordering {
    let side = |it: &Digits| match it {
        Digits::NotANumber => 0,
        Digits::Infinite { negative: true } => 1,
        Digits::Infinite { negative: false } => 3,
        Digits::Finite { .. } => 2,
    };
    let (one, two) = (one.digits(), two.digits());
    match (&one, &two) {
        (
            Digits::Finite { negative, exponent, digits },
            Digits::Finite { negative: negative_two, exponent: exponent_two, digits: digits_two },
        ) => {
            // Zero has no digits and no sign; a number beside it can have the same nearest double.
            let sign = |negative: bool, digits: &[u8]| match (negative, digits.is_empty()) {
                (_, true) => 0,
                (true, _) => -1,
                (false, _) => 1,
            };
            let signs = sign(*negative, digits).cmp(&sign(*negative_two, digits_two));
            let magnitudes = exponent.cmp(exponent_two).then_with(|| digits.cmp(digits_two));
            let magnitudes = if *negative { magnitudes.reverse() } else { magnitudes };
            signs.then(magnitudes)
        }
        _ => side(&one).cmp(&side(&two)),
    }
}

fn compare_doubles(one: f64, two: f64) -> Ordering {
    match (one.is_nan(), two.is_nan()) {
        (true, true) => Ordering::Equal,
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        (false, false) => one.partial_cmp(&two).unwrap_or(Ordering::Equal),
    }
}
