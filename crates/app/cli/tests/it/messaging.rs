//! `lazuli bus …` and `lazuli hub …`: what people make, send, look at and mend, and what clients of the protocols see of it.

use bytes::Bytes;
use lazuli_amqp::client::Client;
use lazuli_amqp::performative::{Begin, Disposition, Performative, RECEIVER};
use lazuli_amqp::{DeliveryState, Error, Map, Terminus};
use serde_json::Value;
use tokio::net::TcpStream;

use crate::program::{ACCOUNT, Server, run, stderr, stdout};

#[test]
fn a_queue_is_made_filled_looked_into_and_emptied() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    server.command(&["bus", "create", "queue", "orders", "--partitions", "4", "--lock", "5"]);
    let shown = server.json(&["bus", "show", "orders"]);
    assert_eq!((&shown["partitions"], &shown["kind"]), (&4.into(), &"queue".into()));
    for text in ["one", "two"] {
        let sent = ["bus", "send", "orders", text, "--key", "k", "--label", "l"];
        server.command(&[&sent[..], &["--property", "colour=red"]].concat());
    }
    server.command(&["bus", "send", "orders", "later", "--after", "3600"]);
    let messages = server.json(&["bus", "peek", "orders"]);
    let texts: Vec<&str> =
        messages.as_array().unwrap().iter().filter_map(|it| it["text"].as_str()).collect();
    assert!(texts.contains(&"one") && texts.contains(&"two"), "{texts:?}");
    let one = messages.as_array().unwrap().iter().find(|it| it["text"] == "one").unwrap();
    assert_eq!(one["properties"]["colour"], "red");
    let listed = server.json(&["bus", "list"]);
    assert_eq!((&listed[0]["active"], &listed[0]["scheduled"]), (&2.into(), &1.into()));
    let purged = server.json(&["bus", "purge", "orders"]);
    assert_eq!(purged["deleted"], 3);
    let again = run(folder.path(), &["bus", "create", "queue", "orders"]);
    assert_eq!(again.status.code(), Some(1), "{}", stderr(&again));
    server.command(&["bus", "delete", "orders"]);
    assert_eq!(server.json(&["bus", "list"]), Value::Array(Vec::new()));
    let missing = run(folder.path(), &["bus", "peek", "orders"]);
    assert_eq!(missing.status.code(), Some(1));
}

#[test]
fn a_topic_gives_each_subscription_a_copy() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    server.command(&["bus", "create", "topic", "news"]);
    for name in ["news/Subscriptions/a", "news/Subscriptions/b"] {
        server.command(&["bus", "create", "subscription", name, "--max-deliveries", "3"]);
    }
    server.command(&["bus", "send", "news", "hello"]);
    let shown = server.json(&["bus", "show", "news"]);
    assert_eq!(shown["all_subscriptions"][1]["active"], 1);
    let peeked = server.json(&["bus", "peek", "news/Subscriptions/a"]);
    assert_eq!(peeked[0]["text"], "hello");
    assert_eq!(server.json(&["bus", "list"])[0]["active"], 2);
    let wrong = run(folder.path(), &["bus", "create", "subscription", "plain"]);
    assert!(stderr(&wrong).contains("TOPIC/Subscriptions/NAME"), "{}", stderr(&wrong));
}

/// Receives one message of a queue, and makes it a dead letter.
async fn dead_letter(address: String, queue: &str) {
    let mut client = Client::new(TcpStream::connect(address).await.unwrap());
    let plain = Bytes::from_static(b"\0RootManageSharedAccessKey\0SAS_KEY_VALUE");
    client.sasl("PLAIN", plain).await.unwrap();
    client.say(0, Performative::Open(Client::<TcpStream>::hello()));
    client.say(0, Performative::Begin(Begin { incoming_window: 100, ..Begin::default() }));
    client.attach_receiver(0, Terminus::source(queue));
    client.credit(0, 0, 1, false);
    client.flush().await.unwrap();
    loop {
        match client.next().await.unwrap().performative {
            Performative::Transfer(transfer) => {
                let id = transfer.delivery_id.unwrap();
                let mut error = Error::new("com.microsoft:dead-letter", "");
                error.info = Map::default().with("DeadLetterReason", "unreadable");
                client.say(
                    0,
                    Performative::Disposition(Disposition {
                        role: RECEIVER,
                        first: id,
                        last: Some(id),
                        settled: Some(false),
                        state: Some(DeliveryState::rejected(error)),
                        batchable: None,
                    }),
                );
                client.flush().await.unwrap();
            }
            Performative::Disposition(said) => {
                assert_eq!(said.state, Some(DeliveryState::Rejected(None)));
                return;
            }
            _ => {}
        }
    }
}

