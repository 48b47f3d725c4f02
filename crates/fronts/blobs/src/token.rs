//! Markers of pages: where the next one begins, wrapped so that any text survives and nobody mistakes it for a name.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// Says which form the marker has, should there ever be another.
const FORM: &str = "1!";

pub(crate) fn write(place: &str) -> String {
    format!("{FORM}{}", URL_SAFE_NO_PAD.encode(place))
}

pub(crate) fn read(marker: &str) -> Option<String> {
    let decoded = URL_SAFE_NO_PAD.decode(marker.strip_prefix(FORM)?).ok()?;
    String::from_utf8(decoded).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_place_survives() {
        for place in ["", "a", "a'b +%&=", "ä😀", "1!x", "a\0b"] {
            assert_eq!(read(&write(place)).as_deref(), Some(place));
        }
        for bad in ["", "a", "1!?", "2!YQ", "1!_w"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
