//! What a request asks for, as a closed enum: by method, address and a few headers.

use lazuli_http::Method;

use crate::address::{Address, ContainerChild, ContainerName, DatabaseChild, Feed};
use crate::error::{Fault, Result, Status};
use crate::headers::Headers;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    ReadAccount,
    ReadCertificate,
    /// An operation on a resource beside items. The id is that of one resource, and absent for feeds.
    Resource {
        verb: Verb,
        kind: Kind,
        feed: Feed,
        id: Option<String>,
    },
    ReadRanges(ContainerName),
    /// An operation of ours: the service has none that puts one container in the place of another.
    SwitchContainer(ContainerName),
    /// Another one: the service mends indexes by itself.
    RebuildIndex(ContainerName),
    ExecuteProcedure {
        container: ContainerName,
        id: String,
    },
    CreateItem(ContainerName),
    UpsertItem(ContainerName),
    QueryItems(ContainerName),
    PlanQuery(ContainerName),
    RunBatch(ContainerName),
    ListItems(ContainerName),
    ReadChanges(ContainerName),
    ReadItem {
        container: ContainerName,
        id: String,
    },
    ReplaceItem {
        container: ContainerName,
        id: String,
    },
    PatchItem {
        container: ContainerName,
        id: String,
    },
    DeleteItem {
        container: ContainerName,
        id: String,
    },
    DeletePartition(ContainerName),
}

/// Resources beside items, which all have the same operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Database,
    Container,
    User,
    Permission,
    EncryptionKey,
    Procedure,
    Trigger,
    Function,
    Conflict,
    Offer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Create,
    Upsert,
    Read,
    Replace,
    Delete,
    List,
    Query,
}

/// Every operation on a resource beside items that the service has, by its name in metrics and `operations.toml`.
pub(crate) const RESOURCE_OPERATIONS: &[(Kind, Verb, &str)] = &[
    (Kind::Database, Verb::Create, "CreateDatabase"),
    (Kind::Database, Verb::Read, "ReadDatabase"),
    (Kind::Database, Verb::Delete, "DeleteDatabase"),
    (Kind::Database, Verb::List, "ListDatabases"),
    (Kind::Database, Verb::Query, "QueryDatabases"),
    (Kind::Container, Verb::Create, "CreateContainer"),
    (Kind::Container, Verb::Read, "ReadContainer"),
    (Kind::Container, Verb::Replace, "ReplaceContainer"),
    (Kind::Container, Verb::Delete, "DeleteContainer"),
    (Kind::Container, Verb::List, "ListContainers"),
    (Kind::Container, Verb::Query, "QueryContainers"),
    (Kind::User, Verb::Create, "CreateUser"),
    (Kind::User, Verb::Upsert, "UpsertUser"),
    (Kind::User, Verb::Read, "ReadUser"),
    (Kind::User, Verb::Replace, "ReplaceUser"),
    (Kind::User, Verb::Delete, "DeleteUser"),
    (Kind::User, Verb::List, "ListUsers"),
    (Kind::User, Verb::Query, "QueryUsers"),
    (Kind::Permission, Verb::Create, "CreatePermission"),
    (Kind::Permission, Verb::Upsert, "UpsertPermission"),
    (Kind::Permission, Verb::Read, "ReadPermission"),
    (Kind::Permission, Verb::Replace, "ReplacePermission"),
    (Kind::Permission, Verb::Delete, "DeletePermission"),
    (Kind::Permission, Verb::List, "ListPermissions"),
    (Kind::Permission, Verb::Query, "QueryPermissions"),
    (Kind::EncryptionKey, Verb::Create, "CreateClientEncryptionKey"),
    (Kind::EncryptionKey, Verb::Read, "ReadClientEncryptionKey"),
    (Kind::EncryptionKey, Verb::Replace, "ReplaceClientEncryptionKey"),
    (Kind::EncryptionKey, Verb::List, "ListClientEncryptionKeys"),
    (Kind::EncryptionKey, Verb::Query, "QueryClientEncryptionKeys"),
    (Kind::Procedure, Verb::Create, "CreateStoredProcedure"),
    (Kind::Procedure, Verb::Upsert, "UpsertStoredProcedure"),
    (Kind::Procedure, Verb::Read, "ReadStoredProcedure"),
    (Kind::Procedure, Verb::Replace, "ReplaceStoredProcedure"),
    (Kind::Procedure, Verb::Delete, "DeleteStoredProcedure"),
    (Kind::Procedure, Verb::List, "ListStoredProcedures"),
    (Kind::Procedure, Verb::Query, "QueryStoredProcedures"),
    (Kind::Trigger, Verb::Create, "CreateTrigger"),
    (Kind::Trigger, Verb::Upsert, "UpsertTrigger"),
    (Kind::Trigger, Verb::Read, "ReadTrigger"),
    (Kind::Trigger, Verb::Replace, "ReplaceTrigger"),
    (Kind::Trigger, Verb::Delete, "DeleteTrigger"),
    (Kind::Trigger, Verb::List, "ListTriggers"),
    (Kind::Trigger, Verb::Query, "QueryTriggers"),
    (Kind::Function, Verb::Create, "CreateUserDefinedFunction"),
    (Kind::Function, Verb::Upsert, "UpsertUserDefinedFunction"),
    (Kind::Function, Verb::Read, "ReadUserDefinedFunction"),
    (Kind::Function, Verb::Replace, "ReplaceUserDefinedFunction"),
    (Kind::Function, Verb::Delete, "DeleteUserDefinedFunction"),
    (Kind::Function, Verb::List, "ListUserDefinedFunctions"),
    (Kind::Function, Verb::Query, "QueryUserDefinedFunctions"),
    (Kind::Conflict, Verb::Read, "ReadConflict"),
    (Kind::Conflict, Verb::Delete, "DeleteConflict"),
    (Kind::Conflict, Verb::List, "ListConflicts"),
    (Kind::Conflict, Verb::Query, "QueryConflicts"),
    (Kind::Offer, Verb::Read, "ReadOffer"),
    (Kind::Offer, Verb::Replace, "ReplaceOffer"),
    (Kind::Offer, Verb::List, "ListOffers"),
    (Kind::Offer, Verb::Query, "QueryOffers"),
];

