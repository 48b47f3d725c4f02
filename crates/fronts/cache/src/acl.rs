//! Who may do what.

use std::sync::Arc;

use lazuli_resp::Args;

use crate::command::Command;
use crate::failure::Failure;
use crate::server::Server;

/// A user, as it was when the client said who it is.
#[derive(Debug)]
pub(crate) struct User {
    pub(crate) name: String,
}

#[derive(Default)]
pub(crate) struct Acl {}

impl Acl {
    /// The user of clients that need not say who they are.
    pub(crate) fn open_user(&self) -> Option<Arc<User>> {
        Some(Arc::new(User { name: "default".into() }))
    }
}

impl Server {
    /// The user of this name, if the password is right.
    pub(crate) fn authenticate(&self, name: &str, password: &[u8]) -> Option<Arc<User>> {
        let is_admitted =
            self.gate.admits(name, password) || (name == "default" && self.gate.is_open());
        is_admitted.then(|| Arc::new(User { name: name.to_owned() }))
    }

    pub(crate) fn needs_no_password(&self) -> bool {
        self.gate.is_open()
    }

    /// Refuses a command that the operator has turned off, as one that there is not.
    pub(crate) fn check_access(
        &self,
        command: &'static Command,
        args: Args<'_>,
    ) -> Result<(), Failure> {
        let is_off = |name: &str| self.disabled.contains(name);
        let parent = command.name.split('|').next().unwrap_or_default();
        match !self.disabled.is_empty() && (is_off(command.name) || is_off(parent)) {
            true => Err(crate::dispatch::unknown(args)),
            false => Ok(()),
        }
    }
}
