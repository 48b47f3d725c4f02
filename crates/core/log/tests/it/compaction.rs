//! Compaction: what stays of a log, where it is read from, and what retention and people take away from it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use lazuli_log::{
    Batch, Cleanup, Compaction, Hub, HubSettings, KeyedRecord, LogReason, Logs, ReadRecords, Start,
};

use crate::{SPACE, World};

/// Records are `key=value`; one without `=` has no key, one without value is a tombstone.
pub(crate) struct Plain;

impl ReadRecords for Plain {
    fn read(&self, batch: &Batch) -> Option<Vec<KeyedRecord>> {
        let read = |(offset, message): (u64, Bytes)| {
            let at = message.iter().position(|byte| *byte == b'=');
            KeyedRecord {
                offset,
                key: at.map(|at| message.slice(..at)),
                is_tombstone: at == Some(message.len() - 1),
                bytes: message.len(),
            }
        };
        let records: Vec<_> = batch.messages().map(read).collect();
        let is_readable = records.iter().all(|it| it.key.as_deref() != Some(b"unreadable"));
        is_readable.then_some(records)
    }

    fn write(&self, _: &Batch, _: u64, _: u32, _: &[u64]) -> Bytes {
        panic!("there are no batches of Kafka's")
    }
}

struct Compacted {
    world: World,
    hub: Arc<Hub>,
}

impl Compacted {
    async fn new(cleanup: Cleanup, compaction: Compaction) -> Self {
        let mut world = World::new().await;
        world.logs = Logs::new(world.logs.engine().clone(), false).reading(Arc::new(Plain));
        let mut settings = HubSettings::new(1);
        settings.cleanup = cleanup;
        settings.compaction = compaction;
        let hub = world.logs.create_hub(SPACE, "kept", &settings).await.unwrap();
        assert_eq!(hub.settings, settings);
        Self { world, hub }
    }

    async fn append(&self, texts: &[&str]) {
        self.world.append(&self.hub, texts).await;
    }

    async fn compact(&self) {
        self.world.logs.compact_all().await.unwrap();
    }

    /// What is left, as a reader finds it that goes on where each batch ends.
    async fn left(&self) -> Vec<(u64, String)> {
        let (mut left, mut next) = (Vec::new(), 0);
        loop {
            let page = self.world.read(&self.hub, 0, next).await;
            let Some(last) = page.batches.last() else { return left };
            for (offset, message) in page.batches.iter().flat_map(|batch| batch.messages()) {
                if offset >= next.max(page.state.first) {
                    left.push((offset, String::from_utf8(message.to_vec()).unwrap()));
                }
            }
            assert!(last.end() > next);
            next = last.end();
        }
    }

    async fn texts(&self) -> Vec<String> {
        self.left().await.into_iter().map(|(_, text)| text).collect()
    }
}

fn eager() -> Compaction {
    Compaction { dirty_permille: 0, ..Compaction::default() }
}

#[tokio::test]
async fn the_newest_record_of_each_key_stays_at_its_offset() {
    let it = Compacted::new(Cleanup::Compact, eager()).await;
    it.append(&["a=1", "b=1", "c=1"]).await;
    it.append(&["a=2", "a=3"]).await;
    it.append(&["no key", "b=2", "d=1"]).await;
    it.append(&["e=1"]).await;
    it.compact().await;
    let expected = [(2, "c=1"), (4, "a=3"), (5, "no key"), (6, "b=2"), (7, "d=1"), (8, "e=1")];
    let expected: Vec<_> = expected.iter().map(|(at, text)| (*at, (*text).to_owned())).collect();
    assert_eq!(it.left().await, expected);
    let state = it.world.logs.state(&it.hub, 0).await.unwrap();
    assert_eq!((state.first, state.next, state.batches), (0, 9, 4));
    // Once more, with what came since: all of it is superseded, whole batches go.
    it.append(&["a=4", "b=3", "c=2", "d=2", "e=2"]).await;
    it.append(&["f=1"]).await;
    it.compact().await;
    assert_eq!(it.texts().await, ["no key", "a=4", "b=3", "c=2", "d=2", "e=2", "f=1"]);
    let state = it.world.logs.state(&it.hub, 0).await.unwrap();
    assert_eq!((state.first, state.next, state.batches), (0, 15, 3));
    // The figures say what is there.
    let page = it.world.read(&it.hub, 0, 0).await;
    assert_eq!(page.batches.len(), 3);
    // Offsets that are gone lead to the next record, and those of a batch to all of it.
    for offset in 0..15 {
        let page = it.world.read(&it.hub, 0, offset).await;
        let next = page.batches.iter().flat_map(Batch::messages).find(|(at, _)| *at >= offset);
        assert!(next.is_some() || offset > 14, "{offset}");
    }
}

