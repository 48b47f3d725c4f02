//! What clients call a message and their right to it. Both are opaque to them, and both lead to the row without a search.

use std::fmt;
use std::str::FromStr;

use lazuli_engine::Lsn;

/// The name of a message: which queue's it is, and its number there. Prints as a UUID does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId {
    /// Drawn when the queue was created, so that messages of different queues have different names.
    pub(super) salt: u64,
    pub(super) number: u64,
}

/// The right to a message: which one, and the write that gave the right. The next write of the message ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Receipt {
    pub(super) number: u64,
    pub(super) version: Lsn,
}

impl Receipt {
    /// The number of the write that gave the right.
    pub fn version(self) -> Lsn {
        self.version
    }
}

/// The text is none that was given out here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotOurs;

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (salt, number) = (self.salt, self.number);
        write!(
            f,
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            salt >> 32,
            (salt >> 16) & 0xffff,
            salt & 0xffff,
            number >> 48,
            number & 0xffff_ffff_ffff
        )
    }
}

impl FromStr for MessageId {
    type Err = NotOurs;

    fn from_str(text: &str) -> Result<Self, NotOurs> {
        let dashes = [8, 13, 18, 23];
        let is_shaped = text.len() == 36
            && text.bytes().enumerate().all(|(at, byte)| (byte == b'-') == dashes.contains(&at));
        if !is_shaped {
            return Err(NotOurs);
        }
        let (salt, number) = halves(&text.replace('-', ""))?;
        Ok(Self { salt, number })
    }
}

impl fmt::Display for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}{:016x}", self.number, self.version.0)
    }
}

impl FromStr for Receipt {
    type Err = NotOurs;

    fn from_str(text: &str) -> Result<Self, NotOurs> {
        let (number, version) = halves(text)?;
        Ok(Self { number, version: Lsn(version) })
    }
}

/// Two numbers of sixteen hexadecimal digits each.
fn halves(digits: &str) -> Result<(u64, u64), NotOurs> {
    // The length is checked first, and every byte is a digit, so that the cut is between two characters.
    if digits.len() != 32 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(NotOurs);
    }
    let (first, second) = digits.split_at(16);
    let number = |digits| u64::from_str_radix(digits, 16).map_err(|_| NotOurs);
    Ok((number(first)?, number(second)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_survives_its_text() {
        let id = MessageId { salt: 0x0123_4567_89ab_cdef, number: 0x00ff_0000_0000_0042 };
        assert_eq!(id.to_string(), "01234567-89ab-cdef-00ff-000000000042");
        assert_eq!(id.to_string().parse(), Ok(id));
        let receipt = Receipt { number: 7, version: Lsn(9) };
        assert_eq!(receipt.to_string().parse(), Ok(receipt));
    }

    #[test]
    fn any_other_text_is_refused() {
        let texts = ["", "1", "é".repeat(16).as_str(), "+1234567-89ab-cdef-00ff-000000000042"]
            .map(str::to_owned);
        for text in texts {
            assert_eq!(text.parse::<MessageId>(), Err(NotOurs), "{text}");
            assert_eq!(text.parse::<Receipt>(), Err(NotOurs), "{text}");
        }
        assert!("0123456789ab-cdef-00ff-000000000042-01".parse::<MessageId>().is_err());
    }
}
