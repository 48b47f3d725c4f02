//! Accounts: a name and two keys each, so that a key can be changed while clients still use the other one.
//!
//! This file knows what an account is and how it is written; `registry` keeps the ones in force.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lazuli_azure::auth::{Key, Keys, key_bytes};

use crate::secret::Secret;

/// The development account of storage emulators. Its key is published.
pub const PUBLISHED_NAME: &str = "devstoreaccount1";
/// The published key. Lazuli refuses it on every address that other machines can reach.
pub const PUBLISHED_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// The key that emulators of the document service have always had. It opens the account of development as long as that one
/// has its own published key.
pub const PUBLISHED_DOCUMENT_KEY: &str =
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

/// The key that emulators of the message bus have in their connection strings. It opens the account of development in the
/// same way.
pub const PUBLISHED_BUS_KEY: &str = "SAS_KEY_VALUE";

/// Bytes of a key that we make, as the originals have.
const KEY_BYTES: usize = 64;
const BAD_KEY: &str = "a key is base64 of 1 to 1024 bytes";
/// Names as the originals allow them.
const NAME_CHARS: std::ops::RangeInclusive<usize> = 3..=24;
/// How many accounts there may be.
pub const ACCOUNTS_MAX: usize = 1_000;

/// An account. Prints without its keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    pub name: String,
    /// In base64, as connection strings hold it.
    pub key1: Secret,
    /// An account given by a setting may have one key only.
    pub key2: Option<Secret>,
}

/// Which of the two keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeySlot {
    First,
    Second,
}

impl KeySlot {
    pub fn number(self) -> usize {
        match self {
            Self::First => 1,
            Self::Second => 2,
        }
    }

    pub fn of_number(number: u64) -> Option<Self> {
        match number {
            1 => Some(Self::First),
            2 => Some(Self::Second),
            _ => None,
        }
    }
}

impl Account {
    /// The account of development, with its published key.
    pub fn published() -> Self {
        Self { name: PUBLISHED_NAME.to_owned(), key1: Secret::new(PUBLISHED_KEY), key2: None }
    }

    /// A new account with two new keys.
    pub fn create(name: &str) -> Result<Self, AccountFault> {
        check_name(name)?;
        Ok(Self { name: name.to_owned(), key1: new_key()?, key2: Some(new_key()?) })
    }

    /// The same account with one key made anew.
    pub fn rotated(&self, slot: KeySlot) -> Result<Self, AccountFault> {
        let mut rotated = self.clone();
        match slot {
            KeySlot::First => rotated.key1 = new_key()?,
            KeySlot::Second => rotated.key2 = Some(new_key()?),
        }
        Ok(rotated)
    }

    pub fn has_published_key(&self) -> bool {
        // The same key can be written in several ways.
        let published = [PUBLISHED_KEY, PUBLISHED_DOCUMENT_KEY].map(key_bytes);
        let mut keys = std::iter::once(&self.key1).chain(&self.key2);
        keys.any(|key| published.contains(&key_bytes(key.reveal())))
    }

    /// The keys as fronts need them, to check signatures.
    pub fn signing_keys(&self) -> Result<Keys, AccountFault> {
        let read = |secret: &Secret| {
            Key::from_base64(secret.reveal())
                .map_err(|_| AccountFault(format!("account {}: {BAD_KEY}", self.name)))
        };
        let second = self.key2.as_ref().map(read).transpose()?;
        Ok(Keys { first: read(&self.key1)?, second })
    }
}

/// What is wrong with an account: a sentence without keys.
#[derive(Debug, PartialEq, Eq)]
pub struct AccountFault(pub String);

/// Refuses names that clients could not put into an address.
pub fn check_name(name: &str) -> Result<(), AccountFault> {
    let plain = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    if plain && NAME_CHARS.contains(&name.len()) {
        return Ok(());
    }
    Err(AccountFault("an account name has 3 to 24 lower-case letters and digits".to_owned()))
}

