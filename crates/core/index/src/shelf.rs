//! What an account keeps beside its indexes: synonym maps, aliases and keys for queries, in one shardlet of a container of its
//! own. Row keys: `kind (1) | name`.

use std::sync::Arc;

use bytes::Bytes;
use lazuli_engine::{
    Container, Cuts, Direction, Error, Item, ItemKey, KeyPart, KeyRange, KeySchema, KeyType, Kind,
    Lsn, MapKind, NewContainer, PREFIX_BYTES, PageLimit, Policies, Result, Space, Transaction, Tx,
    after_key,
};

use crate::limits::{RECORD_BYTES_MAX, RECORDS_MAX};
use crate::{IndexReason, Indexes};

const SCHEMA: &str = "search-directory/1";
const CONTAINERS: &str = "search-directory/";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RecordKind {
    SynonymMap,
    Alias,
    QueryKey,
    /// How far the text index of an index had come when deletions were forgotten; named by the number of its container.
    Forgotten,
    /// How far one of several copies of a text index has come; named by the number of its container and the copy.
    Copy,
}

impl RecordKind {
    /// Whether clients make them, so that their number needs a limit of its own. There are as many others as text indexes.
    fn is_limited(self) -> bool {
        !matches!(self, Self::Forgotten | Self::Copy)
    }

    fn letter(self) -> u8 {
        match self {
            Self::SynonymMap => b'S',
            Self::Alias => b'A',
            Self::QueryKey => b'K',
            Self::Forgotten => b'F',
            Self::Copy => b'C',
        }
    }
}

/// Something that is kept under a name.
#[derive(Clone, Debug)]
pub struct Record {
    pub name: String,
    pub body: Bytes,
    pub version: Lsn,
}

/// What must be there for a record to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    Anything,
    Nothing,
    /// Something.
    Any,
    Version(Lsn),
}

impl Expect {
    fn check(self, found: Option<&Item>, name: &str) -> Result<()> {
        let differs = || {
            let message = format!("{name:?} was changed meanwhile");
            Err(Error::precondition(IndexReason::VersionDiffers, message))
        };
        match (self, found) {
            (Self::Anything, _) | (Self::Nothing, None) | (Self::Any, Some(_)) => Ok(()),
            (Self::Nothing, Some(_)) => {
                Err(Error::exists(IndexReason::RecordExists, format!("{name:?} is there already")))
            }
            (Self::Any | Self::Version(_), None) => differs(),
            (Self::Version(version), Some(item)) if item.version == version => Ok(()),
            (Self::Version(_), Some(_)) => differs(),
        }
    }
}

/// The rows of one account.
#[derive(Clone)]
struct Shelf {
    container: Arc<Container>,
    route: Bytes,
}

impl Shelf {
    fn row(&self, kind: RecordKind, name: &str) -> ItemKey {
        let row = [&[kind.letter()], name.as_bytes()].concat();
        ItemKey::new(self.container.id, Space::ITEMS, &self.route, &row)
    }

    fn range(&self, kind: RecordKind) -> KeyRange {
        KeyRange::prefix([&self.route[..], &[kind.letter()]].concat())
    }
}

struct Put {
    shelf: Shelf,
    kind: RecordKind,
    name: String,
    body: Bytes,
    expect: Expect,
}

impl Transaction for Put {
    /// Whether it is new, and its version.
    type Output = (bool, Lsn);

    async fn run(&self, tx: &mut Tx<'_>) -> Result<(bool, Lsn)> {
        let key = self.shelf.row(self.kind, &self.name);
        let old = tx.get(&key).await?;
        self.expect.check(old.as_ref(), &self.name)?;
        if old.is_none() && self.kind.is_limited() {
            let limit = PageLimit { items: RECORDS_MAX, bytes: usize::MAX };
            let range = self.shelf.range(self.kind);
            let (id, space) = (self.shelf.container.id, Space::ITEMS);
            let page = tx.scan(id, space, &range, Direction::Forward, limit).await?;
            if page.items.len() >= RECORDS_MAX {
                let message = format!("an account has up to {RECORDS_MAX} of these");
                return Err(Error::invalid(IndexReason::TooMany, message));
            }
        }
        tx.replace(&key, old.as_ref(), self.body.clone(), None)?;
        Ok((old.is_none(), tx.lsn()))
    }
}

