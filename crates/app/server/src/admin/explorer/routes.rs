//! The routes of the explorer. Names that may hold any character are parameters of the query and not pieces of the path,
//! because browsers and proxies resolve `..` and `//` in paths.

use super::super::request::{NoOperation, Operation};
use super::super::routes::{Given, Route, change, read};
use super::indexes::Wanted;
use super::preview::{PREVIEW_BYTES, PREVIEW_BYTES_MAX};
use super::request::{
    BlobPath, CollectionPath, ContainerPath, EntityPath, Explore, IndexPath, ItemPath, Mode, Page,
    QueuePath, TablePath, Write,
};

/// How many items a page of a list has unless asked otherwise, and at most.
const ITEMS_PER_PAGE: usize = 100;
const ITEMS_PER_PAGE_MAX: usize = 1_000;
/// How many documents a search finds unless asked otherwise.
const FOUND: usize = 20;
/// How many messages are peeked at unless asked otherwise, and at most.
const MESSAGES_PEEKED: usize = 16;
const MESSAGES_PEEKED_MAX: usize = 32;

const PAGE: &[&str] = &["after", "limit"];
const KEYS: &[&str] = &["partition_key", "row_key"];
const NAME: &[&str] = &["name"];
const ITEM: &[&str] = &["id", "key"];

type Made = Result<Operation, NoOperation>;

