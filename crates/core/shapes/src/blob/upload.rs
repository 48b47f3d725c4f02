//! Uploads: bytes on their way into a blob. Up to a size they gather in memory and become a row; beyond it they go to a file
//! as they come, which is on disk before anything names it.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use lazuli_engine::{
    BlockId, BlockWriter, Blocks, Crc64, Engine, Env, Error, Kind, Result, Transaction, Tx, crc64,
};
use md5::{Digest, Md5};
use tokio::sync::oneshot;

use super::address::{BlobAddress, BlobPlace, FoundContainer};
use super::limits::INLINE_BYTES_MAX;
use super::pieces::{Cipher, CustomerKey, Piece, Source, new_iv};
use super::{BlobReason, Blobs};

/// How to take bytes in.
#[derive(Clone, Debug, Default)]
pub struct UploadOptions {
    /// Whether to compute their MD5.
    pub md5: bool,
    pub key: Option<CustomerKey>,
}

/// Bytes on their way. One that is dropped leaves nothing behind.
pub struct Upload {
    blobs: Blobs,
    address: BlobAddress,
    found: FoundContainer,
    place: BlobPlace,
    gathered: BytesMut,
    file: Option<Box<dyn BlockWriter>>,
    length: u64,
    md5: Option<Md5>,
    /// The sum of what came in, where that is not what is kept: otherwise the file has it, or the row is short.
    crc64: Option<Crc64>,
    cipher: Option<(Cipher, [u8; 16])>,
    key_sha256: Option<[u8; 32]>,
}

/// Bytes that have arrived whole and wait for the operation that names them. One that is dropped is removed.
pub struct Content {
    pub length: u64,
    pub md5: Option<[u8; 16]>,
    /// CRC-64/NVME, as the wire of blobs has it.
    pub crc64: u64,
    pub(super) address: BlobAddress,
    pub(super) found: FoundContainer,
    pub(super) place: BlobPlace,
    /// None: no bytes at all.
    pub(super) piece: Option<Piece>,
    pub(super) key_sha256: Option<[u8; 32]>,
    pub(super) files: Option<Files>,
}

impl Blobs {
    /// Begins to take in bytes for a blob. Fails if there is no such container.
    pub async fn upload(&self, address: &BlobAddress, options: &UploadOptions) -> Result<Upload> {
        let found = self.find(&address.container()).await?;
        let place = found.place(address)?;
        let cipher = options.key.as_ref().map(|key| {
            let iv = new_iv(self.engine.env());
            (Cipher::at(key, &iv, 0), iv)
        });
        Ok(Upload {
            blobs: self.clone(),
            address: address.clone(),
            found,
            place,
            gathered: BytesMut::new(),
            file: None,
            length: 0,
            md5: options.md5.then(Md5::new),
            crc64: cipher.is_some().then(Crc64::new),
            cipher,
            key_sha256: options.key.as_ref().map(|key| key.sha256),
        })
    }
}

impl Upload {
    pub async fn write(&mut self, bytes: Bytes) -> Result<()> {
        self.length += bytes.len() as u64;
        if let Some(md5) = &mut self.md5 {
            md5.update(&bytes);
        }
        if let Some(crc64) = &mut self.crc64 {
            crc64.update(&bytes);
        }
        let bytes = match &mut self.cipher {
            Some((cipher, _)) => cipher.apply(&bytes),
            None => bytes,
        };
        if self.file.is_none() {
            if self.gathered.len() + bytes.len() <= INLINE_BYTES_MAX {
                self.gathered.extend_from_slice(&bytes);
                return Ok(());
            }
            let mut file = self.blobs.blocks.create(&self.place.owner()).await?;
            let gathered = std::mem::take(&mut self.gathered);
            if !gathered.is_empty() {
                file.write(gathered.freeze()).await?;
            }
            self.file = Some(file);
        }
        match &mut self.file {
            Some(file) => file.write(bytes).await,
            None => Ok(()),
        }
    }

    /// How many bytes there are so far.
    pub fn length(&self) -> u64 {
        self.length
    }

    pub async fn finish(self) -> Result<Content> {
        let iv = self.cipher.map(|(_, iv)| iv);
        let (piece, files, kept) = match self.file {
            Some(file) => {
                let file = file.finish().await?;
                let files = self.blobs.files(vec![file.id]);
                (Some(Piece::new(Source::File(file), iv)), Some(files), file.crc64)
            }
            None if self.gathered.is_empty() => (None, None, crc64(&[])),
            None => {
                let kept = crc64(&self.gathered);
                (Some(Piece::new(Source::Row(self.gathered.freeze()), iv)), None, kept)
            }
        };
        Ok(Content {
            length: self.length,
            md5: self.md5.map(|md5| md5.finalize().into()),
            crc64: self.crc64.map_or(kept, |crc64| crc64.sum()),
            address: self.address,
            found: self.found,
            place: self.place,
            piece,
            key_sha256: self.key_sha256,
            files,
        })
    }
}

