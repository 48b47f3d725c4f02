//! The accounts in force: kept in the catalog, or given for one run by a setting. Changes take effect at once.
//!
//! An account is a record of the catalog whose key is its name and whose value holds its two keys.

use std::collections::BTreeMap;
use std::sync::Arc;

use lazuli_azure::auth;
use lazuli_shardmap::catalog::{Catalog, Expected, kinds};
use lazuli_shardmap::record::{decode, encode};
use lazuli_store::{Error, KeyRange};
use tokio::sync::Mutex;

use crate::accounts::{ACCOUNTS_MAX, Account, KeySlot, PUBLISHED_NAME};
use crate::failure::{Failure, FailureReason, Result};
use crate::secret::Secret;

/// Where an account comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// In the catalog, by the record of this version.
    Catalog(u64),
    /// In the settings of this run.
    Setting,
    /// Nowhere: it is the published one.
    Published,
}

pub struct Registry {
    catalog: Arc<Catalog>,
    /// Also held while an account is changed, so that no two changes cross.
    accounts: Mutex<BTreeMap<String, (Account, Kept)>>,
    /// What the fronts check signatures with.
    signing: Arc<auth::Accounts>,
}

impl Registry {
    /// The accounts of this run. On an address that other machines can reach none may have a published key.
    pub async fn load(
        catalog: Arc<Catalog>,
        given: Option<Vec<Account>>,
        loopback: bool,
    ) -> Result<Self> {
        let accounts = match given {
            Some(given) => given.into_iter().map(|account| (account, Kept::Setting)).collect(),
            None => kept(&catalog, loopback).await?,
        };
        if !loopback {
            refuse_published(&accounts)?;
        }
        let signing = Arc::new(auth::Accounts::new());
        for (account, _) in &accounts {
            put_in_force(&signing, account)?;
        }
        let accounts = accounts.into_iter().map(|(a, kept)| (a.name.clone(), (a, kept)));
        Ok(Self { catalog, accounts: Mutex::new(accounts.collect()), signing })
    }

    /// Takes over what other nodes have changed. Accounts that were given by a setting stay as they are.
    pub async fn reload(&self) -> lazuli_store::Result<()> {
        let mut accounts = self.accounts.lock().await;
        if accounts.values().any(|(_, kept)| *kept == Kept::Setting) {
            return Ok(());
        }
        let mut found = read(&self.catalog).await?;
        let published = accounts.get(PUBLISHED_NAME).filter(|(_, it)| *it == Kept::Published);
        if let Some((account, _)) = published
            && found.iter().all(|(account, _)| account.name != PUBLISHED_NAME)
        {
            found.push((account.clone(), Kept::Published));
        }
        let found: BTreeMap<_, _> = found
            .into_iter()
            .map(|(account, kept)| (account.name.clone(), (account, kept)))
            .collect();
        for name in accounts.keys().filter(|name| !found.contains_key(*name)) {
            self.signing.remove(name);
        }
        for (name, (account, kept)) in &found {
            let is_known = accounts.get(name).is_some_and(|(_, known)| known == kept);
            if !is_known && let Err(error) = put_in_force(&self.signing, account) {
                tracing::error!(account = name, %error, "an account cannot be taken over");
            }
        }
        *accounts = found;
        Ok(())
    }

    /// What the fronts check signatures with.
    pub fn signing(&self) -> Arc<auth::Accounts> {
        self.signing.clone()
    }

    /// All accounts by name.
    pub async fn list(&self) -> Vec<(Account, Kept)> {
        self.accounts.lock().await.values().cloned().collect()
    }

