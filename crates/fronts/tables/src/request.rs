//! From the head of a request to one of the service's operations: a closed enum that `lib.rs` matches on.

use lazuli_azure::Row;
use lazuli_azure::auth::access::Need;
use lazuli_azure::odata::Metadata;
use lazuli_engine::MapKind;
use lazuli_http::multipart;
use lazuli_http::uri::Query;
use lazuli_http::{HeaderMap, Method, Request};

use crate::address::{EntityKey, Resource};
use crate::address::{check_key, check_table};
use crate::error::{Code, Common, Fault, Result};
use crate::etag::IfMatch;
use crate::filter::{BadFilter, Filter};
use crate::limits::{Limits, SELECT_NAMES_MAX};
use crate::token;

/// The header by which a client asks for a table with hashed keys (T6).
pub const MAP_HEADER: &str = "x-lazuli-map";

/// Method and headers, of a request or of one inside another.
#[derive(Clone, Copy)]
pub(crate) struct Head<'a> {
    pub(crate) method: &'a Method,
    pub(crate) headers: &'a HeaderMap,
}

impl<'a> Head<'a> {
    pub(crate) fn of(request: &'a Request) -> Self {
        Self { method: &request.method, headers: &request.headers }
    }

    fn header(self, name: &str) -> Option<&'a str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The media types that the client asks for: `$format` comes before the header.
    pub(crate) fn accept<'q>(self, query: &'q Query<'_>) -> Option<&'q str>
    where
        'a: 'q,
    {
        query.get("$format").or_else(|| self.header("accept"))
    }
}

/// Every operation of the service. `operations.toml` has one row for each name.
#[derive(Debug, PartialEq)]
pub(crate) enum Operation {
    QueryTables(TableQuery),
    CreateTable { kind: MapKind },
    GetTable { table: String },
    DeleteTable { table: String },
    GetTableAcl { table: String },
    SetTableAcl { table: String },
    GetServiceProperties,
    SetServiceProperties,
    GetServiceStats,
    Preflight,
    GetEntity { key: EntityKey, select: Option<Vec<String>> },
    QueryEntities { table: String, query: EntityQuery },
    WriteEntity(EntityWrite),
    EntityGroupTransaction { boundary: String },
}

/// A change of one entity, on its own or in a transaction. Without a condition an update also inserts.
#[derive(Debug, PartialEq)]
pub(crate) enum EntityWrite {
    Insert { table: String },
    Replace { key: EntityKey, if_match: Option<IfMatch> },
    Merge { key: EntityKey, if_match: Option<IfMatch> },
    Delete { key: EntityKey, if_match: IfMatch },
}

#[derive(Debug, PartialEq)]
pub(crate) struct TableQuery {
    pub(crate) filter: Option<Filter>,
    pub(crate) top: Option<usize>,
    /// The table that the page before ended with.
    pub(crate) after: Option<String>,
}

#[derive(Debug, PartialEq)]
pub(crate) struct EntityQuery {
    pub(crate) filter: Option<Filter>,
    pub(crate) select: Option<Vec<String>>,
    pub(crate) top: Option<usize>,
    /// The keys of the entity that the page before ended with.
    pub(crate) after: Option<(String, String)>,
}

/// How an answer should look. An operation that does not answer with JSON has the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wishes {
    pub(crate) metadata: Metadata,
    /// What `Prefer` says of the content of an answer, if it says anything.
    pub(crate) content: Option<bool>,
}

impl Wishes {
    pub(crate) fn of(head: Head<'_>, query: &Query<'_>) -> Result<Self> {
        let accept = head.accept(query).unwrap_or("*/*");
        let content = match head.header("prefer").map(str::trim) {
            Some("return-no-content") => Some(false),
            Some("return-content") => Some(true),
            _ => None,
        };
        match Metadata::parse(accept) {
            Some(metadata) => Ok(Self { metadata, content }),
            None => Err(Fault::new(Code::AtomFormatNotSupported)),
        }
    }
}

