//! Benchmarks. Each has a module here and a program of the same name in `bin/`. Those of our own parts also run tiny in
//! the tests, so that none of them rots; `compare` needs the emulator, which the tests here must do without.

pub mod blocks;
pub mod compare;
pub mod queues;
pub mod shardmap;
pub mod store;
