//! The directory of an account: databases, containers, users, permissions, scripts, offers and keys, each with an id of its
//! own and whatever the front keeps about it.
//!
//! All of it is one shardlet of a container of its own, so that a change is one transaction. Row keys: `R | id` has what
//! is kept, `N | kind (1) | parent's id | name` the id, `S` the number of the next resource. Ids of children begin with
//! their parent's, so what is below a resource is one range.

use std::sync::Arc;

use bytes::Bytes;
use lazuli_engine::{
    Container, Cuts, Direction, Error, ItemKey, KeyPart, KeyRange, KeySchema, KeyType, Kind, Lsn,
    MapKind, NewContainer, PREFIX_BYTES, PageLimit, Policies, Result, Space, Transaction, Tx, View,
    after_key,
};
use lazuli_value::Value;

use super::Documents;
use super::reason::DocumentReason;
use super::resource::{Resource, ResourcePage, damaged, decode, encode, missing};
use super::rid::{ResourceKind, Rid};

const SCHEMA: &str = "document-directory/1";
const BY_RID: u8 = b'R';
const BY_NAME: u8 = b'N';
const NEXT_NUMBER: &[u8] = b"S";

/// The rows of one account.
#[derive(Clone)]
pub(super) struct Shelf {
    pub(super) container: Arc<Container>,
    pub(super) route: Bytes,
}

impl Shelf {
    fn row(&self, row: &[u8]) -> ItemKey {
        ItemKey::new(self.container.id, Space::ITEMS, &self.route, row)
    }

    fn by_rid(&self, rid: &Rid) -> ItemKey {
        self.row(&[&[BY_RID], rid.bytes()].concat())
    }

    fn by_name(&self, kind: ResourceKind, parent: Option<&Rid>, id: &str) -> ItemKey {
        self.row(&[&name_prefix(kind, parent)[..], id.as_bytes()].concat())
    }

    /// Rows that begin with these bytes, as `route | row key`.
    fn range(&self, row: &[u8]) -> KeyRange {
        KeyRange::prefix([&self.route[..], row].concat())
    }
}

fn name_prefix(kind: ResourceKind, parent: Option<&Rid>) -> Vec<u8> {
    let parent = parent.map(Rid::bytes).unwrap_or_default();
    [&[BY_NAME, kind.number()], parent].concat()
}

/// The id of the parent of a resource of this kind.
fn parent_of(kind: ResourceKind, rid: &Rid) -> Option<Rid> {
    let length = match kind.parent()? {
        ResourceKind::Database => 4,
        _ => 8,
    };
    rid.bytes().get(..length).map(Rid::from_bytes)
}

async fn load(tx: &Tx<'_>, shelf: &Shelf, rid: &Rid) -> Result<Option<Resource>> {
    let found = tx.get(&shelf.by_rid(rid)).await?;
    found.map(|item| decode(rid.clone(), item)).transpose()
}

/// Gives out the next number of the account.
pub(super) struct TakeNumber(pub(super) Shelf);

impl Transaction for TakeNumber {
    type Output = u64;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<u64> {
        take_number(tx, &self.0).await
    }
}

async fn take_number(tx: &mut Tx<'_>, shelf: &Shelf) -> Result<u64> {
    let key = shelf.row(NEXT_NUMBER);
    let next = match tx.get(&key).await? {
        Some(item) => u64::from_be_bytes(item.payload[..].try_into().map_err(|_| damaged())?),
        None => 1,
    };
    tx.put(&key, Bytes::copy_from_slice(&(next + 1).to_be_bytes())).await?;
    Ok(next)
}

pub(super) struct Create {
    pub(super) shelf: Shelf,
    pub(super) kind: ResourceKind,
    pub(super) parent: Option<Rid>,
    /// None: it is named after the id that it gets.
    pub(super) id: Option<String>,
    pub(super) body: Value,
    /// An id that was made for it before.
    pub(super) rid: Option<Rid>,
}

impl Transaction for Create {
    type Output = Resource;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Resource> {
        let Self { shelf, kind, parent, body, .. } = self;
        if let Some(parent) = parent
            && load(tx, shelf, parent).await?.is_none()
        {
            let message = format!("there is no parent {parent}");
            return Err(Error::not_found(DocumentReason::ParentMissing, message));
        }
        let rid = match &self.rid {
            Some(rid) => rid.clone(),
            None => Rid::new(*kind, parent.as_ref(), take_number(tx, shelf).await?),
        };
        let id = self.id.clone().unwrap_or_else(|| rid.to_string());
        let name = shelf.by_name(*kind, parent.as_ref(), &id);
        if tx.get(&name).await?.is_some() {
            let message = format!("there is a resource {id:?} already");
            return Err(Error::exists(DocumentReason::ResourceExists, message));
        }
        tx.put(&name, Bytes::copy_from_slice(rid.bytes())).await?;
        tx.put(&shelf.by_rid(&rid), encode(*kind, &id, body)).await?;
        let (version, written_ms) = (tx.lsn(), tx.set_back_ms().unwrap_or(tx.now_ms()));
        Ok(Resource { kind: *kind, rid, id, body: body.clone(), version, written_ms })
    }
}

