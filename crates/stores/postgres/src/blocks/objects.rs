//! Files whose bytes are objects. The row of a file comes after its object, and goes after it too: so a row without an object is
//! one of garbage, and an object without a row is found when its generation is swept.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use lazuli_env::BoxFuture;
use lazuli_store::blocks::{BlockFile, BlockId, BlockReader, BlockWriter, Owner, PIECE_BYTES_MAX};
use lazuli_store::crc64::Crc64;
use lazuli_store::objects::{OBJECT_READ_BYTES_MAX, ObjectWriter};
use lazuli_store::{Error, Result};
use tokio_postgres::types::ToSql;

use super::reading::look;
use super::{Shared, damaged, signed};
use crate::limits::ANSWER_TIME_MAX;
use crate::sql::Sql;

/// Objects of a generation that are compared with rows at once.
const SWEPT_AT_ONCE: usize = 1_000;

fn folder(root: &str, generation: u64) -> String {
    format!("{root}/{generation:020}")
}

/// Names ascend as ids do.
fn name(root: &str, id: BlockId) -> String {
    format!("{}/{:020}", folder(root, id.generation), id.number)
}

/// The number in the name of an object of a generation.
fn number(name: &str) -> Option<u64> {
    name.rsplit('/').next()?.parse().ok()
}

/// Removes the object of a file, if files are objects.
pub(super) async fn remove(shared: &Shared, id: BlockId) -> Result<()> {
    match shared.place.objects() {
        Some((objects, root)) => objects.remove(&name(root, id)).await,
        None => Ok(()),
    }
}

/// Removes the objects of a generation that belong to no file.
pub(super) async fn remove_unnamed(shared: &Shared, generation: u64) -> Result<()> {
    let Some((objects, root)) = shared.place.objects() else { return Ok(()) };
    let folder = folder(root, generation);
    let mut after: Option<String> = None;
    loop {
        let names = objects.list(&folder, after.as_deref(), SWEPT_AT_ONCE).await?;
        for name in &names {
            let Some(number) = number(name) else { continue };
            let id = [signed(generation), signed(number)];
            if !shared.exists(Sql::GetFile, &[&id[0], &id[1]]).await? {
                objects.remove(name).await?;
            }
        }
        match names.into_iter().next_back() {
            Some(last) => after = Some(last),
            None => return Ok(()),
        }
    }
}

pub(super) struct ObjectFileWriter {
    /// None once the file is finished.
    shared: Option<Arc<Shared>>,
    object: Option<Box<dyn ObjectWriter>>,
    id: BlockId,
    owner: Owner,
    length: u64,
    sum: Crc64,
}

impl ObjectFileWriter {
    pub(super) async fn begin(shared: Arc<Shared>, id: BlockId, owner: Owner) -> Result<Self> {
        let object = match shared.place.objects() {
            Some((objects, root)) => Some(objects.create(&name(root, id)).await?),
            None => None,
        };
        let sum = Crc64::new();
        Ok(Self { shared: Some(shared), object, id, owner, length: 0, sum })
    }

    async fn add(&mut self, bytes: Bytes) -> Result<()> {
        self.sum.update(&bytes);
        self.length += bytes.len() as u64;
        match &mut self.object {
            Some(object) => object.write(bytes).await,
            None => Err(ended()),
        }
    }

    async fn end(mut self) -> Result<BlockFile> {
        let (Some(shared), Some(object)) = (self.shared.clone(), self.object.take()) else {
            return Err(ended());
        };
        object.finish().await?;
        let file = BlockFile { id: self.id, length: self.length, crc64: self.sum.sum() };
        let parameters: [&(dyn ToSql + Sync); 6] = [
            &signed(file.id.generation),
            &signed(file.id.number),
            &i64::from(self.owner.container),
            &&self.owner.route[..],
            &signed(file.length),
            &signed(file.crc64),
        ];
        shared.execute(Sql::PutRowOfFile, &parameters).await?;
        self.shared = None;
        Ok(file)
    }
}

fn ended() -> Error {
    Error::internal("block-file-ended", "the file has ended")
}

impl Drop for ObjectFileWriter {
    /// Removes the object of a file that got no row. If that fails, it goes when the generation is swept.
    fn drop(&mut self) {
        let Some(shared) = self.shared.take() else { return };
        drop(self.object.take());
        let id = self.id;
        let runtime = shared.database.runtime.clone();
        runtime.spawn(async move { drop(remove(&shared, id).await) });
    }
}

impl BlockWriter for ObjectFileWriter {
    fn write(&mut self, bytes: Bytes) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.add(bytes))
    }

    fn finish(self: Box<Self>) -> BoxFuture<'static, Result<BlockFile>> {
        Box::pin((*self).end())
    }
}

pub(super) struct ObjectFileReader {
    shared: Arc<Shared>,
    file: BlockFile,
    /// What was not asked for yet.
    rest: Range<u64>,
    /// What was read and not handed out yet.
    read: Bytes,
    /// The sum so far, if all bytes are read.
    sum: Option<Crc64>,
}

impl ObjectFileReader {
    /// Compares the row of the file with the reference.
    pub(super) async fn open(
        shared: Arc<Shared>,
        file: BlockFile,
        range: Range<u64>,
    ) -> Result<Self> {
        if range.start > range.end || range.end > file.length {
            return Err(Error::invalid("bad-range", "the range is not inside the file"));
        }
        let lease = shared.pool.lease().await?;
        lease.run(ANSWER_TIME_MAX, look(lease.session(), &file)).await?;
        drop(lease);
        let sum = (range == (0..file.length)).then(Crc64::new);
        Ok(Self { shared, file, rest: range, read: Bytes::new(), sum })
    }

    async fn fetch(&mut self) -> Result<()> {
        let Some((objects, root)) = self.shared.place.objects() else {
            return Err(damaged(self.file.id, "is not an object"));
        };
        let end = self.rest.end.min(self.rest.start + OBJECT_READ_BYTES_MAX);
        let bytes = objects.read(&name(root, self.file.id), self.rest.start..end).await?;
        let bytes = bytes.ok_or_else(|| damaged(self.file.id, "has no object of its length"))?;
        self.rest.start = end;
        if let Some(sum) = &mut self.sum {
            sum.update(&bytes);
            if self.rest.is_empty() && sum.sum() != self.file.crc64 {
                return Err(damaged(self.file.id, "does not match its sum"));
            }
        }
        self.read = bytes;
        Ok(())
    }

    async fn next_bytes(&mut self) -> Result<Option<Bytes>> {
        if self.read.is_empty() {
            if self.rest.is_empty() {
                return Ok(None);
            }
            self.fetch().await?;
        }
        let most = self.read.len().min(PIECE_BYTES_MAX);
        Ok(Some(self.read.split_to(most)))
    }
}

impl BlockReader for ObjectFileReader {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Bytes>>> {
        Box::pin(self.next_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_ascend_as_ids_do_and_tell_their_numbers() {
        let named = |generation, number| name("root", BlockId { generation, number });
        assert!(named(9, 10) > named(9, 9) && named(10, 1) > named(9, u64::MAX >> 1));
        assert_eq!(number(&named(3, 42)), Some(42));
        assert_eq!(number("root/3/other"), None);
    }
}
