//! Documents in and out of files, and another partition key for a container that is in use, with the real program.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lazuli_transfer::account::{Account, Protocol};
use lazuli_transfer::session::{Call, Session};
use serde_json::{Value, json};

use crate::program::{ACCOUNT, PUBLISHED_KEY, Server, lazuli, run, stderr, stdout};

const PATIENCE: Duration = Duration::from_secs(120);

/// A server that refuses nothing for its cost.
fn start(folder: &Path) -> Server {
    Server::start_with(folder, &["--document-throttling", "off"], &[])
}

fn session(server: &Server) -> Session {
    let url = format!("http://{}", server.endpoint("documents"));
    let account = Account::with_key(Protocol::Documents, &url, ACCOUNT, PUBLISHED_KEY).unwrap();
    Session::new(Arc::new(account)).unwrap()
}

/// The items of an export by their ids.
fn by_id(text: &str) -> BTreeMap<String, Value> {
    let item = |line: &str| {
        let value: Value = serde_json::from_str(line).unwrap();
        (format!("{} {}", value["id"], value["customer"]), value)
    };
    text.lines().map(item).collect()
}

fn exported(server: &Server, place: &str) -> BTreeMap<String, Value> {
    by_id(&server.command(&["documents", "export", place, "--quiet"]))
}

/// Lines of items of several customers.
fn lines(count: usize) -> String {
    let line = |n: usize| {
        let (customer, region) = (n / 5 % 40, n % 7);
        format!(
            "{{\"id\":\"i{n}\",\"customer\":\"c{customer}\",\"region\":\"r{region}\",\"n\":{n},\
             \"price\":{n}.50,\"tags\":[\"a\",{{\"b\":null}}],\"note\":\"say \\\"{n}\\\", ü\"}}\n"
        )
    };
    (0..count).map(line).collect()
}

#[test]
fn items_survive_both_formats_and_queries_show_them() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path());
    std::fs::write(folder.path().join("in.jsonl"), lines(300)).unwrap();
    let made = server.command(&["documents", "create", "shop/orders", "--key", "/customer"]);
    assert_eq!(made, "created container shop/orders\n");
    let imported = server.command(&["documents", "import", "shop/orders", "in.jsonl"]);
    assert_eq!(imported, "imported 300 items into shop/orders\n");
    assert_eq!(exported(&server, "shop/orders"), by_id(&lines(300)));
    for (number, ending) in ["csv", "jsonl"].into_iter().enumerate() {
        let (file, other) = (format!("out.{ending}"), format!("shop/copy{number}"));
        server.command(&["documents", "export", "shop/orders", &file]);
        server.command(&["documents", "create", &other, "--key", "/region", "--key", "/customer"]);
        server.command(&["documents", "import", &other, &file, "--mode", "create"]);
        assert_eq!(exported(&server, &other), by_id(&lines(300)), "{ending}");
        // They are there already.
        let again = run(folder.path(), &["documents", "import", &other, &file, "--mode", "create"]);
        assert!(stderr(&again).starts_with("error: line "), "{}", stderr(&again));
    }
    let listed = server.json(&["documents", "list"]);
    assert_eq!(listed["containers"].as_array().unwrap().len(), 3);
    let text = "SELECT c.id, c.n FROM c WHERE c.n < @most ORDER BY c.n";
    let query = ["documents", "query", "shop/orders", text, "--param", "most=2", "--explain"];
    let answer = run(folder.path(), &query);
    assert_eq!(stdout(&answer), "{\"id\":\"i0\",\"n\":0}\n{\"id\":\"i1\",\"n\":1}\n");
    let told = stderr(&answer);
    assert!(told.contains("2 rows, ") && told.contains("query-metrics: "), "{told}");
    let table = [&query[..], &["--format", "table"]].concat();
    assert_eq!(server.command(&table), "ID  N\ni0  0\ni1  1\n");
    let one = ["SELECT VALUE COUNT(1) FROM c", "--key", "\"c3\""];
    let one = [&["documents", "query", "shop/orders"][..], &one[..]].concat();
    assert_eq!(server.command(&one), "10\n");
    let built = server.command(&["documents", "reindex", "shop/orders"]);
    assert_eq!(built, "built the index of shop/orders anew\n");
    assert_eq!(server.command(&one), "10\n");
    let missing = run(folder.path(), &["documents", "reindex", "shop/none"]);
    assert!(!missing.status.success() && stderr(&missing).starts_with("error: "));
}

