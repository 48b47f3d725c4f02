//! What a shape tells about its rows that name files beside the stores, so that backups have the files too.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use lazuli_shardmap::layout::Space;
use lazuli_store::blocks::{BlockFile, BlockId, Blocks};
use lazuli_store::{KeyRange, Result};

use crate::engine::Engine;

/// While it lives, no file that a snapshot of its routes names is removed, if the snapshot was taken after it.
pub type Hold = Box<dyn Any + Send + Sync>;

/// A shape whose rows name files. A file is named by rows of one shardlet only.
pub trait Filed: Send + Sync {
    /// Where the files are.
    fn blocks(&self) -> &Arc<dyn Blocks>;

    /// The spaces whose rows name files that are there.
    fn spaces(&self) -> &'static [Space];

    /// Keeps the files of these routes from being removed.
    fn hold(&self, routes: &KeyRange) -> Hold;

    /// The files that a row needs.
    fn files(&self, space: Space, row: &[u8], payload: Bytes) -> Result<Vec<BlockFile>>;

    /// All files that a row names, also those that are only waiting to be removed.
    fn ids(&self, space: Space, row: &[u8], payload: Bytes) -> Result<Vec<BlockId>>;

    /// Row key and payload with other names for their files. None if there is nothing left to be said. A file that the
    /// row needs and that has no other name is an error.
    fn renamed(
        &self,
        space: Space,
        row: Bytes,
        payload: Bytes,
        names: &BTreeMap<BlockId, BlockFile>,
    ) -> Result<Option<(Bytes, Bytes)>>;
}

/// The shapes whose rows name files, by the schema of their containers.
#[derive(Default)]
pub(crate) struct FiledShapes(Mutex<BTreeMap<&'static str, Arc<dyn Filed>>>);

impl FiledShapes {
    pub(crate) fn get(&self, schema: &str) -> Option<Arc<dyn Filed>> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).get(schema).cloned()
    }
}

impl Engine {
    /// Lets a shape speak for the rows of its containers that name files.
    pub fn on_files(&self, schema: &'static str, filed: Arc<dyn Filed>) {
        let shapes = &self.filed.0;
        shapes.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).insert(schema, filed);
    }
}
