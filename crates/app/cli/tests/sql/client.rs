//! The client library on real databases: cached maps, fenced connections, queries over shards.

use lazuli_client::{Error, Key, Policy, ShardRefusal, State, Validation};

use crate::shop::Shop;

const CHECKED: Validation = Validation::Checked;

fn two_shards() -> Option<Shop> {
    let shop = Shop::start(&["a", "b"], &[])?;
    shop.sql("a", "INSERT INTO counter SELECT t, 0 FROM generate_series(1, 20) t");
    Some(shop)
}

fn add_one(tenant: i64) -> String {
    format!("UPDATE counter SET value = value + 1 WHERE tenant = {tenant}")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_from_before_a_move_is_refused_by_its_shard_and_the_next_one_finds_the_new_shard()
 {
    let Some(shop) = two_shards() else { return };
    let database = shop.open().await;
    let map = database.map("tenants").unwrap();
    let key = Key::from(15);
    let (low, high) = (
        map.connect_for_key(&Key::from(3), CHECKED).await.unwrap(),
        map.connect_for_key(&key, CHECKED).await.unwrap(),
    );
    assert_eq!(high.shard(), "a");
    assert_eq!(high.execute(&add_one(15), &[]).await.unwrap(), 1);
    // Not even a reset of the session takes the fence away.
    high.batch_execute("RESET ALL").await.unwrap();
    high.batch_execute("DISCARD ALL").await.unwrap();
    let version = database.version();
    shop.split("10", "b");
    assert_eq!(database.version(), version, "nobody has told the cache");
    assert_eq!(map.mapping_for_key(&key).unwrap().shard, "a");
    for (connection, tenant) in [(&high, 15), (&low, 3)] {
        assert!(!connection.is_current().await.unwrap());
        let error = Error::from(connection.execute(&add_one(tenant), &[]).await.unwrap_err());
        let refusal = error.refusal().unwrap_or_else(|| panic!("{error}"));
        assert!(matches!(refusal, ShardRefusal::Stale | ShardRefusal::Elsewhere), "{refusal:?}");
        assert!(refusal.is_worth_retrying());
    }
    let again = map.connect_for_key(&key, CHECKED).await.unwrap();
    assert_eq!(again.shard(), "b");
    assert_eq!(again.execute(&add_one(15), &[]).await.unwrap(), 1);
    assert!(database.version() > version);
    // The connection is for its own mapping only.
    let low = map.connect_for_key(&Key::from(3), CHECKED).await.unwrap();
    assert_eq!(low.execute(&add_one(3), &[]).await.unwrap(), 1);
    shop.lazuli(&["sql", "split", "shop", "--map", "tenants", "--key", "5", "--at", "5"]);
    let other = Error::from(low.execute(&add_one(7), &[]).await.unwrap_err());
    assert_eq!(other.refusal(), Some(ShardRefusal::Stale), "{other}");
    let rows = "SELECT string_agg(tenant || '=' || value, ' ') FROM counter WHERE value > 0";
    assert_eq!([shop.sql("a", rows), shop.sql("b", rows)], ["3=1", "15=2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_checked_when_it_connects_is_refused_when_it_writes() {
    let Some(shop) = two_shards() else { return };
    let database = shop.open().await;
    let map = database.map("tenants").unwrap();
    shop.split("10", "b");
    let stale = map.connect_for_key(&Key::from(15), Validation::Unchecked).await.unwrap();
    assert_eq!(stale.shard(), "a");
    let error = Error::from(stale.execute(&add_one(15), &[]).await.unwrap_err());
    // The row itself is gone from the old shard: without the check no row would be found, and nothing said.
    assert_eq!(error.refusal(), Some(ShardRefusal::Stale), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn list_and_range_mappings_are_made_found_locked_and_brought_offline() {
    let Some(shop) = two_shards() else { return };
    shop.lazuli(&["sql", "map", "add", "shop", "names", "--kind", "list", "--key", "text"]);
    let database = shop.open().await;
    assert_eq!(database.maps(), ["tenants", "names"]);
    let names = database.map("names").unwrap();
    let acme = Key::from("acme");
    assert!(matches!(names.mapping_for_key(&acme), Err(Error::MappingNotFound)));
    assert_eq!(names.find_mapping_for_key(&acme).unwrap(), None);
    let point = names.add_point(&acme, "b").await.unwrap();
    let found = names.mapping_for_key(&acme).unwrap();
    assert_eq!((found.number, &*found.shard, found.state), (point, "b", State::Online));
    assert!(matches!(names.add_point(&acme, "a").await, Err(Error::Refused { .. })), "a duplicate");
    assert_eq!(names.mappings_on("b").unwrap().len(), 1);
    // A range map: split, found by ranges, merged.
    let tenants = database.map("tenants").unwrap();
    let whole = tenants.mapping_for_key(&Key::from(1)).unwrap().number;
    let parts = tenants.split(whole, &Key::from(10), None).await.unwrap();
    assert_eq!(parts.len(), 2);
    let between =
        |low, high| tenants.mappings_between(&Key::from(low), &Key::from(high)).unwrap().len();
    assert_eq!((between(1, 10), between(1, 11), between(10, 11)), (1, 2, 1));
    tenants.lock(parts[0], "me").await.unwrap();
    assert!(
        matches!(tenants.merge(parts[0], None).await, Err(Error::Refused { .. })),
        "it is locked"
    );
    assert_eq!(database.unlock_all("me").await.unwrap(), 1);
    tenants.merge(parts[0], None).await.unwrap();
    // Offline ends the sessions of the mapping, and no new one is given out.
    let key = Key::from(1);
    let connection = tenants.connect_for_key(&key, CHECKED).await.unwrap();
    let mapping = connection.mapping().clone();
    tenants.set_state(mapping.number, State::Offline, Some(mapping.epoch), None).await.unwrap();
    assert!(connection.execute("SELECT 1", &[]).await.is_err(), "it was ended");
    let refused = tenants.connect_for_key(&key, CHECKED).await;
    assert!(matches!(refused, Err(Error::MappingOffline { .. })), "{refused:?}");
    let old = tenants.set_state(mapping.number, State::Online, Some(mapping.epoch), None).await;
    assert!(matches!(old, Err(Error::Refused { .. })), "the epoch is another one by now");
    tenants.set_state(mapping.number, State::Online, None, None).await.unwrap();
    tenants.connect_for_key(&key, CHECKED).await.unwrap();
    assert_eq!(
        database.recovery().differences("a").await.unwrap(),
        Vec::<serde_json::Value>::new()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_many_shards_come_with_the_names_of_their_shards_and_by_either_policy() {
    let Some(shop) = two_shards() else { return };
    let database = shop.open().await;
    shop.split("15", "b");
    let text = "SELECT tenant FROM counter WHERE tenant > $1";
    let all = database.multi_shard().query(text, &[&12_i64]).await.unwrap();
    let mut seen: Vec<(i64, &str)> = all.rows.iter().map(|row| (row.get(0), row.shard())).collect();
    seen.sort_unstable();
    let expected: Vec<(i64, &str)> =
        (13..=20).map(|tenant| (tenant, if tenant < 15 { "a" } else { "b" })).collect();
    assert_eq!(seen, expected);
    let owned = "SELECT tenant FROM counter c WHERE {owned counter c}";
    assert_eq!(database.multi_shard().query(owned, &[]).await.unwrap().rows.len(), 20);
    assert!(database.multi_shard().query("SELECT 1 WHERE {owned nothing n}", &[]).await.is_err());
    let on_b = database.multi_shard().on(&["b"]).query(text, &[&0_i64]).await.unwrap();
    assert_eq!(on_b.rows.len(), 6);
    // One shard fails.
    shop.sql("b", "ALTER TABLE counter RENAME COLUMN value TO other");
    let broken = "SELECT value FROM counter";
    let failed = database.multi_shard().query(broken, &[]).await.unwrap_err();
    assert!(failed.to_string().contains("shard b"), "{failed}");
    let partial = database.multi_shard().policy(Policy::Partial);
    let some = partial.query(broken, &[]).await.unwrap();
    assert_eq!((some.rows.len(), some.failed.len(), &*some.failed[0].shard), (14, 1, "b"));
    assert!(partial.query("SELECT nothing FROM counter", &[]).await.is_err(), "all fail");
    // Columns differ in name.
    let mismatch = database.multi_shard().query("SELECT * FROM counter", &[]).await.unwrap_err();
    let Error::Shards(failures) = &mismatch else { panic!("{mismatch}") };
    assert!(matches!(failures[0].error, Error::SchemaMismatch { .. }), "{mismatch}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cache_serves_while_the_server_is_away_and_a_shard_that_is_down_is_an_error() {
    let Some(mut shop) = two_shards() else { return };
    let database = shop.open().await;
    let map = database.map("tenants").unwrap();
    shop.server = None;
    let connection = map.connect_for_key(&Key::from(1), CHECKED).await.unwrap();
    assert_eq!(connection.execute(&add_one(1), &[]).await.unwrap(), 1);
    assert!(matches!(database.refresh().await, Err(Error::Unavailable(_))));
    shop.postgres.stop(lazuli_postgres_server::Stop::Fast).unwrap();
    let refused = map.connect_for_key(&Key::from(1), CHECKED).await;
    assert!(matches!(refused, Err(Error::Unavailable(_))), "{refused:?}");
}
