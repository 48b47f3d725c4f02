//! Brings the tables of a parcel into the folder of the target store, where no manifest names them yet.
//!
//! A table whose keys are all in the ranges gets a hard link: both stores share one immutable file, which exists
//! until both have deleted it. Across file systems it is copied. From other tables, the rows in the ranges are
//! written to new tables with their sequence numbers. Written tables are read back.
//!
//! This is background work: it is rate-limited.

use std::fs::{self, File};
use std::io::{Error as IoError, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fjall::{AbstractTree, CompressionType, SeqNo};
use lazuli_env::real::Rests;
use lazuli_store::{Error, Result};
use lsm_tree::config::BloomConstructionPolicy;
use lsm_tree::table::Writer;
use lsm_tree::{Checksum, InternalValue, Table};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::error::{from_engine, from_io};
use crate::layout::Layout;
use crate::open::BLOCK_BYTES;
use crate::parcel::{Content, is_inside};
use crate::state::{State, Working};
use crate::table_ids;

/// How many tables are registered at once: commits wait meanwhile.
const TABLES_AT_ONCE_MAX: usize = 64;
/// Size of the copy buffer.
const PIECE_BYTES: usize = 128 * 1024;
const FILTER_BITS_PER_KEY: f32 = 10.0;

/// Tables of one layer in the folder of the target store. If it is dropped, they are deleted.
pub(crate) struct Carried {
    /// The level of the layer in the source store.
    pub(crate) level: u8,
    tables: Vec<Table>,
    /// Delays reopening the engine: another engine could not use the tables.
    _working: Working,
}

impl Carried {
    fn new(state: &Arc<State>, level: u8, tables: Vec<Table>) -> Self {
        Self { level, tables, _working: state.working() }
    }

    /// The tables, to be registered with the engine. From here on it owns their files.
    pub(crate) fn take(mut self) -> Vec<Table> {
        std::mem::take(&mut self.tables)
    }
}

impl Drop for Carried {
    fn drop(&mut self) {
        // The engine deletes remaining files at the next start.
        self.tables.iter().for_each(|table| drop(fs::remove_file(&*table.path)));
    }
}

/// Brings all layers, the oldest first. All files are on disk when it returns.
pub(crate) fn carry(state: &Arc<State>, content: &Content) -> Result<Vec<Carried>> {
    let folder = Layout::tables_in(&state.folder);
    let mut carrier = Carrier { state, folder, rests: Rests::default() };
    let mut carried = Vec::new();
    for layer in &content.layers {
        for tables in layer.tables.chunks(TABLES_AT_ONCE_MAX) {
            let mut arrived = Carried::new(state, layer.level, Vec::new());
            for table in tables {
                state.check()?;
                arrived.tables.extend(carrier.table(content, table)?);
            }
            carried.push(arrived);
        }
    }
    let tables = Vec::from_iter(carrier.memtable(content)?);
    carried.push(Carried::new(state, 0, tables));
    let io = |error: IoError| from_io(carrier.folder.display(), &error);
    File::open(&carrier.folder).and_then(|folder| folder.sync_all()).map_err(io)?;
    carried.retain(|layer| !layer.tables.is_empty());
    Ok(carried)
}

struct Carrier<'a> {
    state: &'a State,
    folder: PathBuf,
    rests: Rests,
}

