//! Continuation tokens: a key, encoded so that any text survives a header and the token is not taken for the key itself.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::error::{Common, Fault, Result};

/// Says which form the token has, should there ever be another.
const FORM: &str = "1!";

pub(crate) fn write(key: &str) -> String {
    format!("{FORM}{}", URL_SAFE_NO_PAD.encode(key))
}

pub(crate) fn read(token: &str) -> Result<String> {
    let decoded = token.strip_prefix(FORM).and_then(|text| URL_SAFE_NO_PAD.decode(text).ok());
    decoded
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .ok_or_else(|| Fault::new(Common::InvalidInput).say("The continuation token is not valid."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_key_survives() {
        for key in ["", "a", "a'b +%&=", "ä😀", "1!x"] {
            assert_eq!(read(&write(key)).as_deref(), Ok(key));
        }
        for bad in ["", "a", "1!?", "2!YQ", "1!_w"] {
            assert_eq!(read(bad).unwrap_err().code, Common::InvalidInput.into(), "{bad}");
        }
    }
}
