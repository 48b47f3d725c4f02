//! The rules for names of containers and blobs, with the service's own refusals.

use crate::error::{Common, Fault, Result};
use crate::limits::{BLOB_NAME_CHARS_MAX, BLOB_NAME_SEGMENTS_MAX, CONTAINER_NAME_LENGTHS};

/// The container of blobs whose address names none.
pub(crate) const ROOT: &str = "$root";
/// The container that a static website is served from.
pub(crate) const WEB: &str = "$web";
/// Containers of the service's own. Clients may use them like others; only their names break the rules.
const SYSTEM: [&str; 4] = [ROOT, WEB, "$logs", "$blobchangefeed"];

/// Small letters, digits and single hyphens between them.
pub(crate) fn check_container(name: &str) -> Result<()> {
    if SYSTEM.contains(&name) {
        return Ok(());
    }
    if !CONTAINER_NAME_LENGTHS.contains(&name.chars().count()) {
        return Err(Fault::new(Common::OutOfRangeInput)
            .say("The specified resource name length is not within the permissible limits."));
    }
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_good = name.bytes().all(plain)
        && !name.starts_with('-')
        && !name.ends_with('-')
        && !name.contains("--");
    if is_good { Ok(()) } else { Err(Fault::new(Common::InvalidResourceName)) }
}

/// Any text that is neither empty nor too long. Blobs of the root container have no folders.
pub(crate) fn check_blob(container: &str, name: &str) -> Result<()> {
    let length = name.chars().count();
    if length == 0 || length > BLOB_NAME_CHARS_MAX {
        return Err(Fault::new(Common::OutOfRangeInput)
            .say("The specified resource name length is not within the permissible limits."));
    }
    let segments = name.split('/').count();
    if segments > BLOB_NAME_SEGMENTS_MAX || (container == ROOT && segments > 1) {
        return Err(Fault::new(Common::InvalidUri));
    }
    if name.contains(['\0', '\u{fffe}', '\u{ffff}']) {
        return Err(Fault::new(Common::InvalidUri));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use lazuli_http::storage_error::ErrorCode as _;

    use super::*;

    #[test]
    fn names_of_containers_follow_the_rules() {
        for good in ["abc", "a-b-c", "0ab", &"a".repeat(63), ROOT, WEB, "$logs"] {
            assert_eq!(check_container(good), Ok(()), "{good}");
        }
        let code = |name: &str| check_container(name).unwrap_err().code.name();
        for bad in ["", "ab", &"a".repeat(64)] {
            assert_eq!(code(bad), "OutOfRangeInput", "{bad}");
        }
        for bad in ["Abc", "a--b", "-abc", "abc-", "a_b", "a.b", "äbc", "$abc", "a b"] {
            assert_eq!(code(bad), "InvalidResourceName", "{bad}");
        }
    }

    #[test]
    fn names_of_blobs_may_be_almost_anything() {
        for good in ["a", "a/b/c", "ä😀", "a b.", "..", &"x".repeat(1024)] {
            assert_eq!(check_blob("con", good), Ok(()), "{good}");
        }
        let code =
            |container: &str, name: &str| check_blob(container, name).unwrap_err().code.name();
        assert_eq!(code("con", ""), "OutOfRangeInput");
        assert_eq!(code("con", &"x".repeat(1025)), "OutOfRangeInput");
        assert_eq!(code("con", &"x/".repeat(254)), "InvalidUri");
        assert_eq!(code(ROOT, "a/b"), "InvalidUri");
        assert_eq!(code("con", "a\0"), "InvalidUri");
    }
}