pub(in crate::admin) const ROUTES: &[Route] = &[
    read("/v1/explorer/tables/{account}", "list-tables", |given| {
        made(Explore::ListTables { account: given.text("account")?, page: page(given)? })
    })
    .taking(PAGE),
    change("POST", "/v1/explorer/tables/{account}", "create-table", |given| {
        made(Explore::CreateTable { account: given.text("account")? })
    })
    .recording(NAME),
    read("/v1/explorer/tables/{account}/{table}/entities", "query-entities", |given| {
        let (table, filter) = (table(given)?, given.parameter("filter").map(str::to_owned));
        made(Explore::QueryEntities { table, filter, page: page(given)? })
    })
    .taking(&["filter", "after", "limit"]),
    change("POST", "/v1/explorer/tables/{account}/{table}/entities", "insert-entity", |given| {
        made(Explore::InsertEntity { table: table(given)? })
    }),
    read("/v1/explorer/tables/{account}/{table}/entity", "get-entity", |given| {
        made(Explore::GetEntity { entity: entity(given)? })
    })
    .taking(KEYS),
    change("PUT", "/v1/explorer/tables/{account}/{table}/entity", "replace-entity", |given| {
        made(Explore::WriteEntity { entity: entity(given)?, write: Write::Replace })
    })
    .taking(KEYS),
    change("PATCH", "/v1/explorer/tables/{account}/{table}/entity", "merge-entity", |given| {
        made(Explore::WriteEntity { entity: entity(given)?, write: Write::Merge })
    })
    .taking(KEYS),
    change("DELETE", "/v1/explorer/tables/{account}/{table}/entity", "delete-entity", |given| {
        made(Explore::DeleteEntity { entity: entity(given)? })
    })
    .taking(KEYS),
    read("/v1/explorer/tables/{account}/{table}/export", "export-entities", |given| {
        let filter = given.parameter("filter").map(str::to_owned);
        made(Explore::ExportEntities { table: table(given)?, filter })
    })
    .taking(&["filter"]),
    change("POST", "/v1/explorer/tables/{account}/{table}/import", "import-entities", |given| {
        made(Explore::ImportEntities { table: table(given)?, mode: mode(given)? })
    })
    .taking(&["mode"]),
    read("/v1/explorer/blobs/{account}", "list-containers", |given| {
        made(Explore::ListContainers { account: given.text("account")?, page: page(given)? })
    })
    .taking(PAGE),
    change("POST", "/v1/explorer/blobs/{account}", "create-container", |given| {
        made(Explore::CreateContainer { account: given.text("account")? })
    })
    .recording(NAME),
    read("/v1/explorer/blobs/{account}/{container}/list", "list-blobs", |given| {
        made(Explore::ListBlobs {
            container: container(given)?,
            prefix: given.parameter("prefix").map(str::to_owned),
            delimiter: given.parameter("delimiter").map(str::to_owned),
            page: page(given)?,
        })
    })
    .taking(&["prefix", "delimiter", "after", "limit"]),
    read("/v1/explorer/blobs/{account}/{container}/blob", "show-blob", |given| {
        made(Explore::ShowBlob { blob: blob(given)? })
    })
    .taking(NAME),
    change("PUT", "/v1/explorer/blobs/{account}/{container}/blob", "upload-blob", |given| {
        made(Explore::Upload { blob: blob(given)?, overwrite: given.flag("overwrite")? })
    })
    .taking(&["name", "overwrite"]),
    change("DELETE", "/v1/explorer/blobs/{account}/{container}/blob", "delete-blob", |given| {
        made(Explore::DeleteBlob { blob: blob(given)? })
    })
    .taking(NAME),
    read("/v1/explorer/blobs/{account}/{container}/content", "download-blob", |given| {
        made(Explore::Download { blob: blob(given)? })
    })
    .taking(NAME),
    read("/v1/explorer/blobs/{account}/{container}/preview", "preview-blob", |given| {
        let bytes = given.limit("bytes", PREVIEW_BYTES, PREVIEW_BYTES_MAX)?;
        made(Explore::Preview { blob: blob(given)?, bytes })
    })
    .taking(&["name", "bytes"]),
    read("/v1/explorer/blobs/{account}/{container}/image", "show-image", |given| {
        made(Explore::Image { blob: blob(given)? })
    })
    .taking(NAME),
    change("PUT", "/v1/explorer/blobs/{account}/{container}/tags", "set-blob-tags", |given| {
        made(Explore::SetTags { blob: blob(given)? })
    })
    .taking(NAME),
    read("/v1/explorer/indexes/{account}", "list-indexes", |given| {
        made(Explore::ListIndexes { account: given.text("account")? })
    }),
    read("/v1/explorer/indexes/{account}/{index}", "explore-index", |given| {
        made(Explore::ShowIndex { index: index(given)? })
    }),
    read("/v1/explorer/indexes/{account}/{index}/search", "search-index", |given| {
        let text = |name| given.parameter(name).map(str::to_owned);
        let wanted = Wanted {
            text: text("text"),
            syntax: text("syntax"),
            mode: text("mode"),
            filter: text("filter"),
            fields: text("fields"),
            limit: given.limit("limit", FOUND, ITEMS_PER_PAGE_MAX)?,
        };
        made(Explore::SearchIndex { index: index(given)?, wanted })
    })
    .taking(&["text", "syntax", "mode", "filter", "fields", "limit"]),
    read("/v1/explorer/indexes/{account}/{index}/analyze", "analyze-text", |given| {
        let (analyzer, text) = (given.required("analyzer")?, given.required("text")?);
        let (analyzer, text) = (analyzer.to_owned(), text.to_owned());
        made(Explore::AnalyzeText { index: index(given)?, analyzer, text })
    })
    .taking(&["analyzer", "text"]),
    read("/v1/explorer/queues/{account}", "list-queues", |given| {
        made(Explore::ListQueues { account: given.text("account")?, page: page(given)? })
    })
    .taking(PAGE),
    change("POST", "/v1/explorer/queues/{account}", "create-queue", |given| {
        made(Explore::CreateQueue { account: given.text("account")? })
    })
    .recording(NAME),
    read("/v1/explorer/queues/{account}/{queue}", "show-queue", |given| {
        made(Explore::ShowQueue { queue: queue(given)? })
    }),
    read("/v1/explorer/queues/{account}/{queue}/messages", "peek-messages", |given| {
        let most = given.limit("limit", MESSAGES_PEEKED, MESSAGES_PEEKED_MAX)?;
        made(Explore::PeekMessages { queue: queue(given)?, most })
    })
    .taking(&["limit"]),
    change("POST", "/v1/explorer/queues/{account}/{queue}/messages", "put-message", |given| {
        made(Explore::PutMessage { queue: queue(given)? })
    })
    .recording(&["hidden_seconds", "lives_seconds"]),
    change("DELETE", "/v1/explorer/queues/{account}/{queue}/messages", "clear-messages", |given| {
        made(Explore::ClearMessages { queue: queue(given)? })
    }),
    read("/v1/explorer/documents/{account}", "list-collections", |given| {
        made(Explore::ListCollections { account: given.text("account")?, page: page(given)? })
    })
    .taking(PAGE),
    change("POST", "/v1/explorer/documents/{account}", "create-collection", |given| {
        made(Explore::CreateCollection { account: given.text("account")? })
    })
    .recording(&["name", "key", "throughput"]),
    read("/v1/explorer/documents/{account}/{collection}", "show-collection", |given| {
        made(Explore::ShowCollection { collection: collection(given)? })
    }),
    read("/v1/explorer/documents/{account}/{collection}/items", "query-items", |given| {
        let (query, key) = (given.parameter("query"), given.parameter("key"));
        let (query, key) = (query.map(str::to_owned), key.map(str::to_owned));
        made(Explore::QueryItems { collection: collection(given)?, query, key, page: page(given)? })
    })
    .taking(&["query", "key", "after", "limit"]),
    read("/v1/explorer/documents/{account}/{collection}/item", "get-item", |given| {
        made(Explore::GetItem { item: item(given)? })
    })
    .taking(ITEM),
    change("PUT", "/v1/explorer/documents/{account}/{collection}/item", "put-item", |given| {
        made(Explore::PutItem { collection: collection(given)? })
    }),
    change(
        "DELETE",
        "/v1/explorer/documents/{account}/{collection}/item",
        "delete-item",
        |given| made(Explore::DeleteItem { item: item(given)? }),
    )
    .taking(ITEM),
    read(
        "/v1/explorer/documents/{account}/{collection}/throughput",
        "preview-throughput",
        |given| {
            let units = given.required("units")?.parse();
            let units = units.map_err(|_| NoOperation::Parameter("units"))?;
            made(Explore::PreviewThroughput { collection: collection(given)?, units })
        },
    )
    .taking(&["units"]),
    change(
        "PUT",
        "/v1/explorer/documents/{account}/{collection}/throughput",
        "set-throughput",
        |given| made(Explore::SetThroughput { collection: collection(given)? }),
    )
    .recording(&["units"]),
];