#[test]
fn dead_letters_are_sent_back_once_also_where_ids_are_compared() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let make = ["bus", "create", "queue", "jobs", "--duplicate-window", "600"];
    server.command(&make);
    server.command(&["bus", "send", "jobs", "work", "--id", "one", "--label", "first"]);
    runtime.block_on(dead_letter(server.endpoint("bus"), "jobs"));
    let shown = server.json(&["bus", "show", "jobs"]);
    assert_eq!((&shown["active"], &shown["dead_letter"]), (&0.into(), &1.into()));
    let dead = server.json(&["bus", "peek", "jobs", "--dead-letters"]);
    assert_eq!(dead[0]["properties"]["DeadLetterReason"], "unreadable");
    let other = server.json(&["bus", "resubmit", "jobs", "--number", "999"]);
    assert_eq!(other["resubmitted"], 0);
    let printed = run(folder.path(), &["bus", "resubmit", "jobs"]);
    assert!(stdout(&printed).contains("sent 1 dead letters"), "{}", stderr(&printed));
    let back = server.json(&["bus", "peek", "jobs"]);
    assert_eq!((&back[0]["text"], &back[0]["label"]), (&"work".into(), &"first".into()));
    assert_eq!(back[0]["properties"], serde_json::json!({}), "what made it a dead letter is gone");
    let shown = server.json(&["bus", "show", "jobs"]);
    assert_eq!((&shown["active"], &shown["dead_letter"]), (&1.into(), &0.into()));
}

#[test]
fn a_hub_is_made_written_followed_and_grown() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    server.command(&["hub", "create", "clicks", "--partitions", "2", "--retention", "24"]);
    assert_eq!(server.json(&["hub", "list"])[0]["retention_hours"], 24.0);
    let sent = server.json(&["hub", "send", "clicks", "one", "--key", "k"]);
    let partition = sent["partition"].to_string();
    server.command(&["hub", "send", "clicks", "two", "--partition", &partition]);
    let tailed = run(folder.path(), &["hub", "tail", "clicks", "--from-start", "--once"]);
    let expected = format!("{partition}/0  k  one\n{partition}/1  -  two\n");
    assert_eq!(stdout(&tailed), expected, "{}", stderr(&tailed));
    let end = run(folder.path(), &["hub", "tail", "clicks", "--once", "--partition", &partition]);
    assert_eq!(stdout(&end), "");
    let grown = server.json(&["hub", "partitions", "clicks", "--count", "5"]);
    assert_eq!(grown["partitions"], 5);
    let fewer = run(folder.path(), &["hub", "partitions", "clicks", "--count", "1"]);
    assert_eq!(fewer.status.code(), Some(1));
    server.command(&["hub", "add-group", "clicks", "reports"]);
    let shown = server.json(&["hub", "show", "clicks"]);
    assert_eq!(shown["all_partitions"].as_array().unwrap().len(), 5);
    assert_eq!(shown["groups"], serde_json::json!(["reports"]));
    server.command(&["hub", "delete-group", "clicks", "reports"]);
    server.command(&["hub", "delete", "clicks"]);
    assert_eq!(server.json(&["hub", "list"]), Value::Array(Vec::new()));
    let account = run(folder.path(), &["hub", "create", "x", "--account", "nobody"]);
    assert!(stderr(&account).contains("there is no account nobody"), "{}", stderr(&account));
}

