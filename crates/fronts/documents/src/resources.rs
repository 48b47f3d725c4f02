//! Resources beside items: databases, containers, users, permissions, keys and scripts. All of them are entries of the
//! directory with the same operations; what is special about a kind stands in the functions named after it.

use lazuli_http::uri::{percent_decode, percent_encode};
use lazuli_http::{Request, Response, StatusCode};
use lazuli_shapes::document::{Resource, ResourceKind, Rid, etag, etag_version};
use lazuli_value::{Object, Value};

use crate::address::Feed;
use crate::charge::{METADATA_READ, METADATA_WRITE};
use crate::error::{Fault, Result};
use crate::limits::NAME_CHARS_MAX;
use crate::request::{Kind, Verb};
use crate::{Call, Front, containers, offers, permissions, query, response, scripts};

/// What an operation is about.
pub(crate) struct Place<'a> {
    pub(crate) kind: Kind,
    pub(crate) feed: &'a Feed,
    pub(crate) id: Option<&'a str>,
}

/// The operations on all kinds of resources.
pub(crate) async fn run(
    front: &Front,
    call: &Call,
    verb: Verb,
    place: &Place<'_>,
    request: &mut Request,
) -> Result<Response> {
    let Some(kind) = place.kind.resource() else {
        return conflicts(front, call, verb, place).await;
    };
    let parent = front.parent(&call.sender.account, place.feed).await?;
    match verb {
        Verb::Create => {
            let body = front.body(request).await?;
            create(front, call, place.kind, parent.as_ref(), body).await
        }
        Verb::Upsert => {
            let body = front.body(request).await?;
            upsert(front, call, place.kind, parent.as_ref(), body).await
        }
        Verb::List => list(front, call, place.kind, kind, parent.as_ref()).await,
        Verb::Query => {
            let body = front.body(request).await?;
            let all = all(front, call, kind, parent.as_ref()).await?;
            let rows = shown(front, call, place.kind, &all).await?;
            let owner = parent.as_ref().map(|parent| parent.rid.to_string()).unwrap_or_default();
            query::over_values(call, place.kind.plural(), &owner, rows, &Value::Object(body))
        }
        Verb::Read => {
            let found = one(front, call, place, kind, parent.as_ref()).await?;
            if call.headers.if_none_match.as_deref() == Some(&etag(found.version)) {
                return Ok(response::charged(
                    response::empty(StatusCode::NOT_MODIFIED),
                    METADATA_READ,
                ));
            }
            let response = answer(front, call, place.kind, StatusCode::OK, &found).await?;
            let response = response::charged(response, METADATA_READ);
            match place.kind {
                Kind::Container => containers::with_figures(front, call, &found, response).await,
                _ => Ok(response),
            }
        }
        Verb::Replace => {
            let body = front.body(request).await?;
            let found = one(front, call, place, kind, parent.as_ref()).await?;
            replace(front, call, place.kind, &found, body).await
        }
        Verb::Delete => {
            let found = one(front, call, place, kind, parent.as_ref()).await?;
            delete(front, call, &found).await
        }
    }
}

/// There is one region, so there is never a conflict.
async fn conflicts(front: &Front, call: &Call, verb: Verb, place: &Place<'_>) -> Result<Response> {
    let parent = front.parent(&call.sender.account, place.feed).await?;
    match verb {
        Verb::List | Verb::Query => {
            let owner = parent.map(|parent| parent.rid.to_string()).unwrap_or_default();
            let body = feed(&owner, Kind::Conflict.plural(), Vec::new());
            Ok(response::charged(response::json(StatusCode::OK, &body), METADATA_READ)
                .with("x-ms-item-count", "0"))
        }
        Verb::Create | Verb::Upsert | Verb::Read | Verb::Replace | Verb::Delete => {
            Err(Fault::not_found())
        }
    }
}

async fn one(
    front: &Front,
    call: &Call,
    place: &Place<'_>,
    kind: ResourceKind,
    parent: Option<&Resource>,
) -> Result<Resource> {
    let id = place.id.unwrap_or_default();
    let parent = parent.map(|parent| &parent.rid);
    let found = front.find(&call.sender.account, kind, parent, id).await?;
    found.ok_or_else(Fault::not_found)
}

/// Refuses an id that cannot stand in an address.
pub(crate) fn check_id(body: &Object) -> Result<String> {
    let Some(Value::String(id)) = body.get("id") else {
        return Err(Fault::bad_input("the body needs an 'id' that is a text"));
    };
    let is_long = id.is_empty() || id.chars().count() > NAME_CHARS_MAX;
    if is_long || id.contains(['/', '\\', '?', '#']) || id.ends_with(' ') {
        return Err(Fault::bad_input(
            "an id has 1 to 255 characters, none of '/', '\\', '?', '#', and no space at its end",
        ));
    }
    Ok(id.clone())
}