fn made(explore: Explore) -> Made {
    Ok(Operation::Explore(explore))
}

fn page(given: &Given<'_, '_>) -> Result<Page, NoOperation> {
    let after = given.parameter("after").map(str::to_owned);
    Ok(Page { after, most: given.limit("limit", ITEMS_PER_PAGE, ITEMS_PER_PAGE_MAX)? })
}

fn table(given: &Given<'_, '_>) -> Result<TablePath, NoOperation> {
    Ok(TablePath { account: given.text("account")?, table: given.text("table")? })
}

/// Both keys must be there; either may be empty.
fn entity(given: &Given<'_, '_>) -> Result<EntityPath, NoOperation> {
    Ok(EntityPath {
        table: table(given)?,
        partition_key: given.required("partition_key")?.to_owned(),
        row_key: given.required("row_key")?.to_owned(),
    })
}

fn mode(given: &Given<'_, '_>) -> Result<Mode, NoOperation> {
    match given.parameter("mode") {
        None | Some("insert") => Ok(Mode::Insert),
        Some("replace") => Ok(Mode::Over(Write::Replace)),
        Some("merge") => Ok(Mode::Over(Write::Merge)),
        Some(_) => Err(NoOperation::Parameter("mode")),
    }
}

fn container(given: &Given<'_, '_>) -> Result<ContainerPath, NoOperation> {
    Ok(ContainerPath { account: given.text("account")?, container: given.text("container")? })
}

fn blob(given: &Given<'_, '_>) -> Result<BlobPath, NoOperation> {
    let name = given.parameter("name").ok_or(NoOperation::Parameter("name"))?.to_owned();
    Ok(BlobPath { container: container(given)?, name })
}

fn index(given: &Given<'_, '_>) -> Result<IndexPath, NoOperation> {
    Ok(IndexPath { account: given.text("account")?, index: given.text("index")? })
}

fn queue(given: &Given<'_, '_>) -> Result<QueuePath, NoOperation> {
    Ok(QueuePath { account: given.text("account")?, queue: given.text("queue")? })
}

/// A container of documents is one piece of a path: `DATABASE/CONTAINER`, escaped.
fn collection(given: &Given<'_, '_>) -> Result<CollectionPath, NoOperation> {
    let (account, name) = (given.text("account")?, given.text("collection")?);
    let (database, container) = name.split_once('/').ok_or(NoOperation::Path)?;
    let (database, container) = (database.to_owned(), container.to_owned());
    Ok(CollectionPath { account, database, container })
}

fn item(given: &Given<'_, '_>) -> Result<ItemPath, NoOperation> {
    let id = given.parameter("id").ok_or(NoOperation::Parameter("id"))?.to_owned();
    let key = given.parameter("key").ok_or(NoOperation::Parameter("key"))?.to_owned();
    Ok(ItemPath { collection: collection(given)?, id, key })
}
