//! Signs requests with the published key of the development account, as SharedKeyLite wants it.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lazuli_http::auth::Key;
use lazuli_http::date::format_rfc1123;
use lazuli_trial::client::{ACCOUNT, KEY};

use super::Result;

pub(super) struct Signer {
    key: Key,
    second: u64,
    date: String,
}

impl Signer {
    pub(super) fn new() -> Result<Self> {
        let key = Key::from_base64(KEY).map_err(|error| format!("{error:?}"))?;
        Ok(Self { key, second: 0, date: String::new() })
    }

    /// The date and the signature for a request to this path, which begins with the account.
    pub(super) fn sign(&mut self, path: &str) -> (&str, String) {
        let second = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        if second != self.second {
            self.second = second;
            self.date = format_rfc1123(i64::try_from(second).unwrap_or_default());
        }
        let signature = self.key.sign(&format!("{}\n/{ACCOUNT}{path}", self.date));
        (&self.date, STANDARD.encode(signature))
    }
}
