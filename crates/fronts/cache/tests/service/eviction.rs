//! A memory limit that is set at run time, under each policy.

use super::harness::{Client, Setup};

/// Enough for a few hundred of the keys that are written.
const LIMIT: &str = "200000";

async fn client(policy: &str) -> Client {
    let mut client = Client::connect(Setup::default().serve().await.address).await;
    assert_eq!(client.text(&["CONFIG", "SET", "maxmemory-policy", policy]).await, "OK");
    assert_eq!(client.text(&["CONFIG", "SET", "maxmemory", LIMIT]).await, "OK");
    client
}

/// Sets keys until far more was written than fits. The first refusal ends it.
async fn fill(client: &mut Client, name: &str, expiry_s: Option<u64>) -> Option<String> {
    let value = "x".repeat(400);
    for number in 0..2_000 {
        let key = format!("{name}:{number}");
        let seconds = expiry_s.map(|it| (it + number).to_string());
        let mut words = vec!["SET", &key, &value];
        if let Some(seconds) = &seconds {
            words.extend(["EX", seconds]);
        }
        let reply = client.text(&words).await;
        if reply != "OK" {
            return Some(reply);
        }
    }
    None
}

async fn count(client: &mut Client) -> usize {
    client.text(&["DBSIZE"]).await.parse().unwrap()
}

async fn evicted(client: &mut Client) -> u64 {
    let info = client.text(&["INFO", "stats"]).await;
    let line = info.lines().find_map(|line| line.strip_prefix("evicted_keys:")).unwrap();
    line.trim().parse().unwrap()
}

const FULL: &str = "-OOM command not allowed when used memory > 'maxmemory'.";

#[tokio::test]
async fn without_eviction_writes_are_refused_and_reads_and_deletions_go_on() {
    let mut client = client("noeviction").await;
    assert_eq!(fill(&mut client, "k", None).await.as_deref(), Some(FULL));
    assert_eq!(evicted(&mut client).await, 0);
    assert_eq!(client.text(&["GET", "k:0"]).await.len(), 400);
    let before = count(&mut client).await;
    assert_eq!(client.text(&["DEL", "k:0", "k:1", "k:2"]).await, "3");
    assert_eq!(client.text(&["SET", "new", "v"]).await, "OK");
    assert_eq!(count(&mut client).await, before - 2);
    // The limit is lifted while the server runs.
    assert_eq!(client.text(&["CONFIG", "SET", "maxmemory", "0"]).await, "OK");
    assert_eq!(fill(&mut client, "more", None).await, None);
}

#[tokio::test]
async fn every_policy_on_all_keys_makes_room_and_stays_below_the_limit() {
    for policy in ["allkeys-lru", "allkeys-lfu", "allkeys-random"] {
        let mut client = client(policy).await;
        assert_eq!(fill(&mut client, "k", None).await, None, "{policy}");
        let left = count(&mut client).await;
        assert!((50..1_000).contains(&left), "{policy} leaves {left}");
        assert_eq!(evicted(&mut client).await, 2_000 - left as u64, "{policy}");
        let info = client.text(&["INFO", "memory"]).await;
        let used = info.lines().find_map(|line| line.strip_prefix("used_memory:")).unwrap();
        // One value may be above it: the limit is looked at before a command.
        assert!(used.trim().parse::<u64>().unwrap() < 201_000, "{policy}: {used}");
    }
}

#[tokio::test]
async fn policies_on_keys_with_an_expiry_leave_the_others_alone() {
    for policy in ["volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl"] {
        let mut client = client(policy).await;
        for number in 0..50 {
            client.text(&["SET", &format!("stays:{number}"), &"y".repeat(400)]).await;
        }
        assert_eq!(fill(&mut client, "k", Some(1_000)).await, None, "{policy}");
        for number in 0..50 {
            let reply = client.text(&["EXISTS", &format!("stays:{number}")]).await;
            assert_eq!(reply, "1", "{policy} took a key that stays");
        }
        assert!(evicted(&mut client).await > 500, "{policy}");
        // With nothing left that may go, writes are refused.
        assert_eq!(fill(&mut client, "forever", None).await.as_deref(), Some(FULL), "{policy}");
    }
}

#[tokio::test]
async fn by_frequency_a_key_that_is_read_all_the_time_outlives_those_that_are_not() {
    let mut client = client("allkeys-lfu").await;
    client.text(&["SET", "hot", "v"]).await;
    for _ in 0..3_000 {
        client.text(&["GET", "hot"]).await;
    }
    assert_eq!(fill(&mut client, "k", None).await, None);
    assert_eq!(client.text(&["EXISTS", "hot"]).await, "1");
    assert!(client.text(&["OBJECT", "FREQ", "hot"]).await.parse::<u64>().unwrap() > 10);
}

#[tokio::test]
async fn by_time_to_live_the_key_that_would_end_first_of_its_stripe_goes_first() {
    let mut client = client("volatile-ttl").await;
    // Keys of one slot are in one stripe, so that the order among them is exact.
    let value = "x".repeat(400);
    for number in 0..600 {
        let key = format!("{{one}}:{number}");
        let reply = client.text(&["SET", &key, &value, "EX", &(10_000 + number).to_string()]).await;
        assert_eq!(reply, "OK");
    }
    let mut there = Vec::new();
    for number in 0..600 {
        there.push(client.text(&["EXISTS", &format!("{{one}}:{number}")]).await == "1");
    }
    let first = there.iter().position(|it| *it).unwrap();
    assert!(first > 0, "nothing was evicted");
    assert!(there[first..].iter().all(|it| *it), "one that ends later went before");
}
