//! A table of a simulated cluster: a container whose shardlets have numbers, with a random kind of map.

use std::ops::Range;

use bytes::Bytes;
use lazuli_engine::ItemKey;
use lazuli_shardmap::key::{KeyPart, KeySchema, KeyType};
use lazuli_shardmap::layout::Space;
use lazuli_shardmap::manager::{Cuts, NewContainer, NewPartition};
use lazuli_shardmap::{ContainerId, MapKind, Policies};
use lazuli_store::Kind;

use crate::answer::Answer;
use crate::client::{Client, Request, behind_prefix};
use crate::cluster::Cluster;
use crate::random::Seeded;

#[derive(Clone, Debug)]
pub struct Table {
    pub name: &'static str,
    pub id: ContainerId,
    pub kind: MapKind,
    pub schema: KeySchema,
    pub shardlets: Range<i64>,
}

impl Table {
    pub(crate) async fn create(
        cluster: &Cluster,
        name: &'static str,
        shardlets: Range<i64>,
        has_feed: bool,
        random: &Seeded,
    ) -> Result<Self, String> {
        let schema = KeySchema::one(KeyType::Int64);
        let kind = *random.pick(&[MapKind::Range, MapKind::Range, MapKind::Hash, MapKind::List]);
        let table = Self { name, id: ContainerId::SYSTEM, kind, schema, shardlets };
        let partitions = cluster.settings.partitions;
        let cuts = match kind {
            MapKind::List => Cuts::Empty,
            MapKind::Hash | MapKind::EpkV1 | MapKind::EpkV2 | MapKind::EpkMulti => {
                Cuts::Even(partitions as u16)
            }
            MapKind::Range => Cuts::At(table.even_cuts(partitions)),
        };
        let container = NewContainer {
            name: name.to_owned(),
            kind,
            key: table.schema.clone(),
            schema: "sim".to_owned(),
            placement: Vec::new(),
            policies: Policies { changes: random.chance(300) || has_feed, ..Policies::default() },
            cuts,
            shards: Vec::new(),
        };
        let points: Vec<NewPartition> = match kind {
            MapKind::List => table
                .shardlets
                .clone()
                .map(|at| NewPartition::point(table.route(at), None))
                .collect(),
            _ => Vec::new(),
        };
        match Client::outside(cluster)
            .ask("create table", move |engine| async move {
                let created = engine.manager().create_container(&container).await?;
                if !points.is_empty() {
                    engine.manager().add_partitions(created.id, &points).await?;
                }
                Ok(created.id)
            })
            .await?
        {
            Answer::Done(id) => Ok(Self { id, ..table }),
            Answer::Refused(error) => Err(format!("table {name} was refused: {error}")),
            Answer::Unknown => Err(format!("table {name} got no answer without any fault")),
        }
    }

    /// A list table without partitions, created while there are faults.
    pub(crate) async fn create_list(client: &Client, name: &'static str) -> Result<Self, String> {
        let (kind, schema) = (MapKind::List, KeySchema::one(KeyType::Int64));
        let container = NewContainer {
            name: name.to_owned(),
            kind,
            key: schema.clone(),
            schema: "sim".to_owned(),
            placement: Vec::new(),
            policies: Policies { changes: client.random.chance(300), ..Policies::default() },
            cuts: Cuts::Empty,
            shards: Vec::new(),
        };
        let create = || -> Request<ContainerId> {
            let container = container.clone();
            Box::new(move |engine| {
                Box::pin(async move {
                    match engine.manager().create_container(&container).await {
                        // An earlier attempt whose answer was lost.
                        Err(error) if error.kind() == Kind::Exists => {
                            let found = engine.manager().catalog().container_named(name).await?;
                            Ok(found.id)
                        }
                        created => created.map(|created| created.id),
                    }
                })
            })
        };
        let id = client.ask_surely("create table", create).await?;
        Ok(Self { name, id, kind, schema, shardlets: 0..1 })
    }

    /// Bounds between shardlets that divide the table into about equal parts.
    fn even_cuts(&self, parts: u64) -> Vec<Bytes> {
        let (first, count) = (self.shardlets.start, self.shardlets.end - self.shardlets.start);
        let mut cuts: Vec<i64> =
            (1..parts as i64).map(|nth| first + count * nth / parts as i64).collect();
        cuts.retain(|cut| *cut > first);
        cuts.dedup();
        cuts.into_iter().map(|cut| self.route(cut)).collect()
    }

    pub fn route(&self, shardlet: i64) -> Bytes {
        let route = self.kind.route(&self.schema, &[KeyPart::Int64(shardlet)]);
        route.expect("a number is a key of this schema")
    }

    pub fn key(&self, shardlet: i64, row: &[u8]) -> ItemKey {
        ItemKey::new(self.id, Space::ITEMS, &self.route(shardlet), row)
    }

    /// The shardlet and the row of a stored key.
    pub fn split(&self, key: &[u8]) -> Result<(i64, Vec<u8>), String> {
        let wrong = |error| format!("{}: an invalid key {key:?}: {error}", self.name);
        let parts = self.kind.split(&self.schema, behind_prefix(key));
        let (route, row) = parts.map_err(|error| wrong(error.to_string()))?;
        match self.kind.key(&self.schema, route).as_deref() {
            Ok([KeyPart::Int64(shardlet)]) => Ok((*shardlet, row.to_vec())),
            other => Err(wrong(format!("{other:?}"))),
        }
    }
}
