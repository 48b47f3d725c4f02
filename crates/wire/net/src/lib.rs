//! Listening for any protocol: accepting connections within limits, TLS, memory in flight, metrics, and the stop.
//!
//! A front is a [`Protocol`] on a [`Listener`]: the listener accepts, limits, counts and stops; the protocol serves one
//! connection until its end. HTTP is one protocol among others and stands in a crate above this one.

pub mod addresses;
pub mod budget;
pub mod listener;
pub mod metrics;
mod recent;
pub mod sheet;
mod stop;
pub mod stream;
pub mod tls;

pub use addresses::AddressRange;
pub use budget::{Budget, Lease, NoRoom};
pub use listener::{BoxFuture, Connection, Limits, Listener, Protocol};
pub use metrics::{Counts, Metrics, Outcome, quantile_s};
pub use recent::{Grain, STEP_S, Step};
pub use sheet::{Cell, Section, SheetMaker};
pub use stop::{Stop, Stopper, stopper};
pub use stream::Stream;
pub use tls::{CertificatePem, Tls, TlsError, self_signed};
