//! Tenants on shards, with Lazuli as a library: premium tenants have a shard to themselves, all others share the rest.
//!
//! Run it with `cargo run --example tenants -p lazuli-engine`. It ends with an error if anything is not as it says.

use std::sync::Arc;

use bytes::Bytes;
use lazuli_engine::steps::{JobState, Step};
use lazuli_engine::{
    Condition, Container, Cuts, Engine, Error, FanOut, ItemKey, ItemScan, KeyPart, KeyRange,
    KeySchema, KeyType, MapKind, NewContainer, OnFailure, PageLimit, Policies, Result, Settings,
    Space, Transaction, Tx,
};
use lazuli_shardmap::Shard;
use lazuli_shardmap::manager::{NewPartition, NewShard};
use lazuli_shardmap::placement::Rule;
use lazuli_store::mem::MemStore;

/// Orders of tenants, in two containers on the same shards.
struct Orders {
    engine: Arc<Engine>,
    premium: Container,
    standard: Container,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let catalog = Arc::new(MemStore::new());
    let engine = Engine::on(lazuli_env::real::env(), Settings::default(), catalog).await?;
    let premium_shard = add_shard(&engine, "shard-premium", "premium").await?;
    let first = add_shard(&engine, "shard-a", "standard").await?;
    let second = add_shard(&engine, "shard-b", "standard").await?;
    let orders = place_tenants(engine, &premium_shard, &first).await?;
    route_by_key(&orders, &premium_shard).await?;
    ask_everybody(&orders).await?;
    share_prices(&orders).await?;
    write_over_shards(&orders).await?;
    remove_shards(&orders, &second).await
}

async fn place_tenants(engine: Arc<Engine>, own: &Shard, shared: &Shard) -> Result<Orders> {
    // A list map gives each premium tenant a place of its own; its rule keeps it on premium shards.
    let premium = create(&engine, "premium", MapKind::List, Cuts::Empty, "premium").await?;
    for tenant in [7, 9] {
        let routes = KeyRange::prefix(route(&premium, tenant)?);
        let new = NewPartition { routes, shard: Some(own.id) };
        engine.manager().add_partition(premium.id, new).await?;
    }
    let elsewhere =
        NewPartition { routes: KeyRange::prefix(route(&premium, 11)?), shard: Some(shared.id) };
    let refused = engine.manager().add_partition(premium.id, elsewhere).await;
    expect(refused.is_err_and(|error| error.code() == "placement-refused"), "placement")?;
    // A range map on the same set of shards holds everybody else, cut at tenant 1000.
    let cut = MapKind::Range.route(&KeySchema::one(KeyType::Int64), &[KeyPart::Int64(1000)])?;
    let cuts = Cuts::At(vec![cut]);
    let standard = create(&engine, "standard", MapKind::Range, cuts, "standard").await?;
    Ok(Orders { engine, premium, standard })
}

/// Each tenant's orders are one shardlet, on the shard that its map says.
async fn route_by_key(orders: &Orders, own: &Shard) -> Result<()> {
    for tenant in [1, 2, 1500, 2500] {
        put(&orders.engine, &orders.standard, tenant, "order-1", "tea").await?;
    }
    for tenant in [7, 9] {
        put(&orders.engine, &orders.premium, tenant, "order-1", "gold").await?;
    }
    let shard_of = async |container: &Container, tenant| -> Result<_> {
        let route = route(container, tenant)?;
        Ok(orders.engine.router().place(container.id, &route).await?.shard)
    };
    println!("tenant 7 is on shard {}", shard_of(&orders.premium, 7).await?);
    expect(shard_of(&orders.premium, 7).await? == own.id, "a shard for premium tenants")?;
    let (low, high) =
        (shard_of(&orders.standard, 1).await?, shard_of(&orders.standard, 2500).await?);
    expect(low != high, "the others are spread")?;
    let unknown = shard_of(&orders.premium, 8).await;
    expect(unknown.is_err_and(|error| error.code() == "mapping-not-found"), "not listed")
}

/// A fan-out over all partitions of a map, in the order of tenants.
async fn ask_everybody(orders: &Orders) -> Result<()> {
    let scan = ItemScan { space: Space::ITEMS, range: KeyRange::all() };
    let (routes, limit) = (KeyRange::all(), PageLimit::items(100));
    let all = FanOut { routes, limit, on_failure: OnFailure::Fail };
    let page = orders.engine.fan_out(orders.standard.id, &scan, &all, None).await?;
    println!("{} orders in {} partitions", page.rows.len(), page.partitions);
    expect(page.rows.len() == 4 && page.partitions == 2, "fan-out")
}