/// What a client wrote without the names that belong to the service.
fn plain(mut body: Object) -> Object {
    for name in ["_rid", "_self", "_etag", "_ts", "_token", "_colls", "_users", "_permissions"] {
        body.remove(name);
    }
    body
}

async fn create(
    front: &Front,
    call: &Call,
    kind: Kind,
    parent: Option<&Resource>,
    body: Object,
) -> Result<Response> {
    let id = check_id(&body)?;
    let made = match (kind, parent) {
        (Kind::Container, Some(database)) => {
            containers::create(front, call, database, &id, &body).await?
        }
        (Kind::Container | Kind::Offer | Kind::Conflict, _) => return Err(Fault::not_found()),
        _ => {
            let body = checked(kind, plain(body))?;
            let account = &call.sender.account;
            let resource = kind.resource().ok_or_else(Fault::not_found)?;
            let parent = parent.map(|parent| &parent.rid);
            let wanted = match kind {
                Kind::Database => offers::wanted(call)?,
                _ => None,
            };
            let body = Value::Object(body);
            let documents = &front.documents;
            let made =
                documents.create_resource(account, resource, parent, Some(&id), body).await?;
            if let Some(wanted) = wanted {
                offers::create(front, call, &made, wanted).await?;
            }
            made
        }
    };
    let response = answer(front, call, kind, StatusCode::CREATED, &made).await?;
    Ok(response::charged(response, METADATA_WRITE))
}

/// The service's own rules for the body of a kind.
fn checked(kind: Kind, body: Object) -> Result<Object> {
    match kind {
        Kind::Permission => permissions::checked(body),
        Kind::Procedure | Kind::Trigger | Kind::Function => scripts::checked(kind, body),
        Kind::Database
        | Kind::Container
        | Kind::User
        | Kind::EncryptionKey
        | Kind::Offer
        | Kind::Conflict => Ok(body),
    }
}

async fn upsert(
    front: &Front,
    call: &Call,
    kind: Kind,
    parent: Option<&Resource>,
    body: Object,
) -> Result<Response> {
    let id = check_id(&body)?;
    let resource = kind.resource().ok_or_else(Fault::not_found)?;
    let rid = parent.map(|parent| &parent.rid);
    match front.find(&call.sender.account, resource, rid, &id).await? {
        Some(found) => replace(front, call, kind, &found, body).await,
        None => create(front, call, kind, parent, body).await,
    }
}

async fn replace(
    front: &Front,
    call: &Call,
    kind: Kind,
    found: &Resource,
    body: Object,
) -> Result<Response> {
    let if_match = call.headers.if_match.as_deref().filter(|text| *text != "*");
    let version = match if_match {
        None => None,
        Some(text) => Some(etag_version(text).ok_or_else(Fault::precondition)?),
    };
    let replaced = match kind {
        Kind::Container => containers::replace(front, call, found, &body, version).await?,
        Kind::Offer => offers::replace(front, call, found, &body, version).await?,
        _ => {
            if check_id(&body)? != found.id {
                return Err(Fault::bad_request("The id of this resource cannot be changed."));
            }
            let body = Value::Object(checked(kind, plain(body))?);
            let account = &call.sender.account;
            front.documents.replace_resource(account, &found.rid, body, version).await?
        }
    };
    let response = answer(front, call, kind, StatusCode::OK, &replaced).await?;
    Ok(response::charged(response, METADATA_WRITE))
}

async fn delete(front: &Front, call: &Call, found: &Resource) -> Result<Response> {
    let if_match = call.headers.if_match.as_deref().filter(|text| *text != "*");
    let version = match if_match {
        None => None,
        Some(text) => Some(etag_version(text).ok_or_else(Fault::precondition)?),
    };
    let account = &call.sender.account;
    let deleted = front.documents.delete_resource(account, &found.rid, version).await?;
    offers::forget(front, call, &deleted).await?;
    Ok(response::charged(response::empty(StatusCode::NO_CONTENT), METADATA_WRITE))
}

async fn list(
    front: &Front,
    call: &Call,
    kind: Kind,
    resource: ResourceKind,
    parent: Option<&Resource>,
) -> Result<Response> {
    let after = match call.headers.continuation.as_deref() {
        None => None,
        Some(text) => {
            let decoded = percent_decode(text);
            Some(decoded.map_err(|_| Fault::bad_header("x-ms-continuation"))?.into_owned())
        }
    };
    let most = front.parts.limits.page_items(call.headers.items_max);
    let rid = parent.map(|parent| &parent.rid);
    let account = &call.sender.account;
    let page = front.documents.resources(account, resource, rid, after.as_deref(), most).await?;
    let rows = shown(front, call, kind, &page.resources).await?;
    let count = rows.len();
    let owner = rid.map(Rid::to_string).unwrap_or_default();
    let body = feed(&owner, kind.plural(), rows);
    let response = response::charged(response::json(StatusCode::OK, &body), METADATA_READ)
        .with("x-ms-item-count", count.to_string());
    Ok(match page.next {
        Some(next) => response.with("x-ms-continuation", percent_encode(&next)),
        None => response,
    })
}

