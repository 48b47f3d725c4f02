//! Who may do what: the users, their rules (`rules`, `permissions`), and the log of what was refused (`log`).
//!
//! An access key of an account is a password too: of the user who has the account's name, and of `default`. Accounts for which
//! there is no user of this name may do everything. Users are kept in the store (`Acl::keep`), whatever becomes of the keys.

mod check;
mod log;
mod permissions;
mod rules;
mod user;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use lazuli_keyspace::UserShelf;
use tokio::sync::Notify;

pub(crate) use check::Place;
pub(crate) use log::Reason;
pub(crate) use permissions::Permissions;
pub(crate) use user::{Rights, User, hex};

use crate::failure::Failure;
use crate::limits::{USER_BYTES_MAX, USERS_MAX};
use log::Log;

/// The user of clients that do not name one.
pub(crate) const DEFAULT: &str = "default";
/// How long to wait after the store has refused to write.
const RETRY: Duration = Duration::from_millis(200);

pub(crate) struct Acl {
    users: RwLock<BTreeMap<String, Arc<User>>>,
    log: Mutex<Log>,
    keeping: Keeping,
}

/// What of the users is not in the store yet.
struct Keeping {
    shelf: Option<Arc<UserShelf>>,
    changed: Mutex<BTreeSet<String>>,
    /// How many changes there were, and how many of them are in the store.
    made: AtomicU64,
    kept: AtomicU64,
    wanted: Notify,
    has_kept: Notify,
}

impl Acl {
    /// The default user, and the users that the store has.
    pub(crate) fn new(shelf: Option<Arc<UserShelf>>, kept: &[(String, String)]) -> Self {
        let mut users = BTreeMap::from([(DEFAULT.to_owned(), Arc::new(User::first()))]);
        for (name, text) in kept {
            match rules::parse(text) {
                Ok(rights) => drop(users.insert(name.clone(), Arc::new(User::new(name, rights)))),
                // It may name a command that is gone. A user who may do nothing is the safe reading.
                Err(_) => {
                    tracing::error!(user = %name, "the rules of a user of the cache cannot be read");
                    users.insert(name.clone(), Arc::new(User::new(name, Rights::default())));
                }
            }
        }
        let keeping = Keeping {
            shelf,
            changed: Mutex::default(),
            made: AtomicU64::new(0),
            kept: AtomicU64::new(0),
            wanted: Notify::new(),
            has_kept: Notify::new(),
        };
        Self { users: RwLock::new(users), log: Mutex::default(), keeping }
    }

    pub(crate) fn users(&self) -> RwLockReadGuard<'_, BTreeMap<String, Arc<User>>> {
        self.users.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn user(&self, name: &str) -> Option<Arc<User>> {
        self.users().get(name).cloned()
    }

    pub(crate) fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Applies rules to a user, who is made if there is none: all of them or none. The number of the change.
    pub(crate) fn set(&self, name: &str, modifiers: &[String]) -> Result<u64, Failure> {
        let mut users = self.users.write().unwrap_or_else(PoisonError::into_inner);
        let before = users.get(name).cloned();
        if before.is_none() && users.len() >= USERS_MAX {
            return Err(Failure::of("ERR there are too many users"));
        }
        let mut rights = before.as_ref().map_or_else(Rights::default, |it| (*it.rights()).clone());
        rules::apply(&mut rights, modifiers)?;
        if name.len() + rights.text().len() > USER_BYTES_MAX {
            return Err(Failure::of("ERR the rules of a user may have up to 64 KiB"));
        }
        match before {
            // Clients that are connected as this user hold it: they are bound by the new rules at once.
            Some(user) => user.set(rights),
            None => drop(users.insert(name.to_owned(), Arc::new(User::new(name, rights)))),
        }
        Ok(self.keeping.note(name))
    }

    /// Deletes a user; the number of the change, or none if there is no such user.
    pub(crate) fn delete(&self, name: &str) -> Option<u64> {
        let mut users = self.users.write().unwrap_or_else(PoisonError::into_inner);
        users.remove(name)?;
        Some(self.keeping.note(name))
    }

    /// Waits until so many changes are in the store.
    pub(crate) async fn kept(&self, change: u64) {
        let keeping = &self.keeping;
        loop {
            let rings = keeping.has_kept.notified();
            tokio::pin!(rings);
            rings.as_mut().enable();
            if keeping.shelf.is_none() || keeping.kept.load(Ordering::Acquire) >= change {
                return;
            }
            rings.await;
        }
    }

    /// Writes changed users to the store, again and again; never ends.
    pub(crate) async fn keep(&self) {
        let Some(shelf) = &self.keeping.shelf else { return std::future::pending().await };
        loop {
            self.keeping.wanted.notified().await;
            let (names, made) = self.keeping.take();
            for name in names {
                loop {
                    let text = self.user(&name).map(|it| it.rights().text());
                    match shelf.write(&name, text.as_deref()).await {
                        Ok(()) => break,
                        Err(_error) => tokio::time::sleep(RETRY).await,
                    }
                }
            }
            self.keeping.kept.store(made, Ordering::Release);
            self.keeping.has_kept.notify_waiters();
        }
    }
}

impl Keeping {
    fn changed(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A user has changed: its number among all changes.
    fn note(&self, name: &str) -> u64 {
        let mut changed = self.changed();
        if self.shelf.is_some() {
            changed.insert(name.to_owned());
        }
        let made = self.made.fetch_add(1, Ordering::Relaxed) + 1;
        self.wanted.notify_one();
        made
    }

    fn take(&self) -> (BTreeSet<String>, u64) {
        let mut changed = self.changed();
        (std::mem::take(&mut *changed), self.made.load(Ordering::Relaxed))
    }
}
