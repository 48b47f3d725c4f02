//! Markers of pages: where the next one begins, wrapped so that any bytes survive and nobody mistakes it for a name.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;

/// Says which form the marker has, should there ever be another.
const FORM: &str = "1!";

pub(crate) fn write(place: &[u8]) -> String {
    format!("{FORM}{}", URL_SAFE_NO_PAD.encode(place))
}

pub(crate) fn read(marker: &str) -> Option<Bytes> {
    URL_SAFE_NO_PAD.decode(marker.strip_prefix(FORM)?).ok().map(Bytes::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_place_survives() {
        for place in [b"".as_slice(), b"a", b"a'b +%&=", b"1!x", b"a\0b", b"\xff\xfe"] {
            assert_eq!(read(&write(place)).as_deref(), Some(place));
        }
        for bad in ["", "a", "1!?", "2!YQ", "1!Y"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
