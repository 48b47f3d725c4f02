//! Who asks: SASL PLAIN with a connection string as its password, as Event Hubs has it.

use bytes::Bytes;
use lazuli_azure::auth::{Accounts, Key, Keys};

/// The name that goes with a connection string.
const USER: &str = "$ConnectionString";
/// Any text will do: both sides sign it.
const PROBE: &str = "kafka";

/// The key that emulators of Event Hubs have, and the account that it opens as long as that has its published key.
#[derive(Clone)]
pub struct Published {
    pub account: &'static str,
    pub key: Key,
    /// As connection strings of the emulators have it.
    pub text: &'static str,
}

/// How clients prove who they are.
pub(crate) struct Gate {
    pub(crate) accounts: std::sync::Arc<Accounts>,
    /// Only where no other machine can connect.
    pub(crate) published: Option<Published>,
}

impl Gate {
    /// The namespace of clients that say nothing about themselves: there is one only while the account of development has
    /// its published key, which any of them could name.
    pub(crate) fn open_namespace(&self) -> Option<&'static str> {
        let published = self.published.as_ref()?;
        let keys = self.accounts.get(published.account)?;
        is_key_of(&keys, &published.key).then_some(published.account)
    }

    /// The namespace whose key a client has, from `authzid NUL user NUL password`.
    pub(crate) fn namespace(&self, message: &Bytes) -> Option<String> {
        let text = std::str::from_utf8(message).ok()?;
        let mut parts = text.split('\0');
        let (_, user, password) = (parts.next()?, parts.next()?, parts.next()?);
        if parts.next().is_some() || user != USER {
            return None;
        }
        let field = |name: &str| {
            password.split(';').find_map(|field| {
                let (found, value) = field.split_once('=')?;
                found.trim().eq_ignore_ascii_case(name).then_some(value.trim())
            })
        };
        let secret = field("SharedAccessKey")?;
        if let Some(published) = &self.published
            && secret == published.text
        {
            return self.open_namespace().map(str::to_owned);
        }
        let key = Key::from_base64(secret).ok()?;
        let host = field("Endpoint").map(host_label).unwrap_or_default();
        let named = self.accounts.get(host).filter(|keys| is_key_of(keys, &key));
        if named.is_some() {
            return Some(host.to_owned());
        }
        self.accounts.find(|keys| is_key_of(keys, &key))
    }
}

/// Whether it is one of the keys of an account, in a time that doesn't depend on how nearly.
fn is_key_of(keys: &Keys, key: &Key) -> bool {
    keys.verify(PROBE, &key.sign(PROBE))
}

/// The first label of the host of `sb://label.more:port/`.
fn host_label(endpoint: &str) -> &str {
    let host = endpoint.split_once("://").map_or(endpoint, |(_, rest)| rest);
    host.split(['.', ':', '/']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn gate(key: &str) -> Gate {
        let accounts = Arc::new(Accounts::new());
        let keys = |text| Keys { first: Key::from_base64(text).unwrap(), second: None };
        accounts.set("dev", keys(key));
        accounts.set("other", keys("b3RoZXI="));
        let key = Key::from_base64("cHVibGlzaGVk").unwrap();
        Gate { accounts, published: Some(Published { account: "dev", key, text: "SAS" }) }
    }

    fn ask(gate: &Gate, user: &str, password: &str) -> Option<String> {
        gate.namespace(&format!("\0{user}\0{password}").into())
    }

    #[test]
    fn a_connection_string_opens_the_account_of_its_key() {
        let gate = gate("cHVibGlzaGVk");
        let with = |key: &str| {
            format!("Endpoint=sb://x.test/;SharedAccessKeyName=R;SharedAccessKey={key}")
        };
        assert_eq!(ask(&gate, USER, &with("b3RoZXI=")).as_deref(), Some("other"));
        assert_eq!(ask(&gate, USER, &with("SAS")).as_deref(), Some("dev"));
        assert_eq!(ask(&gate, USER, &with("d3Jvbmc=")), None);
        assert_eq!(ask(&gate, "user", &with("b3RoZXI=")), None);
        assert_eq!(ask(&gate, USER, ""), None);
        assert_eq!(gate.namespace(&Bytes::from_static(b"\xff\0\0")), None);
        assert_eq!(gate.namespace(&Bytes::from_static(b"a\0$ConnectionString\0b\0c")), None);
    }

    #[test]
    fn published_keys_open_nothing_once_the_account_has_another() {
        let gate = gate("YW5vdGhlcg==");
        assert_eq!(gate.open_namespace(), None);
        assert_eq!(ask(&gate, USER, "SharedAccessKey=SAS"), None);
    }
}
