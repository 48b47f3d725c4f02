//! Accounts: a name and two keys each, so that a key can be changed while clients still use the other one.
//!
//! This file knows what an account is and how it is written; `registry` keeps the ones in force.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::secret::Secret;

/// The account of development, whose key everybody knows: storage emulators have always had it.
pub const PUBLISHED_NAME: &str = "devstoreaccount1";
/// The published key. Lazuli refuses it on every address that other machines can reach.
pub const PUBLISHED_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// Bytes of a key that we make, as the originals have.
const KEY_BYTES: usize = 64;
/// The longest key that somebody may bring along.
const KEY_BYTES_MAX: usize = 256;
/// Names as the originals allow them.
const NAME_CHARS: std::ops::RangeInclusive<usize> = 3..=24;
/// How many accounts there may be.
pub const ACCOUNTS_MAX: usize = 1_000;

/// An account. Prints without its keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    pub name: String,
    /// In base64, as connection strings hold them.
    pub keys: [Option<Secret>; 2],
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
        let keys = [Some(Secret::new(PUBLISHED_KEY)), None];
        Self { name: PUBLISHED_NAME.to_owned(), keys }
    }

    /// A new account with two new keys.
    pub fn create(name: &str) -> Result<Self, AccountFault> {
        check_name(name)?;
        Ok(Self { name: name.to_owned(), keys: [Some(new_key()?), Some(new_key()?)] })
    }

    /// The same account with one key made anew.
    pub fn rotated(&self, slot: KeySlot) -> Result<Self, AccountFault> {
        let mut keys = self.keys.clone();
        keys[slot.number() - 1] = Some(new_key()?);
        Ok(Self { name: self.name.clone(), keys })
    }

    pub fn has_published_key(&self) -> bool {
        self.keys.iter().flatten().any(|key| key.matches(PUBLISHED_KEY))
    }

    /// The keys as bytes, for checking signatures.
    pub fn key_bytes(&self) -> Vec<Vec<u8>> {
        self.keys.iter().flatten().filter_map(|key| STANDARD.decode(key.reveal()).ok()).collect()
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

fn new_key() -> Result<Secret, AccountFault> {
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
        let mut keys = [None, None];
        for (at, key) in fields.filter(|key| !key.is_empty()).enumerate() {
            let slot = keys.get_mut(at).ok_or_else(|| expected("an account has two keys"))?;
            check_key(key).map_err(|fault| expected(&format!("account {name}: {fault}")))?;
            *slot = Some(Secret::new(key));
        }
        if keys[0].is_none() {
            return Err(expected(&format!("account {name} has no key")));
        }
        if accounts.iter().any(|account| account.name == name) {
            return Err(expected(&format!("account {name} stands there twice")));
        }
        accounts.push(Account { name: name.to_owned(), keys });
    }
    match accounts.len() {
        0 => Err(expected("there is none")),
        1..=ACCOUNTS_MAX => Ok(accounts),
        _ => Err(expected(&format!("there may be {ACCOUNTS_MAX}"))),
    }
}

fn check_key(key: &str) -> Result<(), &'static str> {
    match STANDARD.decode(key) {
        Err(_) => Err("a key is written in base64"),
        Ok(bytes) if bytes.is_empty() || bytes.len() > KEY_BYTES_MAX => {
            Err("a key has 1 to 256 bytes")
        }
        Ok(_) => Ok(()),
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
        assert_eq!(accounts[0].key_bytes(), [b"key1", b"key2"]);
        assert_eq!(accounts[1].key_bytes(), [b"key1"]);
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
        assert_eq!(account.key_bytes().iter().map(Vec::len).collect::<Vec<_>>(), [64, 64]);
        let rotated = account.rotated(KeySlot::First).unwrap();
        assert_ne!(rotated.keys[0], account.keys[0]);
        assert_eq!(rotated.keys[1], account.keys[1]);
        assert!(!format!("{rotated:?}").contains(rotated.keys[0].as_ref().unwrap().reveal()));
    }

    #[test]
    fn the_published_key_is_known_under_every_name() {
        assert!(Account::published().has_published_key());
        assert!(parse(&format!("other:a2V5:{PUBLISHED_KEY}")).unwrap()[0].has_published_key());
        assert!(!Account::create("other").unwrap().has_published_key());
    }
}
