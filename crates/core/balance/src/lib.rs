//! The balancer as a pure planner: from figures of shards and partitions to moves, splits and merges.
//!
//! [`plan`] turns a [`Fleet`] into actions and their predicted result. [`Schedule`] returns the actions that may
//! begin now, within the limits of [`Settings`]. This crate carries nothing out and uses neither clock nor
//! randomness: the same fleet gives the same plan, so that it can be printed, tested, and run in virtual time
//! (`lazuli simulate`). `docs/balancing.md` describes it for operators.

mod apply;
mod board;
mod divide;
#[cfg(test)]
mod draw;
mod even;
mod fleet;
mod forced;
mod join;
mod plan;
#[cfg(test)]
mod properties;
mod residents;
mod schedule;
mod settings;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod whole_tests;

pub use fleet::{Fleet, Goal, Load, PartitionFigures, Pin, ShardFigures, ShardState};
pub use plan::{
    Action, Cut, Left, Merge, Move, Note, Piece, Plan, Rest, Resting, Split, WholePlan, Why, plan,
    whole_plan,
};
pub use schedule::Schedule;
pub use settings::{Settings, Weights, Window};
