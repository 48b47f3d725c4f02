//! Who may connect: the access keys of the accounts are the passwords, as in the managed service.

use std::sync::Arc;

use lazuli_azure::auth::{Accounts, Key, Keys};

/// Any text will do: both sides sign it.
const PROBE: &str = "cache";

/// The published key, and the account that it opens as long as that has it.
#[derive(Clone)]
pub struct Published {
    pub account: &'static str,
    pub key: Key,
}

pub(crate) struct Gate {
    pub(crate) accounts: Arc<Accounts>,
    /// Only where no other machine can connect.
    pub(crate) published: Option<Published>,
}

impl Gate {
    /// Whether clients need not say who they are: only while the account of development has its published key, which any of
    /// them could name.
    pub(crate) fn is_open(&self) -> bool {
        let Some(published) = &self.published else { return false };
        let keys = self.accounts.get(published.account);
        keys.is_some_and(|keys| is_key_of(&keys, &published.key))
    }

    /// Whether a password is an access key of an account; of the named one if the name is not that of the default user.
    pub(crate) fn admits(&self, user: &str, password: &[u8]) -> bool {
        let key = std::str::from_utf8(password).ok().and_then(|it| Key::from_base64(it).ok());
        let Some(key) = key else { return false };
        if user == "default" {
            return self.accounts.find(|keys| is_key_of(keys, &key)).is_some();
        }
        self.accounts.get(user).is_some_and(|keys| is_key_of(&keys, &key))
    }
}

/// Whether it is one of the keys of an account, in a time that does not depend on how nearly.
fn is_key_of(keys: &Keys, key: &Key) -> bool {
    keys.verify(PROBE, &key.sign(PROBE))
}
