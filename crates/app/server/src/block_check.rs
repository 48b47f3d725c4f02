//! Checks the block files: that those which rows name are there and match their sums, and that rows name those which are
//! there. What nothing names can be removed; what is damaged can only be told.

use std::collections::BTreeSet;
use std::sync::Arc;

use lazuli_engine::{BlockId, Blocks, FoundFile, Kind};
use lazuli_shapes::blob::{Blobs, NamedFile};
use lazuli_shardmap::ContainerId;
use lazuli_store::{Error, Result};

use crate::block_home::{Alive, BlockHome};
use crate::fsck::Finding;

/// How many findings are listed; the rest are only counted.
const FINDINGS_MAX: usize = 1_000;
/// Files that are looked at at once.
const PAGE_FILES: usize = 1_000;
/// Where findings of block files are, beside the names of shards.
const PLACE: &str = "blocks";

/// What a look at the block files found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Files that are there.
    pub(crate) files: u64,
    /// Files that nothing named and that were removed.
    pub(crate) removed: u64,
    pub(crate) findings: Vec<Finding>,
    /// Findings that were counted and not listed.
    pub(crate) unlisted: u64,
}

struct Check<'a> {
    blobs: &'a Blobs,
    home: &'a BlockHome,
    blocks: Arc<dyn Blocks>,
    repair: bool,
    /// Generations that were not swept yet: unreferenced files in them are no finding, the next sweep removes them.
    unswept: BTreeSet<u64>,
    /// Generations whose processes may still name files.
    alive: Alive,
    found: Found,
}

/// Checks the files. From a folder that is in doubt nothing is removed.
pub(crate) async fn check(blobs: &Blobs, home: &BlockHome, repair: bool) -> Result<Found> {
    let doubt = home.doubt();
    let unswept = home.unswept().await?.into_iter().collect();
    let alive = home.alive().await?;
    let repair = repair && doubt.is_none();
    let (blocks, found) = (home.blocks(), Found::default());
    let mut check = Check { blobs, home, blocks, repair, unswept, alive, found };
    if let Some(doubt) = doubt {
        check.find(doubt.code(), format!("{doubt}. See `lazuli blocks repair`"));
    }
    let mut damaged = check.damaged().await?;
    check.named(&mut damaged).await?;
    check.unnamed().await?;
    // A damaged file without a reference was cut off by a crash before it could be referenced.
    for id in damaged {
        check.orphan(id).await?;
    }
    Ok(check.found)
}