/// Files that nothing names yet. They are removed with this value, unless a commit may have named them.
pub(super) struct Files {
    blocks: Arc<dyn Blocks>,
    env: Env,
    ids: Vec<BlockId>,
}

impl Files {
    pub(super) fn add(&mut self, other: Option<Self>) {
        if let Some(mut other) = other {
            self.ids.append(&mut other.ids);
        }
    }

    /// Hands the files to the caller, which from now on removes or names them.
    fn release(mut self) -> Vec<BlockId> {
        std::mem::take(&mut self.ids)
    }
}

/// Whether a transaction that ended so may have been committed. The files that it names must then stay: if it was not, the
/// next start finds that nothing names them.
fn may_be_committed<T>(outcome: &Result<T>) -> bool {
    match outcome {
        Ok(_) => true,
        Err(error) => match error.kind() {
            Kind::NotFound
            | Kind::Exists
            | Kind::Precondition
            | Kind::Invalid
            | Kind::TooLarge
            | Kind::Throttled { .. }
            | Kind::Moved => false,
            Kind::Unavailable { .. } | Kind::Corrupt | Kind::Internal => true,
        },
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let (blocks, ids) = (self.blocks.clone(), std::mem::take(&mut self.ids));
        if ids.is_empty() {
            return;
        }
        let task = async move {
            for id in ids {
                // What cannot be removed now is found by the next start.
                let _ = blocks.remove(id).await;
            }
        };
        self.env.spawn.spawn("remove unnamed block files", Box::pin(task));
    }
}

/// A transaction that names files, of an engine that others take for running.
struct Naming<T> {
    engine: Arc<Engine>,
    keeper: Arc<dyn Blocks>,
    named: Vec<BlockId>,
    transaction: T,
}

impl<T: Transaction> Transaction for Naming<T> {
    type Output = T::Output;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<T::Output> {
        self.engine.may_name()?;
        if !self.named.iter().all(|id| self.keeper.may_be_named(*id)) {
            let message = "this node was silent for so long that what it had written may be gone";
            return Err(Error::unavailable("node-silent", message));
        }
        self.transaction.run(tx).await
    }

    fn cost(&self) -> u32 {
        self.transaction.cost()
    }
}

impl Blobs {
    pub(super) fn files(&self, ids: Vec<BlockId>) -> Files {
        Files { blocks: self.blocks.clone(), env: self.engine.env().clone(), ids }
    }

    /// Runs a transaction that names these files. It goes on to its end also when the caller goes away, because only its
    /// outcome tells what becomes of the files.
    pub(super) async fn commit<T: Transaction>(
        &self,
        place: &BlobPlace,
        transaction: T,
        files: Option<Files>,
    ) -> Result<T::Output> {
        let Some(files) = files else {
            return self.engine.write(place.container, &place.route, transaction).await;
        };
        let (engine, place) = (self.engine.clone(), place.clone());
        let (blocks, ids) = (self.blocks.clone(), files.release());
        let (named, keeper) = (ids.clone(), blocks.clone());
        let transaction = Naming { engine: engine.clone(), keeper, named, transaction };
        let (reply, answer) = oneshot::channel();
        let task = async move {
            let outcome = engine.write(place.container, &place.route, transaction).await;
            if !may_be_committed(&outcome) {
                for id in ids {
                    // What cannot be removed now is found by the next start.
                    let _ = blocks.remove(id).await;
                }
            }
            // The receiver may have been dropped.
            let _ = reply.send(outcome);
        };
        self.engine.env().spawn.spawn("name block files", Box::pin(task));
        answer.await.map_err(|_| Error::unavailable("stopping", "the commit was not answered"))?
    }

    /// Makes sure that a content goes where it was taken in for.
    pub(super) async fn check_content(
        &self,
        content: &Content,
        address: &BlobAddress,
    ) -> Result<()> {
        if content.address != *address {
            return Err(Error::internal("other-blob", "the content was taken in for another blob"));
        }
        self.check_fresh(&content.found, address).await
    }

    /// Makes sure that a request brings the key that the blob was written with, where it adds to it.
    pub(super) fn check_same_key(
        written: Option<&[u8; 32]>,
        given: Option<&[u8; 32]>,
    ) -> Result<()> {
        if written == given {
            return Ok(());
        }
        let code = if given.is_none() { BlobReason::KeyRequired } else { BlobReason::KeyMismatch };
        Err(Error::precondition(code, "the blob was written with another customer's key"))
    }
}
