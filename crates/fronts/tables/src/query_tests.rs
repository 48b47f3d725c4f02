//! Which scan each filter gets, and how many entities it reads for it: 10 partitions with 10 rows each.

use lazuli_engine::{Engine, MapKind, Settings};
use lazuli_shardmap::manager::NewShard;
use lazuli_store::mem::MemStore;

use super::*;
use crate::entity::Entity;
use crate::limits::Limits;

async fn records(kind: MapKind) -> Records {
    let env = lazuli_env::real::env();
    let engine = Engine::on(env, Settings::default(), Arc::new(MemStore::new())).await.unwrap();
    let new = NewShard {
        name: "one".into(),
        location: "one".into(),
        region: "here".into(),
        labels: Default::default(),
    };
    engine.add_shard(&new, Arc::new(MemStore::new())).await.unwrap();
    let records = Records::new(engine);
    records.create("t", "T", kind).await.unwrap();
    for partition in 0..10 {
        for row in 0..10 {
            let (partition_key, row_key) = (format!("p{partition}"), format!("r{row}"));
            let json = format!("{{\"N\":{row},\"Even\":{}}}", row % 2 == 0);
            let limits = Limits::default();
            let entity = Entity::parse(json.as_bytes(), &limits).unwrap();
            let payload = entity.encode(&partition_key, &row_key, &limits).unwrap();
            records.insert("t", &partition_key, &row_key, payload).await.unwrap();
        }
    }
    records
}

/// The kind of scan, how many entities it reads and how many it finds.
async fn scan(records: &Records, filter: &str) -> (&'static str, u64, usize) {
    let filter = Filter::parse(filter).unwrap();
    let plan = Plan::of(Some(&filter));
    let kind = match plan {
        Plan::Nothing => "nothing",
        Plan::Point(..) => "point",
        Plan::Rows(..) => "rows",
        Plan::Partitions(_) => "partitions",
        Plan::Everything => "everything",
    };
    let keep = Some(keep(filter));
    let (mut examined, mut found, mut after) = (0, 0, None);
    loop {
        let limit = PageLimit { items: 1000, bytes: usize::MAX };
        let page = page(records, "t", &plan, keep.clone(), limit, after.take()).await.unwrap();
        examined += page.examined;
        found += page.records.len();
        after = page.next;
        if after.is_none() {
            return (kind, examined, found);
        }
    }
}

#[tokio::test]
async fn each_filter_reads_what_its_keys_leave_open() {
    let records = records(MapKind::Range).await;
    for (filter, expected) in [
        ("PartitionKey eq 'p3' and RowKey eq 'r4'", ("point", 1, 1)),
        ("RowKey eq 'r4' and (N eq 9 and PartitionKey eq 'p3')", ("point", 1, 0)),
        ("PartitionKey eq 'p3' and RowKey eq 'x'", ("point", 0, 0)),
        ("PartitionKey eq 'p3'", ("rows", 10, 10)),
        ("PartitionKey eq 'p3' and Even eq true", ("rows", 10, 5)),
        ("PartitionKey eq 'p3' and RowKey ge 'r2' and RowKey lt 'r5'", ("rows", 3, 3)),
        ("PartitionKey eq 'p3' and RowKey gt 'r2' and RowKey le 'r5' and N eq 3", ("rows", 3, 1)),
        ("PartitionKey eq 'p3' and (RowKey eq 'r1' or RowKey eq 'r3')", ("rows", 3, 2)),
        ("PartitionKey ge 'p2' and PartitionKey lt 'p5'", ("partitions", 30, 30)),
        ("PartitionKey gt 'p7' and N eq 0", ("partitions", 20, 2)),
        ("PartitionKey le 'p1' and RowKey eq 'r0'", ("partitions", 20, 2)),
        ("PartitionKey eq 'p1' or PartitionKey eq 'p3'", ("partitions", 30, 20)),
        ("N eq 5", ("everything", 100, 10)),
        ("RowKey eq 'r5'", ("everything", 100, 10)),
        ("PartitionKey ne 'p5'", ("everything", 100, 90)),
        ("not (PartitionKey eq 'p5')", ("everything", 100, 90)),
        ("PartitionKey eq 'p3' or N eq 5", ("everything", 100, 19)),
        ("PartitionKey eq 'p3' and PartitionKey eq 'p4'", ("nothing", 0, 0)),
        ("PartitionKey eq 3", ("nothing", 0, 0)),
    ] {
        assert_eq!(scan(&records, filter).await, expected, "{filter}");
    }
}

/// Where keys are hashed, one partition key is still one place; only their order is gone.
#[tokio::test]
async fn hashed_keys_are_found_by_equality_alone() {
    let records = records(MapKind::Hash).await;
    for (filter, expected) in [
        ("PartitionKey eq 'p3' and RowKey eq 'r4'", ("point", 1, 1)),
        ("PartitionKey eq 'p3' and RowKey ge 'r2' and RowKey lt 'r5'", ("rows", 3, 3)),
        ("PartitionKey ge 'p2' and PartitionKey lt 'p5'", ("partitions", 100, 30)),
        ("N eq 5", ("everything", 100, 10)),
    ] {
        assert_eq!(scan(&records, filter).await, expected, "{filter}");
    }
}
