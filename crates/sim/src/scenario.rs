//! Scenarios: a name, and a future that ends with its finding.

use std::sync::Arc;

use lazuli_env::BoxFuture;

use crate::cluster::Cluster;
use crate::drive::drive;
use crate::executor::World;
use crate::faults::Planted;
use crate::points::Sabotage;
use crate::settings::Settings;
use crate::workloads::audited::Audited;
use crate::workloads::blobs::BlobFiles;
use crate::workloads::bus::MessageBus;
use crate::workloads::cache::CacheSlots;
use crate::workloads::come_and_go::ComeAndGo;
use crate::workloads::compacted::{CarelessHub, CompactedHub};
use crate::workloads::documents::{DocumentCrossings, DocumentItems, DocumentPolicies};
use crate::workloads::drains::Drains;
use crate::workloads::etag_counter::EtagCounter;
use crate::workloads::indexes::SearchIndexes;
use crate::workloads::jobs::Jobs;
use crate::workloads::leaders::Leaders;
use crate::workloads::list_append::ListAppend;
use crate::workloads::logs::HubLogs;
use crate::workloads::map_changes::MapChanges;
use crate::workloads::queues::MessageQueues;
use crate::workloads::reference::Reference;
use crate::workloads::ring::Ring;
use crate::workloads::time_to_live::TimeToLive;
use crate::workloads::transfers::Transfers;
use crate::workloads::{AnyWorkload, store_crash};

/// The violation, in a sentence.
pub type Found = Result<(), String>;

pub struct Scenario {
    pub name: &'static str,
    pub about: &'static str,
    pub run: fn(World) -> BoxFuture<'static, Found>,
}

/// A scenario of workloads that run at once on one cluster.
macro_rules! scenario {
    ($name:literal, $about:literal, [$($workload:ident),*]) => {
        scenario!($name, $about, [$($workload),*], |settings, _| settings)
    };
    ($name:literal, $about:literal, [$($workload:ident),*], $adapt:expr) => {
        Scenario {
            name: $name,
            about: $about,
            run: |world| {
                let adapt: fn(Settings, &World) -> Settings = $adapt;
                let settings = adapt(Settings::draw(&world.random("settings")), &world);
                Box::pin(drive(world, settings, |cluster: Cluster| {
                    Box::pin(async move {
                        let workloads: Vec<Arc<dyn AnyWorkload>> =
                            vec![$($workload::setup(&cluster).await?),*];
                        Ok(workloads)
                    })
                }))
            },
        }
    };
}

