//! Decimal numbers of 128 bits as IEEE 754 and BSON have them (binary integer coefficient).

use std::fmt;

const BIAS: i32 = 6176;
const COEFFICIENT_MAX: u128 = 9_999_999_999_999_999_999_999_999_999_999_999;

/// A decoded decimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decimal {
    Finite { negative: bool, coefficient: u128, exponent: i32 },
    Infinite { negative: bool },
    NotANumber,
}

impl Decimal {
    pub(crate) fn read(bytes: &[u8; 16]) -> Self {
        let bits = u128::from_le_bytes(*bytes);
        let negative = bits >> 127 == 1;
        match (bits >> 122) & 0x1f {
            0x1f => return Self::NotANumber,
            0x1e => return Self::Infinite { negative },
            _ => {}
        }
        let large = (bits >> 125) & 3 == 3;
        let shift = if large { 111 } else { 113 };
        let exponent = ((bits >> shift) & 0x3fff) as i32 - BIAS;
        let coefficient = bits & ((1 << 113) - 1);
        // Coefficients beyond 34 digits are read as zero, as the standard has it.
        let coefficient = if large || coefficient > COEFFICIENT_MAX { 0 } else { coefficient };
        Self::Finite { negative, coefficient, exponent }
    }
}

impl fmt::Display for Decimal {
    /// The text of the MongoDB drivers: plain while no zeros have to be invented, else with an exponent.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (negative, coefficient, exponent) = match *self {
            Self::NotANumber => return f.write_str("NaN"),
            Self::Infinite { negative } => {
                return f.write_str(if negative { "-Infinity" } else { "Infinity" });
            }
            Self::Finite { negative, coefficient, exponent } => (negative, coefficient, exponent),
        };
        let digits = coefficient.to_string();
        let adjusted = exponent + digits.len() as i32 - 1;
        if negative {
            f.write_str("-")?;
        }
        if exponent <= 0 && adjusted >= -6 {
            if exponent == 0 {
                return f.write_str(&digits);
            }
            let fraction = exponent.unsigned_abs() as usize;
            let digits = format!("{digits:0>width$}", width = fraction + 1);
            let (whole, fraction) = digits.split_at(digits.len() - fraction);
            return write!(f, "{whole}.{fraction}");
        }
        f.write_str(&digits[..1])?;
        if digits.len() > 1 {
            write!(f, ".{}", &digits[1..])?;
        }
        write!(f, "E{adjusted:+}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(negative: bool, coefficient: u128, exponent: i32) -> [u8; 16] {
        let bits = u128::from(negative) << 127 | ((exponent + BIAS) as u128) << 113 | coefficient;
        bits.to_le_bytes()
    }

    #[test]
    fn decimals_are_written_as_the_drivers_write_them() {
        let text = |negative, coefficient, exponent| {
            Decimal::read(&bytes(negative, coefficient, exponent)).to_string()
        };
        assert_eq!(text(false, 0, 0), "0");
        assert_eq!(text(false, 12345, -2), "123.45");
        assert_eq!(text(true, 1, -6), "-0.000001");
        assert_eq!(text(false, 1, -7), "1E-7");
        assert_eq!(text(false, 12, 3), "1.2E+4");
        assert_eq!(text(false, COEFFICIENT_MAX, 6111), format!("9.{}E+6144", "9".repeat(33)));
    }
}
