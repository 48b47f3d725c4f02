//! A node of a fleet: one of several processes on a catalog in PostgreSQL. It keeps nothing that others need: what it has in
//! memory are caches, and what it has on disk is gone with it without loss.
//!
//! `follow` learns what others changed, `nodes` is what nodes say of themselves, `rows` keeps blocks of blobs.

mod follow;
mod nodes;
mod rows;

pub(crate) use follow::Follower;
pub(crate) use nodes::Nodes;
pub(crate) use rows::RowBlocks;

use std::time::Duration;

/// How long it takes at most until a node acts on what another one changed about accounts, policies and shards, while the
/// catalog answers at once. It is asked twice as often.
pub(crate) const FOLLOWED_WITHIN: Duration = Duration::from_secs(1);