/// Gives two containers of one database each other's name, and answers the names that they have then.
pub(super) struct Exchange {
    pub(super) shelf: Shelf,
    pub(super) first: Rid,
    pub(super) second: Rid,
}

impl Transaction for Exchange {
    type Output = [String; 2];

    async fn run(&self, tx: &mut Tx<'_>) -> Result<[String; 2]> {
        let Self { shelf, first, second } = self;
        let found = |rid: &Rid| missing(&rid.to_string());
        let one = load(tx, shelf, first).await?.ok_or_else(|| found(first))?;
        let two = load(tx, shelf, second).await?.ok_or_else(|| found(second))?;
        let kind = ResourceKind::Collection;
        let parents = [parent_of(kind, first), parent_of(kind, second)];
        if one.kind != kind || two.kind != kind || first == second || parents[0] != parents[1] {
            let message = "only two containers of one database can be exchanged";
            return Err(Error::invalid(DocumentReason::BadDefinition, message));
        }
        let parent = parents[0].as_ref();
        for (resource, id) in [(&one, &two.id), (&two, &one.id)] {
            let rid = Bytes::copy_from_slice(resource.rid.bytes());
            tx.put(&shelf.by_name(kind, parent, id), rid).await?;
            tx.put(&shelf.by_rid(&resource.rid), encode(kind, id, &resource.body)).await?;
        }
        Ok([two.id, one.id])
    }
}

struct Replace {
    shelf: Shelf,
    rid: Rid,
    body: Value,
    version: Option<Lsn>,
}

impl Transaction for Replace {
    type Output = Resource;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Resource> {
        let Self { shelf, rid, body, version } = self;
        let found = load(tx, shelf, rid).await?.ok_or_else(|| missing(&rid.to_string()))?;
        check_version(&found, *version)?;
        tx.put(&shelf.by_rid(rid), encode(found.kind, &found.id, body)).await?;
        let (version, written_ms) = (tx.lsn(), tx.set_back_ms().unwrap_or(tx.now_ms()));
        Ok(Resource { body: body.clone(), version, written_ms, ..found })
    }
}

fn check_version(found: &Resource, version: Option<Lsn>) -> Result<()> {
    if version.is_none_or(|version| version == found.version) {
        return Ok(());
    }
    Err(Error::precondition(DocumentReason::EtagMismatch, "the resource has changed"))
}

struct Delete {
    shelf: Shelf,
    rid: Rid,
    version: Option<Lsn>,
}

/// What was deleted: the resource and all that was below it.
type Deleted = Vec<Resource>;

impl Transaction for Delete {
    type Output = Deleted;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Deleted> {
        let Self { shelf, rid, version } = self;
        let found = load(tx, shelf, rid).await?.ok_or_else(|| missing(&rid.to_string()))?;
        check_version(&found, *version)?;
        let mut deleted = Vec::new();
        let mut rest = shelf.range(&[&[BY_RID], rid.bytes()].concat());
        let (id, space) = (shelf.container.id, Space::ITEMS);
        loop {
            let page = tx.scan(id, space, &rest, Direction::Forward, PageLimit::MAX).await?;
            for (key, item) in page.items {
                let row = &key[PREFIX_BYTES + shelf.route.len() + 1..];
                let child = decode(Rid::from_bytes(row), item)?;
                // Nothing is below an offer, but its short id may be the beginning of others.
                if found.kind == ResourceKind::Offer && child.rid != *rid {
                    continue;
                }
                let parent = parent_of(child.kind, &child.rid);
                tx.delete(&shelf.by_name(child.kind, parent.as_ref(), &child.id)).await?;
                tx.delete(&shelf.by_rid(&child.rid)).await?;
                deleted.push(child);
            }
            match page.next {
                Some(last) => rest.start = after_key(&last.slice(PREFIX_BYTES..)),
                None => return Ok(deleted),
            }
        }
    }
}

impl Documents {
    /// Creates a resource under its parent. Containers are created with [`Documents::create_collection`]. Without a name
    /// it is called by the id that it gets. Fails with `Exists`, and with `ParentMissing`.
    pub async fn create_resource(
        &self,
        account: &str,
        kind: ResourceKind,
        parent: Option<&Rid>,
        id: Option<&str>,
        body: Value,
    ) -> Result<Resource> {
        if kind == ResourceKind::Collection || kind.parent().is_some() != parent.is_some() {
            let message = "a resource of this kind is created in another way";
            return Err(Error::invalid(DocumentReason::BadDefinition, message));
        }
        let shelf = self.shelf(account).await?;
        let (parent, id) = (parent.cloned(), id.map(str::to_owned));
        let create = Create { shelf: shelf.clone(), kind, parent, id, body, rid: None };
        self.engine.write(shelf.container.id, &shelf.route, create).await
    }

