//! Resource ids as text: base64 in which `-` stands for the slash, which could not be in a path.

use base64::Engine as _;
use base64::alphabet::Alphabet;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use base64::engine::DecodePaddingMode;

/// The longest resource id: that of an attachment.
const BYTES_MAX: usize = 20;

const fn alphabet() -> Alphabet {
    match Alphabet::new("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-") {
        Ok(alphabet) => alphabet,
        Err(_) => panic!("64 different signs are an alphabet"),
    }
}

const ALPHABET: Alphabet = alphabet();
const PADDED: GeneralPurpose = GeneralPurpose::new(
    &ALPHABET,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::RequireCanonical),
);

pub(crate) fn text(rid: &[u8]) -> String {
    PADDED.encode(rid)
}

/// None if the text is no resource id.
pub(crate) fn parse(text: &str) -> Option<Vec<u8>> {
    let bytes = PADDED.decode(text).ok()?;
    (!bytes.is_empty() && bytes.len() <= BYTES_MAX).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slash_is_written_as_a_hyphen() {
        assert_eq!(text(&[255, 255, 255, 255]), "-----w==");
        assert_eq!(parse("-----w=="), Some(vec![255; 4]));
        for other in ["", "////", "abc", "a", "//8=", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"] {
            assert_eq!(parse(other), None, "{other}");
        }
    }
}
