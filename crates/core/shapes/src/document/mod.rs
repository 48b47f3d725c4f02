//! Documents: objects with an id and a partition key, in containers whose ranges are placed as clients compute it. The model
//! behind Cosmos DB for NoSQL, and behind what else keeps documents.
//!
//! - `directory.rs` has the resources of an account, `collection.rs` its containers with their ranges, `lineage.rs` where
//!   the ranges came from.
//! - `sizing.rs` notices what becomes too large, `resize.rs` splits ranges in the background,
//!   `switch.rs` puts one container in the place of another.
//! - `operation.rs` and `items.rs` read and write items, `patch.rs` changes parts of them.
//! - `policy.rs`, `definition.rs` and `rules.rs` say which entries an item has in the index (`docs/formats/document-index.md`);
//!   the engine keeps them with the item.

mod change;
mod collection;
mod definition;
mod directory;
mod entries;
mod entry_count;
mod entry_run;
mod feed;
mod item;
mod items;
mod key;
pub mod limits;
mod lineage;
mod operation;
mod outline;
mod past;
mod patch;
mod path;
mod planning;
mod policy;
mod query;
mod reason;
mod resize;
mod resource;
mod rid;
mod rules;
mod schema;
mod session;
mod sizing;
mod spans;
mod switch;

use std::sync::Arc;

use lazuli_engine::{Deriving, Engine, Space};

use past::PastExpirer;
use sizing::Sizes;

pub use change::{DefinitionChange, IndexProgress};
pub use collection::{Collection, NewCollection, Range, epk_bound, epk_text, routes_between};
pub use definition::{Definition, Generation, IndexState, NewDefinition};
pub use feed::{FeedChange, FeedMode, FeedOperation, FeedPage, FeedPosition, FeedStart};
pub use item::{Body, Document, IndexDirective, SYSTEM_NAMES, check_id, etag, etag_version};
pub use items::{ItemFeed, ItemPage, Scope};
pub use key::{KeyKind, PartitionKey};
pub use operation::{Action, Etag, Operation, Outcome, Update, Work};
pub use patch::{PatchCondition, PatchOperation, PatchPath, patch};
pub use path::{Path, Reach, Step};
pub use policy::{CompositePath, IndexingMode, IndexingPolicy, PolicyPath};
pub use query::{QueryFailure, QueryPage, QueryRequest};
pub use reason::DocumentReason;
pub use resource::{Resource, ResourcePage};
pub use rid::{ResourceKind, Rid};
pub use rules::DocumentRules;
pub use session::{Session, SessionItem};
pub use sizing::Sizing;
pub use switch::HOLD_MS_MAX;

/// The schema tag of every container of documents.
pub const SCHEMA: &str = "document/1";

/// All documents of all accounts.
#[derive(Clone)]
pub struct Documents {
    engine: Arc<Engine>,
    rules: Arc<DocumentRules>,
    sizes: Arc<Sizes>,
}

/// How the engine learns which entries documents have in indexes: a setting of every engine that keeps documents.
pub fn deriving() -> Deriving {
    Deriving::new(Arc::new(DocumentRules::default()))
}

impl Documents {
    pub fn new(engine: Arc<Engine>) -> Self {
        engine.on_expiry(Space::DOCUMENT_PAST, Arc::new(PastExpirer));
        let (rules, sizes) = (Arc::new(DocumentRules::default()), Arc::new(Sizes::default()));
        Self { engine, rules, sizes }
    }

    /// The same with other sizes of ranges and partition keys.
    #[must_use]
    pub fn sized(self, sizing: Sizing) -> Self {
        Self { sizes: Arc::new(Sizes::new(sizing)), ..self }
    }

    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }
}