fn resource_name(verb: Verb, kind: Kind) -> Option<&'static str> {
    let found = RESOURCE_OPERATIONS.iter().find(|(k, v, _)| (*k, *v) == (kind, verb));
    found.map(|(_, _, name)| *name)
}

impl Operation {
    pub(crate) fn parse(method: &Method, address: Address, headers: &Headers) -> Result<Self> {
        match (method.as_str(), address) {
            ("GET", Address::Account) => Ok(Self::ReadAccount),
            ("GET", Address::Certificate) => Ok(Self::ReadCertificate),
            ("POST", Address::PartitionDelete(container)) => Ok(Self::DeletePartition(container)),
            (_, Address::Attachments) => {
                Err(Fault::gap("The service's old feature of attachments"))
            }
            (method, Address::Feed(Feed::InContainer(container, ContainerChild::Items))) => {
                on_items(method, container, headers)
            }
            (method, Address::One(Feed::InContainer(container, ContainerChild::Items), id)) => {
                on_item(method, container, id)
            }
            ("GET", Address::Feed(Feed::InContainer(container, ContainerChild::Ranges))) => {
                Ok(Self::ReadRanges(container))
            }
            (
                "POST",
                Address::One(Feed::InContainer(container, ContainerChild::Procedures), id),
            ) => Ok(Self::ExecuteProcedure { container, id }),
            (
                "POST",
                Address::One(Feed::InDatabase(database, DatabaseChild::Containers), container),
            ) if headers.switch.is_some() => {
                Ok(Self::SwitchContainer(ContainerName { database, container }))
            }
            (
                "POST",
                Address::One(Feed::InDatabase(database, DatabaseChild::Containers), container),
            ) if headers.rebuilds_index => {
                Ok(Self::RebuildIndex(ContainerName { database, container }))
            }
            (method, Address::Feed(feed)) => on_resources(method, feed, None, headers),
            (method, Address::One(feed, id)) => on_resources(method, feed, Some(id), headers),
            _ => Err(not_allowed()),
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::ReadAccount => "ReadAccount",
            Self::ReadCertificate => "ReadCertificate",
            // Others are refused by the parser.
            Self::Resource { verb, kind, .. } => resource_name(*verb, *kind).unwrap_or("Resource"),
            Self::ReadRanges(_) => "ReadPartitionKeyRanges",
            Self::SwitchContainer(_) => "SwitchContainer",
            Self::RebuildIndex(_) => "RebuildIndex",
            Self::ExecuteProcedure { .. } => "ExecuteStoredProcedure",
            Self::CreateItem(_) => "CreateItem",
            Self::UpsertItem(_) => "UpsertItem",
            Self::QueryItems(_) => "QueryItems",
            Self::PlanQuery(_) => "PlanQuery",
            Self::RunBatch(_) => "RunBatch",
            Self::ListItems(_) => "ListItems",
            Self::ReadChanges(_) => "ReadChangeFeed",
            Self::ReadItem { .. } => "ReadItem",
            Self::ReplaceItem { .. } => "ReplaceItem",
            Self::PatchItem { .. } => "PatchItem",
            Self::DeleteItem { .. } => "DeleteItem",
            Self::DeletePartition(_) => "DeletePartition",
        }
    }

