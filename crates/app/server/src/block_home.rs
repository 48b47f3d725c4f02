//! Where the blocks of blobs live: as files in a folder, or as rows of a database that all nodes of a fleet share.

use std::collections::BTreeSet;
use std::sync::Arc;

use lazuli_engine::{BlockId, Blocks};
use lazuli_shardmap::lineage::Doubt;
use lazuli_store::Result;
use lazuli_store_blocks::BlockFiles;
use lazuli_store_postgres::Generation;

use crate::block_folder::BlockFolder;
use crate::fleet::RowBlocks;

#[derive(Clone)]
pub(crate) enum BlockHome {
    Folder(Arc<BlockFolder>),
    Rows(Arc<RowBlocks>),
}

impl BlockHome {
    pub(crate) fn blocks(&self) -> Arc<dyn Blocks> {
        match self {
            Self::Folder(folder) => Arc::new(folder.files().clone()),
            Self::Rows(rows) => rows.clone(),
        }
    }

    /// The folder, if there is one.
    pub(crate) fn folder(&self) -> Option<&Arc<BlockFolder>> {
        match self {
            Self::Folder(folder) => Some(folder),
            Self::Rows(_) => None,
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
            Self::Rows(rows) => over(rows).await,
        }
    }

    pub(crate) async fn close(&self) -> Result<()> {
        match self {
            Self::Folder(folder) => folder.files().close().await,
            Self::Rows(rows) => rows.close().await,
        }
    }

    /// Marks a generation as swept.
    pub(crate) async fn swept(&self, generation: u64) -> Result<()> {
        match self {
            Self::Folder(folder) => folder.files().swept(generation).await,
            Self::Rows(rows) => rows.swept(generation).await,
        }
    }

    /// Which blocks may still get names, because the processes that wrote them run.
    pub(crate) async fn alive(&self) -> Result<Alive> {
        match self {
            Self::Folder(folder) => Ok(Alive::Own(folder.files().clone())),
            Self::Rows(rows) => Ok(Alive::AllBut(over(rows).await?.into_iter().collect())),
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
            // Rows are whole or not there; their sums are checked when they are read.
            Self::Rows(_) => Ok((Vec::new(), None)),
        }
    }
}

/// Which blocks may still get names.
pub(crate) enum Alive {
    /// Those of this process.
    Own(BlockFiles),
    /// All but those of these generations.
    AllBut(BTreeSet<u64>),
}

impl Alive {
    pub(crate) fn has(&self, id: BlockId) -> bool {
        match self {
            Self::Own(files) => !files.is_earlier(id),
            Self::AllBut(over) => !over.contains(&id.generation),
        }
    }
}

/// The generations, not swept yet, of nodes that are gone. A node with a row in the catalog may still name what it has
/// written. The rows are read after the generations, because a node has its row before its first generation.
async fn over(rows: &RowBlocks) -> Result<Vec<u64>> {
    let unswept = rows.unswept().await?;
    let (nodes, _) = rows.engine().manager().catalog().nodes_and_leases().await?;
    let nodes: BTreeSet<String> = nodes.into_iter().map(|(node, _)| node.to_string()).collect();
    let is_over = |it: &Generation| !nodes.contains(&it.node);
    Ok(unswept.into_iter().filter(is_over).map(|it| it.number).collect())
}
