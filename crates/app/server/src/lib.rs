//! The server: settings, wiring of stores, catalog, engine and fronts, listeners, accounts, and the admin API.
//!
//! Nothing here decides what a request means: fronts do. This crate brings the parts together, in one visible order
//! (`start`), and takes them apart again.

pub mod accounts;
mod admin;
mod admission;
mod advice;
mod audit;
mod balance;
pub mod behind;
mod block_check;
mod block_folder;
mod block_home;
mod bus_config;
mod cache;
mod capture;
pub mod catalog_move;
mod core;
pub mod endpoints;
pub mod failure;
mod fleet;
mod floors;
pub mod folder;
mod folders;
pub mod fronts;
pub mod fsck;
mod gates;
mod health;
mod home;
mod host;
mod indexing;
mod keeper;
mod lineage;
pub mod logging;
mod metrics;
mod owner;
pub mod rebuild;
pub mod registry;
mod restores;
mod running;
mod sampler;
pub mod secret;
mod serve;
pub mod settings;
mod signals;
mod start;
mod system;
mod tls;
pub mod token;

pub use serve::serve;
pub use start::Server;