#[tokio::test]
async fn random_logs_keep_the_newest_of_every_key_and_times_lead_to_what_is_left() {
    for seed in 1..=12_u64 {
        let it = Compacted::new(Cleanup::Compact, eager()).await;
        let mut number = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut random = |most: u64| {
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (number >> 33) % most
        };
        let (mut newest, mut offset, mut times) = (BTreeMap::new(), 0_u64, Vec::new());
        for round in 0..120_u64 {
            let count = 1 + random(4);
            let mut texts = Vec::new();
            for _ in 0..count {
                let key = random(9);
                let text = format!("{key}={round}.{offset}");
                newest.insert(key, (offset, text.clone()));
                texts.push(text);
                offset += 1;
            }
            let now_ms = it.world.clock.now_ms.load(std::sync::atomic::Ordering::Relaxed);
            times.push((now_ms, offset - count));
            it.append(&texts.iter().map(String::as_str).collect::<Vec<_>>()).await;
            it.world.pass(10);
            if random(10) == 0 {
                it.compact().await;
                let left = it.left().await;
                let expected: BTreeMap<_, _> = newest.values().cloned().collect();
                assert_eq!(left, expected.into_iter().collect::<Vec<_>>(), "seed {seed}");
                for (time_ms, first) in &times {
                    let found = it.world.logs.find(&it.hub, 0, Start::Time(*time_ms)).await;
                    let (found, _) = found.unwrap();
                    let wanted = left.iter().find(|(at, _)| at >= first).unwrap().0;
                    // It may be the beginning of the batch that the record is left of.
                    assert!((*first..=wanted).contains(&found), "{first} {found} {wanted}");
                }
            }
        }
    }
}

#[tokio::test]
async fn a_tombstone_stays_for_its_life_after_what_it_ends_and_never_goes_before_it() {
    let tombstones = Duration::from_secs(1_600);
    let it = Compacted::new(Cleanup::Compact, Compaction { tombstones, ..eager() }).await;
    it.append(&["a=1", "b=1"]).await;
    it.append(&["a="]).await;
    // However old it is when it is compacted for the first time, readers have time to see it.
    it.world.pass(10_000_000);
    it.append(&["c=1"]).await;
    it.compact().await;
    assert_eq!(it.texts().await, ["b=1", "a=", "c=1"]);
    it.world.pass(1_500_000);
    it.compact().await;
    assert_eq!(it.texts().await, ["b=1", "a=", "c=1"]);
    it.world.pass(300_000);
    it.compact().await;
    assert_eq!(it.texts().await, ["b=1", "c=1"]);
    let state = it.world.logs.state(&it.hub, 0).await.unwrap();
    assert_eq!((state.first, state.next, state.batches), (0, 4, 2));
    // A tombstone that is the last record of a log stays, as readers find the end by it.
    it.append(&["b="]).await;
    it.compact().await;
    it.world.pass(10_000_000);
    it.compact().await;
    assert_eq!(it.texts().await, ["c=1", "b="]);
}

#[tokio::test]
async fn tombstones_behind_what_cannot_be_read_stay() {
    let tombstones = Duration::from_secs(1);
    let it = Compacted::new(Cleanup::Compact, Compaction { tombstones, ..eager() }).await;
    it.append(&["a=1", "unreadable=1"]).await;
    it.append(&["a="]).await;
    it.append(&["b=1"]).await;
    for _ in 0..3 {
        it.compact().await;
        it.world.pass(10_000);
        it.append(&["b=2"]).await;
    }
    assert_eq!(it.texts().await[..3], ["a=1", "unreadable=1", "a="]);
}

