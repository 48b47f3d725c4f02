//! Vectors of a segment: a file of its own beside the inverted index, written with the segment and merged with it.
//!
//! For every vector field, in the order of the schema: the numbers of document 0, of document 1, and so on, as 32-bit
//! little-endian floats. A document without a vector has what is no number in all places.

use super::schema::Physical;
use crate::graph::Vectors;
use std::any::Any;
use std::io::Write;
use tantivy::directory::{OwnedBytes, TerminatingWrite};
use tantivy::index::{SegmentComponent, SegmentReader};
use tantivy::indexer::DocIdMapping;
use tantivy::plugin::{PluginMergeContext, PluginWriter, PluginWriterContext, SegmentPlugin};
use tantivy::schema::document::ErasedDocument;
use tantivy::schema::{Field, Schema, Value as _};
use tantivy::{DocId, Segment, TantivyDocument, TantivyError};

/// The ending of the files.
const EXTENSION: &str = "vectors";

/// A vector field and its dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VectorField {
    pub(crate) field: Field,
    pub(crate) dimensions: usize,
}

/// Keeps the vectors of some fields.
pub(super) struct VectorPlugin {
    fields: Vec<VectorField>,
}

impl VectorPlugin {
    /// The plugin of an index, or none where it has no vectors.
    pub(super) fn new(physical: &Physical) -> Option<VectorPlugin> {
        (!physical.vectors.is_empty()).then(|| VectorPlugin { fields: physical.vectors.clone() })
    }
}

fn component() -> SegmentComponent {
    SegmentComponent::Custom(EXTENSION.to_owned())
}

/// A vector as bytes.
pub(super) fn to_bytes(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|it| it.to_le_bytes()).collect()
}

impl SegmentPlugin for VectorPlugin {
    fn extensions(&self) -> &[&str] {
        &[EXTENSION]
    }

    fn create_writer(&self, _: &PluginWriterContext<'_>) -> tantivy::Result<Box<dyn PluginWriter>> {
        let columns = self.fields.iter().map(|_| Vec::new()).collect();
        Ok(Box::new(VectorWriter { fields: self.fields.clone(), columns, documents: 0 }))
    }

    /// The documents that are alive follow each other, segment after segment: the index is not sorted.
    fn merge(&self, context: PluginMergeContext<'_>) -> tantivy::Result<()> {
        let mut target = context.target_segment.open_write(component())?;
        for field in &self.fields {
            for reader in context.readers {
                let vectors = SegmentVectors::open(reader, &self.fields, field.field)?;
                for doc in reader.doc_ids_alive() {
                    target.write_all(vectors.bytes(doc))?;
                }
            }
        }
        target.terminate()?;
        Ok(())
    }
}

struct VectorWriter {
    fields: Vec<VectorField>,
    columns: Vec<Vec<u8>>,
    documents: usize,
}

impl PluginWriter for VectorWriter {
    fn add_document(
        &mut self,
        _: DocId,
        document: &dyn ErasedDocument,
        _: &Schema,
    ) -> tantivy::Result<()> {
        let document = document
            .as_any()
            .downcast_ref::<TantivyDocument>()
            .ok_or_else(|| TantivyError::InternalError("a document of another kind".to_owned()))?;
        self.documents += 1;
        for (field, column) in self.fields.iter().zip(&mut self.columns) {
            let found = document.get_first(field.field);
            if let Some(bytes) = found.as_ref().and_then(|it| it.as_custom())
                && bytes.len() == field.dimensions * 4
            {
                column.extend_from_slice(bytes);
            }
            let missing = f32::NAN.to_le_bytes();
            while column.len() < self.documents * field.dimensions * 4 {
                column.extend_from_slice(&missing);
            }
        }
        Ok(())
    }

    fn serialize(
        self: Box<Self>,
        segment: &Segment,
        _: Option<&DocIdMapping>,
    ) -> tantivy::Result<()> {
        let mut target = segment.open_write(component())?;
        for column in &self.columns {
            target.write_all(column)?;
        }
        target.terminate()?;
        Ok(())
    }

    fn mem_usage(&self) -> usize {
        self.columns.iter().map(Vec::len).sum()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

/// The vectors of one field of a segment.
pub(crate) struct SegmentVectors {
    documents: u32,
    bytes: OwnedBytes,
    start: usize,
    width: usize,
}

impl SegmentVectors {
    pub(crate) fn open(
        reader: &SegmentReader,
        fields: &[VectorField],
        field: Field,
    ) -> tantivy::Result<SegmentVectors> {
        let documents = reader.max_doc() as usize;
        let mut start = 0;
        for it in fields {
            let width = it.dimensions * 4;
            if it.field == field {
                let bytes = reader.open_read(component())?.read_bytes()?;
                if bytes.len() < start + width * documents {
                    return Err(TantivyError::InternalError("vectors are missing".to_owned()));
                }
                return Ok(SegmentVectors { documents: reader.max_doc(), bytes, start, width });
            }
            start += width * documents;
        }
        Err(TantivyError::InternalError("the field has no vectors".to_owned()))
    }

    fn bytes(&self, doc: DocId) -> &[u8] {
        let from = self.start + doc as usize * self.width;
        &self.bytes[from..from + self.width]
    }
}

impl Vectors for SegmentVectors {
    fn documents(&self) -> u32 {
        self.documents
    }

    fn vector(&self, doc: DocId) -> Option<&[u8]> {
        let bytes = self.bytes(doc);
        let first = bytes.first_chunk().map(|it| f32::from_le_bytes(*it));
        first.is_some_and(|it| !it.is_nan()).then_some(bytes)
    }
}
