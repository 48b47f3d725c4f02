//! Containers: created with their ranges and their offer, changed, and opened for operations on items.

use std::sync::Arc;

use lazuli_engine::{Kind, Lsn, PartitionId, Size};
use lazuli_http::{Response, StatusCode};
use lazuli_shapes::document::{
    Collection, DefinitionChange, IndexProgress, NewCollection, PartitionKey, Range, Resource,
    ResourceKind,
};
use lazuli_value::{Object, Value};

use crate::address::ContainerName;
use crate::charge::METADATA_WRITE;
use crate::error::{Fault, Result, substatus};
use crate::headers::{Switch, Throughput};
use crate::{Call, Front, definition, offers, query, response};

/// A container that a request is about.
pub(crate) struct Opened {
    /// The id of its database.
    pub(crate) database: Arc<str>,
    pub(crate) resource: Arc<Resource>,
    pub(crate) collection: Collection,
}

impl Opened {
    /// Its address by names, by which clients remember how far they have seen it.
    pub(crate) fn path(&self) -> String {
        format!("dbs/{}/colls/{}", self.database, self.resource.id)
    }
}

impl Front {
    /// Opens the container that a path names. A client that means another one of the same name, which is gone, is told so.
    pub(crate) async fn open(&self, call: &Call, name: &ContainerName) -> Result<Opened> {
        let opened = self.open_path(&call.sender.account, name).await?;
        let rid = opened.resource.rid.to_string();
        if call.headers.intended_container.as_ref().is_some_and(|intended| *intended != rid) {
            let message =
                "The requested operation cannot be performed: the container was created anew.";
            return Err(Fault::bad_request(message).substatus(substatus::OTHER_CONTAINER));
        }
        Ok(opened)
    }

    /// A path that was seen before needs no look into the directory, as long as its container can be opened.
    async fn open_path(&self, account: &str, name: &ContainerName) -> Result<Opened> {
        let path = (account.to_owned(), name.database.clone(), name.container.clone());
        if let Some((database, resource, version)) = self.remembered.container(&path) {
            match self.documents.open_rid(account, &resource.rid).await {
                Ok(collection) if collection.version() == version => {
                    return Ok(Opened { database, resource, collection });
                }
                Ok(_) => {}
                Err(error) if error.kind() == Kind::NotFound => {
                    self.remembered.forget_container(&path);
                }
                Err(error) => return Err(error.into()),
            }
        }
        let database = self.database(account, &name.database).await?;
        let kind = ResourceKind::Collection;
        let found = self.find(account, kind, Some(&database.rid), &name.container).await?;
        let resource = Arc::new(found.ok_or_else(Fault::no_owner)?);
        let collection = self.documents.open_rid(account, &resource.rid).await?;
        let database: Arc<str> = database.id.into();
        let found = (database.clone(), resource.clone(), collection.version());
        self.remembered.keep_container(path, found);
        Ok(Opened { database, resource, collection })
    }

    /// The partition key of a request that must have one.
    pub(crate) fn key(&self, call: &Call, opened: &Opened) -> Result<PartitionKey> {
        let Some(values) = &call.headers.partition_key else {
            return Err(Fault::bad_request(
                "PartitionKey value must be supplied for this operation.",
            ));
        };
        whole_key(values, opened)
    }

    /// The range of this number. A number that is not a live range's is gone.
    pub(crate) async fn range(&self, opened: &Opened, id: &str) -> Result<Range> {
        let ranges = self.documents.ranges(&opened.collection).await?;
        let found = ranges.into_iter().find(|range| range.id.0.to_string() == id);
        found.ok_or_else(|| Fault::range_gone(id))
    }
}

/// A key of as many values as the container has levels, or of none.
pub(crate) fn whole_key(values: &[Value], opened: &Opened) -> Result<PartitionKey> {
    let levels = opened.collection.definition().levels();
    if !values.is_empty() && values.len() != levels {
        let message = "Partition key provided either doesn't correspond to definition in the collection or \
                       doesn't match partition key field values specified in the document.";
        return Err(Fault::bad_request(message).substatus(substatus::KEY_MISMATCH));
    }
    Ok(PartitionKey::from_values(values)?)
}

pub(crate) async fn create(
    front: &Front,
    call: &Call,
    database: &Resource,
    id: &str,
    body: &Object,
) -> Result<Resource> {
    let checked = definition::check(body)?;
    let limits = &front.parts.limits;
    let wanted = offers::wanted(call)?;
    // Without a throughput of its own a container shares that of its database.
    let shares =
        wanted.is_none() && offers::find(front, call, &database.rid.to_string()).await?.is_some();
    let own = wanted.unwrap_or(Throughput::Manual(limits.throughput_default));
    let new = NewCollection {
        definition: checked.new,
        ranges: if shares { 1 } else { own.ranges(limits) },
        throughput: None,
        body: Value::Object(checked.body),
    };
    let account = &call.sender.account;
    let (made, _) = front.documents.create_collection(account, &database.rid, id, new).await?;
    if !shares {
        offers::create(front, call, &made, own).await?;
    }
    Ok(made)
}