    /// Whether the operation leaves everything as it is, so that a token for reading will do. A batch may write.
    pub(crate) fn only_reads(&self) -> bool {
        match self {
            Self::Resource { verb, .. } => matches!(verb, Verb::Read | Verb::List | Verb::Query),
            Self::ReadAccount
            | Self::ReadCertificate
            | Self::ReadRanges(_)
            | Self::QueryItems(_)
            | Self::PlanQuery(_)
            | Self::ListItems(_)
            | Self::ReadChanges(_)
            | Self::ReadItem { .. } => true,
            Self::ExecuteProcedure { .. }
            | Self::SwitchContainer(_)
            | Self::RebuildIndex(_)
            | Self::CreateItem(_)
            | Self::UpsertItem(_)
            | Self::RunBatch(_)
            | Self::ReplaceItem { .. }
            | Self::PatchItem { .. }
            | Self::DeleteItem { .. }
            | Self::DeletePartition(_) => false,
        }
    }
}

fn not_allowed() -> Fault {
    let message = "The requested verb is not supported on the specified resource.";
    Fault::new(Status::MethodNotAllowed, message)
}

/// One address stands for many operations, told apart by headers. The order matters: a request for a plan may say that it
/// is a query too, and must not run it.
fn on_items(method: &str, container: ContainerName, headers: &Headers) -> Result<Operation> {
    match method {
        "POST" if headers.is_plan => Ok(Operation::PlanQuery(container)),
        "POST" if headers.is_batch => Ok(Operation::RunBatch(container)),
        "POST" if headers.is_query => Ok(Operation::QueryItems(container)),
        "POST" if headers.is_upsert => Ok(Operation::UpsertItem(container)),
        "POST" => Ok(Operation::CreateItem(container)),
        "GET" if headers.changes.is_some() => Ok(Operation::ReadChanges(container)),
        "GET" => Ok(Operation::ListItems(container)),
        _ => Err(not_allowed()),
    }
}

fn on_item(method: &str, container: ContainerName, id: String) -> Result<Operation> {
    match method {
        "GET" => Ok(Operation::ReadItem { container, id }),
        "PUT" => Ok(Operation::ReplaceItem { container, id }),
        "PATCH" => Ok(Operation::PatchItem { container, id }),
        "DELETE" => Ok(Operation::DeleteItem { container, id }),
        _ => Err(not_allowed()),
    }
}

fn on_resources(
    method: &str,
    feed: Feed,
    id: Option<String>,
    headers: &Headers,
) -> Result<Operation> {
    let verb = match (method, &id) {
        ("GET", Some(_)) => Verb::Read,
        ("PUT", Some(_)) => Verb::Replace,
        ("DELETE", Some(_)) => Verb::Delete,
        ("GET", None) => Verb::List,
        ("POST", None) if headers.is_query => Verb::Query,
        ("POST", None) if headers.is_upsert => Verb::Upsert,
        ("POST", None) => Verb::Create,
        _ => return Err(not_allowed()),
    };
    let kind = kind_of(&feed).ok_or_else(not_allowed)?;
    resource_name(verb, kind).ok_or_else(not_allowed)?;
    Ok(Operation::Resource { verb, kind, feed, id })
}

