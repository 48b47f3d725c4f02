//! From the head of a request to one of the service's operations: a closed enum that `lib.rs` matches on.

use lazuli_http::Request;
use lazuli_http::odata::Metadata;
use lazuli_http::uri::Query;

use crate::address::{EntityKey, Resource};
use crate::error::{Code, Fault, Result};
use crate::etag::IfMatch;
use crate::filter::{BadFilter, Filter};
use crate::limits::{Limits, SELECT_NAMES_MAX};
use crate::names::{check_key, check_table};
use crate::token;

/// Every operation of the service: one row each in `operations.toml`, in this order.
#[derive(Debug, PartialEq)]
pub(crate) enum Operation {
    QueryTables(TableQuery),
    CreateTable,
    DeleteTable { table: String },
    GetTableAcl,
    SetTableAcl,
    GetServiceProperties,
    SetServiceProperties,
    GetServiceStats,
    Preflight,
    InsertEntity { table: String },
    GetEntity { key: EntityKey, select: Option<Vec<String>> },
    QueryEntities { table: String, query: EntityQuery },
    UpdateEntity { key: EntityKey, if_match: IfMatch },
    InsertOrReplaceEntity { key: EntityKey },
    MergeEntity { key: EntityKey, if_match: IfMatch },
    InsertOrMergeEntity { key: EntityKey },
    DeleteEntity { key: EntityKey, if_match: IfMatch },
    EntityGroupTransaction,
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

/// How an answer should look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wishes {
    pub(crate) metadata: Metadata,
    /// What `Prefer` says of the content of an answer, if it says anything.
    pub(crate) content: Option<bool>,
}

impl Wishes {
    pub(crate) fn of(request: &Request, query: &Query<'_>) -> Result<Self> {
        let accept = query.get("$format").or_else(|| request.header("accept")).unwrap_or("*/*");
        let content = match request.header("prefer").map(str::trim) {
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
        request: &Request,
        resource: Resource,
        query: &Query<'_>,
        limits: &Limits,
    ) -> Result<Self> {
        let method = method(request)?;
        let component = query.get("comp");
        match (method, resource, component) {
            ("OPTIONS", ..) => Ok(Self::Preflight),
            ("GET", Resource::Service, Some("properties")) => Ok(Self::GetServiceProperties),
            ("PUT", Resource::Service, Some("properties")) => Ok(Self::SetServiceProperties),
            ("GET", Resource::Service, Some("stats")) => Ok(Self::GetServiceStats),
            ("GET", Resource::Entities(_), Some("acl")) => Ok(Self::GetTableAcl),
            ("PUT", Resource::Entities(_), Some("acl")) => Ok(Self::SetTableAcl),
            ("POST", Resource::Batch, None) => Ok(Self::EntityGroupTransaction),
            ("GET", Resource::Tables, None) => Ok(Self::QueryTables(table_query(query, limits)?)),
            ("POST", Resource::Tables, None) => Ok(Self::CreateTable),
            ("DELETE", Resource::Table(table), None) => Ok(Self::DeleteTable { table }),
            ("GET", Resource::Entities(table), None) => {
                check_table(&table)?;
                Ok(Self::QueryEntities { table, query: entity_query(query, limits)? })
            }
            ("POST", Resource::Entities(table), None) => {
                check_table(&table)?;
                Ok(Self::InsertEntity { table })
            }
            (method, Resource::Entity(key), None) => entity(request, method, key, query, limits),
            (_, Resource::Service, None) => Err(Fault::new(Code::InvalidUri)),
            (_, _, Some(_)) => Err(Fault::new(Code::InvalidInput)),
            _ => Err(Fault::new(Code::MethodNotAllowed)),
        }
    }

    /// As `operations.toml` and the metrics call it.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::QueryTables(_) => "QueryTables",
            Self::CreateTable => "CreateTable",
            Self::DeleteTable { .. } => "DeleteTable",
            Self::GetTableAcl => "GetTableAcl",
            Self::SetTableAcl => "SetTableAcl",
            Self::GetServiceProperties => "GetServiceProperties",
            Self::SetServiceProperties => "SetServiceProperties",
            Self::GetServiceStats => "GetServiceStats",
            Self::Preflight => "Preflight",
            Self::InsertEntity { .. } => "InsertEntity",
            Self::GetEntity { .. } => "GetEntity",
            Self::QueryEntities { .. } => "QueryEntities",
            Self::UpdateEntity { .. } => "UpdateEntity",
            Self::InsertOrReplaceEntity { .. } => "InsertOrReplaceEntity",
            Self::MergeEntity { .. } => "MergeEntity",
            Self::InsertOrMergeEntity { .. } => "InsertOrMergeEntity",
            Self::DeleteEntity { .. } => "DeleteEntity",
            Self::EntityGroupTransaction => "EntityGroupTransaction",
        }
    }

    /// Whether it changes something, which the secondary endpoint refuses.
    pub(crate) fn writes(&self) -> bool {
        match self {
            Self::QueryTables(_)
            | Self::GetTableAcl
            | Self::GetServiceProperties
            | Self::GetServiceStats
            | Self::Preflight
            | Self::GetEntity { .. }
            | Self::QueryEntities { .. } => false,
            Self::CreateTable
            | Self::DeleteTable { .. }
            | Self::SetTableAcl
            | Self::SetServiceProperties
            | Self::InsertEntity { .. }
            | Self::UpdateEntity { .. }
            | Self::InsertOrReplaceEntity { .. }
            | Self::MergeEntity { .. }
            | Self::InsertOrMergeEntity { .. }
            | Self::DeleteEntity { .. }
            | Self::EntityGroupTransaction => true,
        }
    }
}

