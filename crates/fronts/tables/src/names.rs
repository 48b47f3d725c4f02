//! The rules for names and keys, with the service's own refusals.

use crate::error::{Code, Fault};
use crate::limits::{Limits, TABLE_NAME_LENGTHS};

/// Letters and digits, a letter first; `tables` is taken by the service itself.
pub(crate) fn check_table(name: &str) -> Result<(), Fault> {
    if !TABLE_NAME_LENGTHS.contains(&name.chars().count()) {
        return Err(Fault::new(Code::OutOfRangeInput)
            .say("The specified resource name length is not within the permissible limits."));
    }
    let letter_first = name.starts_with(|c: char| c.is_ascii_alphabetic());
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !letter_first || !plain || name.eq_ignore_ascii_case("tables") {
        return Err(Fault::new(Code::InvalidResourceName));
    }
    Ok(())
}

/// Any text that is short enough and has none of the characters that addresses can't carry.
pub(crate) fn check_key(name: &str, key: &str, limits: &Limits) -> Result<(), Fault> {
    if utf16_units(key) > limits.key_units_max {
        return Err(Fault::new(Code::KeyValueTooLarge));
    }
    let forbidden = |c: char| matches!(c, '/' | '\\' | '#' | '?') || c.is_control();
    if key.contains(forbidden) {
        return Err(Fault::new(Code::OutOfRangeInput)
            .say(format!("The '{name}' parameter of value '{key}' is out of range.")));
    }
    Ok(())
}

/// How long the service says that a text is.
pub(crate) fn utf16_units(text: &str) -> usize {
    // Text is mostly ASCII, where every byte is one.
    if text.is_ascii() { text.len() } else { text.encode_utf16().count() }
}

/// What programming languages take as an identifier.
pub(crate) fn check_property(name: &str, limits: &Limits) -> Result<(), Fault> {
    if utf16_units(name) > limits.property_name_units_max {
        return Err(Fault::new(Code::PropertyNameTooLong));
    }
    let letter_first = name.starts_with(|c: char| c.is_alphabetic() || c == '_');
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c.is_alphanumeric();
    if !letter_first || !name.chars().all(is_part) {
        return Err(Fault::new(Code::PropertyNameInvalid));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_names_follow_the_rules() {
        for good in ["abc", "Abc123", &"a".repeat(63)] {
            assert!(check_table(good).is_ok(), "{good}");
        }
        let code = |name: &str| check_table(name).unwrap_err().code;
        for bad in ["", "ab", &"a".repeat(64)] {
            assert_eq!(code(bad), Code::OutOfRangeInput, "{bad}");
        }
        for bad in ["1abc", "a-b", "a_b", "Tables", "tables", "äbc", "a b"] {
            assert_eq!(code(bad), Code::InvalidResourceName, "{bad}");
        }
    }

    #[test]
    fn keys_are_short_and_can_stand_in_an_address() {
        let limits = Limits::default();
        let check = |key: &str| check_key("RowKey", key, &limits).map_err(|fault| fault.code);
        for good in ["", " ", "a'b", "ä😀", "a%b+c&d", &"x".repeat(512)] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        assert_eq!(check(&"x".repeat(513)), Err(Code::KeyValueTooLarge));
        assert_eq!(check(&"😀".repeat(257)), Err(Code::KeyValueTooLarge));
        for bad in ["a/b", "a\\b", "a#b", "a?b", "a\tb", "a\u{7f}", "a\u{9f}"] {
            assert_eq!(check(bad), Err(Code::OutOfRangeInput), "{bad}");
        }
    }

    #[test]
    fn property_names_are_identifiers() {
        let limits = Limits::default();
        let check = |name: &str| check_property(name, &limits).map_err(|fault| fault.code);
        for good in ["A", "_a", "a1", "größe", &"x".repeat(255)] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        assert_eq!(check(&"x".repeat(256)), Err(Code::PropertyNameTooLong));
        for bad in ["", "1a", "a-b", "a b", "a.b"] {
            assert_eq!(check(bad), Err(Code::PropertyNameInvalid), "{bad}");
        }
    }
}
