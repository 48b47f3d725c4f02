//! One user: whether it is on, its passwords, and what it may do.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use lazuli_resp::Args;
use sha2::{Digest as _, Sha256};

use super::permissions::{Denied, Permissions};
use crate::command::Command;

/// A password as it is kept: its SHA-256.
pub(crate) type Digest = [u8; 32];

pub(crate) fn digest(password: &[u8]) -> Digest {
    Sha256::digest(password).into()
}

/// What a user is and may do, as rules say it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rights {
    pub(crate) is_on: bool,
    /// Any password will do.
    pub(crate) is_nopass: bool,
    /// Whether no rule has said anything about the passwords of the default user: then the access keys of accounts, and
    /// whether they are the published ones, decide alone.
    pub(crate) is_by_gate: bool,
    /// Whether payloads of RESTORE are checked, as rules have said. They always are.
    pub(crate) sanitizes: Option<bool>,
    pub(crate) passwords: Vec<Digest>,
    pub(crate) own: Permissions,
    pub(crate) selectors: Vec<Permissions>,
}

impl Rights {
    /// What the default user may at first.
    fn all() -> Self {
        Self { is_on: true, is_by_gate: true, own: Permissions::all(), ..Self::default() }
    }

    /// Whether a password is one of the user's, in a time that does not depend on how nearly, nor on which.
    pub(crate) fn has_password(&self, password: &[u8]) -> bool {
        let given = digest(password);
        let differ = |kept: &Digest| kept.iter().zip(given).fold(0, |all, (a, b)| all | (a ^ b));
        self.passwords.iter().fold(false, |found, kept| found | (differ(kept) == 0))
    }

    /// Whether a command is allowed; otherwise how far it got with the rules that go farthest.
    pub(crate) fn check(&self, command: &'static Command, args: Args<'_>) -> Result<(), Denied> {
        let mut farthest = Denied::Command;
        for permissions in std::iter::once(&self.own).chain(&self.selectors) {
            match permissions.check(command, args) {
                Ok(()) => return Ok(()),
                Err(denied) => farthest = farthest.max(denied),
            }
        }
        Err(farthest)
    }

    /// Whether one set of permissions allows everything.
    pub(crate) fn allows_all(&self) -> bool {
        self.own.allows_all()
    }

    /// Whether a set of permissions allows to read every key, as sorting by patterns needs.
    pub(crate) fn reads_all_keys(&self) -> bool {
        std::iter::once(&self.own).chain(&self.selectors).any(Permissions::reads_all_keys)
    }

    pub(crate) fn hears(&self, channel: &[u8], is_pattern: bool) -> bool {
        let all = std::iter::once(&self.own).chain(&self.selectors);
        all.into_iter().any(|it| it.has_channel(channel, is_pattern))
    }

    /// The words for what is not about commands, keys and channels.
    pub(crate) fn flags(&self, is_nopass: bool) -> Vec<&'static str> {
        let mut flags = vec![if self.is_on { "on" } else { "off" }];
        if is_nopass {
            flags.push("nopass");
        }
        match self.sanitizes {
            Some(true) => flags.push("sanitize-payload"),
            Some(false) => flags.push("skip-sanitize-payload"),
            None => {}
        }
        flags
    }

    /// The rules that make this user, as ACL LIST shows them.
    pub(crate) fn describe(&self, is_nopass: bool) -> String {
        let mut words: Vec<String> = self.flags(is_nopass).into_iter().map(str::to_owned).collect();
        words.extend(self.passwords.iter().map(|it| format!("#{}", hex(it))));
        words.push(self.own.describe());
        words.extend(self.selectors.iter().map(|it| format!("({})", it.describe())));
        words.join(" ")
    }

    /// The same for the store.
    pub(crate) fn text(&self) -> String {
        let gate = if self.is_by_gate { super::rules::BY_GATE } else { "" };
        format!("{gate} {}", self.describe(self.is_nopass)).trim().to_owned()
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A user. Clients that are connected as it hold it, so that they are bound by its rules as they are.
#[derive(Debug)]
pub(crate) struct User {
    pub(crate) name: String,
    rights: RwLock<Arc<Rights>>,
    may_all: AtomicBool,
}

impl User {
    pub(crate) fn new(name: &str, rights: Rights) -> Self {
        let may_all = AtomicBool::new(rights.allows_all());
        Self { name: name.to_owned(), rights: RwLock::new(Arc::new(rights)), may_all }
    }

    /// The default user as it is before any rule.
    pub(crate) fn first() -> Self {
        Self::new(super::DEFAULT, Rights::all())
    }

    /// Whoever has an access key, where no rules say anything about an account's name.
    pub(crate) fn of_account(name: &str) -> Self {
        Self::new(name, Rights::all())
    }

    pub(crate) fn rights(&self) -> Arc<Rights> {
        self.rights.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set(&self, rights: Rights) {
        let mut held = self.rights.write().unwrap_or_else(PoisonError::into_inner);
        self.may_all.store(rights.allows_all(), Ordering::Relaxed);
        *held = Arc::new(rights);
    }

    /// Whether nothing needs to be looked at.
    #[inline]
    pub(crate) fn may_all(&self) -> bool {
        self.may_all.load(Ordering::Relaxed)
    }
}
