//! Accounts and their keys. A key can sign and compare; it can't be read back or printed.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use base64::engine::general_purpose::{GeneralPurpose, NO_PAD};
use base64::{Engine as _, alphabet};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;

/// The longest key that is taken, decoded.
pub const KEY_BYTES_MAX: usize = 1024;

/// One secret of an account, ready to sign.
#[derive(Clone)]
pub struct Key {
    bytes: Hmac<Sha256>,
    /// Some services sign with the text of a key as it stands in connection strings, not with the bytes that it encodes.
    text: Hmac<Sha256>,
}

/// The text is not base64, is empty, or is over [`KEY_BYTES_MAX`]. Says nothing of the text itself.
#[derive(Debug, PartialEq, Eq)]
pub struct BadKey;

impl Key {
    pub fn from_base64(text: &str) -> Result<Self, BadKey> {
        let mac = |secret: &[u8]| Hmac::new_from_slice(secret).map_err(|_| BadKey);
        Ok(Self { bytes: mac(&key_bytes(text)?)?, text: mac(text.trim().as_bytes())? })
    }

    /// A key that is any text, and signs with it.
    pub fn from_text(text: &str) -> Self {
        let text = Hmac::new_from_slice(text.as_bytes()).expect("HMAC takes keys of every length");
        Self { bytes: text.clone(), text }
    }

    /// A key that was derived from another one.
    pub(super) fn from_secret(secret: &[u8; 32]) -> Self {
        let bytes = Hmac::new_from_slice(secret).expect("HMAC takes keys of every length");
        Self { text: bytes.clone(), bytes }
    }

    pub fn sign(&self, text: &str) -> [u8; 32] {
        signature(&self.bytes, text)
    }

    /// Signs with the text of the key.
    pub fn sign_by_text(&self, text: &str) -> [u8; 32] {
        signature(&self.text, text)
    }
}

fn signature(mac: &Hmac<Sha256>, text: &str) -> [u8; 32] {
    let mut mac = mac.clone();
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().into()
}

/// The bytes of a key, from base64 as the SDKs for JavaScript and other tools read it: padding is not needed, line ends and
/// spaces count for nothing, both alphabets do, and bits that belong to no byte are dropped. Other signs are a mistake.
pub fn key_bytes(text: &str) -> Result<Vec<u8>, BadKey> {
    let plain = |sign: char| match sign {
        '-' => '+',
        '_' => '/',
        other => other,
    };
    let mut signs: String = text.chars().filter(|sign| !sign.is_whitespace()).map(plain).collect();
    signs.truncate(signs.trim_end_matches('=').len());
    if signs.len() % 4 == 1 {
        // Six bits are no byte.
        signs
            .pop()
            .filter(|sign| sign.is_ascii_alphanumeric() || "+/".contains(*sign))
            .ok_or(BadKey)?;
    }
    let bytes = LENIENT.decode(signs).map_err(|_| BadKey)?;
    if bytes.is_empty() || bytes.len() > KEY_BYTES_MAX { Err(BadKey) } else { Ok(bytes) }
}

/// Without padding, and with whatever the last bits are.
const LENIENT: GeneralPurpose =
    GeneralPurpose::new(&alphabet::STANDARD, NO_PAD.with_decode_allow_trailing_bits(true));

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(secret)")
    }
}

/// The two keys of an account: either signs, so that one can be rotated while the other is in use.
#[derive(Clone, Debug)]
pub struct Keys {
    pub first: Key,
    pub second: Option<Key>,
}

impl Keys {
    /// Whether one of the keys made this signature, in a time that doesn't depend on how nearly it fits.
    pub fn verify(&self, text: &str, signature: &[u8]) -> bool {
        let first = self.first.sign(text).ct_eq(signature);
        let second = self.second.as_ref().map(|key| key.sign(text).ct_eq(signature));
        (first | second.unwrap_or(0.into())).into()
    }

    /// The same for services that sign with the text of a key.
    pub fn verify_by_text(&self, text: &str, signature: &[u8]) -> bool {
        let first = self.first.sign_by_text(text).ct_eq(signature);
        let second = self.second.as_ref().map(|key| key.sign_by_text(text).ct_eq(signature));
        (first | second.unwrap_or(0.into())).into()
    }
}

/// The accounts of a server, by name. Changes take effect with the next request.
#[derive(Default)]
pub struct Accounts {
    all: Arc<RwLock<BTreeMap<String, Arc<Keys>>>>,
    /// The accounts that can be found here; none means all.
    only: Option<Vec<String>>,
}

impl Accounts {
    pub fn new() -> Self {
        Self::default()
    }

    /// The same accounts, of which only these can be found.
    pub fn only(&self, names: Vec<String>) -> Self {
        Self { all: self.all.clone(), only: Some(names) }
    }

    pub fn get(&self, name: &str) -> Option<Arc<Keys>> {
        let is_open = self.only.as_ref().is_none_or(|only| only.iter().any(|one| one == name));
        let found = self.all.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        found.filter(|_| is_open)
    }

