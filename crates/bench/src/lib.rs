//! Benchmarks of our own parts. Each has a module here and a program of the same name in `bin/`; each also runs tiny
//! in the tests, so that none of them rots.

pub mod compare;
pub mod shardmap;
pub mod store;