/// Reference data is written once and copied to every shard.
async fn share_prices(orders: &Orders) -> Result<()> {
    let engine = &orders.engine;
    engine.put_reference("prices", b"tea", "5".into()).await?;
    engine.spread_references().await?;
    let spread = engine.reference_spread().await?;
    expect(spread.iter().all(|shard| shard.copied == shard.written), "reference data")?;
    let view = engine.read(orders.standard.id, &route(&orders.standard, 2500)?, 1).await?;
    expect(view.reference("prices", b"tea").await?.as_deref() == Some(b"5"), "its copy")
}

/// A transaction over shards is refused, and says which they are. A job makes the writes eventually.
async fn write_over_shards(orders: &Orders) -> Result<()> {
    let engine = &orders.engine;
    let rich = key(&orders.premium, 7, "credit")?;
    let poor = key(&orders.standard, 1, "credit")?;
    let targets = [&rich, &poor].map(|key| (key.container(), Bytes::copy_from_slice(key.route())));
    let refused = engine.write_many(&targets, PutBoth(rich.clone(), poor.clone())).await;
    let refused = refused.err().ok_or_else(|| Error::internal("example", "it must be refused"))?;
    println!("refused: {refused}");
    expect(refused.code() == "cross-shard", "cross-shard")?;
    let steps = [(&rich, "90"), (&poor, "10")].map(|(key, credit)| Step {
        container: key.container(),
        route: Bytes::copy_from_slice(key.route()),
        row: Bytes::copy_from_slice(key.row()),
        condition: Condition::Absent,
        payload: Some(credit.into()),
    });
    let job = engine.submit_job(steps.to_vec()).await?;
    engine.run_jobs().await?;
    let job = engine.job(job).await?;
    println!("a job made {} writes", job.made);
    expect(job.state == JobState::Finished && job.made == 2, "the job")
}

/// A shard that holds something cannot be removed; one that holds nothing can.
async fn remove_shards(orders: &Orders, holding: &Shard) -> Result<()> {
    let manager = orders.engine.manager();
    let removed = manager.remove_shard(holding.id, holding.version).await;
    expect(removed.is_err_and(|error| error.code() == "shard-not-empty"), "drain first")?;
    let spare = add_shard(&orders.engine, "shard-c", "standard").await?;
    manager.remove_shard(spare.id, spare.version).await
}

fn expect(holds: bool, what: &str) -> Result<()> {
    if holds { Ok(()) } else { Err(Error::internal("example", format!("not as expected: {what}"))) }
}

async fn add_shard(engine: &Engine, name: &str, tier: &str) -> Result<Shard> {
    let new = NewShard {
        name: name.to_owned(),
        location: name.to_owned(),
        region: "north".to_owned(),
        labels: [("tier".to_owned(), tier.to_owned())].into(),
    };
    engine.add_shard(&new, Arc::new(MemStore::new())).await
}

async fn create(
    engine: &Engine,
    name: &str,
    kind: MapKind,
    cuts: Cuts,
    tier: &str,
) -> Result<Container> {
    let only = Rule {
        routes: KeyRange::all(),
        region: None,
        labels: [("tier".to_owned(), tier.to_owned())].into(),
    };
    let new = NewContainer {
        name: format!("orders/{name}"),
        kind,
        key: KeySchema::one(KeyType::Int64),
        schema: "orders/1".to_owned(),
        placement: vec![only],
        policies: Policies::default(),
        cuts,
        shards: vec![],
    };
    engine.create_container(&new).await
}

fn route(container: &Container, tenant: i64) -> Result<Bytes> {
    container.kind.route(&container.key, &[KeyPart::Int64(tenant)])
}

fn key(container: &Container, tenant: i64, row: &str) -> Result<ItemKey> {
    let route = route(container, tenant)?;
    Ok(ItemKey::new(container.id, Space::ITEMS, &route, row.as_bytes()))
}

struct Put(ItemKey, Bytes);

impl Transaction for Put {
    type Output = ();

    async fn run(&self, tx: &mut Tx<'_>) -> Result<()> {
        tx.put(&self.0, self.1.clone()).await
    }
}

async fn put(
    engine: &Engine,
    container: &Container,
    tenant: i64,
    row: &str,
    value: &'static str,
) -> Result<()> {
    let key = key(container, tenant, row)?;
    let route = route(container, tenant)?;
    engine.write(container.id, &route, Put(key, value.into())).await
}

struct PutBoth(ItemKey, ItemKey);

impl Transaction for PutBoth {
    type Output = ();

    async fn run(&self, tx: &mut Tx<'_>) -> Result<()> {
        tx.put(&self.0, "90".into()).await?;
        tx.put(&self.1, "10".into()).await
    }
}
