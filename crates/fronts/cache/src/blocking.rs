//! Clients that wait for keys, and how they are served.
//!
//! Whoever changes a key that clients wait for runs their commands for them before anybody else can use the key: the one that
//! has waited longest first, as the service does it. A client that needs a key of another stripe is served right after the
//! locks are released, under those that it needs.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lazuli_keyspace::{Space, slot_of};
use lazuli_resp::{OwnedArgs, Reply};
use tokio::sync::Notify;

use crate::acl::User;
use crate::call::{After, Block, Call, Null};
use crate::clients::Client;
use crate::command::Command;
use crate::failure::Failure;
use crate::server::Server;
use crate::session::Session;

/// One client that waits.
pub(crate) struct Waiter {
    pub(crate) client: Arc<Client>,
    pub(crate) command: &'static Command,
    pub(crate) args: OwnedArgs,
    pub(crate) keys: Vec<Box<[u8]>>,
    pub(crate) database: usize,
    pub(crate) is_resp3: bool,
    pub(crate) user: Option<Arc<User>>,
    pub(crate) on_timeout: Null,
    /// Held while its command is run, so that its time cannot end meanwhile.
    state: Mutex<State>,
    served: Notify,
}

enum State {
    Waiting,
    Answered(Vec<u8>),
    Ended,
}

impl Waiter {
    pub(crate) fn new(session: &Session, command: &'static Command, block: Block) -> Self {
        Self {
            client: session.client.clone(),
            command,
            args: block.args,
            keys: block.keys,
            database: session.database,
            is_resp3: session.is_resp3,
            user: session.user.clone(),
            on_timeout: block.on_timeout,
            state: Mutex::new(State::Waiting),
            served: Notify::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the waiting: its reply, if it has been served.
    pub(crate) fn end(&self) -> Option<Vec<u8>> {
        match std::mem::replace(&mut *self.state(), State::Ended) {
            State::Answered(reply) => Some(reply),
            State::Waiting | State::Ended => None,
        }
    }

    pub(crate) async fn served(&self) {
        self.served.notified().await;
    }

    /// The slots of everything that it may use.
    fn slots(&self) -> Vec<u16> {
        let mut slots = Vec::new();
        let args = self.args.args();
        crate::keys::visit(self.command, args, |at, _| slots.push(slot_of(args.at(at))));
        slots
    }
}

/// All who wait, by the ids of the clients.
#[derive(Default)]
pub(crate) struct Waiters {
    all: Mutex<HashMap<u64, Arc<Waiter>>>,
}

impl Waiters {
    fn all(&self) -> MutexGuard<'_, HashMap<u64, Arc<Waiter>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A client begins to wait. The stripes of its keys must be locked.
    pub(crate) fn add(&self, space: &mut Space<'_>, waiter: Arc<Waiter>) {
        let id = waiter.client.id;
        for key in &waiter.keys {
            space.wait_for(key, id);
        }
        self.all().insert(id, waiter);
    }

    pub(crate) fn remove(&self, id: u64) {
        self.all().remove(&id);
    }

    pub(crate) fn count(&self) -> usize {
        self.all().len()
    }

    fn get(&self, id: u64) -> Option<Arc<Waiter>> {
        self.all().get(&id).cloned()
    }

    /// Ends the waiting of all clients, because others write from now on.
    pub(crate) fn interrupt(&self) {
        let ids: Vec<u64> = self.all().keys().copied().collect();
        for id in ids {
            self.answer(id, |_, reply| {
                reply.error(
                    "UNBLOCKED force unblock from blocking operation, instance state changed \
                     (master -> replica?)",
                );
            });
        }
    }

    /// Ends the waiting of a client with its time-out, or with an error. False if it did not wait.
    pub(crate) fn unblock(&self, id: u64, with_error: bool) -> bool {
        self.answer(id, |waiter, reply| match with_error {
            true => reply.error("UNBLOCKED client unblocked via CLIENT UNBLOCK"),
            false => waiter.on_timeout.write(reply),
        })
    }

    /// Ends the waiting of a client with a reply. False if it did not wait.
    fn answer(&self, id: u64, write: impl FnOnce(&Waiter, &mut Reply)) -> bool {
        let Some(waiter) = self.get(id) else { return false };
        let mut state = waiter.state();
        if !matches!(*state, State::Waiting) {
            return false;
        }
        let mut reply = Reply::new(waiter.is_resp3);
        write(&waiter, &mut reply);
        *state = State::Answered(reply.bytes);
        waiter.served.notify_one();
        true
    }
}

impl Server {
    /// Ends a command or transaction: tells of its events, serves those who waited for its keys, and releases the locks.
    pub(crate) fn settle(self: &Arc<Self>, mut space: Space<'_>) {
        let mut later: Vec<Arc<Waiter>> = Vec::new();
        loop {
            let effects = space.take_effects();
            self.tell(&effects);
            if effects.ready.is_empty() {
                break;
            }
            let database = space.database;
            for (number, key) in effects.ready {
                space.database = number;
                for id in space.waiting_for(&key) {
                    let Some(waiter) = self.waiters.get(id) else { continue };
                    if waiter.slots().iter().all(|slot| space.holds(*slot)) {
                        self.serve(&waiter, &mut space);
                    } else {
                        later.push(waiter);
                    }
                }
            }
            space.database = database;
        }
        space.finish();
        for waiter in later {
            let now_ms = self.keyspace.now_ms();
            let slots = waiter.slots().into_iter();
            let mut space = self.keyspace.space_of_slots(waiter.database, now_ms, slots);
            self.serve(&waiter, &mut space);
            self.settle(space);
        }
    }

    /// Runs the command of a client that waits. It goes on waiting if the command still finds nothing.
    fn serve(self: &Arc<Self>, waiter: &Arc<Waiter>, space: &mut Space<'_>) {
        let mut state = waiter.state();
        if !matches!(*state, State::Waiting) {
            return;
        }
        let database = std::mem::replace(&mut space.database, waiter.database);
        let by = std::mem::replace(&mut space.client, waiter.client.id);
        let mut session = Session::new(waiter.client.clone(), waiter.client.local);
        (session.database, session.is_resp3) = (waiter.database, waiter.is_resp3);
        session.user = waiter.user.clone();
        let mut out = Reply::new(waiter.is_resp3);
        let mut call = Call {
            args: waiter.args.args(),
            out: &mut out,
            space,
            session: &mut session,
            server: self,
            command: waiter.command,
            may_block: true,
            after: After::Nothing,
        };
        let result = waiter.command.run.map_or(Ok(()), |run| run(&mut call));
        // A value of another type wakes nobody, except a reader of a group.
        let is_wrong = result == Err(Failure::WRONG_TYPE) && waiter.command.name != "xreadgroup";
        let is_blocked = matches!(call.after, After::Block(_)) && result.is_ok();
        let is_waiting = is_blocked || is_wrong;
        if !is_waiting && result.is_ok() {
            self.remember_reads(&session, waiter.command, waiter.args.args(), space);
        }
        if !is_waiting {
            self.waiters.remove(waiter.client.id);
            if let Err(failure) = result {
                out.bytes.clear();
                out.error(&failure.0);
            }
            for key in &waiter.keys {
                if space.holds(slot_of(key)) {
                    space.wait_no_more(key, waiter.client.id);
                }
            }
            *state = State::Answered(out.bytes);
            waiter.served.notify_one();
        }
        (space.database, space.client) = (database, by);
    }
}
