//! The folder of block files: opened above all numbers that were ever given out, and watched like the folder of a shard.
//!
//! A folder that is missing, older or another one is used all the same: what it holds is served, because every file says
//! itself which one it is, and new files have numbers that none had before. But nothing is removed from it until the
//! right folder is back or the operator has accepted the one that is there.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use lazuli_env::Id;
use lazuli_shardmap::lineage::{Doubt, Member, Standing, Start};
use lazuli_store::{Error, Result};
use lazuli_store_blocks::{BlockFiles, Durability, Look, Seal};

use crate::lineage::{Lineage, Looked};

/// How many generations one start may use: as many as 2^34 files fill. The start's number stands above them, and both the
/// catalog and every shard remember that one.
const GENERATION_BITS: u32 = 20;

pub(crate) struct BlockFolder {
    files: BlockFiles,
    state: Mutex<FolderState>,
}

struct FolderState {
    looked: Looked,
    /// None while the folder is in doubt.
    seal: Option<Seal>,
    /// The mark that it had when it was opened, or that the catalog remembers, whichever is higher.
    mark: u64,
    /// Files that were finished when the mark was last written.
    finished: u64,
}

/// The folder before it is opened.
pub(crate) struct Closed {
    root: PathBuf,
    look: Look,
    looked: Looked,
}

impl Closed {
    /// Looks at a folder without changing it.
    pub(crate) async fn look(root: PathBuf, lineage: &Lineage) -> Result<Self> {
        let path = root.clone();
        let look = run(move || BlockFiles::look(&path)).await?;
        let standing = look.seal.map(|seal| Standing {
            start: Start { number: seal.start, token: Id::from_bytes(seal.token) },
            catalog_floor: 0,
        });
        let mark = look.seal.map_or(0, |seal| seal.mark);
        let mut looked = lineage.look(Member::Blocks, standing, mark).await?;
        if look.seal.is_none() && looked.witness.is_some_and(|witness| witness.floor == 0) {
            // There never was a file that could be missing.
            looked.doubt = None;
        }
        Ok(Self { root, look, looked })
    }

    /// The highest start that has left something here.
    pub(crate) fn highest_start(&self) -> u64 {
        let of_seal = self.look.seal.map_or(0, |seal| seal.start);
        of_seal.max(self.look.last_generation >> GENERATION_BITS)
    }

    /// Opens the folder for this start. A catalog that is an older copy says nothing about the folder, and must not be
    /// the one that the folder was last used with.
    pub(crate) async fn open(
        self,
        durability: Durability,
        lineage: &Lineage,
        older_catalog: Option<Doubt>,
    ) -> Result<BlockFolder> {
        let Self { root, look, mut looked } = self;
        looked.doubt = looked.doubt.or(older_catalog);
        let first = (lineage.start()?.number << GENERATION_BITS) + 1;
        let files = run(move || BlockFiles::open_from(&root, durability, first)).await?;
        // Files of a folder that had no seal yet count as well.
        let unsealed = u64::from(look.last_generation > 0);
        let remembered = looked.witness.map_or(0, |witness| witness.floor);
        let mark = look.seal.map_or(unsealed, |seal| seal.mark).max(remembered);
        let state = FolderState { looked, seal: None, mark, finished: files.files_finished() };
        let folder = BlockFolder { files, state: Mutex::new(state) };
        match looked.doubt {
            None => folder.agree(lineage).await?,
            Some(doubt) => tracing::error!(
                %doubt,
                "the folder of block files is missing, older or another one: nothing is removed \
                 from it; put the right one back, or see `lazuli blocks repair`"
            ),
        }
        Ok(folder)
    }
}

impl BlockFolder {
    pub(crate) fn files(&self) -> &BlockFiles {
        &self.files
    }

    fn state(&self) -> MutexGuard<'_, FolderState> {
        // The fields are whole after every statement.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why the folder is in doubt; none if it is not.
    pub(crate) fn doubt(&self) -> Option<Doubt> {
        self.state().looked.doubt
    }

    /// Takes the folder as it is.
    pub(crate) async fn accept(&self, lineage: &Lineage) -> Result<()> {
        if self.doubt().is_none() {
            return Ok(());
        }
        self.agree(lineage).await?;
        self.state().looked.doubt = None;
        Ok(())
    }

    async fn agree(&self, lineage: &Lineage) -> Result<()> {
        let looked = self.state().looked;
        let start = lineage.announce(&[(Member::Blocks, looked)]).await?;
        let mark = self.state().mark;
        let seal = Seal { start: start.number, token: start.token.to_bytes(), mark };
        self.files.write_seal(seal).await?;
        lineage.conclude(&[(Member::Blocks, mark)]).await?;
        self.state().seal = Some(seal);
        Ok(())
    }

    /// Writes a new mark if files were written since the last one, and answers it for the catalog to remember.
    pub(crate) async fn mark(&self) -> Result<Option<u64>> {
        let finished = self.files.files_finished();
        let next = {
            let state = self.state();
            let seal = state.seal.filter(|_| finished != state.finished);
            seal.map(|seal| Seal { mark: state.mark + 1, ..seal })
        };
        let Some(seal) = next else { return Ok(None) };
        self.files.write_seal(seal).await?;
        let mut state = self.state();
        (state.mark, state.finished, state.seal) = (seal.mark, finished, Some(seal));
        Ok(Some(seal.mark))
    }

    pub(crate) fn is_behind(&self) -> bool {
        let state = self.state();
        state.seal.is_some() && self.files.files_finished() != state.finished
    }
}

async fn run<T: Send + 'static>(call: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    let running = tokio::task::spawn_blocking(call);
    running.await.map_err(|error| Error::internal("blocks-panicked", error))?
}