/// The method, or the one that a `POST` says it stands for.
fn method(request: &Request) -> Result<&str> {
    match (request.method.as_str(), request.header("x-http-method")) {
        (method, None) => Ok(method),
        ("POST", Some(method @ ("MERGE" | "PATCH" | "PUT" | "DELETE"))) => Ok(method),
        ("POST", Some(_)) => Err(Fault::new(Code::XMethodIncorrectValue)),
        (_, Some(_)) => Err(Fault::new(Code::XMethodNotUsingPost)),
    }
}

fn entity(
    request: &Request,
    method: &str,
    key: EntityKey,
    query: &Query<'_>,
    limits: &Limits,
) -> Result<Operation> {
    check_table(&key.table)?;
    check_key(crate::entity::PARTITION_KEY, &key.partition_key, limits)?;
    check_key(crate::entity::ROW_KEY, &key.row_key, limits)?;
    let if_match = request.header("if-match").map(IfMatch::parse).transpose()?;
    match (method, if_match) {
        ("GET", _) => Ok(Operation::GetEntity { key, select: select(query)? }),
        ("PUT", Some(if_match)) => Ok(Operation::UpdateEntity { key, if_match }),
        ("PUT", None) => Ok(Operation::InsertOrReplaceEntity { key }),
        ("MERGE" | "PATCH", Some(if_match)) => Ok(Operation::MergeEntity { key, if_match }),
        ("MERGE" | "PATCH", None) => Ok(Operation::InsertOrMergeEntity { key }),
        ("DELETE", Some(if_match)) => Ok(Operation::DeleteEntity { key, if_match }),
        ("DELETE", None) => Err(Fault::new(Code::MissingRequiredHeader)),
        _ => Err(Fault::new(Code::MethodNotAllowed)),
    }
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
        Err(BadFilter(why)) => Err(Fault::new(Code::InvalidInput)
            .say(format!("The query condition specified in the request is invalid: {why}."))),
    }
}

/// The number of items that the client wants at most. The service refuses more than a page.
fn top(query: &Query<'_>, limits: &Limits) -> Result<Option<usize>> {
    let Some(text) = query.get("$top") else { return Ok(None) };
    match text.trim().parse() {
        Ok(top) if (1..=limits.page_items_max).contains(&top) => Ok(Some(top)),
        _ => Err(Fault::new(Code::InvalidInput)),
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
        return Err(Fault::new(Code::InvalidInput));
    }
    Ok(Some(names))
}

#[cfg(test)]
mod tests {
    use lazuli_http::{Body, HeaderMap, HeaderValue, Method, RequestId};

    use super::*;

    /// Each row's method and path are those of the operation it names, in the order of the enum.
    #[test]
    fn operations_toml_names_every_operation() {
        let table: toml::Table = include_str!("../operations.toml").parse().unwrap();
        let rows = table["operation"].as_array().unwrap();
        assert_eq!(rows.len(), 18);
        for row in rows {
            let text = |field: &str| row[field].as_str().unwrap();
            let path = text("path").replace("{table}", "People").replace("{any}", "Tables");
            let (path, query) = path.split_once('?').unwrap_or((&path, ""));
            let mut headers = HeaderMap::new();
            if !text("name").starts_with("InsertOr") {
                headers.insert("if-match", HeaderValue::from_static("*"));
            }
            let request = Request {
                method: Method::from_bytes(text("method").as_bytes()).unwrap(),
                path: path.to_owned(),
                query: query.to_owned(),
                headers,
                body: Body::empty(),
                peer: ([127, 0, 0, 1], 1).into(),
                secure: false,
                received_ms: 0,
                id: RequestId(1),
            };
            let resource = Resource::parse(path).unwrap();
            let query = Query::parse(query).unwrap();
            let parsed = Operation::parse(&request, resource, &query, &Limits::default()).unwrap();
            assert_eq!(parsed.name(), text("name"));
        }
    }
}