#[test]
fn an_import_that_failed_goes_on_behind_what_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path());
    server.command(&["documents", "create", "d/c", "--key", "/customer"]);
    let broken = lines(50) + "broken\n";
    std::fs::write(folder.path().join("in.jsonl"), &broken).unwrap();
    let import = ["documents", "import", "d/c", "in.jsonl", "--mode", "create"];
    let failed = run(folder.path(), &import);
    assert!(stderr(&failed).starts_with("error: line 51: "), "{}", stderr(&failed));
    std::fs::write(folder.path().join("in.jsonl"), lines(90)).unwrap();
    assert!(stderr(&run(folder.path(), &import)).contains("was interrupted"));
    server.command(&[&import[..], &["--resume"]].concat());
    assert_eq!(exported(&server, "d/c"), by_id(&lines(90)));
    assert!(!folder.path().join("in.jsonl.progress").exists());
    let skip = format!("{}[1]\n{{\"customer\":1}}\n", lines(1));
    std::fs::write(folder.path().join("skip.jsonl"), skip).unwrap();
    let skipped = server.command(&["documents", "import", "d/c", "skip.jsonl", "--skip-errors"]);
    assert_eq!(skipped, "imported 1 items into d/c and left out 2\n");
}

/// Writes, replaces and deletes items until it is told to stop, and answers what must be there then.
fn writer(
    server: &Server,
    name: &str,
    stop: Arc<AtomicBool>,
    count: Arc<AtomicU64>,
) -> std::thread::JoinHandle<BTreeMap<String, Value>> {
    let (mut session, name) = (session(server), name.to_owned());
    std::thread::spawn(move || {
        let mut expected = BTreeMap::new();
        let mut n = 0_u64;
        while !stop.load(Ordering::Relaxed) {
            let id = format!("{name}{}", n % 50);
            let customer = format!("c{}", n % 50 % 40);
            let key = json!([customer]).to_string();
            let deletes = n % 7 == 3;
            let item = json!({
                "id": id, "customer": customer, "region": format!("r{}", n % 5), "n": n,
            });
            let body = item.to_string();
            let (method, path) = match deletes {
                true => ("DELETE", format!("/dbs/shop/colls/orders/docs/{id}")),
                false => ("POST", "/dbs/shop/colls/orders/docs".to_owned()),
            };
            let headers = [
                ("x-ms-documentdb-partitionkey", key.as_str()),
                ("x-ms-documentdb-is-upsert", "True"),
            ];
            let body = if deletes { &b""[..] } else { body.as_bytes() };
            let call = Call { headers: &headers, body, ..Call::new(method, &path) };
            let status = session.ask(call).unwrap().answer.status;
            match (deletes, status) {
                (true, 204 | 404) => {
                    expected.remove(&format!("\"{id}\" \"{customer}\""));
                }
                (false, 200 | 201) => {
                    expected.insert(format!("\"{id}\" \"{customer}\""), item);
                }
                _ => panic!("{method} {path}: {status}"),
            }
            n += 1;
            count.fetch_add(1, Ordering::Relaxed);
        }
        expected
    })
}

#[test]
fn a_container_in_use_gets_another_partition_key_although_the_command_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path());
    server.command(&["documents", "create", "shop/orders", "--key", "/customer"]);
    std::fs::write(folder.path().join("in.jsonl"), lines(3_000)).unwrap();
    server.command(&["documents", "import", "shop/orders", "in.jsonl", "--quiet"]);
    let stop = Arc::new(AtomicBool::new(false));
    let count = Arc::new(AtomicU64::new(0));
    let start = |name: &&str| writer(&server, name, stop.clone(), count.clone());
    let writers: Vec<_> = ["x", "y"].iter().map(start).collect();
    let repartition = ["documents", "repartition", "shop/orders", "--key", "/region"];
    let progress = folder.path().join("shop.orders.repartition");
    // Killed as soon as it has noted anything, and again later.
    for after in [0, 300] {
        let mut child = lazuli(folder.path(), &repartition).stdout(Stdio::null()).spawn().unwrap();
        let began = Instant::now();
        while !progress.exists() {
            assert!(began.elapsed() < PATIENCE && child.try_wait().unwrap().is_none());
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(after));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let began = Instant::now();
    while count.load(Ordering::Relaxed) < 300 {
        assert!(began.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(5));
    }
    stop.store(true, Ordering::Relaxed);
    let mut expected = by_id(&lines(3_000));
    for one in writers {
        expected.extend(one.join().unwrap());
    }
    assert_eq!(exported(&server, "shop/orders"), expected);
    let done = server.json(&repartition);
    assert_eq!(done["switched"], true);
    assert!(done["changes"].as_u64() > Some(0), "{done}");
    assert_eq!(exported(&server, "shop/orders"), expected);
    assert_eq!(exported(&server, "shop/orders-former"), expected);
    // In the new container an item is found by the new key.
    let text = "SELECT VALUE COUNT(1) FROM c";
    let count = ["documents", "query", "shop/orders", text, "--key", "\"r3\""];
    let wanted = expected.values().filter(|item| item["region"] == "r3").count();
    assert_eq!(server.command(&count), format!("{wanted}\n"));
}

