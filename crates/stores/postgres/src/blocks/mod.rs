//! Blocks of big values as rows, beside the stores: a row per file, and a row per piece of a megabyte.
//!
//! Pieces are written as they come. The row of the file comes last, with the last piece, and only if all pieces are there: the
//! file exists from then on. Pieces whose file was never finished go when their generation is swept, if not before.
//!
//! Instead of rows, the bytes may be objects of an object store (`objects`). The row of the file is the same: it is written when
//! the object is complete, and deleted when the object is gone.

mod adopting;
mod objects;
mod place;
mod reading;
mod writing;

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use lazuli_env::BoxFuture;
use lazuli_store::blocks::{
    BlockFile, BlockId, BlockReader, BlockWriter, Blocks, FoundFile, Owner,
};
use lazuli_store::objects::Objects;
use lazuli_store::{Error, Result};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::database::Database;
use crate::fault::Fault;
use crate::limits::{ANSWER_TIME_MAX, PAGE_TIME_MAX};
use crate::pool::Pool;
use crate::schema::Tables;
use crate::settings::Settings;
use crate::sql::Sql;
use objects::{ObjectFileReader, ObjectFileWriter};
use place::Place;
use reading::PieceReader;
use writing::PieceWriter;

/// Bytes of one piece.
pub(crate) const PIECE_BYTES: usize = 1024 * 1024;

/// Big values as rows of a PostgreSQL database. Any number of processes may have it open; each has generations of its own.
#[derive(Clone)]
pub struct PostgresBlocks {
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    database: Arc<Database>,
    pool: Arc<Pool>,
    node: String,
    place: Place,
    current: Mutex<Current>,
    number: AtomicU64,
}

/// The generation that this process writes to.
#[derive(Clone, Copy)]
struct Current {
    generation: u64,
    /// The timeline that it was taken on. After a failover the database may not know it, and give it to another process.
    timeline: u32,
}

/// A run of block files of one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generation {
    pub number: u64,
    /// The name of the process, as it was passed to [`PostgresBlocks::open`].
    pub node: String,
}

/// Ids are below 2^63: generations are the database's, numbers count from one.
fn signed(number: u64) -> i64 {
    number.cast_signed()
}

fn damaged(id: BlockId, what: &str) -> Error {
    Error::corrupt("bad-block-file", format!("block file {id} {what}"))
}

impl PostgresBlocks {
    /// Opens the blocks for a process, with a generation that no process has used before. The name of the node tells which
    /// generations are in use: see [`Self::unswept`]. The bytes are rows.
    pub async fn open(settings: Settings, node: &str) -> Result<Self> {
        Self::open_at(settings, None, node).await
    }

    /// The same with the bytes in an object store, if one is given. Blocks stay where they were first kept: another place is
    /// refused.
    pub async fn open_at(
        settings: Settings,
        objects: Option<Arc<dyn Objects>>,
        node: &str,
    ) -> Result<Self> {
        let connections = settings.write_connections;
        let database = Database::new(settings, Tables::Blocks)?;
        let pool = Pool::new(database.clone(), connections);
        let current = Mutex::new(Current { generation: 0, timeline: 0 });
        let (node, number) = (node.to_owned(), AtomicU64::new(0));
        let opened = async {
            let place = Place::settle(&pool, objects).await?;
            let shared = Shared { database: database.clone(), pool, node, place, current, number };
            shared.begin_generation().await?;
            Ok(Self { shared: Arc::new(shared) })
        };
        opened.await.inspect_err(|_| database.close())
    }

    /// The generation that this process writes to. It changes when another server becomes the primary.
    pub fn generation(&self) -> u64 {
        self.shared.current().generation
    }

    /// The generations that may have files without references, but for the one that this process writes to. Those of other
    /// nodes that are alive must not be swept: a node writes a file before the row that names it.
    pub async fn unswept(&self) -> Result<Vec<Generation>> {
        let lease = self.shared.pool.lease().await?;
        let session = lease.session();
        let asked = async {
            let [unswept] = session.prepared([Sql::Unswept]).await?;
            Ok(session.client.query(&unswept, &[]).await?)
        };
        let own = signed(self.generation());
        let rows = lease.run(ANSWER_TIME_MAX, asked).await?;
        let others = rows.iter().filter(|row| row.get::<_, i64>(0) != own);
        let generation =
            |row: &Row| Generation { number: row.get::<_, i64>(0) as u64, node: row.get(1) };
        Ok(others.map(generation).collect())
    }

