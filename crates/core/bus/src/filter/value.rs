//! Values of message properties, as far as filters tell them apart.

use std::cmp::Ordering;

/// A value of a property, or of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Boolean(bool),
    /// All integers of clients that fit.
    Integer(i64),
    Double(f64),
    Text(String),
    /// Milliseconds since the Unix epoch.
    DateTime(i64),
    /// Ticks of 100 nanoseconds.
    Duration(i64),
    Uuid([u8; 16]),
    Binary(Vec<u8>),
}

impl Value {
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// How two values of comparable types are ordered; none if they cannot be compared.
    pub(super) fn order(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Boolean(a), Self::Boolean(b)) => Some(a.cmp(b)),
            (Self::Integer(a), Self::Integer(b)) => Some(a.cmp(b)),
            (Self::Integer(a), Self::Double(b)) => order_mixed(*a, *b),
            (Self::Double(a), Self::Integer(b)) => order_mixed(*b, *a).map(Ordering::reverse),
            (Self::Double(a), Self::Double(b)) => a.partial_cmp(b),
            (Self::Text(a), Self::Text(b)) => Some(a.cmp(b)),
            (Self::DateTime(a), Self::DateTime(b)) => Some(a.cmp(b)),
            (Self::Duration(a), Self::Duration(b)) => Some(a.cmp(b)),
            (Self::Uuid(a), Self::Uuid(b)) => Some(a.cmp(b)),
            (Self::Binary(a), Self::Binary(b)) => Some(a.cmp(b)),
            // Clients write both as texts in filters.
            (Self::Uuid(a), Self::Text(b)) => Some(uuid_text(a).cmp(&b.to_ascii_lowercase())),
            (Self::Text(a), Self::Uuid(b)) => Some(a.to_ascii_lowercase().cmp(&uuid_text(b))),
            _ => None,
        }
    }
}

/// Compares without losing digits of large integers.
fn order_mixed(integer: i64, double: f64) -> Option<Ordering> {
    if double.is_nan() {
        return None;
    }
    // 2^63 is the first double above all integers.
    if double >= 9_223_372_036_854_775_808.0 {
        return Some(Ordering::Less);
    }
    if double < -9_223_372_036_854_775_808.0 {
        return Some(Ordering::Greater);
    }
    let whole = double.trunc();
    Some(
        integer
            .cmp(&(whole as i64))
            .then_with(|| 0.0f64.partial_cmp(&(double - whole)).unwrap_or(Ordering::Equal)),
    )
}

pub(super) fn uuid_text(bytes: &[u8; 16]) -> String {
    let number = u128::from_be_bytes(*bytes);
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        number >> 96,
        number >> 80 & 0xffff,
        number >> 64 & 0xffff,
        number >> 48 & 0xffff,
        number & 0xffff_ffff_ffff
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_compared_without_losing_digits() {
        let order = |a, b| Value::Integer(a).order(&Value::Double(b));
        assert_eq!(order(i64::MAX, 9_223_372_036_854_775_807.0), Some(Ordering::Less));
        assert_eq!(order(i64::MIN, -9_223_372_036_854_775_808.0), Some(Ordering::Equal));
        assert_eq!(order(1, 1.5), Some(Ordering::Less));
        assert_eq!(order(-1, -1.5), Some(Ordering::Greater));
        assert_eq!(order(2, 2.0), Some(Ordering::Equal));
        assert_eq!(order(0, f64::NAN), None);
        assert_eq!(order(0, f64::INFINITY), Some(Ordering::Less));
    }
}
