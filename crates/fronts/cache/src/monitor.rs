//! MONITOR: clients that see every command.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lazuli_resp::Args;

use crate::clients::Client;

/// In the place of an argument that nobody may see.
pub(crate) const REDACTED: &[u8] = b"(redacted)";

/// Whether an argument of a command may be a password.
pub(crate) fn is_secret(args: Args<'_>, at: usize) -> bool {
    let is_setuser = || args.is(0, "acl") && args.is(1, "setuser");
    (at > 0 && args.is(0, "auth"))
        || (at > 1 && args.is(0, "hello") && (2..at).any(|it| args.is(it, "auth")))
        || (at > 2 && is_setuser())
}

#[derive(Default)]
pub(crate) struct Monitors {
    all: Mutex<BTreeMap<u64, Arc<Client>>>,
    is_any: AtomicBool,
}

impl Monitors {
    fn all(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Client>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, client: &Arc<Client>) {
        self.all().insert(client.id, client.clone());
        self.is_any.store(true, Ordering::Relaxed);
    }

    pub(crate) fn remove(&self, client: u64) {
        if self.is_any.load(Ordering::Relaxed) {
            let mut all = self.all();
            all.remove(&client);
            self.is_any.store(!all.is_empty(), Ordering::Relaxed);
        }
    }

    /// Shows a command to all of them.
    #[inline]
    pub(crate) fn show(&self, client: &Client, database: usize, now_ms: u64, args: Args<'_>) {
        if !self.is_any.load(Ordering::Relaxed) {
            return;
        }
        let (seconds, micros) = (now_ms / 1000, now_ms % 1000 * 1000);
        let mut line = format!("+{seconds}.{micros:06} [{database} {}]", client.peer);
        for (at, argument) in args.iter().enumerate() {
            let argument = if is_secret(args, at) { REDACTED } else { argument };
            line.push_str(" \"");
            for byte in argument {
                let _ = match byte {
                    b'"' | b'\\' => write!(line, "\\{}", *byte as char),
                    b'\n' => write!(line, "\\n"),
                    b'\r' => write!(line, "\\r"),
                    b'\t' => write!(line, "\\t"),
                    0x20..=0x7e => write!(line, "{}", *byte as char),
                    _ => write!(line, "\\x{byte:02x}"),
                };
            }
            line.push('"');
        }
        line.push_str("\r\n");
        self.all().values().for_each(|it| it.send(|out| out.extend_from_slice(line.as_bytes())));
    }
}
