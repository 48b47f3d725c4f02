//! The balancer on an engine with several shards, without listeners: rules, hot shardlets, merges, limits in time.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use lazuli_engine::{
    Container, Cuts, ItemKey, KeySchema, KeyType, MapKind, NewContainer, Policies, Space,
    Transaction, Tx,
};
use lazuli_shardmap::manager::{ContainerUpdate, Known, NewShard};
use lazuli_shardmap::placement::Rule;
use lazuli_shardmap::{Partition, ShardId};
use lazuli_store::KeyRange;

use super::*;
use crate::core::Core;
use crate::folder::Folder;
use crate::settings::{Settings, Sources};

/// How long anything here may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// Little is worth a move or a cut, nothing rests.
const SMALL: &[(&str, &str)] = &[
    ("balance-floor-bytes", "1KiB"),
    ("balance-floor-requests", "1000000"),
    ("balance-rest", "1ms"),
    ("durability", "relaxed"),
];

struct Put(ItemKey, usize);

impl Transaction for Put {
    type Output = ();

    async fn run(&self, tx: &mut Tx<'_>) -> Result<()> {
        tx.put(&self.0, Bytes::from(vec![b'x'; self.1])).await
    }
}

struct World {
    core: Core,
    balancer: Arc<Balancer>,
    history: Arc<Recorder>,
    container: Container,
    _folder: (Folder, tempfile::TempDir),
}