    /// A resource by its name. Fails with `NotFound`.
    pub async fn resource(
        &self,
        account: &str,
        kind: ResourceKind,
        parent: Option<&Rid>,
        id: &str,
    ) -> Result<Resource> {
        let Some(shelf) = self.shelf_if_any(account).await? else { return Err(missing(id)) };
        let view = self.engine.read(shelf.container.id, &shelf.route, 1).await?;
        let name = view.get(&shelf.by_name(kind, parent, id)).await?;
        let name = name.ok_or_else(|| missing(id))?;
        let rid = Rid::from_bytes(&name.payload);
        read(&view, &shelf, rid).await?.ok_or_else(|| missing(id))
    }

    /// A resource by its id. Fails with `NotFound`.
    pub async fn resource_by_rid(&self, account: &str, rid: &Rid) -> Result<Resource> {
        let not_there = || missing(&rid.to_string());
        let Some(shelf) = self.shelf_if_any(account).await? else { return Err(not_there()) };
        let view = self.engine.read(shelf.container.id, &shelf.route, 1).await?;
        read(&view, &shelf, rid.clone()).await?.ok_or_else(not_there)
    }

    /// Keeps another body, if the resource still has the version given.
    pub async fn replace_resource(
        &self,
        account: &str,
        rid: &Rid,
        body: Value,
        version: Option<Lsn>,
    ) -> Result<Resource> {
        let shelf = self.shelf(account).await?;
        let replace = Replace { shelf: shelf.clone(), rid: rid.clone(), body, version };
        self.engine.write(shelf.container.id, &shelf.route, replace).await
    }

    /// Deletes a resource with all that is below it, and answers what that was.
    pub async fn delete_resource(
        &self,
        account: &str,
        rid: &Rid,
        version: Option<Lsn>,
    ) -> Result<Vec<Resource>> {
        let shelf = self.shelf(account).await?;
        let delete = Delete { shelf: shelf.clone(), rid: rid.clone(), version };
        let deleted = self.engine.write(shelf.container.id, &shelf.route, delete).await?;
        for resource in deleted.iter().filter(|one| one.kind == ResourceKind::Collection) {
            let name = super::collection::container_name(account, &resource.rid);
            match self.engine.delete_container(&name).await {
                Err(error) if error.kind() == Kind::NotFound => {}
                done => done?,
            }
        }
        Ok(deleted)
    }

    /// Resources of a kind under a parent, by name, behind the name given.
    pub async fn resources(
        &self,
        account: &str,
        kind: ResourceKind,
        parent: Option<&Rid>,
        after: Option<&str>,
        most: usize,
    ) -> Result<ResourcePage> {
        let mut page = ResourcePage { resources: Vec::new(), next: None };
        let Some(shelf) = self.shelf_if_any(account).await? else { return Ok(page) };
        let view = self.engine.read(shelf.container.id, &shelf.route, 1).await?;
        let prefix = name_prefix(kind, parent);
        let mut range = shelf.range(&prefix);
        if let Some(after) = after {
            let last = [&range.start[..], after.as_bytes()].concat();
            range.start = after_key(&last);
        }
        let limit = PageLimit::items(most.max(1));
        let names = view.scan(Space::ITEMS, &range, Direction::Forward, limit).await?;
        let start = PREFIX_BYTES + shelf.route.len() + prefix.len();
        page.next = match &names.next {
            Some(last) => Some(String::from_utf8(last[start..].to_vec()).map_err(|_| damaged())?),
            None => None,
        };
        for (_, item) in names.items {
            let rid = Rid::from_bytes(&item.payload);
            page.resources.extend(read(&view, &shelf, rid).await?);
        }
        Ok(page)
    }

    /// The directory of an account, made at its first use.
    pub(super) async fn shelf(&self, account: &str) -> Result<Shelf> {
        if let Some(shelf) = self.shelf_if_any(account).await? {
            return Ok(shelf);
        }
        let new = NewContainer {
            name: directory_name(account),
            kind: MapKind::Range,
            key: KeySchema::one(KeyType::Text),
            schema: SCHEMA.to_owned(),
            placement: Vec::new(),
            policies: Policies::default(),
            cuts: Cuts::At(Vec::new()),
            shards: Vec::new(),
        };
        match self.engine.create_container(&new).await {
            // Another request created it first.
            Err(error) if error.kind() != Kind::Exists => return Err(error),
            _ => {}
        }
        let made = self.shelf_if_any(account).await?;
        made.ok_or_else(|| Error::unavailable("directory-gone", "the directory was deleted"))
    }

    pub(super) async fn shelf_if_any(&self, account: &str) -> Result<Option<Shelf>> {
        let container = match self.engine.open(&directory_name(account), SCHEMA).await {
            Err(error) if error.kind() == Kind::NotFound => return Ok(None),
            opened => opened?,
        };
        let route = container.kind.route(&container.key, &[KeyPart::Text(String::new())])?;
        Ok(Some(Shelf { container, route }))
    }
}

async fn read(view: &View, shelf: &Shelf, rid: Rid) -> Result<Option<Resource>> {
    let found = view.get(&shelf.by_rid(&rid)).await?;
    found.map(|item| decode(rid, item)).transpose()
}

fn directory_name(account: &str) -> String {
    format!("documents/{account}")
}
