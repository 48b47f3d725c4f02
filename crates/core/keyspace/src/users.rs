//! Where users of the cache are kept: a container of their own, one item for each, with its rules as text. So they are there
//! again after a restart also where keys are not.
//!
//! `docs/formats/cache.md` draws the rows.

use std::sync::Arc;

use bytes::Bytes;
use lazuli_engine::{
    ContainerId, Cuts, Engine, Error, FanOut, ItemKey, ItemScan, KeyPart, KeyRange, KeySchema,
    KeyType, Kind, MapKind, NewContainer, OnFailure, PageLimit, Policies, Result, Space,
};

use crate::shelf::Write;

const SCHEMA: &str = "cache-users/1";
const CONTAINER: &str = "cache-users/0";

pub struct UserShelf {
    engine: Arc<Engine>,
    schema: KeySchema,
}

impl UserShelf {
    pub fn new(engine: Arc<Engine>) -> Self {
        Self { engine, schema: KeySchema::one(KeyType::Text) }
    }

    fn route(&self, name: &str) -> Result<Bytes> {
        MapKind::Range.route(&self.schema, &[KeyPart::Text(name.to_owned())])
    }

    /// The container; none before the first user is written.
    async fn container(&self) -> Result<Option<ContainerId>> {
        match self.engine.open(CONTAINER, SCHEMA).await {
            Err(error) if error.kind() == Kind::NotFound => Ok(None),
            opened => opened.map(|it| Some(it.id)),
        }
    }

    async fn make(&self) -> Result<ContainerId> {
        let new = NewContainer {
            name: CONTAINER.to_owned(),
            kind: MapKind::Range,
            key: self.schema.clone(),
            schema: SCHEMA.to_owned(),
            placement: Vec::new(),
            policies: Policies::default(),
            cuts: Cuts::At(Vec::new()),
            shards: Vec::new(),
        };
        Ok(self.engine.create_container(&new).await?.id)
    }

    /// All users: names and rules.
    pub async fn load(&self) -> Result<Vec<(String, String)>> {
        let Some(container) = self.container().await? else { return Ok(Vec::new()) };
        let scan = ItemScan { space: Space::ITEMS, range: KeyRange::all() };
        let request =
            FanOut { routes: KeyRange::all(), limit: PageLimit::MAX, on_failure: OnFailure::Fail };
        let (mut users, mut from) = (Vec::new(), None);
        loop {
            let page = self.engine.fan_out(container, &scan, &request, from.as_ref()).await?;
            for (key, item) in page.rows {
                users.push(self.user(&key, &item.payload)?);
            }
            match page.next {
                Some(next) => from = Some(next),
                None => return Ok(users),
            }
        }
    }

    fn user(&self, key: &Bytes, payload: &Bytes) -> Result<(String, String)> {
        let bad = || Error::corrupt("bad-cache-user", "a row of the cache's users is no user");
        let rest = key.get(lazuli_engine::PREFIX_BYTES..).ok_or_else(bad)?;
        let (route, _) = MapKind::Range.split(&self.schema, rest)?;
        let parts = MapKind::Range.key(&self.schema, route)?;
        let [KeyPart::Text(name)] = &parts[..] else { return Err(bad()) };
        let rules = String::from_utf8(payload.to_vec()).map_err(|_| bad())?;
        Ok((name.clone(), rules))
    }

    /// Writes the rules of a user, or that there is no such user.
    pub async fn write(&self, name: &str, rules: Option<&str>) -> Result<()> {
        let container = match self.container().await? {
            Some(container) => container,
            None if rules.is_none() => return Ok(()),
            None => self.make().await?,
        };
        let route = self.route(name)?;
        let key = ItemKey::new(container, Space::ITEMS, &route, b"");
        let payload = rules.map(|it| Bytes::copy_from_slice(it.as_bytes()));
        self.engine.write(container, &route, Write { rows: vec![(key, payload)] }).await
    }
}