impl Operation {
    pub(crate) fn parse(
        head: Head<'_>,
        resource: Resource,
        query: &Query<'_>,
        limits: &Limits,
    ) -> Result<Self> {
        let method = method(head)?;
        let component = query.get("comp");
        match (method, resource, component) {
            ("OPTIONS", ..) => Ok(Self::Preflight),
            ("GET", Resource::Service, Some("properties")) => Ok(Self::GetServiceProperties),
            ("PUT", Resource::Service, Some("properties")) => Ok(Self::SetServiceProperties),
            ("GET", Resource::Service, Some("stats")) => Ok(Self::GetServiceStats),
            ("GET", Resource::Entities(table), Some("acl")) => {
                check_table(&table)?;
                Ok(Self::GetTableAcl { table })
            }
            ("PUT", Resource::Entities(table), Some("acl")) => {
                check_table(&table)?;
                Ok(Self::SetTableAcl { table })
            }
            ("POST", Resource::Batch, None) => {
                let content_type = head.header("content-type").unwrap_or_default();
                let boundary = multipart::boundary(content_type);
                let boundary = boundary.map_err(|_| Fault::new(Common::InvalidInput))?.to_owned();
                Ok(Self::EntityGroupTransaction { boundary })
            }
            ("GET", Resource::Tables, None) => Ok(Self::QueryTables(table_query(query, limits)?)),
            ("POST", Resource::Tables, None) => Ok(Self::CreateTable { kind: kind(head)? }),
            ("GET", Resource::Table(table), None) => Ok(Self::GetTable { table }),
            ("DELETE", Resource::Table(table), None) => Ok(Self::DeleteTable { table }),
            ("GET", Resource::Entities(table), None) => {
                check_table(&table)?;
                Ok(Self::QueryEntities { table, query: entity_query(query, limits)? })
            }
            ("POST", Resource::Entities(table), None) => {
                check_table(&table)?;
                Ok(Self::WriteEntity(EntityWrite::Insert { table }))
            }
            (method, Resource::Entity(key), None) => entity(head, method, key, query, limits),
            (_, Resource::Service, None) => Err(Fault::new(Code::InvalidUri)),
            (_, _, Some(_)) => Err(Fault::new(Common::InvalidInput)),
            _ => Err(Fault::new(Code::MethodNotAllowed)),
        }
    }

    /// Whether it answers in JSON, of which the client must say that it takes it. A batch is `multipart/mixed` whatever
    /// the client asks for, and each of its parts asks for itself; the rest is XML.
    pub(crate) fn is_json(&self) -> bool {
        !matches!(
            self,
            Self::GetTableAcl { .. }
                | Self::SetTableAcl { .. }
                | Self::GetServiceProperties
                | Self::SetServiceProperties
                | Self::GetServiceStats
                | Self::Preflight
                | Self::EntityGroupTransaction { .. }
        )
    }
}

impl lazuli_azure::Operation for Operation {
    type Need = Need;

    fn row(&self) -> Row<Need> {
        match self {
            Self::QueryTables(_) => Row::read("QueryTables", Need::All('c', "l")),
            Self::CreateTable { .. } => Row::write("CreateTable", Need::Any('c', "cw")),
            Self::GetTable { .. } => Row::read("GetTable", Need::All('c', "l")),
            Self::DeleteTable { .. } => Row::write("DeleteTable", Need::All('c', "d")),
            Self::GetTableAcl { .. } => Row::read("GetTableAcl", Need::Key),
            Self::SetTableAcl { .. } => Row::write("SetTableAcl", Need::Key),
            Self::GetServiceProperties => Row::read("GetServiceProperties", Need::All('s', "r")),
            Self::SetServiceProperties => Row::write("SetServiceProperties", Need::All('s', "w")),
            Self::GetServiceStats => Row::read("GetServiceStats", Need::All('s', "r")),
            Self::Preflight => Row::read("Preflight", Need::Any('s', "")),
            Self::GetEntity { .. } => Row::read("GetEntity", Need::All('o', "r")),
            Self::QueryEntities { .. } => Row::read("QueryEntities", Need::All('o', "r")),
            Self::WriteEntity(write) => write.row(),
            // Each change in it needs what it needs by itself.
            Self::EntityGroupTransaction { .. } => {
                Row::write("EntityGroupTransaction", Need::Any('o', "raud"))
            }
        }
    }
}

impl EntityWrite {
    fn row(&self) -> Row<Need> {
        let (name, permissions) = match self {
            Self::Insert { .. } => ("InsertEntity", "a"),
            Self::Replace { if_match: Some(_), .. } => ("UpdateEntity", "u"),
            Self::Replace { if_match: None, .. } => ("InsertOrReplaceEntity", "au"),
            Self::Merge { if_match: Some(_), .. } => ("MergeEntity", "u"),
            Self::Merge { if_match: None, .. } => ("InsertOrMergeEntity", "au"),
            Self::Delete { .. } => ("DeleteEntity", "d"),
        };
        Row::write(name, Need::All('o', permissions))
    }
}

/// How a new table finds the partitions of its keys: in their order, or by their hash, which spreads keys that only ever
/// grow. The header is our own; clients of the original do not know it.
fn kind(head: Head<'_>) -> Result<MapKind> {
    match head.header(MAP_HEADER) {
        None | Some("range") => Ok(MapKind::Range),
        Some("hash") => Ok(MapKind::Hash),
        Some(_) => Err(Fault::new(Common::InvalidHeaderValue)),
    }
}

/// The method, or the one that a `POST` says it stands for.
fn method(head: Head<'_>) -> Result<&str> {
    match (head.method.as_str(), head.header("x-http-method")) {
        (method, None) => Ok(method),
        ("POST", Some(method @ ("MERGE" | "PATCH" | "PUT" | "DELETE"))) => Ok(method),
        ("POST", Some(_)) => Err(Fault::new(Code::XMethodIncorrectValue)),
        (_, Some(_)) => Err(Fault::new(Code::XMethodNotUsingPost)),
    }
}