#[test]
fn files_of_the_emulators_make_their_entities_at_start_and_quotas_hold() {
    let folder = tempfile::tempdir().unwrap();
    let bus = r#"{"UserConfig": {"Namespaces": [{"Name": "n", "Queues": [
        {"Name": "orders", "Properties": {"RequiresSession": true}}],
        "Topics": [{"Name": "news", "Subscriptions": [{"Name": "all"}]}]}]}}"#;
    let hubs = r#"{"UserConfig": {"NamespaceConfig": [{"Type": "EventHub", "Name": "n",
        "Entities": [{"Name": "clicks", "PartitionCount": "2",
                      "ConsumerGroups": [{"Name": "reports"}]}]}]}}"#;
    std::fs::write(folder.path().join("bus.json"), bus).unwrap();
    std::fs::write(folder.path().join("hubs.json"), hubs).unwrap();
    let flags = ["--servicebus-config", "bus.json", "--eventhubs-config", "hubs.json"];
    let flags = [&flags[..], &["--bus-partitioned-max", "1"]].concat();
    for _ in 0..2 {
        // The same files can be read at every start.
        let server = Server::start_with(folder.path(), &flags, &[]);
        let listed = server.json(&["bus", "list"]);
        assert_eq!((&listed[0]["name"], &listed[0]["sessions"]), (&"orders".into(), &true.into()));
        assert_eq!(listed[1]["subscriptions"], 1);
        let hub = server.json(&["hub", "show", "clicks"]);
        assert_eq!((&hub["partitions"], &hub["groups"][0]), (&2.into(), &"reports".into()));
    }
    let server = Server::start_with(folder.path(), &flags, &[]);
    server.command(&["bus", "create", "queue", "wide", "--partitions", "2"]);
    let second = run(folder.path(), &["bus", "create", "queue", "wider", "--partitions", "2"]);
    assert_eq!(second.status.code(), Some(1), "{}", stdout(&second));
    drop(server);
    std::fs::write(folder.path().join("hubs.json"), "{}").unwrap();
    let refused = run(folder.path(), &[&["serve", "--ports", "free"], &flags[..]].concat());
    assert!(stderr(&refused).contains("UserConfig.NamespaceConfig"), "{}", stderr(&refused));
}

#[test]
fn the_events_of_a_hub_are_captured_as_files_once_and_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path());
    server.command(&["hub", "create", "clicks", "--partitions", "1"]);
    server.command(&["hub", "send", "clicks", "before", "--key", "k"]);
    server.command(&["hub", "capture", "clicks", "--container", "files", "--seconds", "1"]);
    let list = |server: &Server| {
        let path = format!("/{ACCOUNT}/files?restype=container&comp=list");
        server.blobs("GET", &path, &[], "")
    };
    let names = |server: &Server, count: usize| {
        let began = std::time::Instant::now();
        loop {
            let (_, body) = list(server);
            let parts = body.split("<Name>").skip(1);
            let names: Vec<String> =
                parts.map(|part| part.split('<').next().unwrap().to_owned()).collect();
            if names.len() >= count {
                return names;
            }
            assert!(began.elapsed() < std::time::Duration::from_secs(30), "{body}");
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
    };
    let first = names(&server, 1);
    assert!(first[0].starts_with(&format!("{ACCOUNT}/clicks/0/")), "{first:?}");
    assert!(first[0].ends_with("-0.avro"), "{first:?}");
    let file =
        server.exchange_storage("blobs", "GET", &format!("/{ACCOUNT}/files/{}", first[0]), &[], "");
    assert!(file.body.starts_with(b"Obj\x01"));
    let text = String::from_utf8_lossy(&file.body).into_owned();
    assert!(text.contains("before") && text.contains("x-opt-partition-key"));
    // What was captured before a crash is not captured again.
    server.signal("-KILL");
    server.wait();
    server = Server::start(folder.path());
    server.command(&["hub", "send", "clicks", "after"]);
    let both = names(&server, 2);
    assert!(both.contains(&first[0]) && both.iter().any(|name| name.ends_with("-1.avro")));
    server.command(&["hub", "capture", "clicks", "--off"]);
    assert_eq!(server.json(&["hub", "list"])[0]["capture"], Value::Null);
    let bad = ["hub", "capture", "clicks", "--container", "files", "--seconds", "0"];
    assert_eq!(run(folder.path(), &bad).status.code(), Some(1));
}