/// Every scenario that must hold for every seed.
pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "store_crash",
        about: "the simulated disk itself: whole transactions, nothing answered is lost",
        run: |world| Box::pin(store_crash::run(world)),
    },
    scenario!("etag_counter", "increments on condition of the version", [EtagCounter]),
    scenario!("transfers", "transactions over shardlets and partitions", [Transfers]),
    scenario!("ring", "a ring of keys over partitions stays a ring", [Ring]),
    scenario!("list_append", "appends in one order for all clients", [ListAppend]),
    scenario!("audited", "all answers against a plain model", [Audited]),
    scenario!("time_to_live", "nothing goes early, nothing stays late", [TimeToLive]),
    scenario!("jobs", "multi-step jobs: all steps, each once", [Jobs]),
    scenario!("reference", "reference data reaches every shard", [Reference]),
    scenario!("logs", "hubs: no gap, repeat or reorder, per partition and per key", [HubLogs]),
    scenario!(
        "logs_compacted",
        "hubs compacted by key: the newest record of each key is there",
        [CompactedHub]
    ),
    scenario!("queues", "messages: at least once, never two holders, in order", [MessageQueues]),
    scenario!("bus", "a message bus: at least once, locks, sessions, duplicates", [MessageBus]),
    scenario!("blobs", "contents are whole, files are there and none are left", [BlobFiles]),
    scenario!(
        "documents",
        "items with indexes and readers of their changes while partitions split and move",
        [MapChanges, DocumentItems]
    ),
    scenario!(
        "documents_policies",
        "the same while the indexing policy changes",
        [MapChanges, DocumentPolicies]
    ),
    scenario!(
        "documents_crossing",
        "the same while many partitions are on their way at once",
        [MapChanges, DocumentCrossings],
        |settings, _| settings.drained()
    ),
    scenario!(
        "documents_alone",
        "the same on stores that one process has to itself",
        [MapChanges, DocumentCrossings],
        |settings, _| settings.drained().alone()
    ),
    scenario!(
        "stops_documents",
        "the same, stopped behind a step of a change of the rules or of a map",
        [MapChanges, DocumentCrossings],
        |settings, world| settings.drained().stopped_in_rules(&world.random("point"))
    ),
    scenario!(
        "indexes",
        "a search index and what is derived from it while many of its partitions are on their way",
        [MapChanges, SearchIndexes],
        |settings, _| settings.drained()
    ),
    scenario!("come_and_go", "partitions and tables deleted and made again", [ComeAndGo]),
    scenario!(
        "map_changes",
        "splits, merges, locks and pauses under reads, writes and scans",
        [MapChanges, Audited, ListAppend]
    ),
    scenario!(
        "map_changes_transactions",
        "the same under transactions over partitions",
        [MapChanges, Transfers, Ring, EtagCounter]
    ),
    scenario!(
        "map_changes_queues",
        "the same under producers and consumers",
        [MapChanges, MessageQueues]
    ),
    scenario!(
        "map_changes_logs",
        "the same under producers and readers of a hub that grows",
        [MapChanges, HubLogs]
    ),
    scenario!(
        "map_changes_logs_compacted",
        "the same under a hub that several processes compact by key",
        [MapChanges, CompactedHub]
    ),
    scenario!(
        "map_changes_bus",
        "the same under senders and receivers of a bus whose fragments move",
        [MapChanges, MessageBus]
    ),
    scenario!(
        "cache",
        "a durable cache under several writers while many of its partitions move at once",
        [MapChanges, CacheSlots],
        |settings, _| settings.drained().alone()
    ),
    scenario!(
        "map_changes_crowd",
        "all clients on the same few keys of one shard while its map changes",
        [MapChanges, ListAppend],
        |settings, _| settings.crowded()
    ),
    scenario!(
        "map_changes_blobs",
        "the same under blobs and their files",
        [MapChanges, BlobFiles],
        |settings, _| settings.spread()
    ),
    scenario!(
        "drains",
        "many partitions leave a shard together under overwrites of one size and a change feed",
        [Drains],
        |settings, _| settings.drained()
    ),
    scenario!(
        "map_changes_drains",
        "the same under splits, merges, locks and pauses",
        [MapChanges, Drains],
        |settings, _| settings.drained()
    ),
    scenario!(
        "everything_alone",
        "all at once on stores that one process has to itself, which have no locks",
        [MapChanges, EtagCounter, Transfers, ListAppend, Audited, Jobs, MessageQueues],
        |settings, _| settings.alone()
    ),
    scenario!("drains_alone", "the same under drains", [MapChanges, Drains], |settings, _| {
        settings.drained().alone()
    }),
    scenario!(
        "leaders",
        "slow moves under several processes that all live: one of them leads each",
        [Leaders],
        |settings, _| settings.quiet()
    ),
    Scenario {
        name: "stops",
        about: "changes of maps and moves, stopped behind one of their steps",
        run: |world| {
            let sabotage = Sabotage::draw(&world.random("point"));
            stopped(world, sabotage)
        },
    },
    scenario!(
        "stops_blobs",
        "the same under blobs and their files",
        [MapChanges, BlobFiles],
        |settings, world| settings.sabotaged(&world.random("point"))
    ),
    scenario!(
        "stops_transactions",
        "the same under transactions over partitions",
        [MapChanges, Transfers, Ring, EtagCounter],
        |settings, world| settings.sabotaged(&world.random("point"))
    ),
    scenario!(
        "everything",
        "all workloads at once",
        [
            MapChanges,
            EtagCounter,
            Transfers,
            Ring,
            ListAppend,
            Audited,
            TimeToLive,
            Jobs,
            Reference,
            ComeAndGo,
            MessageQueues
        ]
    ),
];

