//! Cluster mode: each node answers for its own slots, names the owner of others, and shows the map as it is.

use std::time::Duration;

use lazuli_resp::Answer;

use super::harness::{Client, Service, Setup, memory_stores, shown};

async fn cluster() -> Service {
    let service = Setup { nodes: 2, stores: memory_stores(2), ..Setup::default() }.serve().await;
    let mut client = Client::connect(service.nodes[0]).await;
    // The map is read right after the start.
    for _ in 0..200 {
        let ranges = client.call(&["CLUSTER", "SLOTS"]).await;
        if matches!(&ranges, Answer::Array(items) if items.len() > 1) {
            return service;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the map is never known");
}

/// A key whose slot the node at this place has, and the port of that node.
async fn foreign_key(service: &Service) -> (String, u16, u16) {
    let mut client = Client::connect(service.nodes[0]).await;
    for number in 0..1000 {
        let key = format!("k{number}");
        let reply = client.text(&["GET", &key]).await;
        if let Some(rest) = reply.strip_prefix("-MOVED ") {
            let (slot, address) = rest.split_once(' ').unwrap();
            let port = address.rsplit(':').next().unwrap().parse().unwrap();
            assert_eq!(client.text(&["CLUSTER", "KEYSLOT", &key]).await, slot);
            return (key, slot.parse().unwrap(), port);
        }
        assert_eq!(reply, "nil");
    }
    panic!("the first node has all slots");
}

#[tokio::test]
async fn a_node_names_the_owner_of_a_slot_and_the_owner_answers() {
    let service = cluster().await;
    let (key, _, port) = foreign_key(&service).await;
    assert_eq!(port, service.nodes[1].port());
    let mut owner = Client::connect(service.nodes[1]).await;
    assert_eq!(owner.text(&["SET", &key, "v"]).await, "OK");
    assert_eq!(owner.text(&["GET", &key]).await, "v");
    // The endpoint without a node answers any key, and commands over several slots.
    let mut any = Client::connect(service.address).await;
    assert_eq!(any.text(&["MGET", &key, "other"]).await, "[v nil]");
    let refused = "-ERR This instance has cluster support disabled";
    assert_eq!(any.text(&["CLUSTER", "SLOTS"]).await, refused);
}

#[tokio::test]
async fn commands_over_several_slots_and_databases_are_refused() {
    let service = cluster().await;
    let mut client = Client::connect(service.nodes[0]).await;
    let crossing = "-CROSSSLOT Keys in request don't hash to the same slot";
    assert_eq!(client.text(&["MSET", "a", "1", "b", "2"]).await, crossing);
    assert_eq!(client.text(&["DEL", "a", "b"]).await, crossing);
    let refused = "-ERR SELECT is not allowed in cluster mode";
    assert_eq!(client.text(&["SELECT", "1"]).await, refused);
    assert_eq!(client.text(&["SELECT", "0"]).await, "OK");
}

#[tokio::test]
async fn slots_shards_and_nodes_show_one_map_that_covers_every_slot() {
    let service = cluster().await;
    let mut client = Client::connect(service.nodes[0]).await;
    let Answer::Array(ranges) = client.call(&["CLUSTER", "SLOTS"]).await else { panic!() };
    let mut next = 0;
    let mut lines = Vec::new();
    for range in &ranges {
        let Answer::Array(parts) = range else { panic!("{range:?}") };
        let [Answer::Integer(first), Answer::Integer(last), Answer::Array(node)] = &parts[..]
        else {
            panic!("{parts:?}")
        };
        assert_eq!(*first, next);
        next = last + 1;
        assert_eq!(shown(&node[0]), "127.0.0.1");
        lines.push((format!("{first}-{last}"), shown(&node[1]), shown(&node[2])));
    }
    assert_eq!(next, 16_384);
    let nodes = client.text(&["CLUSTER", "NODES"]).await;
    for (range, port, id) in &lines {
        let line = nodes.lines().find(|line| line.starts_with(id)).unwrap();
        assert!(line.contains(&format!("127.0.0.1:{port}@")), "{line}");
        assert!(line.split(' ').any(|word| word == range), "{line}");
    }
    assert_eq!(nodes.lines().filter(|line| line.contains("myself,master")).count(), 1);
    let own = client.text(&["CLUSTER", "MYID"]).await;
    assert!(nodes.lines().any(|line| line.starts_with(&own) && line.contains("myself")));
    let shards = client.text(&["CLUSTER", "SHARDS"]).await;
    for (range, port, id) in &lines {
        let (first, last) = range.split_once('-').unwrap();
        assert!(shards.contains(&format!("{first} {last}")), "{shards}");
        assert!(shards.contains(&format!("id {id} port {port}")), "{shards}");
    }
    let info = client.text(&["CLUSTER", "INFO"]).await;
    assert!(info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:2"));
}

#[tokio::test]
async fn a_partition_that_moves_takes_its_slots_to_the_other_node_without_asking() {
    let service = cluster().await;
    let (key, slot, _) = foreign_key(&service).await;
    let mut owner = Client::connect(service.nodes[1]).await;
    assert_eq!(owner.text(&["SET", &key, "v"]).await, "OK");
    let engine = service.engine.clone().unwrap();
    let shards = engine.manager().catalog().shards().await.unwrap();
    super::motion::move_slot(&engine, slot, shards[0].id).await;
    let mut first = Client::connect(service.nodes[0]).await;
    for _ in 0..500 {
        let reply = first.text(&["GET", &key]).await;
        if reply == "v" {
            let moved = format!("-MOVED {slot} 127.0.0.1:{}", service.nodes[0].port());
            assert_eq!(owner.text(&["GET", &key]).await, moved);
            return;
        }
        assert!(reply.starts_with("-MOVED "), "{reply}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the slot never comes to the first node");
}