pub(crate) fn new_key() -> Result<Secret, AccountFault> {
    let mut bytes = [0; KEY_BYTES];
    getrandom::fill(&mut bytes)
        .map_err(|error| AccountFault(format!("the system gives no random bytes: {error}")))?;
    Ok(Secret::new(STANDARD.encode(bytes)))
}

/// Reads `name:key1:key2;name2:key1`. The error says what is expected, and never repeats a key.
pub fn parse(text: &str) -> Result<Vec<Account>, String> {
    let expected = |what: &str| format!("accounts as name:key1:key2;name2:key1 ({what})");
    let mut accounts: Vec<Account> = Vec::new();
    for part in text.split(';').map(str::trim).filter(|part| !part.is_empty()) {
        let mut fields = part.split(':').map(str::trim);
        let name = fields.next().unwrap_or_default();
        check_name(name).map_err(|fault| expected(&fault.0))?;
        let keys: Vec<&str> = fields.filter(|key| !key.is_empty()).collect();
        let (one, key2) = match keys.as_slice() {
            [one] => (one, None),
            [one, two] => (one, Some(Secret::new(*two))),
            _ => return Err(expected(&format!("account {name} has one key or two"))),
        };
        let account = Account { name: name.to_owned(), key1: Secret::new(*one), key2 };
        account.signing_keys().map_err(|fault| expected(&fault.0))?;
        if accounts.iter().any(|account| account.name == name) {
            return Err(expected(&format!("account {name} stands there twice")));
        }
        accounts.push(account);
    }
    match accounts.len() {
        0 => Err(expected("there is none")),
        1..=ACCOUNTS_MAX => Ok(accounts),
        _ => Err(expected(&format!("there may be {ACCOUNTS_MAX}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_accounts_reads_as_emulators_have_it() {
        let accounts = parse("one11:a2V5MQ==:a2V5Mg==; two22:a2V5MQ==;").unwrap();
        let names: Vec<_> = accounts.iter().map(|account| account.name.as_str()).collect();
        assert_eq!(names, ["one11", "two22"]);
        assert_eq!(accounts[0].key1.reveal(), "a2V5MQ==");
        assert_eq!(accounts[0].key2.as_ref().unwrap().reveal(), "a2V5Mg==");
        assert_eq!(accounts[1].key2, None);
    }

    #[test]
    fn a_wrong_list_is_refused_without_repeating_a_key() {
        for text in [
            "",
            ";",
            "one11",
            "one11:",
            "One11:a2V5MQ==",
            "on:a2V5MQ==",
            "one11:SECRET!",
            "one11:a2V5MQ==:a2V5MQ==:a2V5MQ==",
            "one11:a2V5MQ==;one11:a2V5MQ==",
        ] {
            let error = parse(text).unwrap_err();
            assert!(!error.contains("SECRET") && !error.contains("a2V5"), "{error}");
        }
    }

    #[test]
    fn rotating_one_key_leaves_the_other() {
        let account = Account::create("mine").unwrap();
        assert_eq!(STANDARD.decode(account.key1.reveal()).unwrap().len(), KEY_BYTES);
        assert_ne!(Some(&account.key1), account.key2.as_ref());
        let rotated = account.rotated(KeySlot::First).unwrap();
        assert_ne!(rotated.key1, account.key1);
        assert_eq!(rotated.key2, account.key2);
        assert!(!format!("{rotated:?}").contains(rotated.key1.reveal()));
    }

    #[test]
    fn the_published_key_is_known_under_every_name() {
        assert!(Account::published().has_published_key());
        assert!(parse(&format!("other:a2V5:{PUBLISHED_KEY}")).unwrap()[0].has_published_key());
        for other in [PUBLISHED_KEY.trim_end_matches('='), &PUBLISHED_KEY.replace('/', "_")] {
            assert!(parse(&format!("other:{other}")).unwrap()[0].has_published_key(), "{other}");
        }
        let documents = format!("other:{PUBLISHED_DOCUMENT_KEY}");
        assert!(parse(&documents).unwrap()[0].has_published_key());
        assert!(!Account::create("other").unwrap().has_published_key());
    }
}
