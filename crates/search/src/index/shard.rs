//! One shard's inverted index in a folder. It is derived data: whoever feeds it keeps the documents, and a position in
//! the order of changes is kept in every commit, so that feeding goes on from there after a crash.

use super::document::{DocumentChange, Entries};
use super::graphs::Graphs;
use super::schema::Physical;
use super::tokenize;
use super::vectors::VectorPlugin;
use crate::definition::IndexDefinition;
use crate::error::{Result, SearchError};
use crate::limits;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tantivy::directory::MmapDirectory;
use tantivy::indexer::IndexWriterOptions;
use tantivy::schema::Term;
use tantivy::{Index, IndexReader, IndexSettings, IndexWriter, ReloadPolicy, Searcher};

/// Bytes of a position.
pub(crate) const POSITION_BYTES_MAX: usize = 64 * 1024;

/// How a shard's index is written.
#[derive(Clone, Copy, Debug)]
pub struct ShardSettings {
    /// Threads that invert documents while a shard is fed.
    pub threads: usize,
    /// Memory of each of them before it writes a segment; at least 15 MB.
    pub memory_bytes: usize,
    /// Blocks of stored documents that searches keep decompressed.
    pub cached_blocks: usize,
    /// Documents from which on a segment gets a graph of neighbours.
    pub graph_documents_min: u32,
}

impl Default for ShardSettings {
    fn default() -> ShardSettings {
        ShardSettings {
            threads: 1,
            memory_bytes: 32 * 1024 * 1024,
            cached_blocks: 64,
            graph_documents_min: limits::GRAPH_DOCUMENTS_MIN,
        }
    }
}

/// What a shard's index holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShardFigures {
    pub documents: u64,
    /// Bytes of all files.
    pub bytes: u64,
    pub segments: usize,
    /// Bytes of the vectors.
    pub vector_bytes: u64,
}

/// An inverted index in a folder.
pub struct ShardIndex {
    folder: PathBuf,
    index: Index,
    reader: IndexReader,
    physical: Arc<Physical>,
    entries: Entries,
    graphs: Arc<Graphs>,
    settings: ShardSettings,
    writer: Mutex<Writer>,
    visible: Mutex<Option<Arc<str>>>,
    changed: Condvar,
}

/// The part that changes the index. It holds threads and memory, so it is there only while the index is fed.
#[derive(Default)]
struct Writer {
    tantivy: Option<IndexWriter>,
    pending: usize,
    position: Option<String>,
}

/// An index at one moment: searches on it always see the same documents.
#[derive(Clone)]
pub struct ShardSnapshot {
    pub(crate) searcher: Searcher,
    pub(crate) physical: Arc<Physical>,
    pub(crate) graphs: Arc<Graphs>,
    position: Option<Arc<str>>,
}

impl ShardSnapshot {
    /// The position of the last change that the snapshot has.
    pub fn position(&self) -> Option<&str> {
        self.position.as_deref()
    }

    /// The number of documents.
    pub fn documents(&self) -> u64 {
        self.searcher.num_docs()
    }
}

impl ShardIndex {
    /// Opens the index in a folder, or creates it. Files that are damaged or of another form are deleted; the position
    /// is none then, and all documents must be fed again.
    pub fn open(
        folder: &Path,
        definition: Arc<IndexDefinition>,
        settings: ShardSettings,
    ) -> Result<ShardIndex> {
        let physical = Arc::new(Physical::new(&definition));
        let name = format!("{:016x}", physical.fingerprint);
        let place = folder.join(&name);
        remove_others(folder, &name)?;
        let tokenizers = tokenize::manager(&definition, &physical);
        let open = || open_files(&place, &physical, tokenizers.clone(), settings);
        let (index, reader, position) = match open() {
            Ok(opened) => opened,
            Err(_) => {
                fs::remove_dir_all(&place)?;
                open()?
            }
        };
        let least = settings.graph_documents_min;
        let graphs = Arc::new(Graphs::new(&definition, &physical, &place, least));
        Ok(ShardIndex {
            folder: place,
            graphs,
            index,
            reader,
            entries: Entries::new(&definition, physical.clone()),
            physical,
            settings,
            writer: Mutex::new(Writer { position: position.clone(), ..Writer::default() }),
            visible: Mutex::new(position.map(Arc::from)),
            changed: Condvar::new(),
        })
    }

    /// Applies changes in their order. They become durable and visible together with the position at the next commit.
    pub fn apply(&self, changes: &[DocumentChange], position: &str) -> Result<()> {
        if position.len() > POSITION_BYTES_MAX {
            return Err(SearchError::invalid("the position is too long"));
        }
        let mut guard = lock(&self.writer);
        let state = &mut *guard;
        let writer = match &state.tantivy {
            Some(writer) => writer,
            None => state.tantivy.insert(self.open_writer()?),
        };
        for change in changes {
            match change {
                DocumentChange::Upsert { document } => {
                    let (key, entry) = self.entries.entry(document)?;
                    writer.delete_term(Term::from_field_text(self.physical.key, &key));
                    writer.add_document(entry)?;
                }
                DocumentChange::Delete { key } => {
                    writer.delete_term(Term::from_field_text(self.physical.key, key));
                }
            }
        }
        state.pending += changes.len();
        state.position = Some(position.to_owned());
        Ok(())
    }