    pub fn contains(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// The first account, by name, whose keys pass the check: for services whose requests do not name one.
    pub fn find(&self, check: impl Fn(&Keys) -> bool) -> Option<String> {
        let all = self.all.read().unwrap_or_else(PoisonError::into_inner);
        let is_open = |name: &String| {
            self.only.as_ref().is_none_or(|only| only.iter().any(|one| one == name))
        };
        all.iter().find(|(name, keys)| is_open(name) && check(keys)).map(|(name, _)| name.clone())
    }

    /// The names of all accounts that can be found here.
    pub fn names(&self) -> Vec<String> {
        let all = self.all.read().unwrap_or_else(PoisonError::into_inner);
        let is_open = |name: &&String| {
            self.only.as_ref().is_none_or(|only| only.iter().any(|one| one == *name))
        };
        all.keys().filter(is_open).cloned().collect()
    }

    /// Adds an account, or replaces its keys.
    pub fn set(&self, name: impl Into<String>, keys: Keys) {
        let mut accounts = self.all.write().unwrap_or_else(PoisonError::into_inner);
        accounts.insert(name.into(), Arc::new(keys));
    }

    /// Removes an account and says whether there was one.
    pub fn remove(&self, name: &str) -> bool {
        self.all.write().unwrap_or_else(PoisonError::into_inner).remove(name).is_some()
    }
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    #[test]
    fn keys_are_read_as_other_tools_read_them() {
        let key = STANDARD.encode([251, 255, 0, 1]);
        assert_eq!(key, "+/8AAQ==");
        for text in
            ["+/8AAQ==", "+/8AAQ", "+/8AAQ=", "-_8AAQ==", " +/8A\r\nAQ== ", "+/8AAR", "+/8AAR=="]
        {
            assert_eq!(key_bytes(text), Ok(vec![251, 255, 0, 1]), "{text}");
        }
        // As the SDK for JavaScript has it: five signs are three bytes.
        assert_eq!(key_bytes("a2V5M"), Ok(b"key".to_vec()));
        for text in ["", "=", "A", "a2V5!", "SECRET!", "a2=V5", "\u{e4}", "a2V5\u{e4}"] {
            assert_eq!(key_bytes(text), Err(BadKey), "{text}");
        }
        assert!(key_bytes(&STANDARD.encode([0; KEY_BYTES_MAX])).is_ok());
        assert_eq!(key_bytes(&STANDARD.encode([0; KEY_BYTES_MAX + 1])), Err(BadKey));
    }

    #[test]
    fn either_key_verifies_and_nothing_else_does() {
        let (one, two, three) = (key("b25l"), key("dHdv"), key("dGhyZWU="));
        let keys = Keys { first: one.clone(), second: Some(two.clone()) };
        assert!(keys.verify("text", &one.sign("text")));
        assert!(keys.verify("text", &two.sign("text")));
        assert!(!keys.verify("text", &three.sign("text")));
        assert!(!keys.verify("other", &one.sign("text")));
        assert!(!keys.verify("text", &one.sign("text")[..31]));
        assert!(!keys.verify("text", b""));
    }

    #[test]
    fn a_signature_is_hmac_sha256() {
        // RFC 4231, test case 2.
        let signed = key(&STANDARD.encode("Jefe")).sign("what do ya want for nothing?");
        let hex: String = signed.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    }

    #[test]
    fn a_key_never_prints() {
        let keys = Keys { first: key("c2VjcmV0"), second: None };
        assert_eq!(format!("{keys:?}"), "Keys { first: Key(secret), second: None }");
        assert_eq!(Key::from_base64("not base64!").unwrap_err(), BadKey);
        assert_eq!(Key::from_base64("").unwrap_err(), BadKey);
    }

    #[test]
    fn rotation_takes_effect_at_once() {
        let accounts = Accounts::new();
        assert!(accounts.get("a").is_none());
        accounts.set("a", Keys { first: key("b25l"), second: None });
        assert!(accounts.get("a").unwrap().verify("t", &key("b25l").sign("t")));
        accounts.set("a", Keys { first: key("dHdv"), second: None });
        assert!(!accounts.get("a").unwrap().verify("t", &key("b25l").sign("t")));
        let some = accounts.only(vec!["b".into()]);
        some.set("b", Keys { first: key("b25l"), second: None });
        assert!(some.contains("b") && !some.contains("a") && accounts.contains("b"));
        assert_eq!(accounts.find(|_| true).as_deref(), Some("a"));
        assert_eq!(some.find(|_| true).as_deref(), Some("b"));
        assert_eq!(some.find(|_| false), None);
        assert!(accounts.remove("a") && !accounts.remove("a") && !accounts.contains("a"));
    }

    fn key(text: &str) -> Key {
        Key::from_base64(text).unwrap()
    }
}