#[test]
fn clients_are_switched_and_nothing_that_they_wrote_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path());
    server.command(&["documents", "create", "shop/orders", "--key", "/customer"]);
    std::fs::write(folder.path().join("in.jsonl"), lines(500)).unwrap();
    server.command(&["documents", "import", "shop/orders", "in.jsonl", "--quiet"]);
    let stop = Arc::new(AtomicBool::new(false));
    let appending = {
        let (mut session, stop) = (session(&server), stop.clone());
        std::thread::spawn(move || {
            let mut written = Vec::new();
            for n in 0.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                let item = json!({ "id": format!("w{n}"), "customer": "w", "region": "w", "n": n });
                let headers = [("x-ms-documentdb-partitionkey", "[\"w\"]")];
                let body = item.to_string();
                let path = "/dbs/shop/colls/orders/docs";
                let call =
                    Call { headers: &headers, body: body.as_bytes(), ..Call::new("POST", path) };
                let answered = session.ask(call).unwrap();
                assert!(matches!(answered.answer.status, 201), "{}", answered.answer.status);
                written.push(item);
            }
            written
        })
    };
    std::thread::sleep(Duration::from_millis(200));
    let done = server.json(&["documents", "repartition", "shop/orders", "--key", "/region"]);
    assert_eq!(done["switched"], true);
    std::thread::sleep(Duration::from_millis(200));
    stop.store(true, Ordering::Relaxed);
    let written = appending.join().unwrap();
    let mut expected = by_id(&lines(500));
    expected.extend(by_id(&written.iter().map(|item| format!("{item}\n")).collect::<String>()));
    assert_eq!(exported(&server, "shop/orders"), expected);
    let listed = server.json(&["documents", "list"]);
    let key_of = |name: &str| {
        let all = listed["containers"].as_array().unwrap();
        all.iter().find(|one| one["container"] == name).unwrap()["key"].clone()
    };
    assert_eq!(key_of("orders"), json!(["/region"]));
    assert_eq!(key_of("orders-former"), json!(["/customer"]));
    // The former one takes nothing more, so a client with an old address does not write into the void.
    let mut session = session(&server);
    let headers = [("x-ms-documentdb-partitionkey", "[\"c1\"]")];
    let path = "/dbs/shop/colls/orders-former/docs/i5";
    let read = session.ask(Call { headers: &headers, ..Call::new("GET", path) }).unwrap();
    assert_eq!(read.answer.status, 200);
    assert!(!folder.path().join("shop.orders.repartition").exists());
    let deleted = session.ask(Call::new("DELETE", "/dbs/shop/colls/orders-former")).unwrap();
    assert_eq!(deleted.answer.status, 204);
}

#[test]
fn a_key_that_does_not_tell_items_apart_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path());
    server.command(&["documents", "create", "d/c", "--key", "/customer"]);
    let both = "{\"id\":\"1\",\"customer\":\"a\",\"region\":\"r\"}\n\
                {\"id\":\"1\",\"customer\":\"b\",\"region\":\"r\"}\n";
    std::fs::write(folder.path().join("in.jsonl"), both).unwrap();
    server.command(&["documents", "import", "d/c", "in.jsonl"]);
    let refused = run(folder.path(), &["documents", "repartition", "d/c", "--key", "/region"]);
    assert!(stderr(&refused).contains("does not tell them apart"), "{}", stderr(&refused));
    assert_eq!(exported(&server, "d/c").len(), 2);
}