fn kind_of(feed: &Feed) -> Option<Kind> {
    match feed {
        Feed::Databases => Some(Kind::Database),
        Feed::Offers => Some(Kind::Offer),
        Feed::Permissions { .. } => Some(Kind::Permission),
        Feed::InDatabase(_, child) => Some(match child {
            DatabaseChild::Containers => Kind::Container,
            DatabaseChild::Users => Kind::User,
            DatabaseChild::EncryptionKeys => Kind::EncryptionKey,
        }),
        Feed::InContainer(_, child) => match child {
            ContainerChild::Items | ContainerChild::Ranges => None,
            ContainerChild::Procedures => Some(Kind::Procedure),
            ContainerChild::Triggers => Some(Kind::Trigger),
            ContainerChild::Functions => Some(Kind::Function),
            ContainerChild::Conflicts => Some(Kind::Conflict),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use lazuli_http::HeaderMap;

    use super::*;
    use crate::address::Target;

    fn parsed(method: &str, path: &str, lines: &[&'static str]) -> Result<&'static str> {
        let mut headers = HeaderMap::new();
        for line in lines {
            let (name, value) = line.split_once(": ").unwrap();
            headers.insert(name, value.parse().unwrap());
        }
        let headers = Headers::parse(&headers)?;
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let operation = Operation::parse(&method, Target::parse(path)?.address, &headers)?;
        Ok(operation.name())
    }

    #[test]
    fn headers_tell_the_posts_of_items_apart_in_the_right_order() {
        let docs = "/dbs/d/colls/c/docs";
        let plan = "x-ms-cosmos-is-query-plan-request: True";
        let batch = "x-ms-cosmos-is-batch-request: true";
        let query = "x-ms-documentdb-isquery: true";
        let upsert = "x-ms-documentdb-is-upsert: true";
        let all = [plan, batch, query, upsert];
        assert_eq!(parsed("POST", docs, &all), Ok("PlanQuery"));
        assert_eq!(parsed("POST", docs, &all[1..]), Ok("RunBatch"));
        assert_eq!(parsed("POST", docs, &all[2..]), Ok("QueryItems"));
        assert_eq!(parsed("POST", docs, &all[3..]), Ok("UpsertItem"));
        assert_eq!(parsed("POST", docs, &[]), Ok("CreateItem"));
        let typed = ["content-type: application/query+json"];
        assert_eq!(parsed("POST", docs, &typed), Ok("QueryItems"));
    }

    #[test]
    fn the_change_feed_is_a_list_with_a_header() {
        let docs = "/dbs/d/colls/c/docs/";
        assert_eq!(parsed("GET", docs, &[]), Ok("ListItems"));
        assert_eq!(parsed("GET", docs, &["a-im: Incremental Feed"]), Ok("ReadChangeFeed"));
        let ranges = "/dbs/d/colls/c/pkranges";
        assert_eq!(
            parsed("GET", ranges, &["a-im: Incremental Feed"]),
            Ok("ReadPartitionKeyRanges")
        );
    }

    #[test]
    fn what_the_service_does_not_do_is_not_allowed() {
        for (method, path) in [
            ("PUT", "/"),
            ("PUT", "/dbs/d"),
            ("POST", "/offers"),
            ("DELETE", "/offers/o"),
            ("POST", "/dbs/d"),
            ("PATCH", "/dbs/d/colls/c"),
            ("GET", "/dbs/d/colls/c/pkranges/0"),
            ("POST", "/dbs/d/colls/c/triggers/t"),
            ("HEAD", "/dbs"),
        ] {
            let refused = parsed(method, path, &[]).unwrap_err();
            assert_eq!(refused.status, Status::MethodNotAllowed, "{method} {path}");
        }
        let refused = parsed("GET", "/dbs/d/colls/c/docs/1/attachments", &[]).unwrap_err();
        assert_eq!(refused.status, Status::NotImplemented);
    }

    #[test]
    fn the_table_of_operations_is_that_of_the_code() {
        let table: toml::Table = include_str!("../operations.toml").parse().unwrap();
        let rows = table["operation"].as_array().unwrap();
        let mut listed = BTreeSet::new();
        for row in rows {
            let text = |name: &str| row[name].as_str().unwrap();
            let path = text("path").replace(['{', '}'], "");
            let lines: Vec<&'static str> =
                row.get("header").and_then(toml::Value::as_str).map(leak).into_iter().collect();
            let parsed = parsed(text("method"), &path, &lines);
            match text("status") {
                "done" => assert_eq!(parsed, Ok(leak(text("name"))), "{row:?}"),
                "gap" => {
                    let status = parsed.map_err(|fault| fault.status);
                    assert_eq!(status, Err(Status::NotImplemented), "{row:?}");
                    continue;
                }
                other => panic!("{other}"),
            }
            assert!(listed.insert(text("name").to_owned()), "{row:?} is there twice");
        }
        let resources = RESOURCE_OPERATIONS.iter().map(|(_, _, name)| *name);
        assert!(resources.clone().all(|name| listed.contains(name)));
        assert_eq!(listed.len(), resources.count() + 18);
    }

    fn leak(text: &str) -> &'static str {
        text.to_owned().leak()
    }
}
