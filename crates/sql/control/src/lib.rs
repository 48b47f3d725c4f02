//! The control side of sharded SQL: what is kept of a sharded database, where, and how rows move between its shards.
//!
//! A *sharded database* is a set of users' own PostgreSQL databases. Lazuli's catalog has its shards, maps, tables, mappings
//! and jobs (`book`, `form`, `job`); each shard has a schema `lazuli` with its local map, fence rows and, during a move, outboxes
//! (`install`, `local`). `control` publishes snapshots to routers and leads jobs; `edit` changes mappings, `tables` and `shards` the rest;
//! `mover` moves a mapping to another shard while it is in use; `ddl` changes the schema of all shards; `check` finds and repairs what
//! does not fit; `recovery` compares catalog and shards.

mod apply;
mod book;
mod check;
mod control;
mod ddl;
mod edit;
mod fits;
mod form;
mod install;
mod job;
mod link;
mod local;
mod mover;
mod moves;
mod recovery;
mod routes;
mod shape;
mod shards;
mod status;
mod strays;
mod tables;

lazuli_store::reasons! {
    /// Errors that callers tell apart.
    pub enum SqlReason {
        /// Rows of two shards have the same value where it must be unique.
        Unique = "sql-unique",
        /// A shard has understood a statement and does not do it.
        ShardRefused = "sql-shard-refused",
    }
}

pub use check::{CheckOptions, Finding};
pub use control::Control;
pub use edit::{Cut, StateOptions, Which};
pub use form::{Kind, MapForm, MappingForm, ModelForm, PlaceForm, ShardForm, State, TableForm};
pub use job::{Job, MoveOptions, MoveWork, Step, Work};
pub use recovery::{Difference, Keep};
pub use shards::NewShard;
pub use tables::{NewMap, NewPlace, NewTable};
