//! Connections from the outside: a plain client on one side, a small container on the other.

mod broker;
mod hostile;
mod links;
