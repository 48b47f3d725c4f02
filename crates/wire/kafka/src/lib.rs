//! The bytes of the Kafka protocol: primitive types as requests and responses have them, and record batches.
//!
//! It is written by hand (`docs/decisions/0187-kafka-by-hand.md`): a reader that reserves memory by what a client claims
//! could be made to reserve more than there is. Here every count is compared with the bytes that have come.

pub mod batch;
mod compress;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod reader;
mod writer;

pub use compress::decompress;
pub use reader::{Malformed, Reader};
pub use writer::Writer;
