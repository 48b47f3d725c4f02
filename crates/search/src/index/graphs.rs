//! The graphs of neighbours of a shard: one for each vector field of each segment that is large enough.
//!
//! They are built behind the back of searches, which compare all vectors of a segment until its graph is there. A graph lies
//! in a file beside its segment, so that it is not built again after a start, and goes with the segment when that is merged.

use super::schema::Physical;
use super::vectors::SegmentVectors;
use crate::definition::IndexDefinition;
use crate::error::Result;
use crate::graph::{Graph, Parameters};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tantivy::Searcher;
use tantivy::index::{SegmentId, SegmentReader};
use tantivy::schema::Field;

/// The ending of the files.
const EXTENSION: &str = "graph";

pub(crate) struct Graphs {
    folder: PathBuf,
    fields: Vec<(Field, Parameters)>,
    /// Segments with fewer documents have none.
    documents_min: u32,
    known: Mutex<BTreeMap<(SegmentId, Field), Arc<Graph>>>,
}

impl Graphs {
    pub(super) fn new(
        definition: &IndexDefinition,
        physical: &Physical,
        folder: &Path,
        documents_min: u32,
    ) -> Graphs {
        let fields = physical.leaves.values().filter_map(|leaf| {
            let profile = leaf.leaf.vector_profile.as_deref()?;
            let algorithm = definition.vector_search.algorithm(profile)?;
            let graph = algorithm.graph?;
            let (m, ef_construction) = (graph.m, graph.ef_construction);
            Some((leaf.vector?, Parameters { metric: algorithm.metric, m, ef_construction }))
        });
        let (folder, fields) = (folder.to_owned(), fields.collect());
        Graphs { folder, fields, documents_min, known: Mutex::default() }
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<(SegmentId, Field), Arc<Graph>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The graph of a field of a segment, once it is built.
    pub(crate) fn get(&self, segment: SegmentId, field: Field) -> Option<Arc<Graph>> {
        self.known().get(&(segment, field)).cloned()
    }

    /// A segment and a field that should have a graph and has none.
    fn missing<'a>(
        &self,
        searcher: &'a Searcher,
    ) -> Option<(&'a SegmentReader, Field, Parameters)> {
        let known = self.known();
        let large = |it: &&SegmentReader| it.max_doc() >= self.documents_min;
        searcher.segment_readers().iter().filter(large).find_map(|reader| {
            let is_missing =
                |it: &&(Field, Parameters)| !known.contains_key(&(reader.segment_id(), it.0));
            self.fields.iter().find(is_missing).map(|(field, it)| (reader, *field, *it))
        })
    }

    pub(super) fn is_complete(&self, searcher: &Searcher) -> bool {
        self.missing(searcher).is_none()
    }

    /// Reads or builds one graph that is missing. Says whether there was one; after a stop it is as if there was none.
    pub(super) fn complete(
        &self,
        searcher: &Searcher,
        physical: &Physical,
        stop: &AtomicBool,
    ) -> Result<bool> {
        self.forget_others(searcher);
        let Some((reader, field, parameters)) = self.missing(searcher) else { return Ok(false) };
        let path = self.path(reader.segment_id(), field);
        let read = fs::read(&path).ok();
        let found = read.and_then(|it| Graph::from_bytes(&it, parameters, reader.max_doc()));
        let graph = match found {
            Some(graph) => graph,
            None => {
                let vectors = SegmentVectors::open(reader, &physical.vectors, field)?;
                let Some(graph) = Graph::build(&vectors, parameters, stop) else {
                    return Ok(false);
                };
                write(&path, &graph.to_bytes())?;
                graph
            }
        };
        self.known().insert((reader.segment_id(), field), Arc::new(graph));
        Ok(true)
    }

    /// Drops the graphs of segments that are gone, and their files.
    fn forget_others(&self, searcher: &Searcher) {
        let readers = searcher.segment_readers();
        let is_there = |id: &SegmentId| readers.iter().any(|it| it.segment_id() == *id);
        self.known().retain(|(segment, _), _| is_there(segment));
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name();
            let segment = name.to_str().and_then(|it| it.split('.').next()).unwrap_or_default();
            let is_ours = path.extension().is_some_and(|it| it == EXTENSION);
            if is_ours && !readers.iter().any(|it| it.segment_id().uuid_string() == segment) {
                // One that stays is deleted the next time.
                let _ = fs::remove_file(path);
            }
        }
    }

    fn path(&self, segment: SegmentId, field: Field) -> PathBuf {
        let name = format!("{}.{}.{EXTENSION}", segment.uuid_string(), field.field_id());
        self.folder.join(name)
    }
}

/// Writes a file under another name first. Its checksum tells whether all of it is there, so it is not synced.
fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let unfinished = path.with_extension(format!("unfinished.{EXTENSION}"));
    fs::write(&unfinished, bytes)?;
    fs::rename(&unfinished, path)?;
    Ok(())
}
