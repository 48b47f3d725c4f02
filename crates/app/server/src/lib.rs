//! The server: settings, wiring of stores, catalog, engine and fronts, listeners, accounts, and the admin API.
//!
//! Nothing here decides what a request means: fronts do. This crate brings the parts together, in one visible order
//! (`start`), and takes them apart again (`stop`).

pub mod accounts;
pub mod failure;
pub mod folder;
pub mod logging;
pub mod secret;
pub mod settings;
pub mod token;
