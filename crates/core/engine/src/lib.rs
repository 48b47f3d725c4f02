//! The partition engine: everything between a data model and a store.
//!
//! Writes of a partition go through its lane as [`Transaction`]s, in batches that become durable in one commit. Reads use
//! a snapshot ([`View`]). Each operation is routed by a cached map and checked against the shard's own, so that an old map
//! can never read or write in the wrong place. Conditions, time to live, change records, budgets and statistics are
//! decided here, once, for all data models and all stores.

mod background;
pub mod backup;
mod batch;
pub mod changes;
mod charging;
mod claims;
mod condition;
mod containers;
mod cut;
mod derived;
mod engine;
mod entries;
mod entry_scan;
mod expiry;
mod fanout;
mod freshness;
pub mod fsck;
mod fsck_entries;
mod garbage;
mod hot;
mod hot_end;
mod item;
mod item_scan;
mod join;
mod lane;
mod latency;
pub mod lease;
pub mod limits;
mod lsn;
mod meter;
mod moving;
mod notes;
mod open;
mod outside;
mod overlay;
mod panics;
mod partition;
mod reason;
mod reconciling;
mod recount;
mod rederive;
pub mod reference;
mod sample;
mod settings;
mod shard;
mod shards;
mod stats;
pub mod steps;
mod troubles;
mod tx;
mod unswept;
mod view;

pub use condition::Condition;
pub use cut::{Isolated, Middle};
pub use derived::{Deriver, Deriving, Rules, Standing};
pub use engine::Engine;
pub use entry_scan::ShardView;
pub use expiry::Expirer;
pub use fanout::{
    Continuation, FanOut, FanOutPage, Missing, OnFailure, Order, PartitionScan, RowPage,
};
pub use hot::{HOT_KEYS_MAX, HotKey};
pub use hot_end::{End, HASHED_SLICES, HotEnd, INSERTS_LEAST, LATE_MAX};
pub use item::{Item, ItemKey};
pub use item_scan::ItemScan;
pub use join::{join_all, yield_now};
pub use latency::{LATENCY_BUCKETS, Latencies};
pub use lsn::Lsn;
pub use moving::{Finished, MoveOptions, MoveStats, MoveStatus, Outcome, Phase};
pub use notes::Note;
pub use outside::Outside;
pub use reason::EngineReason;
pub use sample::{Asked, Held, Sample};
pub use settings::Settings;
pub use shard::{LiveShard, ShardStats};
pub use shards::Shards;
pub use stats::{Counts, PartitionStats, Size};
pub use troubles::Trouble;
pub use tx::{ItemPage, Transaction, Tx};
pub use view::View;

// What shapes and fronts need of the layers below, so that they name the engine and nothing under it.
pub use lazuli_env::{BoxFuture, Env, Id};
pub use lazuli_shardmap::catalog::{TOLD_ROWS_MAX, Work};
pub use lazuli_shardmap::epk::Component;
pub use lazuli_shardmap::key::{KeyPart, KeySchema, KeyType};
pub use lazuli_shardmap::layout::{PREFIX_BYTES, Space};
pub use lazuli_shardmap::manager::{ContainerUpdate, Cuts, Known, NewContainer, NewPartition};
pub use lazuli_shardmap::route::hashed_slice;
pub use lazuli_shardmap::{
    Container, ContainerId, Epoch, MapKind, MapReason, Move, MoveStage, Partition, PartitionId,
    PartitionState, Policies, ShardId,
};
pub use lazuli_store::blocks::{
    BlockFile, BlockId, BlockReader, BlockWriter, Blocks, FoundFile, Owner, PIECE_BYTES_MAX,
};
pub use lazuli_store::crc64::{Crc64, crc64};
pub use lazuli_store::limits::{SNAPSHOT_LIFE_MAX, STALENESS_MAX};
pub use lazuli_store::reasons;
pub use lazuli_store::{
    Direction, Error, KeyRange, Kind, PageLimit, Result, after_key, after_prefix,
};