/// Scenarios with a planted bug, which must fail: they prove that the checks can fail.
pub const CANARIES: &[Scenario] = &[
    scenario!(
        "canary_no_guards",
        "stores that do not look at guards",
        [MapChanges, ListAppend],
        |settings, _| settings.crowded().with_bug(Planted::NoGuards)
    ),
    scenario!(
        "canary_no_snapshot_guards",
        "stores that do not look at the guards of snapshots",
        [MapChanges, ListAppend],
        |settings, _| settings.spread().with_bug(Planted::NoSnapshotGuards)
    ),
    scenario!(
        "canary_no_exclusive_begin",
        "stores that let two processes use a guard at the same time",
        [EtagCounter, ListAppend],
        |settings, _| settings.crowded().with_bug(Planted::NoExclusiveBegin)
    ),
    scenario!(
        "canary_no_leases",
        "processes that all do the background work",
        [Leaders],
        |settings, _| settings.quiet().with_bug(Planted::NoLeases)
    ),
    scenario!(
        "canary_early_answers",
        "stores that answer before they sync",
        [ListAppend],
        |settings, _| settings.with_bug(Planted::EarlyAnswers)
    ),
    scenario!(
        "canary_lost_messages",
        "the same under producers and consumers",
        [MessageQueues],
        |settings, _| settings.with_bug(Planted::EarlyAnswers)
    ),
    scenario!(
        "canary_early_replies",
        "a durable cache that answers before the store has what it did",
        [CacheSlots],
        |settings, _| settings.drained().alone().with_bug(Planted::EarlyReplies)
    ),
    scenario!(
        "canary_lost_bus_messages",
        "the same under senders and receivers of a bus",
        [MessageBus],
        |settings, _| settings.with_bug(Planted::EarlyAnswers)
    ),
    scenario!(
        "canary_careless_compaction",
        "a compaction that takes different keys for the same",
        [CarelessHub]
    ),
    scenario!(
        "canary_no_entries",
        "processes that keep no indexes beside those that do",
        [DocumentItems],
        |settings, _| settings.crowded().with_bug(Planted::NoEntries)
    ),
    scenario!(
        "canary_stale_copies",
        "copies of a text index that do not look what was forgotten while they were away",
        [MapChanges, SearchIndexes],
        |settings, _| settings.drained().with_bug(Planted::StaleCopies)
    ),
    scenario!(
        "canary_torn_transactions",
        "stores that keep parts of transactions",
        [Transfers],
        |settings, _| settings.with_bug(Planted::TornTransactions)
    ),
];

/// Changes of maps and moves under writers and consumers, stopped at a given point.
pub fn stopped(world: World, sabotage: Sabotage) -> BoxFuture<'static, Found> {
    let settings = Settings::draw(&world.random("settings")).spread();
    let settings = Settings { sabotage: Some(sabotage), ..settings };
    Box::pin(drive(world, settings, |cluster: Cluster| {
        Box::pin(async move {
            let workloads: Vec<Arc<dyn AnyWorkload>> = vec![
                MapChanges::setup(&cluster).await?,
                Audited::setup(&cluster).await?,
                ListAppend::setup(&cluster).await?,
                MessageQueues::setup(&cluster).await?,
            ];
            Ok(workloads)
        })
    }))
}

/// A scenario or a canary by its name.
pub fn find(name: &str) -> Option<&'static Scenario> {
    SCENARIOS.iter().chain(CANARIES).find(|scenario| scenario.name == name)
}

/// Fails with a sentence if the condition does not hold.
#[macro_export]
macro_rules! ensure {
    ($holds:expr, $($words:tt)+) => {
        if !$holds {
            return Err(format!($($words)+));
        }
    };
}
