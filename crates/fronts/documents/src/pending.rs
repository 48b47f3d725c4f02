//! Operations of the shape that are on their way.

use lazuli_shapes::document::{Collection, Documents, NewDefinition, Range};

use crate::error::Result;

pub(crate) trait Pending {
    async fn redefine(&self, collection: &Collection, new: NewDefinition) -> Result<()>;
    async fn figures(&self, collection: &Collection) -> Result<Vec<(Range, u64, u64)>>;
}

impl Pending for Documents {
    async fn redefine(&self, _: &Collection, _: NewDefinition) -> Result<()> {
        Ok(())
    }

    async fn figures(&self, _: &Collection) -> Result<Vec<(Range, u64, u64)>> {
        Ok(Vec::new())
    }
}
