//! What must hold of a cluster as a whole, whatever ran on it.

pub mod deliveries;
pub mod fsck;
pub mod tiles;
