//! Integers as texts: only the one canonical form of a number counts as a number.

/// The number that a text is, if the number's own text is the same: no sign `+`, no leading zeros, no blanks.
pub fn parse(text: &[u8]) -> Option<i64> {
    let (is_negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || digits.len() > 19 {
        return None;
    }
    if digits[0] == b'0' {
        return (text.len() == 1).then_some(0);
    }
    let mut number: u64 = 0;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        number = number.checked_mul(10)?.checked_add(u64::from(digit - b'0'))?;
    }
    if is_negative {
        return match number {
            0x8000_0000_0000_0000 => Some(i64::MIN),
            _ => i64::try_from(number).ok().map(|number| -number),
        };
    }
    i64::try_from(number).ok()
}

/// Room for the text of any integer.
pub struct Text {
    bytes: [u8; 20],
    begin: usize,
}

impl std::ops::Deref for Text {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[self.begin..]
    }
}

/// The text of a number.
pub fn text(number: i64) -> Text {
    let mut text = Text { bytes: [0; 20], begin: 20 };
    let mut rest = number.unsigned_abs();
    loop {
        text.begin -= 1;
        text.bytes[text.begin] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if number < 0 {
        text.begin -= 1;
        text.bytes[text.begin] = b'-';
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_its_own_text_only() {
        for number in [0, 1, -1, 9, 10, -10, 123_456, i64::MAX, i64::MIN, i64::MAX - 1] {
            assert_eq!(parse(number.to_string().as_bytes()), Some(number));
            assert_eq!(&*text(number), number.to_string().as_bytes());
        }
        for text in ["", "-", "+1", "01", "-0", " 1", "1 ", "9223372036854775808", "1a", "1.0"] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }
}