pub(crate) async fn replace(
    front: &Front,
    call: &Call,
    found: &Resource,
    body: &Object,
    version: Option<Lsn>,
) -> Result<Resource> {
    let mut given = body.clone();
    // A client may leave out what cannot be changed anyhow.
    if let Value::Object(before) = &found.body {
        for name in ["partitionKey", "uniqueKeyPolicy"] {
            if let (None | Some(Value::Null), Some(kept)) = (given.get(name), before.get(name)) {
                given.insert(name, kept.clone());
            }
        }
    }
    let checked = definition::check(&given)?;
    if let Value::Object(before) = &found.body {
        definition::check_change(before, &checked.body)?;
    }
    let account = &call.sender.account;
    let collection = front.documents.open_rid(account, &found.rid).await?;
    let change = DefinitionChange {
        indexing: Some(checked.new.indexing),
        ttl_s: Some(checked.new.ttl_s),
        versions_kept_s: Some(checked.new.versions_kept_s),
    };
    front.documents.change_definition(&collection, &change).await?;
    let body = Value::Object(checked.body);
    let replaced = front.documents.replace_resource(account, &found.rid, body, version).await?;
    front.remembered.forget_containers();
    Ok(replaced)
}

/// A step of putting one container in the place of another: writes are held back or let in, or both exchange their names.
pub(crate) async fn switch(front: &Front, call: &Call, name: &ContainerName) -> Result<Response> {
    let opened = front.open(call, name).await?;
    let (documents, account) = (&front.documents, &call.sender.account);
    match &call.headers.switch {
        Some(Switch::Hold(seconds)) => {
            documents.hold(&opened.collection, u64::from(*seconds) * 1_000).await?;
        }
        Some(Switch::Open) => documents.release(&opened.collection).await?,
        Some(Switch::Exchange(other)) => {
            let other = ContainerName { container: other.clone(), ..name.clone() };
            let other = front.container(account, &other).await?;
            documents.exchange(account, &opened.resource.rid, &other.rid).await?;
            front.remembered.forget_containers();
        }
        None => return Err(Fault::bad_header("x-lazuli-switch")),
    }
    Ok(response::charged(response::empty(StatusCode::NO_CONTENT), METADATA_WRITE))
}

/// Begins to build the index of a container anew. Reading the container tells how far it has come.
pub(crate) async fn rebuild_index(
    front: &Front,
    call: &Call,
    name: &ContainerName,
) -> Result<Response> {
    let opened = front.open(call, name).await?;
    front.documents.rebuild_index(&opened.collection).await?;
    Ok(response::charged(response::empty(StatusCode::ACCEPTED), METADATA_WRITE))
}

/// Adds what a client asks for with a container: its use of what it may use, and what each range has.
pub(crate) async fn with_figures(
    front: &Front,
    call: &Call,
    found: &Resource,
    mut response: Response,
) -> Result<Response> {
    if !call.headers.wants_quota && !call.headers.wants_statistics {
        return Ok(response);
    }
    let collection = front.documents.open_rid(&call.sender.account, &found.rid).await?;
    let sizes = front.documents.sizes(&collection).await?;
    if call.headers.wants_statistics {
        let body = response.body.collect(usize::MAX).await?;
        let Value::Object(mut shown) = crate::items::parse(&body)? else {
            return Err(Fault::internal("a container is no object"));
        };
        let rate = |range| front.remembered.budgets.spent(&found.rid, range, call.received_ms);
        let rows = sizes.iter().map(|(range, size)| statistics(*range, *size, rate(range.0)));
        shown.insert("statistics", Value::Array(rows.collect()));
        let headers = std::mem::take(&mut response.headers);
        response = response::json(response.status, &Value::Object(shown));
        for (name, value) in &headers {
            response.headers.insert(name, value.clone());
        }
    }
    if !call.headers.wants_quota {
        return Ok(response);
    }
    let kilobytes = kilobytes(sizes.iter().map(|(_, size)| size.bytes).sum());
    let resource = Arc::new(found.clone());
    let opened = Opened { database: Arc::from(""), resource, collection };
    let items = query::count(front, call, &opened).await?;
    let usage = format!(
        "documentSize=0;documentsSize={kilobytes};documentsCount={items};collectionSize={kilobytes};"
    );
    let quota =
        "documentSize=10240;documentsSize=10485760;documentsCount=-1;collectionSize=10485760;";
    let built = front.documents.index_progress(&opened.collection).await?;
    let all = sizes.iter().map(|(_, size)| size.items).sum();
    Ok(response
        .with("x-ms-resource-quota", quota)
        .with("x-ms-resource-usage", usage)
        .with("x-ms-documentdb-collection-index-transformation-progress", percent(built, all)))
}

/// How much of an index is built, in percent. What is being built is never told as done.
fn percent(built: IndexProgress, all: u64) -> String {
    match built.is_building {
        true => (built.items.min(all) * 100 / all.max(1)).min(99).to_string(),
        false => "100".to_owned(),
    }
}

fn kilobytes(bytes: u64) -> i64 {
    i64::try_from(bytes.div_ceil(1_024)).unwrap_or(i64::MAX)
}

/// What a range has, as the service tells it, and beside that the request units per second that it was asked for of late.
fn statistics(range: PartitionId, size: Size, units_per_second: f64) -> Value {
    let mut shown = Object::new();
    shown.insert("id", range.0.to_string().into());
    shown.insert("sizeInKB", kilobytes(size.bytes).into());
    shown.insert("documentCount", i64::try_from(size.items).unwrap_or(i64::MAX).into());
    // No keys are sampled.
    shown.insert("sampledDistinctPartitionKeyCount", 0.into());
    shown.insert("partitionKeys", Value::Array(Vec::new()));
    shown.insert("unitsPerSecond", Value::number(units_per_second).unwrap_or(Value::Null));
    Value::Object(shown)
}