    /// Marks a generation as swept: all its files are referenced, so it is not looked at again. Removes the pieces in it that
    /// belong to no file.
    pub async fn swept(&self, generation: u64) -> Result<()> {
        objects::remove_unnamed(&self.shared, generation).await?;
        let lease = self.shared.pool.lease().await?;
        let session = lease.session();
        let marked = async {
            let [pieces, swept] = session.prepared([Sql::RemoveUnnamed, Sql::Swept]).await?;
            session.client.execute(&pieces, &[&signed(generation)]).await?;
            Ok(session.client.execute(&swept, &[&signed(generation)]).await?)
        };
        lease.run(PAGE_TIME_MAX, marked).await.map(drop)
    }

    /// Closes the connections.
    pub async fn close(&self) -> Result<()> {
        self.shared.database.close();
        self.shared.pool.close();
        Ok(())
    }

    /// A copy by reading and writing all bytes, whose sum is checked on the way.
    async fn copy_bytes(&self, file: &BlockFile, owner: &Owner) -> Result<BlockFile> {
        let mut reader = self.read(file, 0..file.length).await?;
        let mut writer = self.create(owner).await?;
        while let Some(piece) = reader.next().await? {
            writer.write(piece).await?;
        }
        writer.finish().await
    }

    /// Runs one statement that changes rows, and says how many.
    async fn execute(&self, sql: Sql, parameters: &[&(dyn ToSql + Sync)]) -> Result<u64> {
        self.shared.execute(sql, parameters).await
    }
}

impl Shared {
    fn current(&self) -> Current {
        *self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn execute(&self, sql: Sql, parameters: &[&(dyn ToSql + Sync)]) -> Result<u64> {
        let lease = self.pool.lease().await?;
        let session = lease.session();
        let executed = async {
            let [statement] = session.prepared([sql]).await?;
            Ok(session.client.execute(&statement, parameters).await?)
        };
        lease.run(PAGE_TIME_MAX, executed).await
    }

    /// Whether a query that reads finds something.
    async fn exists(&self, sql: Sql, parameters: &[&(dyn ToSql + Sync)]) -> Result<bool> {
        let lease = self.pool.lease().await?;
        let session = lease.session();
        let asked = async {
            let [statement] = session.prepared([sql]).await?;
            Ok(session.client.query_opt(&statement, parameters).await?.is_some())
        };
        lease.run(ANSWER_TIME_MAX, asked).await
    }

    /// A writer of a new file with this id.
    async fn writer(self: Arc<Self>, id: BlockId, owner: Owner) -> Result<Box<dyn BlockWriter>> {
        if self.place.objects().is_some() {
            return Ok(Box::new(ObjectFileWriter::begin(self, id, owner).await?));
        }
        Ok(Box::new(PieceWriter::new(self, id, owner)))
    }

    async fn begin_generation(&self) -> Result<Current> {
        let lease = self.pool.lease().await?;
        let session = lease.session();
        let begun = async {
            let [next] = session.prepared([Sql::NextGeneration]).await?;
            let row = session.client.query_one(&next, &[&self.node]).await?;
            Ok::<i64, Fault>(row.try_get(0)?)
        };
        let generation = lease.run(ANSWER_TIME_MAX, begun).await? as u64;
        let next = Current { generation, timeline: session.life.timeline };
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        // Two writers may have seen the failover; the later of the new generations stays, the other one is empty.
        if current.generation < generation {
            *current = next;
        }
        Ok(next)
    }

    /// The id of a new file.
    async fn next_id(&self) -> Result<BlockId> {
        // Connections to a server that was replaced are lost by now, or will be before the file is finished.
        drop(self.pool.lease().await?);
        let mut current = self.current();
        if current.timeline < self.database.timeline() {
            current = self.begin_generation().await?;
        }
        let number = self.number.fetch_add(1, Ordering::Relaxed) + 1;
        Ok(BlockId { generation: current.generation, number })
    }
}

impl Blocks for PostgresBlocks {
    fn create<'a>(&'a self, owner: &'a Owner) -> BoxFuture<'a, Result<Box<dyn BlockWriter>>> {
        Box::pin(async move {
            let id = self.shared.next_id().await?;
            self.shared.clone().writer(id, owner.clone()).await
        })
    }

