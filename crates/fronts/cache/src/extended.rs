//! Numbers with 64 bits of mantissa, as INCRBYFLOAT and HINCRBYFLOAT compute and print them.
//!
//! The service uses the extended precision of x86, so that 0.1 and 0.2 make 0.3; with the 53 bits of a double they do not.
//! Sums are rounded to nearest, ties to even, and printed with up to 17 places.

use std::cmp::Ordering;

/// The longest text that is read as a number.
const TEXT_BYTES_MAX: usize = 5 * 1024;
/// Exponents of ten beyond this are infinite or zero.
const EXPONENT_MAX: i64 = 4932;
const PLACES: u32 = 17;

/// `mantissa * 2^exponent`; the upper bit of the mantissa is set unless it is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extended {
    is_negative: bool,
    mantissa: u64,
    exponent: i32,
    is_infinite: bool,
}

/// Reads a number; none if it is none.
pub(crate) fn parse(text: &[u8]) -> Option<Extended> {
    let text = std::str::from_utf8(text).ok().filter(|it| it.len() <= TEXT_BYTES_MAX)?;
    let (is_negative, unsigned) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if unsigned.eq_ignore_ascii_case("inf") || unsigned.eq_ignore_ascii_case("infinity") {
        return Some(Extended { is_negative, is_infinite: true, ..Extended::ZERO });
    }
    let (digits, exponent) = match unsigned.find(['e', 'E']) {
        Some(at) => (&unsigned[..at], unsigned[at + 1..].parse::<i64>().ok()?),
        None => (unsigned, 0),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all = || whole.bytes().chain(fraction.bytes());
    if all().next().is_none() || !all().all(|it| it.is_ascii_digit()) {
        return None;
    }
    let mut number = Big::default();
    all().for_each(|digit| number.times_plus(10, u32::from(digit - b'0')));
    if number.is_zero() {
        return Some(Extended { is_negative, ..Extended::ZERO });
    }
    let exponent = exponent - fraction.len() as i64;
    if exponent > EXPONENT_MAX {
        return Some(Extended { is_negative, is_infinite: true, ..Extended::ZERO });
    }
    if exponent < -EXPONENT_MAX - TEXT_BYTES_MAX as i64 {
        return Some(Extended { is_negative, ..Extended::ZERO });
    }
    let mut divisor = Big::from(1);
    let scaled = if exponent >= 0 { &mut number } else { &mut divisor };
    (0..exponent.unsigned_abs()).for_each(|_| scaled.times_plus(10, 0));
    Some(quotient(is_negative, number, divisor))
}

/// The quotient of two numbers, rounded to 64 bits.
fn quotient(is_negative: bool, mut number: Big, mut divisor: Big) -> Extended {
    // Shifted so that the quotient has 65 or 66 bits.
    let shift = 65 + divisor.bits() as i64 - number.bits() as i64;
    match shift {
        0.. => number.shift_left(shift as usize),
        _ => divisor.shift_left(shift.unsigned_abs() as usize),
    }
    let mut result: u128 = 0;
    divisor.shift_left(66);
    for _ in 0..=66 {
        result <<= 1;
        if number.compare(&divisor) != Ordering::Less {
            number.subtract(&divisor);
            result |= 1;
        }
        divisor.shift_right_one();
    }
    rounded(is_negative, result, -(shift as i32), !number.is_zero())
}

/// `value * 2^exponent`, rounded to 64 bits. `has_rest`: something smaller than one belongs to the value.
fn rounded(is_negative: bool, mut value: u128, mut exponent: i32, mut has_rest: bool) -> Extended {
    if value == 0 {
        return Extended::ZERO;
    }
    let excess = 64 - value.leading_zeros() as i32;
    if excess <= 0 {
        value <<= -excess;
        let mantissa = value as u64;
        return Extended { is_negative, mantissa, exponent: exponent + excess, is_infinite: false };
    }
    let half = 1u128 << (excess - 1);
    let rest = value & (half - 1);
    has_rest |= rest != 0;
    let is_half = value & half != 0;
    value >>= excess;
    exponent += excess;
    if is_half && (has_rest || value & 1 == 1) {
        value += 1;
        if value >> 64 != 0 {
            value >>= 1;
            exponent += 1;
        }
    }
    Extended { is_negative, mantissa: value as u64, exponent, is_infinite: false }
}

impl Extended {
    pub(crate) const ZERO: Self =
        Self { is_negative: false, mantissa: 0, exponent: 0, is_infinite: false };

    /// The sum; none if it is not finite.
    pub(crate) fn plus(self, other: Self) -> Option<Self> {
        if self.is_infinite || other.is_infinite {
            return None;
        }
        if self.mantissa == 0 || other.mantissa == 0 {
            return Some(if self.mantissa == 0 { other } else { self });
        }
        let (large, small) = if (self.exponent, self.mantissa) >= (other.exponent, other.mantissa) {
            (self, other)
        } else {
            (other, self)
        };
        let shift = (large.exponent - small.exponent) as u32;
        let first = u128::from(large.mantissa) << 62;
        let shifted = u128::from(small.mantissa) << 62;
        let second = shifted.checked_shr(shift).unwrap_or_default();
        let has_rest = shift >= 128 || (second << shift.min(127)) != shifted;
        let exponent = large.exponent - 62;
        let is_negative = large.is_negative;
        Some(match large.is_negative == small.is_negative {
            true => rounded(is_negative, first + second, exponent, has_rest),
            // What was shifted out is taken from the difference, so that its rest is on the other side.
            false => {
                let difference = first - second - u128::from(has_rest);
                rounded(is_negative, difference, exponent, has_rest)
            }
        })
    }

    /// With up to 17 places and no zeros at the end.
    pub(crate) fn text(self) -> String {
        let scale = 10u128.pow(PLACES);
        let (whole, fraction) = match self.exponent {
            0.. => {
                let mut whole = Big::from(self.mantissa);
                whole.shift_left(self.exponent as usize);
                (whole.text(), 0)
            }
            exponent => {
                let places = exponent.unsigned_abs();
                let mantissa = u128::from(self.mantissa);
                let whole = mantissa.checked_shr(places).unwrap_or_default();
                let rest = if places >= 128 { mantissa } else { mantissa & ((1 << places) - 1) };
                let product = rest * scale;
                let down = product.checked_shr(places).unwrap_or_default();
                let left = if places >= 128 { 0 } else { product & ((1 << places) - 1) };
                let half = if places > 128 { u128::MAX } else { 1 << (places - 1) };
                let is_up = left > half || (left == half && down & 1 == 1);
                let fraction = down + u128::from(is_up);
                ((whole + fraction / scale).to_string(), fraction % scale)
            }
        };
        let sign = if self.is_negative && (whole != "0" || fraction != 0) { "-" } else { "" };
        if fraction == 0 {
            return format!("{sign}{whole}");
        }
        let places = format!("{fraction:017}");
        format!("{sign}{whole}.{}", places.trim_end_matches('0'))
    }
}

/// A whole number of any size, the lowest digits first.
#[derive(Clone, Debug, Default)]
struct Big(Vec<u32>);

impl From<u64> for Big {
    fn from(value: u64) -> Self {
        let mut big = Self(vec![value as u32, (value >> 32) as u32]);
        big.trim();
        big
    }
}

impl Big {
    fn trim(&mut self) {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }

    fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    fn bits(&self) -> usize {
        self.0.last().map_or(0, |it| self.0.len() * 32 - it.leading_zeros() as usize)
    }

    fn times_plus(&mut self, factor: u32, added: u32) {
        let mut carry = u64::from(added);
        for digit in &mut self.0 {
            carry += u64::from(*digit) * u64::from(factor);
            *digit = carry as u32;
            carry >>= 32;
        }
        if carry != 0 {
            self.0.push(carry as u32);
        }
    }

    fn shift_left(&mut self, bits: usize) {
        if self.is_zero() {
            return;
        }
        let (words, bits) = (bits / 32, bits % 32);
        if bits != 0 {
            self.times_plus(1 << bits, 0);
        }
        self.0.splice(0..0, std::iter::repeat_n(0, words));
    }

    fn shift_right_one(&mut self) {
        let mut carry = 0;
        for digit in self.0.iter_mut().rev() {
            let next = *digit << 31;
            *digit = *digit >> 1 | carry;
            carry = next;
        }
        self.trim();
    }

    fn compare(&self, other: &Self) -> Ordering {
        let by_length = self.0.len().cmp(&other.0.len());
        by_length.then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }

    /// Takes a smaller or equal number away.
    fn subtract(&mut self, other: &Self) {
        let mut borrow = 0i64;
        for (index, digit) in self.0.iter_mut().enumerate() {
            let taken = i64::from(other.0.get(index).copied().unwrap_or_default());
            let difference = i64::from(*digit) - taken - borrow;
            borrow = i64::from(difference < 0);
            *digit = difference as u32;
        }
        self.trim();
    }

    fn text(&self) -> String {
        let mut rest = self.clone();
        let mut groups = Vec::new();
        while !rest.is_zero() {
            let mut carry = 0u64;
            for digit in rest.0.iter_mut().rev() {
                let value = carry << 32 | u64::from(*digit);
                *digit = (value / 1_000_000_000) as u32;
                carry = value % 1_000_000_000;
            }
            rest.trim();
            groups.push(carry);
        }
        let Some(first) = groups.pop() else { return "0".into() };
        let tail = groups.iter().rev().map(|it| format!("{it:09}"));
        std::iter::once(first.to_string()).chain(tail).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(first: &str, second: &str) -> String {
        let (first, second) = (parse(first.as_bytes()).unwrap(), parse(second.as_bytes()).unwrap());
        first.plus(second).unwrap().text()
    }

    #[test]
    fn sums_look_as_the_service_prints_them() {
        assert_eq!(sum("0.1", "0.2"), "0.3");
        assert_eq!(sum("10.50", "0.1"), "10.6");
        assert_eq!(sum("5.0e3", "2.0e2"), "5200");
        assert_eq!(sum("3", "-1.5"), "1.5");
        assert_eq!(sum("1", "-1"), "0");
        assert_eq!(sum("-0.5", "0"), "-0.5");
        assert_eq!(sum("17179869184", "1.5"), "17179869185.5");
        assert_eq!(sum("1e20", "1"), "100000000000000000001".replace("001", "000").as_str());
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in ["", "-", "abc", "1 ", " 1", "1.2.3", "1e", "."] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
        assert_eq!(parse(b"inf").unwrap().plus(Extended::ZERO), None);
        assert_eq!(parse(b"1e5000").unwrap().plus(Extended::ZERO), None);
    }
}
