//! LATENCY and MEMORY STATS: figures of what has really happened.

use super::harness::{Client, Setup};

#[tokio::test]
async fn slow_commands_are_events_once_a_threshold_is_set() {
    let mut client = Client::connect(Setup::default().serve().await.address).await;
    let slow = ["EVAL", "local n = 0 for i = 1, 3e6 do n = n + i % 7 end return n", "0"];
    client.call(&slow).await;
    assert_eq!(client.text(&["LATENCY", "LATEST"]).await, "[]");
    let words = ["CONFIG", "SET", "latency-monitor-threshold", "2"];
    assert_eq!(client.text(&words).await, "OK");
    client.call(&slow).await;
    let latest = client.text(&["LATENCY", "LATEST"]).await;
    assert!(latest.contains("[command "), "{latest}");
    let history = client.text(&["LATENCY", "HISTORY", "command"]).await;
    assert!(history.starts_with("[["), "{history}");
    assert_eq!(client.text(&["LATENCY", "HISTORY", "no-such-event"]).await, "[]");
    assert_eq!(client.text(&["LATENCY", "RESET", "no-such-event"]).await, "0");
    assert_eq!(client.text(&["LATENCY", "RESET", "command"]).await, "1");
    assert_eq!(client.text(&["LATENCY", "HISTORY", "command"]).await, "[]");
}

#[tokio::test]
async fn the_histogram_of_a_command_counts_its_calls() {
    let mut client = Client::connect(Setup::default().serve().await.address).await;
    for _ in 0..5 {
        client.text(&["SET", "k", "v"]).await;
    }
    client.text(&["CONFIG", "GET", "save"]).await;
    let shown = client.text(&["LATENCY", "HISTOGRAM", "set", "config", "nosuch", "hget"]).await;
    assert!(shown.starts_with("[set [calls 5 histogram_usec ["), "{shown}");
    assert!(shown.contains("config|get [calls 1 ") && !shown.contains("hget"), "{shown}");
    assert_eq!(client.text(&["CONFIG", "SET", "latency-tracking", "no"]).await, "OK");
    assert_eq!(client.text(&["CONFIG", "RESETSTAT"]).await, "OK");
    client.text(&["SET", "k", "v"]).await;
    assert_eq!(client.text(&["LATENCY", "HISTOGRAM", "set"]).await, "[]");
}

#[tokio::test]
async fn memory_stats_count_what_is_there() {
    let mut client = Client::connect(Setup::default().serve().await.address).await;
    for number in 0..10 {
        client.text(&["SET", &format!("k{number}"), &"x".repeat(1_000), "EX", "100"]).await;
    }
    let stats = client.text(&["MEMORY", "STATS"]).await;
    assert!(stats.contains("keys.count 10 ") && stats.contains(" db.0 ["), "{stats}");
    let number = |name: &str| -> u64 {
        let (_, rest) = stats.split_once(&format!("{name} ")).unwrap();
        rest.split(' ').next().unwrap().parse().unwrap()
    };
    assert!(number("dataset.bytes") > 10_000 && number("keys.bytes-per-key") > 1_000);
    assert!(number("peak.allocated") >= number("total.allocated"));
}
