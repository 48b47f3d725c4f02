//! Stored procedures, triggers and user-defined functions in JavaScript.
//!
//! - [`Udf`] is a function of the query language: compiled once for a query, called for each row. [`Functions`] are all
//!   those of a container, as a query takes them.
//! - [`Run`] is one run of a procedure or a trigger as a sequence of steps: the script asks for an operation on its
//!   container ([`Call`]), somebody performs it in the script's transaction, the script goes on with the [`Answer`].
//! - [`Scripts`] does that on threads, with a [`Host`] that performs the calls.
//!
//! What must hold:
//! - A script reaches nothing but its language and its host: no files, no network, no modules, no other script.
//! - A script ends: at its deadline, at the limit of its memory, or by itself (`limits.rs`).
//! - A script that fails has changed nothing: the caller commits only what a run returned as done.

pub mod call;
mod error;
mod functions;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod limits;
mod run;
mod sandbox;
mod thread;
mod udf;

pub use call::{Answer, Call, Host, IndexAction, Link, Page, Write};
pub use error::{Exception, ScriptError};
pub use functions::Functions;
pub use limits::Limits;
pub use run::{Input, Message, Outcome, Role, Run, Step, TriggerOperation};
pub use thread::Scripts;
pub use udf::Udf;

/// Whether a text can be a script: it compiles, and holds a function.
pub fn check(source: &str, limits: &Limits) -> Result<(), ScriptError> {
    sandbox::Sandbox::new(limits)?.compile(source)
}
