//! The rules for names of queues and of what is kept about them, with the service's own refusals.

use lazuli_http::storage_error::CommonCode;

use crate::error::{Fault, Result};
use crate::limits::QUEUE_NAME_LENGTHS;

/// Small letters, digits and single hyphens between them.
pub(crate) fn check_queue(name: &str) -> Result<()> {
    if !QUEUE_NAME_LENGTHS.contains(&name.chars().count()) {
        return Err(Fault::new(CommonCode::OutOfRangeInput));
    }
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    if name.split('-').all(|part| !part.is_empty() && part.chars().all(is_plain)) {
        Ok(())
    } else {
        Err(Fault::new(CommonCode::InvalidResourceName))
    }
}

/// What programming languages take as an identifier.
pub(crate) fn check_metadata(name: &str) -> Result<()> {
    if name.is_empty() {
        return Err(Fault::new(CommonCode::EmptyMetadataKey));
    }
    let letter_first = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if letter_first && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        Ok(())
    } else {
        Err(Fault::new(CommonCode::InvalidMetadata))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Code;

    #[test]
    fn names_of_queues_follow_the_rules() {
        for good in ["abc", "a-b", "1-2-3", "0rders", &"a".repeat(63)] {
            assert!(check_queue(good).is_ok(), "{good}");
        }
        let code = |name: &str| check_queue(name).unwrap_err().code;
        for bad in ["", "ab", &"a".repeat(64)] {
            assert_eq!(code(bad), Code::Common(CommonCode::OutOfRangeInput), "{bad}");
        }
        for bad in ["Abc", "a--b", "-abc", "abc-", "a_b", "a.b", "äbc", "a b"] {
            assert_eq!(code(bad), Code::Common(CommonCode::InvalidResourceName), "{bad}");
        }
    }

    #[test]
    fn names_of_metadata_are_identifiers() {
        for good in ["a", "_a", "a1", "long_name"] {
            assert!(check_metadata(good).is_ok(), "{good}");
        }
        let code = |name: &str| check_metadata(name).unwrap_err().code;
        assert_eq!(code(""), Code::Common(CommonCode::EmptyMetadataKey));
        for bad in ["1a", "a-b", "a.b", "a b"] {
            assert_eq!(code(bad), Code::Common(CommonCode::InvalidMetadata), "{bad}");
        }
    }
}
