//! The operations of the explorer.

use super::indexes::Wanted;

/// Every operation of the explorer.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::admin) enum Explore {
    CreateTable {
        account: String,
    },
    CreateContainer {
        account: String,
    },
    CreateQueue {
        account: String,
    },
    ListTables {
        account: String,
        page: Page,
    },
    QueryEntities {
        table: TablePath,
        filter: Option<String>,
        page: Page,
    },
    GetEntity {
        entity: EntityPath,
    },
    InsertEntity {
        table: TablePath,
    },
    WriteEntity {
        entity: EntityPath,
        write: Write,
    },
    DeleteEntity {
        entity: EntityPath,
    },
    ExportEntities {
        table: TablePath,
        filter: Option<String>,
    },
    ImportEntities {
        table: TablePath,
        mode: Mode,
    },
    ListContainers {
        account: String,
        page: Page,
    },
    ListBlobs {
        container: ContainerPath,
        prefix: Option<String>,
        delimiter: Option<String>,
        page: Page,
    },
    ShowBlob {
        blob: BlobPath,
    },
    Download {
        blob: BlobPath,
    },
    Preview {
        blob: BlobPath,
        bytes: usize,
    },
    Image {
        blob: BlobPath,
    },
    Upload {
        blob: BlobPath,
        overwrite: bool,
    },
    DeleteBlob {
        blob: BlobPath,
    },
    SetTags {
        blob: BlobPath,
    },
    ListQueues {
        account: String,
        page: Page,
    },
    ShowQueue {
        queue: QueuePath,
    },
    PeekMessages {
        queue: QueuePath,
        most: usize,
    },
    PutMessage {
        queue: QueuePath,
    },
    ClearMessages {
        queue: QueuePath,
    },
    ListIndexes {
        account: String,
    },
    ShowIndex {
        index: IndexPath,
    },
    SearchIndex {
        index: IndexPath,
        wanted: Wanted,
    },
    AnalyzeText {
        index: IndexPath,
        analyzer: String,
        text: String,
    },
    ListCollections {
        account: String,
        page: Page,
    },
    CreateCollection {
        account: String,
    },
    ShowCollection {
        collection: CollectionPath,
    },
    QueryItems {
        collection: CollectionPath,
        query: Option<String>,
        key: Option<String>,
        page: Page,
    },
    GetItem {
        item: ItemPath,
    },
    PutItem {
        collection: CollectionPath,
    },
    DeleteItem {
        item: ItemPath,
    },
    PreviewThroughput {
        collection: CollectionPath,
        units: u32,
    },
    SetThroughput {
        collection: CollectionPath,
    },
}

/// Which part of a list.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::admin) struct Page {
    /// The `next` of the page before.
    pub(super) after: Option<String>,
    pub(super) most: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::admin) struct TablePath {
    pub(super) account: String,
    pub(super) table: String,
}

#[derive(Debug, PartialEq, Eq)]
pub(in crate::admin) struct EntityPath {
    pub(super) table: TablePath,
    pub(super) partition_key: String,
    pub(super) row_key: String,
}

/// How an entity is written over another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::admin) enum Write {
    Replace,
    Merge,
}

/// What an import does with an entity whose keys are there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::admin) enum Mode {
    /// Refuses it.
    Insert,
    Over(Write),
}

#[derive(Debug, PartialEq, Eq)]
pub(in crate::admin) struct ContainerPath {
    pub(super) account: String,
    pub(super) container: String,
}

#[derive(Debug, PartialEq, Eq)]
pub(in crate::admin) struct BlobPath {
    pub(super) container: ContainerPath,
    pub(super) name: String,
}

/// A container of documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::admin) struct CollectionPath {
    pub(super) account: String,
    pub(super) database: String,
    pub(super) container: String,
}

#[derive(Debug, PartialEq, Eq)]
pub(in crate::admin) struct ItemPath {
    pub(super) collection: CollectionPath,
    pub(super) id: String,
    /// The partition key as a JSON array.
    pub(super) key: String,
}

#[derive(Debug, PartialEq, Eq)]
pub(in crate::admin) struct IndexPath {
    pub(super) account: String,
    pub(super) index: String,
}

#[derive(Debug, PartialEq, Eq)]
pub(in crate::admin) struct QueuePath {
    pub(super) account: String,
    pub(super) queue: String,
}
