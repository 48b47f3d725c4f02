//! Connections to the shards: `connection` speaks the protocol as a client, `login` begins a session, `tls` encrypts it,
//! `pool` keeps sessions for the next statement.

mod connection;
mod login;
mod pool;
mod tls;

pub(crate) use connection::{Connection, Ended, foreign_error, statement_name};
pub(crate) use pool::{Canceller, Lease, Pool, Pools};