#[tokio::test]
async fn a_lag_and_the_part_that_is_new_say_when_a_log_is_compacted() {
    let lag = Duration::from_secs(60);
    let it = Compacted::new(Cleanup::Compact, Compaction { lag, ..eager() }).await;
    it.append(&["a=1"]).await;
    it.append(&["a=2"]).await;
    it.world.pass(61_000);
    it.append(&["a=3"]).await;
    it.compact().await;
    assert_eq!(it.texts().await, ["a=2", "a=3"]);

    let it = Compacted::new(Cleanup::Compact, Compaction::default()).await;
    for number in 0..100 {
        it.append(&[&format!("{number:03}=1")]).await;
    }
    it.compact().await;
    for _ in 0..40 {
        it.append(&["000=2"]).await;
    }
    it.compact().await;
    assert_eq!(it.texts().await.len(), 140);
    for _ in 0..80 {
        it.append(&["000=2"]).await;
    }
    it.compact().await;
    assert_eq!(it.texts().await.len(), 100);
}

#[tokio::test]
async fn retention_goes_on_beside_compaction_where_both_are_wanted() {
    let it = Compacted::new(Cleanup::CompactAndDelete, eager()).await;
    for (key, value) in [("a", 1), ("b", 1), ("a", 2), ("c", 1)] {
        it.append(&[&format!("{key}={value}")]).await;
        it.world.pass(24 * 3600 * 1000);
    }
    it.compact().await;
    assert_eq!(it.texts().await, ["b=1", "a=2", "c=1"]);
    it.world.pass(5 * 24 * 3600 * 1000);
    it.world.logs.retain_all().await.unwrap();
    assert_eq!(it.texts().await, ["a=2", "c=1"]);
    let state = it.world.logs.state(&it.hub, 0).await.unwrap();
    assert_eq!((state.first, state.batches), (2, 2));

    let only = Compacted::new(Cleanup::Compact, eager()).await;
    only.append(&["a=1"]).await;
    only.world.pass(100 * 24 * 3600 * 1000);
    only.world.logs.retain_all().await.unwrap();
    assert_eq!(only.texts().await, ["a=1"]);
}

#[tokio::test]
async fn people_say_where_a_log_begins_even_in_the_middle_of_a_batch() {
    let it = Compacted::new(Cleanup::CompactAndDelete, eager()).await;
    let delete = async |before| it.world.logs.delete_records(&it.hub, 0, before).await;
    for number in 0..300 {
        it.append(&[&format!("{number}a=1"), &format!("{number}b=1")]).await;
    }
    assert!(delete(Some(601)).await.unwrap_err().is(LogReason::OffsetOutOfRange));
    assert_eq!(delete(Some(0)).await.unwrap(), 0);
    assert_eq!(delete(Some(555)).await.unwrap(), 555);
    assert_eq!(delete(Some(3)).await.unwrap(), 555);
    let state = it.world.logs.state(&it.hub, 0).await.unwrap();
    assert_eq!((state.first, state.next, state.batches), (555, 600, 23));
    assert_eq!(it.left().await[0], (555, "277b=1".to_owned()));
    assert_eq!(it.world.logs.find(&it.hub, 0, Start::Time(1)).await.unwrap().0, 555);
    // The batch in which the log begins is found again, by compaction and by whoever deletes more.
    it.append(&["277b=2"]).await;
    it.compact().await;
    assert_eq!(it.left().await[0], (556, "278a=1".to_owned()));
    assert_eq!(delete(Some(600)).await.unwrap(), 600);
    let state = it.world.logs.state(&it.hub, 0).await.unwrap();
    assert_eq!((state.first, state.next, state.batches), (600, 601, 1));
    assert_eq!(delete(None).await.unwrap(), 601);
    let state = it.world.logs.state(&it.hub, 0).await.unwrap();
    assert_eq!((state.first, state.next, state.bytes, state.batches), (601, 601, 0, 0));
    it.append(&["x=1"]).await;
    assert_eq!(it.left().await, [(601, "x=1".to_owned())]);
}