impl Check<'_> {
    /// The files that are not whole.
    async fn damaged(&self) -> Result<BTreeSet<BlockId>> {
        let mut damaged = BTreeSet::new();
        let mut after = None;
        loop {
            let (found, last) = self.home.damaged(after, PAGE_FILES).await?;
            damaged.extend(found);
            if last.is_none() {
                return Ok(damaged);
            }
            after = last;
        }
    }

    /// Reads every file that a row names, from its first byte to its last.
    async fn named(&mut self, damaged: &mut BTreeSet<BlockId>) -> Result<()> {
        let mut pages = self.blobs.named_files().await?;
        while let Some(page) = pages.next().await? {
            for named in page {
                damaged.remove(&named.file.id);
                if let Err(error) = self.read(&named).await {
                    self.unreadable(named, &error).await?;
                }
            }
        }
        Ok(())
    }

    async fn read(&self, named: &NamedFile) -> Result<()> {
        let mut reader = self.blocks.read(&named.file, 0..named.file.length).await?;
        while reader.next().await?.is_some() {}
        Ok(())
    }

    /// A file that cannot be read is a finding, unless nothing names it any more by now.
    async fn unreadable(&mut self, named: NamedFile, error: &Error) -> Result<()> {
        let message = format!("{}: {}", self.describe(&named).await, error.message());
        let still = FoundFile { file: named.file, owner: named.owner };
        if self.blobs.unnamed(vec![still]).await?.is_empty() {
            self.find(error.code(), message);
        }
        Ok(())
    }

    /// The blob that a file belongs to, for people.
    async fn describe(&self, named: &NamedFile) -> String {
        let catalog = self.blobs.engine().manager().catalog();
        match catalog.container(ContainerId(named.owner.container)).await {
            Ok(one) => format!("{} {}", one.name, one.kind.print(&one.key, &named.owner.route)),
            Err(_) => format!("container {}", named.owner.container),
        }
    }

    /// Asks the owner of every file whether some row names it.
    async fn unnamed(&mut self) -> Result<()> {
        let mut after = None;
        loop {
            let page = self.blocks.list(after, PAGE_FILES).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = Some(last.file.id);
            self.found.files += page.len() as u64;
            // What a running process writes may not have been named yet.
            let earlier = page.into_iter().filter(|it| !self.alive.has(it.file.id)).collect();
            match self.blobs.unnamed(earlier).await {
                Ok(ids) => {
                    for id in ids {
                        self.orphan(id).await?;
                    }
                }
                // A shard that is down is a finding of its own.
                Err(error) if matches!(error.kind(), Kind::Unavailable { .. }) => {}
                Err(error) => self.find(error.code(), error.message().to_owned()),
            }
        }
    }

    async fn orphan(&mut self, id: BlockId) -> Result<()> {
        if self.alive.has(id) {
            return Ok(());
        }
        if self.repair {
            self.blocks.remove(id).await?;
            self.found.removed += 1;
        } else if !self.unswept.contains(&id.generation) {
            self.find("block-orphaned", format!("block file {id}: no row names it"));
        }
        Ok(())
    }

    fn find(&mut self, code: &'static str, message: String) {
        if self.found.findings.len() < FINDINGS_MAX {
            self.found.findings.push(Finding { shard: PLACE.to_owned(), code, key: None, message });
        } else {
            self.found.unlisted += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::{Path, PathBuf};

    use bytes::Bytes;
    use lazuli_shapes::blob::{
        BlobAddress, Conditions, ContainerAddress, NewBlob, NewBlobContainer, Protection,
        UploadOptions,
    };

    use super::*;
    use crate::core::Core;
    use crate::folder::Folder;
    use crate::settings::{Settings, Sources};

    async fn open(path: &Path) -> (Folder, Core) {
        let sources = Sources {
            flags: BTreeMap::new(),
            variables: BTreeMap::new(),
            file: None,
            folder: PathBuf::from("/nonexistent"),
        };
        let settings = Settings::read(&sources.texts().unwrap()).unwrap();
        let folder = Folder::open(path).unwrap();
        let core = Core::open(&folder, &settings).await.unwrap();
        (folder, core)
    }

    fn files(core: &Core) -> lazuli_store_blocks::BlockFiles {
        core.blocks.folder().unwrap().files().clone()
    }

    async fn put(core: &Core, name: &str) {
        let (account, container) = ("a".to_owned(), "c".to_owned());
        let address = BlobAddress { account, container, name: name.to_owned() };
        let mut upload = core.blobs.upload(&address, &UploadOptions::default()).await.unwrap();
        upload.write(Bytes::from(vec![7; 100_000])).await.unwrap();
        let content = upload.finish().await.unwrap();
        let (any, none) = (Conditions::default(), Protection::default());
        core.blobs.put_block_blob(&address, content, NewBlob::default(), &any, none).await.unwrap();
    }

    async fn codes(core: &Core, repair: bool) -> (Vec<&'static str>, u64) {
        let found = check(&core.blobs, &core.blocks, repair).await.unwrap();
        (found.findings.iter().map(|it| it.code).collect(), found.removed)
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn missing_damaged_and_orphaned_files_are_found_and_orphans_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("data");
        let (folder, core) = open(&path).await;
        let c = ContainerAddress { account: "a".to_owned(), container: "c".to_owned() };
        core.blobs.create_container(&c, NewBlobContainer::default()).await.unwrap();
        for name in ["one", "two", "three"] {
            put(&core, name).await;
        }
        let first = files(&core).list(None, 1).await.unwrap().remove(0);
        let mut writer = files(&core).create(&first.owner).await.unwrap();
        writer.write(Bytes::from_static(b"nobody names this")).await.unwrap();
        writer.finish().await.unwrap();
        assert_eq!(codes(&core, false).await, (vec![], 0), "it may be named yet");
        core.close().await;
        drop(folder);

        let (_folder, core) = open(&path).await;
        assert_eq!(codes(&core, false).await, (vec![], 0), "it waits for the sweep");
        files(&core).swept(first.file.id.generation).await.unwrap();
        assert_eq!(codes(&core, false).await, (vec!["block-orphaned"], 0));
        assert_eq!(codes(&core, true).await, (vec![], 1));
        assert_eq!(codes(&core, false).await, (vec![], 0));

        let generation = path.join(format!("blocks/{:016x}", first.file.id.generation));
        std::fs::remove_file(generation.join(format!("{:016x}", 1))).unwrap();
        let damaged = generation.join(format!("{:016x}", 2));
        let mut bytes = std::fs::read(&damaged).unwrap();
        bytes[50_000] ^= 1;
        std::fs::write(&damaged, bytes).unwrap();
        let (mut found, removed) = codes(&core, true).await;
        found.sort_unstable();
        assert_eq!((found, removed), (vec!["block-damaged", "block-missing"], 0));
        core.close().await;
    }
}