    /// Makes an account with new keys.
    pub async fn create(&self, name: &str) -> Result<Account> {
        let mut accounts = self.accounts.lock().await;
        refuse_given(&accounts)?;
        let account = Account::create(name)
            .map_err(|fault| Failure::of(FailureReason::BadAccount, fault.0))?;
        if accounts.contains_key(name) {
            return Err(Failure::of(
                FailureReason::AccountExists,
                format!("there is an account {name}"),
            )
            .hint("to change its keys use `lazuli account rotate-key`"));
        }
        if accounts.len() >= ACCOUNTS_MAX {
            let message = format!("there are {ACCOUNTS_MAX} accounts, which is the most");
            return Err(Failure::of(FailureReason::TooManyAccounts, message));
        }
        self.write(&mut accounts, account, Expected::Nothing).await
    }

    /// Deletes an account. Requests signed with its keys are refused from now on. The published account is there without a
    /// record as long as the fronts listen on loopback only, so it cannot be deleted.
    pub async fn delete(&self, name: &str) -> Result<()> {
        let mut accounts = self.accounts.lock().await;
        refuse_given(&accounts)?;
        let Some((_, kept)) = accounts.get(name) else { return Err(not_found(name)) };
        let Kept::Catalog(version) = *kept else {
            let message = format!("{name} is the published account of development");
            return Err(Failure::of(FailureReason::AccountsGiven, message)
                .hint("it is served on loopback only; to serve others give accounts of your own"));
        };
        self.catalog
            .delete_record(kinds::ACCOUNT, name.to_owned(), Expected::Version(version))
            .await?;
        self.signing.remove(name);
        accounts.remove(name);
        Ok(())
    }

    /// Replaces one key of an account. Requests signed with the old one are refused from now on.
    pub async fn rotate(&self, name: &str, slot: KeySlot) -> Result<Account> {
        let mut accounts = self.accounts.lock().await;
        refuse_given(&accounts)?;
        let Some((account, kept)) = accounts.get(name) else { return Err(not_found(name)) };
        let expected = match kept {
            Kept::Catalog(version) => Expected::Version(*version),
            Kept::Published | Kept::Setting => Expected::Nothing,
        };
        let rotated = account
            .rotated(slot)
            .map_err(|fault| Failure::of(FailureReason::BadAccount, fault.0))?;
        self.write(&mut accounts, rotated, expected).await
    }

    async fn write(
        &self,
        accounts: &mut BTreeMap<String, (Account, Kept)>,
        account: Account,
        expected: Expected,
    ) -> Result<Account> {
        let key = account.name.clone();
        let value = encode(&record(&account));
        let version = self.catalog.put_record(kinds::ACCOUNT, key, value, expected).await?;
        put_in_force(&self.signing, &account)?;
        accounts.insert(account.name.clone(), (account.clone(), Kept::Catalog(version)));
        Ok(account)
    }
}

fn put_in_force(signing: &auth::Accounts, account: &Account) -> Result<()> {
    let keys =
        account.signing_keys().map_err(|fault| Failure::of(FailureReason::BadAccount, fault.0))?;
    signing.set(account.name.clone(), keys);
    Ok(())
}

/// The accounts of the catalog, and the published one while the fronts listen on loopback only.
async fn kept(catalog: &Catalog, loopback: bool) -> Result<Vec<(Account, Kept)>> {
    let mut accounts = read(catalog).await?;
    if loopback && accounts.iter().all(|(account, _)| account.name != PUBLISHED_NAME) {
        accounts.push((Account::published(), Kept::Published));
    }
    Ok(accounts)
}

async fn read(catalog: &Catalog) -> lazuli_store::Result<Vec<(Account, Kept)>> {
    let all = KeyRange::prefix("");
    let mut accounts = Vec::new();
    for row in catalog.scan_records(kinds::ACCOUNT, &all, ACCOUNTS_MAX).await? {
        let name = String::from_utf8(row.key.to_vec()).map_err(|_| {
            Error::corrupt("row-corrupt", "the name of an account in the catalog is not text")
        })?;
        let (key1, key2): (String, Option<String>) = decode(row.value)?;
        let account = Account { name, key1: Secret::new(key1), key2: key2.map(Secret::new) };
        accounts.push((account, Kept::Catalog(row.version)));
    }
    Ok(accounts)
}

