//! Checks of a cluster as a whole, independent of the workload.

pub mod bus;
pub mod deliveries;
pub mod fsck;
pub mod lists;
pub mod tiles;