impl World {
    /// A server's core with shards of these names and labels beside the first one, and one container.
    async fn new(flags: &[(&'static str, &str)], shards: &[(&str, &str)]) -> Self {
        let path = tempfile::tempdir().unwrap();
        let flags = SMALL.iter().chain(flags);
        let sources = Sources {
            flags: flags.map(|(name, text)| (*name, (*text).to_owned())).collect(),
            variables: BTreeMap::new(),
            file: None,
            folder: path.path().join("nothing"),
        };
        let settings = Settings::read(&sources.texts().unwrap()).unwrap();
        let folder = Folder::open(&path.path().join("data")).unwrap();
        let core = Core::open(&folder, &settings).await.unwrap();
        for (name, disk) in shards {
            let new = NewShard {
                name: (*name).to_owned(),
                location: (*name).to_owned(),
                region: "local".to_owned(),
                labels: [("disk".to_owned(), (*disk).to_owned())].into(),
            };
            let shard = core.engine.manager().add_shard(&new).await.unwrap();
            core.host.open(&shard).await.unwrap();
        }
        core.engine.start();
        let new = NewContainer {
            name: "c".to_owned(),
            kind: MapKind::Range,
            key: KeySchema::one(KeyType::Text),
            schema: "test/1".to_owned(),
            placement: Vec::new(),
            policies: Policies::default(),
            cuts: Cuts::At(Vec::new()),
            shards: vec![ShardId(1)],
        };
        let container = core.engine.create_container(&new).await.unwrap();
        let history = Arc::new(Recorder::new(core.engine.clone(), 100));
        let (engine, host) = (core.engine.clone(), core.host.clone());
        // Nobody waits for minutes until it is known who is cold, but for the test that does.
        let balance = Balance { average_minutes: 0, ..settings.balance };
        let balancer = Balancer::new(engine, history.clone(), host, balance);
        let balancer = Arc::new(balancer);
        Self { core, balancer, history, container, _folder: (folder, path) }
    }

    fn key(&self, key: &str) -> ItemKey {
        let route = self.container.kind.route(&self.container.key, &[key.into()]).unwrap();
        ItemKey::new(self.container.id, Space::ITEMS, &route, b"")
    }

    async fn put(&self, key: &str, bytes: usize) {
        let key = self.key(key);
        let put = Put(key.clone(), bytes);
        self.core.engine.write(self.container.id, key.route(), put).await.unwrap();
    }

    async fn partitions(&self) -> Vec<Partition> {
        let all = KeyRange::new(Bytes::new(), None);
        let catalog = self.core.engine.manager().catalog();
        let entries = catalog.partitions_in(self.container.id, &all, 1_000).await.unwrap();
        entries.into_iter().map(|entry| entry.partition).collect()
    }

    /// Lets the balancer work until it finds nothing more to do.
    async fn balance(&self) {
        self.balancer.begin().unwrap();
        let began = tokio::time::Instant::now();
        while self.balancer.state().running.is_some() {
            assert!(began.elapsed() < PATIENCE, "{:?}", self.balancer.state().doing);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let trouble = self.balancer.state().trouble.clone();
        assert_eq!(trouble, None);
    }

    async fn close(self) {
        drop((self.balancer, self.history));
        self.core.close().await;
    }
}

#[tokio::test]
async fn partitions_go_only_where_their_rules_allow() {
    let flags = [("balance-goals", "bytes=1"), ("balance-merge-bytes", "0")];
    let world = World::new(&flags, &[("fast", "ssd"), ("slow", "tape")]).await;
    for n in 0..32 {
        world.put(&format!("k{n:02}"), 1_000).await;
    }
    let rule = |value: &str, routes: KeyRange| Rule {
        routes,
        region: None,
        labels: [("disk".to_owned(), value.to_owned())].into(),
    };
    // The upper half must be on fast disks, where it is not yet.
    let high = KeyRange::new(world.key("k16").route().to_vec(), None);
    let whole = world.partitions().await[0].clone();
    let at = Bytes::copy_from_slice(world.key("k16").route());
    let (_, upper) = world.core.engine.split(Known::from(&whole), at).await.unwrap();
    let fast = ShardId(2);
    let options = lazuli_engine::MoveOptions::default();
    let begun = world.core.engine.move_partition(upper.id, fast, options).await.unwrap();
    world.balancer.over(begun.number).await.unwrap();
    let now = world.core.engine.manager().catalog().container(world.container.id).await.unwrap();
    let Container { id, version, schema, policies, .. } = now;
    let placement = vec![rule("ssd", high.clone())];
    let update = ContainerUpdate { id, version, schema, placement, policies };
    world.core.engine.update_container(&update).await.unwrap();
    for n in 0..64 {
        world.put(&format!("k0{n:02}"), 1_000).await;
    }
    world.balance().await;
    let partitions = world.partitions().await;
    assert!(partitions.iter().any(|one| one.shard == ShardId(3)), "{partitions:?}");
    for partition in partitions {
        if partition.routes.overlaps(&high) {
            assert_eq!(partition.shard, fast, "{partition:?}");
        }
    }
    let state = world.balancer.state().failed;
    assert_eq!(state.of(Kind::Move) + state.of(Kind::Split), 0);
    world.close().await;
}

#[tokio::test]
async fn a_busy_shardlet_is_isolated_and_never_torn_apart() {
    let flags = [("balance-split-requests", "2"), ("balance-merge-requests", "0")];
    let world = World::new(&flags, &[]).await;
    for n in 0..20 {
        world.put(&format!("k{n:02}"), 10).await;
    }
    for _ in 0..200 {
        world.put("k07", 10).await;
    }
    world.history.record().await.unwrap();
    tokio::time::sleep(world.history.until_next()).await;
    world.history.record().await.unwrap();
    world.balance().await;
    let hot = world.key("k07");
    let partitions = world.partitions().await;
    let alone = partitions.iter().find(|one| one.routes.contains(hot.route())).unwrap();
    assert_eq!(alone.routes, KeyRange::prefix(Bytes::copy_from_slice(hot.route())));
    assert_eq!(partitions.len(), 3, "{partitions:?}");
    world.close().await;
}

#[tokio::test]
async fn cold_neighbours_are_merged_and_hash_maps_keep_their_partitions() {
    let world = World::new(&[], &[("two", "ssd")]).await;
    let hashed = NewContainer {
        name: "hashed".to_owned(),
        kind: MapKind::Hash,
        key: KeySchema::one(KeyType::Text),
        schema: "test/1".to_owned(),
        placement: Vec::new(),
        policies: Policies::default(),
        cuts: Cuts::Even(4),
        shards: Vec::new(),
    };
    let hashed = world.core.engine.create_container(&hashed).await.unwrap();
    for n in 0..8 {
        world.put(&format!("k{n}"), 10).await;
    }
    for cut in ["k2", "k4", "k6"] {
        let last = world.partitions().await.pop().unwrap();
        let at = Bytes::copy_from_slice(world.key(cut).route());
        world.core.engine.split(Known::from(&last), at).await.unwrap();
    }
    // Right after a start everybody seems to be cold.
    let balance = Balance { average_minutes: 1, ..world.balancer.settings.clone() };
    let (engine, host) = (world.core.engine.clone(), world.core.host.clone());
    let young = Balancer::new(engine, world.history.clone(), host, balance);
    assert!(young.plan().await.unwrap().plan.actions.is_empty());
    // Each plan makes half as many of a row, and what was merged may rest when the next one is made.
    for _ in 0..2 {
        world.balance().await;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(world.partitions().await.len(), 1);
    let all = KeyRange::new(Bytes::new(), None);
    let catalog = world.core.engine.manager().catalog();
    assert_eq!(catalog.partitions_in(hashed.id, &all, 10).await.unwrap().len(), 4);
    let plan = world.balancer.plan().await.unwrap().plan;
    assert!(plan.actions.is_empty(), "{:?}", plan.actions);
    world.close().await;
}

#[tokio::test]
async fn nothing_begins_outside_of_the_window_and_what_waits_can_be_given_up() {
    // A minute that is surely not now.
    let minute = real_minute() + 12 * 60;
    let time = |minute: u64| format!("{:02}:{:02}", minute / 60 % 24, minute % 60);
    let window = format!("{}-{}", time(minute), time(minute + 1));
    let flags = [("balance-split-bytes", "1KiB"), ("balance-merge-bytes", "0")];
    let flags = [&flags[..], &[("balance-window", window.as_str())]].concat();
    let world = World::new(&flags, &[]).await;
    for n in 0..8 {
        world.put(&format!("k{n}"), 1_000).await;
    }
    world.balancer.begin().unwrap();
    assert_eq!(world.balancer.begin().unwrap_err().code(), "balancing");
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert_eq!(world.partitions().await.len(), 1);
    assert_eq!(world.balancer.state().waiting, 1);
    world.balancer.stop();
    let began = tokio::time::Instant::now();
    while world.balancer.state().running.is_some() {
        assert!(began.elapsed() < PATIENCE);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(world.balancer.state().begun.of(Kind::Split), 0);
    world.close().await;
}

fn real_minute() -> u64 {
    lazuli_env::real::env().clock.now_ms() / 60_000 % (24 * 60)
}