fn record(account: &Account) -> (String, Option<String>) {
    let text = |key: &Secret| key.reveal().to_owned();
    (text(&account.key1), account.key2.as_ref().map(text))
}

fn refuse_published(accounts: &[(Account, Kept)]) -> Result<()> {
    let failure = if accounts.is_empty() {
        let message = format!(
            "the only account is {PUBLISHED_NAME}, whose key is published, \
             and the address can be reached from other machines"
        );
        Failure::new("published-key", message)
    } else if let Some((account, _)) = accounts.iter().find(|(one, _)| one.has_published_key()) {
        let message = format!(
            "account {} has a published key, and the address can be reached from other machines",
            account.name
        );
        Failure::new("published-key", message)
    } else {
        return Ok(());
    };
    Err(failure.hint(
        "serve on 127.0.0.1, give accounts with keys of your own in LAZULI_ACCOUNTS='name:key', or \
         serve on 127.0.0.1 once to run `lazuli account create NAME` or `lazuli account rotate-key`",
    ))
}

fn not_found(name: &str) -> Failure {
    let message = format!("there is no account {name}");
    Failure::of(FailureReason::AccountNotFound, message)
        .hint("`lazuli account list` lists those there are")
}

fn refuse_given(accounts: &BTreeMap<String, (Account, Kept)>) -> Result<()> {
    if accounts.values().any(|(_, kept)| *kept == Kept::Setting) {
        return Err(Failure::of(
            FailureReason::AccountsGiven,
            "the accounts of this run are given by a setting",
        )
        .hint("change LAZULI_ACCOUNTS and start again, or start without it"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use lazuli_store::mem::MemStore;

    use super::*;

    async fn catalog() -> Arc<Catalog> {
        let env = lazuli_env::real::env();
        Arc::new(Catalog::init(Arc::new(MemStore::new()), env).await.unwrap())
    }

    fn accepts(registry: &Registry, name: &str, key: &Secret) -> bool {
        let signature = auth::Key::from_base64(key.reveal()).unwrap().sign("text");
        registry.signing().get(name).is_some_and(|keys| keys.verify("text", &signature))
    }

    #[tokio::test]
    async fn the_published_account_is_there_on_loopback_alone() {
        let catalog = catalog().await;
        let registry = Registry::load(catalog.clone(), None, true).await.unwrap();
        assert!(accepts(&registry, PUBLISHED_NAME, &Account::published().key1));
        let refused = Registry::load(catalog.clone(), None, false).await.map(|_| ()).unwrap_err();
        assert_eq!(refused.code(), "published-key");
        assert!(refused.what_to_do().unwrap().contains("LAZULI_ACCOUNTS"));
        registry.create("mine").await.unwrap();
        let reachable = Registry::load(catalog, None, false).await.unwrap();
        let names: Vec<_> = reachable.list().await.into_iter().map(|(one, _)| one.name).collect();
        assert_eq!(names, ["mine"]);
    }

    #[tokio::test]
    async fn the_published_key_is_refused_under_any_name_and_in_any_place() {
        let catalog = catalog().await;
        let given = Account { name: "other".to_owned(), ..Account::published() };
        let refused = Registry::load(catalog.clone(), Some(vec![given]), false).await;
        assert_eq!(refused.map(|_| ()).unwrap_err().code(), "published-key");
        // Rotating the second key leaves the published first one in place.
        let registry = Registry::load(catalog.clone(), None, true).await.unwrap();
        registry.rotate(PUBLISHED_NAME, KeySlot::Second).await.unwrap();
        assert!(Registry::load(catalog.clone(), None, false).await.is_err());
        registry.rotate(PUBLISHED_NAME, KeySlot::First).await.unwrap();
        assert!(Registry::load(catalog, None, false).await.is_ok());
    }

    #[tokio::test]
    async fn a_rotated_key_takes_effect_at_once_and_lasts() {
        let catalog = catalog().await;
        let registry = Registry::load(catalog.clone(), None, true).await.unwrap();
        let old = registry.create("mine").await.unwrap();
        let new = registry.rotate("mine", KeySlot::First).await.unwrap();
        for registry in [&registry, &Registry::load(catalog, None, true).await.unwrap()] {
            assert!(!accepts(registry, "mine", &old.key1));
            assert!(accepts(registry, "mine", &new.key1));
            assert!(accepts(registry, "mine", &old.key2.clone().unwrap()));
        }
    }

    #[tokio::test]
    async fn a_deleted_account_is_refused_at_once_and_the_published_one_stays() {
        let catalog = catalog().await;
        let registry = Registry::load(catalog.clone(), None, true).await.unwrap();
        let made = registry.create("mine").await.unwrap();
        registry.delete("mine").await.unwrap();
        for registry in [&registry, &Registry::load(catalog, None, true).await.unwrap()] {
            assert!(!accepts(registry, "mine", &made.key1));
        }
        assert_eq!(registry.delete("mine").await.unwrap_err().code(), "account-not-found");
        assert_eq!(registry.delete(PUBLISHED_NAME).await.unwrap_err().code(), "accounts-given");
        assert!(accepts(&registry, PUBLISHED_NAME, &Account::published().key1));
        assert_ne!(registry.create("mine").await.unwrap().key1.reveal(), made.key1.reveal());
    }

    #[tokio::test]
    async fn what_another_node_changed_is_in_force_after_a_look() {
        let catalog = catalog().await;
        let (one, other) = (
            Registry::load(catalog.clone(), None, true).await.unwrap(),
            Registry::load(catalog.clone(), None, true).await.unwrap(),
        );
        let made = one.create("mine").await.unwrap();
        other.reload().await.unwrap();
        assert!(accepts(&other, "mine", &made.key1));
        assert!(accepts(&other, PUBLISHED_NAME, &Account::published().key1));
        let rotated = one.rotate("mine", KeySlot::First).await.unwrap();
        let published = one.rotate(PUBLISHED_NAME, KeySlot::First).await.unwrap();
        other.reload().await.unwrap();
        assert!(!accepts(&other, "mine", &made.key1) && accepts(&other, "mine", &rotated.key1));
        assert!(!accepts(&other, PUBLISHED_NAME, &Account::published().key1));
        assert!(accepts(&other, PUBLISHED_NAME, &published.key1));
        catalog.delete_record(kinds::ACCOUNT, "mine", Expected::Anything).await.unwrap();
        other.reload().await.unwrap();
        assert!(!other.signing().contains("mine"));
    }

    #[tokio::test]
    async fn accounts_given_by_a_setting_replace_all_others_and_stay_as_they_are() {
        let catalog = catalog().await;
        Registry::load(catalog.clone(), None, true).await.unwrap().create("kept").await.unwrap();
        let given = Some(vec![Account::create("given").unwrap()]);
        let registry = Registry::load(catalog, given, false).await.unwrap();
        assert!(registry.signing().contains("given"));
        assert!(!registry.signing().contains("kept"));
        assert!(!registry.signing().contains(PUBLISHED_NAME));
        assert_eq!(registry.create("more").await.unwrap_err().code(), "accounts-given");
        let refused = registry.rotate("given", KeySlot::First).await.unwrap_err();
        assert_eq!(refused.code(), "accounts-given");
    }

    #[tokio::test]
    async fn names_are_unique_and_unknown_ones_are_refused() {
        let registry = Registry::load(catalog().await, None, true).await.unwrap();
        registry.create("mine").await.unwrap();
        assert_eq!(registry.create("mine").await.unwrap_err().code(), "account-exists");
        assert_eq!(registry.create(PUBLISHED_NAME).await.unwrap_err().code(), "account-exists");
        assert_eq!(registry.create("Not A Name").await.unwrap_err().code(), "bad-account");
        let refused = registry.rotate("none", KeySlot::First).await.unwrap_err();
        assert_eq!(refused.code(), "account-not-found");
    }
}
