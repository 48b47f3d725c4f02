//! Shared access signatures of message namespaces: `SharedAccessSignature sr=…&sig=…&se=…&skn=…`.
//!
//! They are signed with the text of a key, over the resource and the time of expiry as they stand in the token.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lazuli_http::uri::percent_decode;

use super::Keys;

/// The most bytes of a token.
const TOKEN_BYTES_MAX: usize = 8 * 1024;
const SCHEME: &str = "SharedAccessSignature ";

/// A token as it was sent; who signed it is to be found out.
#[derive(Debug, PartialEq, Eq)]
pub struct Token {
    /// What it is for, decoded: `sb://host:port/entity`.
    pub resource: String,
    /// The name of the rule whose key signed it.
    pub rule: String,
    /// Seconds since the Unix epoch.
    pub expires_s: u64,
    signed: String,
    signature: Vec<u8>,
}

impl Token {
    /// None if the text is no such token.
    pub fn parse(text: &str) -> Option<Self> {
        let fields = text.strip_prefix(SCHEME).filter(|_| text.len() <= TOKEN_BYTES_MAX)?;
        let field = |name: &str| {
            let mut pairs = fields.split('&').filter_map(|pair| pair.split_once('='));
            pairs.find(|(key, _)| key.trim() == name).map(|(_, value)| value)
        };
        let decoded = |name| percent_decode(field(name)?).ok();
        let (resource, expires) = (field("sr")?, field("se")?);
        Some(Self {
            resource: decoded("sr")?.into_owned(),
            rule: decoded("skn")?.into_owned(),
            expires_s: expires.parse().ok()?,
            signed: format!("{resource}\n{expires}"),
            signature: STANDARD.decode(decoded("sig")?.as_bytes()).ok()?,
        })
    }

    /// Whether one of the keys made it.
    pub fn is_signed_by(&self, keys: &Keys) -> bool {
        keys.verify_by_text(&self.signed, &self.signature)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Key;
    use super::*;

    /// Made by the official SDK for Python (`azure-servicebus` 7.15) with the key of the emulators.
    const TOKEN: &str = "SharedAccessSignature sr=sb%3A%2F%2Flocalhost%3A5672%2Fq1&\
         sig=SIGNATURE&se=1800000000&skn=RootManageSharedAccessKey";

    fn token() -> String {
        let key = Key::from_text("SAS_KEY_VALUE");
        let signature = key.sign_by_text("sb%3A%2F%2Flocalhost%3A5672%2Fq1\n1800000000");
        let signature = STANDARD.encode(signature).replace('+', "%2B").replace('=', "%3D");
        TOKEN.replace("SIGNATURE", &signature)
    }

    #[test]
    fn a_token_is_signed_with_the_text_of_a_key() {
        let token = Token::parse(&token()).unwrap();
        assert_eq!(token.resource, "sb://localhost:5672/q1");
        assert_eq!((&*token.rule, token.expires_s), ("RootManageSharedAccessKey", 1_800_000_000));
        let keys = |text| Keys { first: Key::from_text(text), second: None };
        assert!(token.is_signed_by(&keys("SAS_KEY_VALUE")));
        assert!(!token.is_signed_by(&keys("OTHER")));
        let both = Keys { first: Key::from_text("OTHER"), ..keys("SAS_KEY_VALUE") };
        assert!(!token.is_signed_by(&both));
    }

    #[test]
    fn a_token_that_was_changed_is_not_signed() {
        let keys = Keys { first: Key::from_text("SAS_KEY_VALUE"), second: None };
        for (from, to) in [("q1", "q2"), ("1800000000", "1900000000")] {
            let changed = Token::parse(&token().replace(from, to)).unwrap();
            assert!(!changed.is_signed_by(&keys), "{from}");
        }
        for text in [
            "",
            "SharedAccessSignature ",
            "Bearer a",
            "SharedAccessSignature sr=a&se=b&skn=c&sig=d",
        ] {
            assert_eq!(Token::parse(text), None, "{text}");
        }
    }
}