struct Delete {
    shelf: Shelf,
    kind: RecordKind,
    name: String,
    expect: Expect,
}

impl Transaction for Delete {
    /// Whether there was one.
    type Output = bool;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<bool> {
        let key = self.shelf.row(self.kind, &self.name);
        let Some(old) = tx.get(&key).await? else { return Ok(false) };
        self.expect.check(Some(&old), &self.name)?;
        tx.remove(&key, &old)?;
        Ok(true)
    }
}

impl Indexes {
    async fn shelf_if_any(&self, account: &str) -> Result<Option<Shelf>> {
        let name = format!("{CONTAINERS}{account}");
        let container = match self.engine.open(&name, SCHEMA).await {
            Err(error) if error.kind() == Kind::NotFound => return Ok(None),
            opened => opened?,
        };
        let route = container.kind.route(&container.key, &[KeyPart::Text(String::new())])?;
        Ok(Some(Shelf { container, route }))
    }

    /// The rows of an account, whose container is made at its first use.
    async fn shelf(&self, account: &str) -> Result<Shelf> {
        if let Some(shelf) = self.shelf_if_any(account).await? {
            return Ok(shelf);
        }
        let new = NewContainer {
            name: format!("{CONTAINERS}{account}"),
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
            Err(error) if error.kind() == Kind::Exists => {}
            created => drop(created?),
        }
        let made = self.shelf_if_any(account).await?;
        made.ok_or_else(|| Error::unavailable("directory-gone", "the directory was deleted"))
    }

    /// What is kept under a name. Fails with `RecordNotFound`.
    pub async fn record(&self, account: &str, kind: RecordKind, name: &str) -> Result<Record> {
        let found = match self.shelf_if_any(account).await? {
            Some(shelf) => self.engine.get(&shelf.row(kind, name), 1).await?,
            None => None,
        };
        let missing = || Error::not_found(IndexReason::RecordNotFound, format!("no {name:?}"));
        let item = found.ok_or_else(missing)?;
        Ok(Record { name: name.to_owned(), body: item.payload, version: item.version })
    }

    /// Everything of one kind, by name.
    pub async fn records(&self, account: &str, kind: RecordKind) -> Result<Vec<Record>> {
        let Some(shelf) = self.shelf_if_any(account).await? else { return Ok(Vec::new()) };
        let view = self.engine.read(shelf.container.id, &shelf.route, 1).await?;
        let (mut range, mut records) = (shelf.range(kind), Vec::new());
        loop {
            let limit = PageLimit::items(RECORDS_MAX);
            let page = view.scan(Space::ITEMS, &range, Direction::Forward, limit).await?;
            for (key, item) in page.items {
                let name = key.get(PREFIX_BYTES + shelf.route.len() + 1..).unwrap_or_default();
                let name = String::from_utf8_lossy(name).into_owned();
                records.push(Record { name, body: item.payload, version: item.version });
            }
            match page.next {
                Some(last) => range.start = after_key(&last.slice(PREFIX_BYTES..)),
                None => return Ok(records),
            }
        }
    }

    /// Keeps something under a name. Answers whether it is new, and its version.
    pub async fn put_record(
        &self,
        account: &str,
        kind: RecordKind,
        name: &str,
        body: Bytes,
        expect: Expect,
    ) -> Result<(bool, Lsn)> {
        if body.len() > RECORD_BYTES_MAX {
            let message = format!("it may have {RECORD_BYTES_MAX} bytes");
            return Err(Error::too_large(IndexReason::TooLarge, message));
        }
        let shelf = self.shelf(account).await?;
        let (id, route) = (shelf.container.id, shelf.route.clone());
        let put = Put { shelf, kind, name: name.to_owned(), body, expect };
        self.engine.write(id, &route, put).await
    }

    /// Deletes what is kept under a name, and says whether there was something.
    pub async fn delete_record(
        &self,
        account: &str,
        kind: RecordKind,
        name: &str,
        expect: Expect,
    ) -> Result<bool> {
        let Some(shelf) = self.shelf_if_any(account).await? else { return Ok(false) };
        let (id, route) = (shelf.container.id, shelf.route.clone());
        let delete = Delete { shelf, kind, name: name.to_owned(), expect };
        self.engine.write(id, &route, delete).await
    }
}
