//! Where the blocks of blobs live: as files in a folder, or as rows of a database that all nodes of a fleet share.

use std::sync::Arc;

use lazuli_engine::{BlockId, Blocks};
use lazuli_shardmap::lineage::Doubt;
use lazuli_store::Result;
use lazuli_store_blocks::BlockFiles;

use crate::block_folder::BlockFolder;

#[derive(Clone)]
pub(crate) enum BlockHome {
    Folder(Arc<BlockFolder>),
}

impl BlockHome {
    pub(crate) fn blocks(&self) -> Arc<dyn Blocks> {
        match self {
            Self::Folder(folder) => Arc::new(folder.files().clone()),
        }
    }

    /// The folder, if there is one.
    pub(crate) fn folder(&self) -> Option<&Arc<BlockFolder>> {
        match self {
            Self::Folder(folder) => Some(folder),
        }
    }

    /// Why the folder is in doubt; none if it is not.
    pub(crate) fn doubt(&self) -> Option<Doubt> {
        self.folder().and_then(|folder| folder.doubt())
    }

    /// Generations of processes that have ended, which may hold blocks that nothing names.
    pub(crate) async fn unswept(&self) -> Result<Vec<u64>> {
        match self {
            Self::Folder(folder) => folder.files().unswept().await,
        }
    }

    /// Marks a generation as swept.
    pub(crate) async fn swept(&self, generation: u64) -> Result<()> {
        match self {
            Self::Folder(folder) => folder.files().swept(generation).await,
        }
    }

    /// Which blocks may still get names, because the processes that wrote them run.
    pub(crate) async fn alive(&self) -> Result<Alive> {
        match self {
            Self::Folder(folder) => Ok(Alive::Own(folder.files().clone())),
        }
    }

    /// Blocks that are not whole behind the one given, and the last one that was looked at; none at the end.
    pub(crate) async fn damaged(
        &self,
        after: Option<BlockId>,
        most: usize,
    ) -> Result<(Vec<BlockId>, Option<BlockId>)> {
        match self {
            Self::Folder(folder) => {
                let (found, last) = folder.files().damaged(after, most).await?;
                Ok((found.into_iter().map(|it| it.id).collect(), last))
            }
        }
    }
}

/// Which blocks may still get names.
pub(crate) enum Alive {
    /// Those of this process.
    Own(BlockFiles),
}

impl Alive {
    pub(crate) fn has(&self, id: BlockId) -> bool {
        match self {
            Self::Own(files) => !files.is_earlier(id),
        }
    }
}
