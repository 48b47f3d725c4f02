//! Messages of PostgreSQL's protocol, version 3, as bytes: what clients send and servers answer, for both sides, and the
//! server's side of SCRAM.
//!
//! Nothing here reads a socket. `frame` cuts a stream into messages, `startup` reads what comes before them, `client` and
//! `server` read and write the messages of either side, `scram` checks passwords without knowing them.

pub mod client;
pub mod frame;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod limits;
pub mod reader;
pub mod scram;
pub mod server;
pub mod startup;

pub use client::{Bind, ClientMessage, Parse, Target};
pub use frame::{Frame, Frames};
pub use reader::{Malformed, Reader};
pub use server::{ErrorFields, Field, TxStatus};
pub use startup::{Startup, StartupPacket};