fn entity(
    head: Head<'_>,
    method: &str,
    key: EntityKey,
    query: &Query<'_>,
    limits: &Limits,
) -> Result<Operation> {
    check_table(&key.table)?;
    check_key(crate::entity::PARTITION_KEY, &key.partition_key, limits)?;
    check_key(crate::entity::ROW_KEY, &key.row_key, limits)?;
    let if_match = head.header("if-match").map(IfMatch::parse).transpose()?;
    let write = match (method, if_match) {
        ("GET", _) => return Ok(Operation::GetEntity { key, select: select(query)? }),
        ("PUT", if_match) => EntityWrite::Replace { key, if_match },
        ("MERGE" | "PATCH", if_match) => EntityWrite::Merge { key, if_match },
        ("DELETE", Some(if_match)) => EntityWrite::Delete { key, if_match },
        ("DELETE", None) => return Err(Fault::new(Common::MissingRequiredHeader)),
        _ => return Err(Fault::new(Code::MethodNotAllowed)),
    };
    Ok(Operation::WriteEntity(write))
}

fn table_query(query: &Query<'_>, limits: &Limits) -> Result<TableQuery> {
    Ok(TableQuery {
        filter: filter(query)?,
        top: top(query, limits)?,
        after: query.get("NextTableName").map(token::read).transpose()?,
    })
}

fn entity_query(query: &Query<'_>, limits: &Limits) -> Result<EntityQuery> {
    let after = match (query.get("NextPartitionKey"), query.get("NextRowKey")) {
        (None, _) => None,
        (Some(partition_key), row_key) => {
            let row_key = row_key.map(token::read).transpose()?;
            Some((token::read(partition_key)?, row_key.unwrap_or_default()))
        }
    };
    Ok(EntityQuery {
        filter: filter(query)?,
        select: select(query)?,
        top: top(query, limits)?,
        after,
    })
}

fn filter(query: &Query<'_>) -> Result<Option<Filter>> {
    let Some(text) = query.get("$filter").filter(|text| !text.trim().is_empty()) else {
        return Ok(None);
    };
    match Filter::parse(text) {
        Ok(filter) => Ok(Some(filter)),
        Err(BadFilter(why)) => Err(Fault::new(Common::InvalidInput)
            .say(format!("The query condition specified in the request is invalid: {why}."))),
    }
}

/// The number of items that the client wants at most. The service refuses more than a page.
fn top(query: &Query<'_>, limits: &Limits) -> Result<Option<usize>> {
    let Some(text) = query.get("$top") else { return Ok(None) };
    match text.trim().parse() {
        Ok(top) if (0..=limits.page_items_max).contains(&top) => Ok(Some(top)),
        _ => Err(Fault::new(Common::InvalidInput)),
    }
}

/// The properties that the client wants to see; none means all of them.
fn select(query: &Query<'_>) -> Result<Option<Vec<String>>> {
    let text = query.get("$select").map(str::trim).unwrap_or_default();
    if text.is_empty() || text == "*" {
        return Ok(None);
    }
    let names: Vec<_> = text.split(',').map(|name| name.trim().to_owned()).collect();
    if names.len() > SELECT_NAMES_MAX || names.iter().any(String::is_empty) {
        return Err(Fault::new(Common::InvalidInput));
    }
    Ok(Some(names))
}

#[cfg(test)]
mod tests {
    use lazuli_http::HeaderValue;

    use lazuli_azure::Operation as _;

    use super::*;

    /// Each row's method and path are those of the operation it names, in the order of the enum.
    #[test]
    fn operations_toml_names_every_operation() {
        let table: toml::Table = include_str!("../operations.toml").parse().unwrap();
        let rows = table["operation"].as_array().unwrap();
        assert_eq!(rows.len(), 19);
        for row in rows {
            let text = |field: &str| row[field].as_str().unwrap();
            let path = text("path").replace("{table}", "People").replace("{any}", "Tables");
            let (path, query) = path.split_once('?').unwrap_or((&path, ""));
            let mut headers = HeaderMap::new();
            if !text("name").starts_with("InsertOr") {
                headers.insert("if-match", HeaderValue::from_static("*"));
            }
            let batch = HeaderValue::from_static("multipart/mixed; boundary=b");
            headers.insert("content-type", batch);
            let method = Method::from_bytes(text("method").as_bytes()).unwrap();
            let head = Head { method: &method, headers: &headers };
            let resource = Resource::parse(path).unwrap();
            let query = Query::parse(query).unwrap();
            let parsed = Operation::parse(head, resource, &query, &Limits::default()).unwrap();
            assert_eq!(parsed.row().name, text("name"));
            let needed = match parsed.row().need {
                Need::Key => "key",
                Need::Any(_, "") => "none",
                Need::Any(_, letters) | Need::All(_, letters) => letters,
            };
            assert_eq!(needed, text("permission"), "{}", parsed.row().name);
        }
    }
}