    fn copy<'a>(
        &'a self,
        file: &'a BlockFile,
        owner: &'a Owner,
    ) -> BoxFuture<'a, Result<BlockFile>> {
        Box::pin(async move {
            if self.shared.place.objects().is_some() {
                return self.copy_bytes(file, owner).await;
            }
            let id = self.shared.next_id().await?;
            let copy = BlockFile { id, ..*file };
            let parameters: [&(dyn ToSql + Sync); 8] = [
                &signed(file.id.generation),
                &signed(file.id.number),
                &signed(id.generation),
                &signed(id.number),
                &i64::from(owner.container),
                &&owner.route[..],
                &signed(file.length),
                &signed(file.crc64),
            ];
            match self.execute(Sql::CopyFile, &parameters).await? {
                0 => {
                    self.remove(id).await?;
                    Err(damaged(file.id, "is missing or is not what its row says"))
                }
                _ => Ok(copy),
            }
        })
    }

    fn read<'a>(
        &'a self,
        file: &'a BlockFile,
        range: Range<u64>,
    ) -> BoxFuture<'a, Result<Box<dyn BlockReader>>> {
        Box::pin(async move {
            if self.shared.place.objects().is_some() {
                let reader = ObjectFileReader::open(self.shared.clone(), *file, range).await?;
                return Ok(Box::new(reader) as Box<dyn BlockReader>);
            }
            let reader = PieceReader::open(self.shared.clone(), *file, range).await?;
            Ok(Box::new(reader) as Box<dyn BlockReader>)
        })
    }

    fn remove(&self, id: BlockId) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            objects::remove(&self.shared, id).await?;
            let id = [signed(id.generation), signed(id.number)];
            self.execute(Sql::RemoveFile, &[&id[0], &id[1]]).await.map(drop)
        })
    }

    fn remove_of<'a>(&'a self, owner: &'a Owner, id: BlockId) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let (generation, number) = (signed(id.generation), signed(id.number));
            let (container, route) = (i64::from(owner.container), &owner.route[..]);
            let parameters: [&(dyn ToSql + Sync); 4] = [&generation, &number, &container, &route];
            if self.shared.place.objects().is_some()
                && self.shared.exists(Sql::IsFileOf, &parameters).await?
            {
                objects::remove(&self.shared, id).await?;
            }
            self.execute(Sql::RemoveFileOf, &parameters).await.map(drop)
        })
    }

    fn list(&self, after: Option<BlockId>, most: usize) -> BoxFuture<'_, Result<Vec<FoundFile>>> {
        Box::pin(async move {
            let lease = self.shared.pool.lease().await?;
            let session = lease.session();
            let after = after.map_or((-1, -1), |id| (signed(id.generation), signed(id.number)));
            let most = i64::try_from(most).unwrap_or(i64::MAX);
            let listed = async {
                let [list] = session.prepared([Sql::ListFiles]).await?;
                let rows = session.client.query(&list, &[&after.0, &after.1, &most]).await?;
                Ok(rows.iter().map(found).collect::<Result<_, tokio_postgres::Error>>()?)
            };
            lease.run(PAGE_TIME_MAX, listed).await
        })
    }
}

fn found(row: &Row) -> Result<FoundFile, tokio_postgres::Error> {
    let number = |column| Ok::<_, tokio_postgres::Error>(row.try_get::<_, i64>(column)? as u64);
    let id = BlockId { generation: number(0)?, number: number(1)? };
    let route: &[u8] = row.try_get(3)?;
    Ok(FoundFile {
        file: BlockFile { id, length: number(4)?, crc64: number(5)? },
        owner: Owner { container: number(2)? as u32, route: Bytes::copy_from_slice(route) },
    })
}