impl Carrier<'_> {
    /// The rows of a table that are in the ranges.
    fn table(&mut self, content: &Content, table: &Table) -> Result<Option<Table>> {
        if is_inside(table, &content.stretches)
            && table_ids::is_free(&self.state.keyspaces.data, table)
            && let Some(path) = self.bring(table)?
        {
            return self.open(path, table.checksum(), table.global_seqno()).map(Some);
        }
        let rows = content.stretches.iter().flat_map(|stretch| table.range(stretch.clone()));
        self.write(rows, table.metadata.data_block_compression)
    }

    fn memtable(&mut self, content: &Content) -> Result<Option<Table>> {
        let is_ours = |row: &InternalValue| content.has(&row.key.user_key, row.key.seqno);
        self.write(content.memtable.iter().filter(is_ours).map(Ok), CompressionType::None)
    }

    fn open(&self, path: PathBuf, checksum: Checksum, added: SeqNo) -> Result<Table> {
        let tree = &self.state.keyspaces.data.tree;
        let config = tree.tree_config();
        let (cache, files) = (config.cache.clone(), config.descriptor_table.clone());
        let opened = Table::recover(path, checksum, added, tree.id(), cache, files, false, false);
        opened.map_err(|error| from_engine(&error.into()))
    }

    /// The table's file under the same name, unless a file with that name exists.
    fn bring(&mut self, table: &Table) -> Result<Option<PathBuf>> {
        let path = self.folder.join(table.id().to_string());
        let io = |error: IoError| from_io(path.display(), &error);
        // A deleted table with this name may still have its file.
        let is_there = |error: &IoError| error.kind() == ErrorKind::AlreadyExists;
        if self.state.shares_tables {
            match fs::hard_link(&*table.path, &path) {
                Ok(()) => return Ok(Some(path)),
                Err(error) if is_there(&error) => return Ok(None),
                // If a hard link fails for any reason, the file is copied.
                Err(_) => {}
            }
        }
        match File::create_new(&path) {
            Ok(file) => self.copy(table, file, &path).map_err(io)?,
            Err(error) if is_there(&error) => return Ok(None),
            Err(error) => return Err(io(error)),
        }
        Ok(Some(path))
    }

    fn copy(&mut self, table: &Table, mut to: File, path: &Path) -> std::io::Result<()> {
        self.each_piece(&table.path, |piece| to.write_all(piece))?;
        to.sync_all()?;
        let mut sum = Xxh3::new();
        self.each_piece(path, |piece| {
            sum.update(piece);
            Ok(())
        })?;
        match sum.digest128() == table.checksum().into_u128() {
            true => Ok(()),
            false => Err(IoError::new(ErrorKind::InvalidData, "the copy differs from its source")),
        }
    }

    fn each_piece(
        &mut self,
        path: &Path,
        mut show: impl FnMut(&[u8]) -> std::io::Result<()>,
    ) -> std::io::Result<()> {
        let mut file = File::open(path)?;
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            match file.read(&mut piece)? {
                0 => return Ok(()),
                read => show(&piece[..read])?,
            }
            self.rests.end();
        }
    }

    /// A table of these rows, none if there are none.
    fn write(
        &mut self,
        rows: impl Iterator<Item = lsm_tree::Result<InternalValue>>,
        compression: CompressionType,
    ) -> Result<Option<Table>> {
        let engine = |error: lsm_tree::Error| from_engine(&error.into());
        let id = self.state.keyspaces.data.tree.get_next_table_id();
        let path = self.folder.join(id.to_string());
        let mut writer = Writer::new(path.clone(), id, 0)
            .map_err(engine)?
            .use_data_block_size(BLOCK_BYTES)
            .use_data_block_compression(compression)
            .use_bloom_policy(BloomConstructionPolicy::BitsPerKey(FILTER_BITS_PER_KEY));
        let mut sum = Sum::default();
        for row in rows {
            let row = row.map_err(engine)?;
            sum.add(&row);
            writer.write(row).map_err(engine)?;
            self.rests.look();
        }
        let Some((_, checksum)) = writer.finish().map_err(engine)? else { return Ok(None) };
        let written = self.open(path, checksum, 0)?;
        let mut found = Sum::default();
        for row in written.range(..) {
            found.add(&row.map_err(engine)?);
            self.rests.look();
        }
        match found == sum {
            true => Ok(Some(written)),
            false => Err(Error::corrupt("table-differs", "a table differs from what was written")),
        }
    }
}

/// A checksum of rows that does not depend on their order.
#[derive(Default, PartialEq, Eq)]
struct Sum {
    rows: u64,
    sum: u64,
}

impl Sum {
    fn add(&mut self, row: &InternalValue) {
        let mut hasher = Xxh3::with_seed(xxh3_64(&row.key.user_key));
        hasher.update(&row.key.seqno.to_be_bytes());
        hasher.update(&[u8::from(row.key.value_type)]);
        hasher.update(&row.value);
        self.rows += 1;
        self.sum = self.sum.wrapping_add(hasher.digest());
    }
}