/// All resources of a kind under a parent. There are at most as many as the service allows, which is few.
pub(crate) async fn all(
    front: &Front,
    call: &Call,
    kind: ResourceKind,
    parent: Option<&Resource>,
) -> Result<Vec<Resource>> {
    /// The most of one kind under one parent that are looked at.
    const RESOURCES_MAX: usize = 20_000;
    let (mut all, mut after) = (Vec::new(), None);
    let parent = parent.map(|parent| &parent.rid);
    while all.len() < RESOURCES_MAX {
        let account = &call.sender.account;
        let page =
            front.documents.resources(account, kind, parent, after.as_deref(), 1_000).await?;
        all.extend(page.resources);
        match page.next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    Ok(all)
}

/// The body of a feed.
pub(crate) fn feed(owner: &str, plural: &str, rows: Vec<Value>) -> Value {
    let mut body = Object::new();
    body.insert("_rid", owner.into());
    let count = rows.len() as i64;
    body.insert(plural, Value::Array(rows));
    body.insert("_count", count.into());
    Value::Object(body)
}

async fn answer(
    front: &Front,
    call: &Call,
    kind: Kind,
    status: StatusCode,
    resource: &Resource,
) -> Result<Response> {
    let rows = shown(front, call, kind, std::slice::from_ref(resource)).await?;
    let body = rows.into_iter().next().unwrap_or(Value::Null);
    Ok(response::json(status, &body).with("etag", etag(resource.version)))
}

/// Resources as clients see them.
async fn shown(
    front: &Front,
    call: &Call,
    kind: Kind,
    resources: &[Resource],
) -> Result<Vec<Value>> {
    let rows = resources.iter().map(|one| Value::Object(show(front, call, kind, one)));
    let mut rows: Vec<Value> = rows.collect();
    if kind == Kind::Offer {
        offers::add_pending(front, call, &mut rows).await?;
    }
    Ok(rows)
}

/// A resource as clients see it.
fn show(front: &Front, call: &Call, kind: Kind, resource: &Resource) -> Object {
    let mut shown = match &resource.body {
        Value::Object(body) => body.clone(),
        _ => Object::new(),
    };
    shown.insert("id", resource.id.as_str().into());
    shown.insert("_rid", resource.rid.to_string().into());
    shown.insert("_self", link(kind, &resource.rid).into());
    shown.insert("_etag", etag(resource.version).into());
    shown.insert("_ts", ((resource.written_ms / 1_000) as i64).into());
    let children: &[(&str, &str)] = match kind {
        Kind::Database => &[("_colls", "colls/"), ("_users", "users/")],
        Kind::Container => &[
            ("_docs", "docs/"),
            ("_sprocs", "sprocs/"),
            ("_triggers", "triggers/"),
            ("_udfs", "udfs/"),
            ("_conflicts", "conflicts/"),
        ],
        Kind::User => &[("_permissions", "permissions/")],
        Kind::Permission => {
            permissions::add_token(front, call, &resource.rid, &mut shown);
            &[]
        }
        _ => &[],
    };
    for (name, link) in children {
        shown.insert(*name, (*link).into());
    }
    shown
}

/// The address of a resource by ids.
pub(crate) fn link(kind: Kind, rid: &Rid) -> String {
    let database = rid.database();
    let owner = || rid.collection().map(|rid| rid.to_string()).unwrap_or_default();
    let in_container = |name: &str| format!("dbs/{database}/colls/{}/{name}/{rid}/", owner());
    match kind {
        Kind::Database => format!("dbs/{rid}/"),
        Kind::Container => format!("dbs/{database}/colls/{rid}/"),
        Kind::User => format!("dbs/{database}/users/{rid}/"),
        Kind::Permission => format!("dbs/{database}/users/{}/permissions/{rid}/", owner()),
        Kind::EncryptionKey => format!("dbs/{database}/clientencryptionkeys/{rid}/"),
        Kind::Procedure => in_container("sprocs"),
        Kind::Trigger => in_container("triggers"),
        Kind::Function => in_container("udfs"),
        Kind::Conflict => in_container("conflicts"),
        Kind::Offer => format!("offers/{rid}/"),
    }
}

impl Kind {
    /// The name of its list in the body of a feed.
    pub(crate) fn plural(self) -> &'static str {
        match self {
            Self::Database => "Databases",
            Self::Container => "DocumentCollections",
            Self::User => "Users",
            Self::Permission => "Permissions",
            Self::EncryptionKey => "ClientEncryptionKeys",
            Self::Procedure => "StoredProcedures",
            Self::Trigger => "Triggers",
            Self::Function => "UserDefinedFunctions",
            Self::Conflict => "Conflicts",
            Self::Offer => "Offers",
        }
    }
}