    /// Makes everything that was applied durable and visible. Does nothing where there is nothing new.
    pub fn commit(&self) -> Result<()> {
        let mut guard = lock(&self.writer);
        let state = &mut *guard;
        let visible = lock(&self.visible).clone();
        if state.pending == 0 && state.position.as_deref() == visible.as_deref() {
            return Ok(());
        }
        let Some(position) = state.position.clone() else { return Ok(()) };
        let writer = match &mut state.tantivy {
            Some(writer) => writer,
            None => state.tantivy.insert(self.open_writer()?),
        };
        let outcome = commit_with(writer, &position);
        if let Err(error) = outcome {
            // The writer is in no known state. What it had applied since the last commit is fed again.
            *state =
                Writer { position: visible.as_deref().map(str::to_owned), ..Writer::default() };
            return Err(error);
        }
        state.pending = 0;
        self.reader.reload()?;
        *lock(&self.visible) = Some(Arc::from(position));
        self.changed.notify_all();
        Ok(())
    }

    /// Changes that were applied and are not yet visible.
    pub fn pending(&self) -> usize {
        lock(&self.writer).pending
    }

    /// The position of the last commit, which is what searches see.
    pub fn position(&self) -> Option<String> {
        lock(&self.visible).as_deref().map(str::to_owned)
    }

    /// Waits until the visible position is one that the caller accepts.
    pub fn wait_visible(&self, accept: impl Fn(Option<&str>) -> bool, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        let mut visible = lock(&self.visible);
        loop {
            if accept(visible.as_deref()) {
                return true;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.changed.wait_timeout(visible, left);
            visible = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The index as it is now.
    pub fn snapshot(&self) -> ShardSnapshot {
        // The position is read first: a commit in between makes the snapshot newer than its position, never older.
        let position = lock(&self.visible).clone();
        ShardSnapshot {
            searcher: self.reader.searcher(),
            physical: self.physical.clone(),
            graphs: self.graphs.clone(),
            position,
        }
    }

    /// Gives the threads and the memory of writing back, if nothing waits for a commit. Snapshots have the segments that
    /// were merged meanwhile from then on.
    pub fn rest(&self) -> Result<()> {
        let mut state = lock(&self.writer);
        if state.pending > 0 {
            return Ok(());
        }
        if let Some(writer) = state.tantivy.take() {
            writer.wait_merging_threads()?;
            self.reader.reload()?;
        }
        Ok(())
    }

    /// Whether some segment should have a graph of neighbours and has none.
    pub fn lacks_graph(&self) -> bool {
        !self.graphs.is_complete(&self.reader.searcher())
    }

    /// Builds one graph of neighbours that is missing, which may take minutes, unless it is stopped. Says whether there was
    /// one. Searches use it from then on, those on earlier snapshots too.
    pub fn build_graph(&self, stop: &AtomicBool) -> Result<bool> {
        self.graphs.complete(&self.reader.searcher(), &self.physical, stop)
    }

    /// What the index holds.
    pub fn figures(&self) -> ShardFigures {
        let searcher = self.reader.searcher();
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let bytes = entries.filter_map(|it| it.metadata().ok()).map(|it| it.len()).sum();
        ShardFigures {
            documents: searcher.num_docs(),
            bytes,
            segments: searcher.segment_readers().len(),
            vector_bytes: searcher
                .segment_readers()
                .iter()
                .map(|it| u64::from(it.max_doc()))
                .sum::<u64>()
                * self.physical.vectors.iter().map(|it| it.dimensions as u64 * 4).sum::<u64>(),
        }
    }

    fn open_writer(&self) -> Result<IndexWriter> {
        let options = IndexWriterOptions::builder()
            .num_worker_threads(self.settings.threads)
            .memory_budget_per_thread(self.settings.memory_bytes)
            .num_merge_threads(1)
            .build();
        Ok(self.index.writer_with_options(options)?)
    }
}

fn commit_with(writer: &mut IndexWriter, position: &str) -> Result<()> {
    let mut prepared = writer.prepare_commit()?;
    prepared.set_payload(position);
    prepared.commit()?;
    Ok(())
}

fn open_files(
    place: &Path,
    physical: &Physical,
    tokenizers: tantivy::tokenizer::TokenizerManager,
    settings: ShardSettings,
) -> Result<(Index, IndexReader, Option<String>)> {
    fs::create_dir_all(place)?;
    let directory = MmapDirectory::open(place)
        .map_err(|error| SearchError::lost(format!("the folder cannot be opened: {error}")))?;
    let layout = IndexSettings { docstore_compress_dedicated_thread: false, ..Default::default() };
    let mut builder =
        Index::builder().schema(physical.schema.clone()).settings(layout).tokenizers(tokenizers);
    if let Some(plugin) = VectorPlugin::new(physical) {
        builder = builder.register_plugin(Arc::new(plugin));
    }
    let index = builder.open_or_create(directory)?;
    let reader: IndexReader = index
        .reader_builder()
        .reload_policy(ReloadPolicy::Manual)
        .doc_store_cache_num_blocks(settings.cached_blocks)
        .try_into()?;
    let position = index.load_metas()?.payload;
    Ok((index, reader, position))
}

/// Deletes what definitions of other forms have left in the folder.
fn remove_others(folder: &Path, name: &str) -> Result<()> {
    fs::create_dir_all(folder)?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let other = entry.file_name();
        let ours =
            other.len() == 16 && other.to_string_lossy().chars().all(|c| c.is_ascii_hexdigit());
        if ours && other != name {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
