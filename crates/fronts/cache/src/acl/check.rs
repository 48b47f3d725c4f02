//! The checks that commands go through: is it turned off, and may this user run it on these keys and channels.

use std::sync::Arc;

use lazuli_resp::Args;

use super::log::{Incident, Reason};
use super::permissions::Denied;
use super::user::User;
use crate::clients::Client;
use crate::command::Command;
use crate::failure::Failure;
use crate::server::Server;
use crate::session::Session;

/// Where a command comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Client,
    Transaction,
    /// The end of a transaction: rules may have changed since its commands were taken.
    Exec,
    Script,
}

impl Place {
    fn name(self) -> &'static str {
        match self {
            Self::Client => "toplevel",
            Self::Transaction | Self::Exec => "multi",
            Self::Script => "lua",
        }
    }

    fn refusal(self, denied: Denied, command: &Command) -> Failure {
        let what = |texts: [&'static str; 3]| match denied {
            Denied::Command => texts[0],
            Denied::Key(_) => texts[1],
            Denied::Channel(_) => texts[2],
        };
        match (self, denied) {
            (Self::Client | Self::Transaction, Denied::Command) => Failure::new(format!(
                "NOPERM this user has no permissions to run the '{}' command",
                command.name
            )),
            (Self::Client | Self::Transaction, _) => Failure::of(what([
                "",
                "NOPERM this user has no permissions to access one of the keys used as arguments",
                "NOPERM this user has no permissions to access one of the channels used as arguments",
            ])),
            (Self::Exec, _) => {
                let reason = what([
                    "no permission to execute the command or subcommand",
                    "no permission to touch the specified keys",
                    "no permission to access one of the channels used as arguments to the command",
                ]);
                Failure::new(format!(
                    "NOPERM ACLs rules changed between the moment the transaction was accumulated \
                     and the EXEC call. This command is not allowed for the following reason: \
                     {reason}"
                ))
            }
            (Self::Script, _) => Failure::of(what([
                "ERR The user executing the script can't run this command or subcommand",
                "ERR The user executing the script can't access at least one of the keys mentioned \
                 in the command arguments",
                "ERR The user executing the script can't publish to the channel mentioned in the \
                 command",
            ])),
        }
    }
}

impl Server {
    /// The user of this name, if the password is right.
    pub(crate) fn authenticate(&self, name: &str, password: &[u8]) -> Option<Arc<User>> {
        let Some(user) = self.acl.user(name) else {
            let is_admitted = self.gate.admits(name, password);
            return is_admitted.then(|| Arc::new(User::of_account(name)));
        };
        let rights = user.rights();
        let is_right = self.is_nopass(&user)
            | rights.has_password(password)
            | self.gate.admits(name, password);
        (rights.is_on && is_right).then_some(user)
    }

    /// Whether any password will do for a user.
    pub(crate) fn is_nopass(&self, user: &User) -> bool {
        let rights = user.rights();
        rights.is_nopass || (rights.is_by_gate && self.gate.is_open())
    }

    /// The user of clients that need not say who they are.
    pub(crate) fn open_user(&self) -> Option<Arc<User>> {
        let user = self.acl.user(super::DEFAULT)?;
        (user.rights().is_on && self.is_nopass(&user)).then_some(user)
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

    /// Refuses a command that the user of a connection may not run on these keys and channels.
    pub(crate) fn check_user(
        &self,
        session: &Session,
        command: &'static Command,
        args: Args<'_>,
        place: Place,
    ) -> Result<(), Failure> {
        let Some(user) = session.user.as_ref().filter(|it| !it.may_all()) else { return Ok(()) };
        let Err(denied) = user.rights().check(command, args) else { return Ok(()) };
        let (reason, object) = match denied {
            Denied::Command => (Reason::Command, command.name.as_bytes()),
            Denied::Key(at) => (Reason::Key, args.at(at)),
            Denied::Channel(at) => (Reason::Channel, args.at(at)),
        };
        self.report(&session.client, &user.name, reason, place, object);
        Err(place.refusal(denied, command))
    }

    /// Puts something that was refused into the log.
    pub(crate) fn report(
        &self,
        client: &Client,
        user: &str,
        reason: Reason,
        place: Place,
        object: &[u8],
    ) {
        let at_ms = self.keyspace.now_ms();
        self.acl.log().add(Incident {
            count: 1,
            reason,
            context: place.name(),
            object: object.to_vec(),
            user: user.to_owned(),
            at_ms,
            client: crate::commands::client::line(client, at_ms),
        });
    }
}
