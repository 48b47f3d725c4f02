//! What clients do while the world goes wrong, and what must hold afterwards.

pub mod store_crash;
