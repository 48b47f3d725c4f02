//! The bytes of large blobs in an object store, by the crate `object_store`: S3, Azure Blob storage, or anything that speaks
//! one of their protocols, such as the Blobs of another Lazuli.
//!
//! Reading order: `settings` (where the objects are, and where the key is), `connect` (HTTP and TLS), `remote` (what the blocks
//! call).

mod connect;
pub mod fuzzing;
mod limits;
mod remote;
mod settings;

pub use remote::RemoteObjects;
pub use settings::{Key, Service, Settings};
