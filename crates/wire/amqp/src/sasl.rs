//! SASL: which mechanisms are offered, and who a client says it is.

use bytes::Bytes;

use crate::performative::SaslInit;

/// In the order in which they are offered.
pub const MECHANISMS: [&str; 4] = ["MSSBCBS", "PLAIN", "ANONYMOUS", "EXTERNAL"];

/// The outcome of a handshake: let in, or not.
pub const OUTCOME_OK: u8 = 0;
pub const OUTCOME_AUTH: u8 = 1;

/// Who a client says it is. The secret does not print.
#[derive(Clone, PartialEq, Eq)]
pub enum Credentials {
    /// It shows a token later, on a link.
    Anonymous,
    /// A name and a secret.
    Plain { user: String, password: String },
    /// By the certificate of its TLS connection.
    External,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Anonymous => f.write_str("Anonymous"),
            Self::Plain { user, .. } => write!(f, "Plain({user})"),
            Self::External => f.write_str("External"),
        }
    }
}

impl Credentials {
    /// None if the mechanism is not one of ours, or the response not one of the mechanism.
    pub fn of(init: &SaslInit) -> Option<Self> {
        match init.mechanism.0.as_str() {
            "ANONYMOUS" | "MSSBCBS" => Some(Self::Anonymous),
            "EXTERNAL" => Some(Self::External),
            "PLAIN" => plain(init.initial_response.as_ref()?),
            _ => None,
        }
    }
}

/// Whom to act for, the name and the secret, with a zero between each.
fn plain(response: &Bytes) -> Option<Credentials> {
    let mut parts = response.split(|byte| *byte == 0);
    let (_acts_for, user, password) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
    Some(Credentials::Plain { user: text(user)?, password: text(password)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn init(mechanism: &str, response: &'static [u8]) -> Option<Credentials> {
        let initial_response = Some(Bytes::from_static(response));
        Credentials::of(&SaslInit { mechanism: mechanism.into(), initial_response, hostname: None })
    }

    #[test]
    fn a_plain_response_is_a_name_and_a_secret() {
        let expected = Credentials::Plain { user: "me".into(), password: "secret".into() };
        assert_eq!(init("PLAIN", b"\0me\0secret"), Some(expected.clone()));
        assert_eq!(init("PLAIN", b"other\0me\0secret"), Some(expected.clone()));
        assert_eq!(format!("{expected:?}"), "Plain(me)");
        for bad in [&b""[..], b"me", b"me\0secret", b"\0a\0b\0c", b"\0\xff\0b"] {
            assert_eq!(init("PLAIN", bad), None, "{bad:?}");
        }
        assert_eq!(init("ANONYMOUS", b"RootManageSharedAccessKey"), Some(Credentials::Anonymous));
        assert_eq!(init("GSSAPI", b""), None);
    }
}
