//! Who sent a request: an owner of the service by one of its two admin keys, a reader by a key for queries, or the bearer of a
//! token.
//!
//! The service has no account in its paths, so the key says whose it is. The two admin keys are the two keys of the account.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use lazuli_azure::auth::bearer::{self, Tokens};
use lazuli_azure::auth::{Accounts, Key, Keys};
use lazuli_http::Request;
use lazuli_index::{Indexes, RecordKind};

use crate::error::{Fault, Result};
use crate::limits::KEYS_REMEMBERED;

/// Whom a token must be made for.
const AUDIENCES: [&str; 2] = ["https://search.azure.com", "https://search.azure.com/"];

/// Who sent a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sender {
    pub(crate) account: String,
    /// Whether only queries are allowed.
    pub(crate) is_reader: bool,
}

/// When keys were read, and those of each account.
type Remembered = Option<(Instant, Vec<(String, Keys)>)>;

/// Keys for queries of all accounts, as they were a moment ago.
#[derive(Default)]
pub(crate) struct QueryKeys(Mutex<Remembered>);

impl QueryKeys {
    /// Forgets them: they were changed.
    pub(crate) fn forget(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Remembered> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remembered(&self, given: &Key) -> Option<Option<String>> {
        let remembered = self.lock();
        let (read, keys) = remembered.as_ref()?;
        (read.elapsed() < KEYS_REMEMBERED).then(|| {
            let found = keys.iter().find(|(_, keys)| is_same(keys, given));
            found.map(|(account, _)| account.clone())
        })
    }

    /// The account that has given out this key.
    async fn account(
        &self,
        given: &Key,
        accounts: &Accounts,
        indexes: &Indexes,
    ) -> Result<Option<String>> {
        if let Some(found) = self.remembered(given) {
            return Ok(found);
        }
        let mut keys = Vec::new();
        for account in accounts.names() {
            for record in indexes.records(&account, RecordKind::QueryKey).await? {
                let text = String::from_utf8_lossy(&record.body).into_owned();
                let first = Key::from_text(&text);
                keys.push((account.clone(), Keys { first, second: None }));
            }
        }
        *self.lock() = Some((Instant::now(), keys));
        Ok(self.remembered(given).flatten())
    }
}

/// Whether one of these keys is the one given, in constant time.
fn is_same(keys: &Keys, given: &Key) -> bool {
    const PROBE: &str = "is this the key?";
    keys.verify(PROBE, &given.sign(PROBE))
}

/// Finds out who sent a request.
pub(crate) async fn check(
    request: &Request,
    accounts: &Accounts,
    indexes: &Indexes,
    query_keys: &QueryKeys,
    tokens: Tokens,
) -> Result<Sender> {
    if let Some(given) = request.header("api-key") {
        // A key that is no base64 can still be one for queries.
        if let Ok(key) = Key::from_base64(given)
            && let Some(account) = accounts.find(|keys| is_same(keys, &key))
        {
            return Ok(Sender { account, is_reader: false });
        }
        let account = query_keys.account(&Key::from_text(given), accounts, indexes).await?;
        return account.map(|account| Sender { account, is_reader: true }).ok_or_else(denied);
    }
    if bearer::is_present(request) {
        return by_token(request, accounts, tokens);
    }
    Err(denied())
}

fn denied() -> Fault {
    Fault::forbidden(
        "Access denied due to an invalid or missing api-key. Provide an admin key, or for queries a query key.",
    )
}

/// A token names no account of ours, so there must be only one.
fn by_token(request: &Request, accounts: &Accounts, tokens: Tokens) -> Result<Sender> {
    if tokens == Tokens::Off {
        return Err(Fault::unauthorized(bearer::TokenFault::NotSupported.detail()));
    }
    if !request.secure {
        return Err(Fault::unauthorized(bearer::TokenFault::NotSecure.detail()));
    }
    let text = request.header("authorization").unwrap_or_default();
    let text = text.trim().split_once(' ').map_or("", |(_, token)| token.trim());
    let now_s = Duration::from_millis(request.received_ms).as_secs();
    bearer::check_text(text, now_s, |audience| AUDIENCES.contains(&audience))
        .map_err(|fault| Fault::unauthorized(fault.detail()))?;
    match <[String; 1]>::try_from(accounts.names()) {
        Ok([account]) => Ok(Sender { account, is_reader: false }),
        Err(_) => Err(Fault::unauthorized(
            "A token does not say which account is meant, and there are several: use an api-key.",
        )),
    }
}
