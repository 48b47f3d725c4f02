//! The map of ranges as clients follow it, and budgets.

use lazuli_documents::Limits;
use lazuli_shapes::document::Sizing;

use crate::raw::{Server, header, now_ms};

const RANGES: &str = "GET /dbs/d/colls/c/pkranges\na-im: Incremental Feed";

fn ids(body: &str) -> Vec<String> {
    let ids = body.split("{\"id\":\"").skip(1);
    ids.map(|rest| rest[..rest.find('"').unwrap()].to_owned()).collect()
}

/// Sets the throughput of the one container.
fn set_throughput(server: &Server, units: u32) {
    let offers = server.ok("GET /offers");
    let rid = offers.split_once("\"_self\":\"offers/").unwrap().1.split_once('/').unwrap().0;
    let path = format!("/offers/{}", rid.replace('=', "%3D").replace('+', "%2B"));
    let offer = server.ok(&format!("GET {path}"));
    let changed = offer.replace("\"offerThroughput\":400", &format!("\"offerThroughput\":{units}"));
    assert_ne!(offer, changed);
    let answer = server.ok(&format!("PUT {path}\n\n{changed}"));
    let is_pending = |offer: &str| offer.contains("\"isOfferReplacePending\":true");
    assert!(is_pending(&answer) && is_pending(&server.ok("GET /offers")), "{answer}");
    server.resize();
    let offer = server.ok(&format!("GET {path}"));
    assert!(offer.contains("\"isOfferReplacePending\":false"), "{offer}");
}

fn upsert(pk: &str, id: usize, bytes: usize) -> String {
    let text = "x".repeat(bytes);
    format!(
        "POST /dbs/d/colls/c/docs\nx-ms-documentdb-partitionkey: [\"{pk}\"]\n\
         x-ms-documentdb-is-upsert: true\n\n{{\"id\":\"{id}\",\"pk\":\"{pk}\",\"text\":\"{text}\"}}"
    )
}

fn unthrottled(range_bytes_max: u64, shardlet_bytes_max: u64) -> Server {
    let limits = Limits { throttles: false, ..Limits::default() };
    let server = Server::sized(limits, Sizing { range_bytes_max, shardlet_bytes_max });
    server.create_container();
    server
}

#[test]
fn a_range_that_is_too_large_is_split_and_one_of_a_single_key_is_not() {
    let server = unthrottled(40_000, 1_000_000);
    for id in 0..30 {
        server.ok(&upsert("only", id, 4_000));
    }
    server.resize();
    assert_eq!(ids(&server.ok(RANGES)).len(), 1);
    for id in 0..30 {
        server.ok(&upsert(&format!("k{id}"), id, 4_000));
    }
    for _ in 0..8 {
        server.resize();
    }
    let ranges = ids(&server.ok(RANGES)).len();
    assert!((4..=12).contains(&ranges), "{ranges}");
    let offers = server.ok("GET /offers");
    assert!(offers.contains("\"isOfferReplacePending\":false"), "{offers}");
    let all = server.ok("GET /dbs/d/colls/c/docs\nx-ms-max-item-count: 100");
    assert!(all.contains("\"_count\":60"));
}

#[test]
fn a_partition_key_that_is_full_takes_deletions_alone() {
    let server = unthrottled(1_000_000, 40_000);
    let answers: Vec<String> = (0..20).map(|id| server.send(&upsert("a", id, 4_000))).collect();
    let taken = answers.iter().take_while(|answer| answer.starts_with('2')).count();
    assert!((9..=11).contains(&taken), "{taken}");
    assert!(answers[taken..].iter().all(|answer| answer.starts_with("403 ")), "{answers:?}");
    assert_eq!(server.refusal(&upsert("a", 0, 10)), "403/1014");
    let key = "x-ms-documentdb-partitionkey: [\"a\"]";
    let patch = "{\"operations\":[{\"op\":\"set\",\"path\":\"/x\",\"value\":1}]}";
    let patch = format!("PATCH /dbs/d/colls/c/docs/0\n{key}\n\n{patch}");
    assert_eq!(server.refusal(&patch), "403/1014");
    // Others of the same range are not full.
    server.ok(&upsert("b", 0, 4_000));
    server.ok(&format!("GET /dbs/d/colls/c/docs/0\n{key}"));
    for id in 0..2 {
        server.ok(&format!("DELETE /dbs/d/colls/c/docs/{id}\n{key}"));
    }
    std::thread::sleep(std::time::Duration::from_millis(1_100));
    server.ok(&upsert("a", 0, 4_000));
}

#[test]
fn a_client_that_has_the_map_is_told_so_until_it_changes() {
    let server = Server::with_container();
    let etag = server.header(RANGES, "etag").unwrap();
    let again = format!("{RANGES}\nif-none-match: {etag}");
    let answer = server.send(&again);
    assert!(answer.starts_with("304 ") && answer.contains(&format!("etag: {etag}")), "{answer}");
    let before = ids(&server.ok(RANGES));
    set_throughput(&server, 30_000);
    let after = server.ok(&again);
    assert_eq!(ids(&after).len(), 5);
    assert!(after.contains(&format!("\"parents\":[\"{}\"", before[0])), "{after}");
    let etag = server.header(&again, "etag").unwrap();
    assert!(server.send(&format!("{RANGES}\nif-none-match: {etag}")).starts_with("304 "));
}

#[test]
fn a_range_that_was_split_is_gone() {
    let server = Server::with_container();
    let before = ids(&server.ok(RANGES));
    set_throughput(&server, 12_000);
    let feed = |range: &str| {
        format!("GET /dbs/d/colls/c/docs\nx-ms-documentdb-partitionkeyrangeid: {range}")
    };
    assert_eq!(server.refusal(&feed(&before[0])), "410/1002");
    for range in ids(&server.ok(RANGES)) {
        server.ok(&feed(&range));
    }
}

#[test]
fn requests_over_the_budget_are_told_when_to_come_again() {
    let server = Server::start();
    server.create_container();
    let text = "x".repeat(500 * 1024);
    let create = format!(
        "POST /dbs/d/colls/c/docs\nx-ms-documentdb-partitionkey: [\"a\"]\n\
         x-ms-documentdb-is-upsert: true\n\n{{\"id\":\"1\",\"pk\":\"a\",\"text\":\"{text}\"}}"
    );
    let refused = (0..5).map(|_| server.send(&create)).find(|answer| !answer.starts_with('2'));
    let refused = refused.unwrap();
    assert!(refused.starts_with("429 ") && refused.contains("x-ms-substatus: 3200"), "{refused}");
    assert!(refused.contains("x-ms-retry-after-ms: "), "{refused}");
    let server = Server::with_limits(Limits { throttles: false, ..Limits::default() });
    server.create_container();
    assert!((0..5).all(|_| server.send(&create).starts_with('2')));
}

/// What one container was let to spend of a load, and what it was refused, in request units.
#[derive(Default)]
struct Spent {
    charged: f64,
    refused: u32,
}

#[test]
fn a_container_of_400_units_refuses_the_right_share_of_1000_and_its_neighbour_feels_nothing() {
    const SECONDS: u64 = 20;
    /// Creates of one second: at about 6 units each a load of 1,000, and one of 300 beside it.
    const CREATES: u64 = 168;
    const CREATES_BESIDE: u64 = 50;
    let server = Server::with_container();
    let key = r#"{"paths":["/pk"],"kind":"Hash","version":2}"#;
    server.ok(&format!("POST /dbs/d/colls\n\n{{\"id\":\"beside\",\"partitionKey\":{key}}}"));
    let start = now_ms();
    let (mut over, mut beside) = (Spent::default(), Spent::default());
    for second in 0..SECONDS {
        for turn in 0..CREATES {
            let at = start + second * 1_000 + turn * 1_000 / CREATES;
            let create = |container: &str, spent: &mut Spent| {
                let create = format!(
                    "POST /dbs/d/colls/{container}/docs\nx-ms-documentdb-partitionkey: [\"a\"]\n\n\
                     {{\"id\":\"{second}-{turn}\",\"pk\":\"a\"}}"
                );
                let answer = server.send_at(&create, at);
                match &answer[..3] {
                    "201" => {
                        let charge = header(&answer, "x-ms-request-charge").unwrap();
                        spent.charged += charge.parse::<f64>().unwrap();
                    }
                    "429" => spent.refused += 1,
                    _ => panic!("{answer}"),
                }
            };
            create("c", &mut over);
            if turn < CREATES_BESIDE {
                create("beside", &mut beside);
            }
        }
    }
    let rate = over.charged / SECONDS as f64;
    // The first second's share is there at once.
    assert!((395.0..=430.0).contains(&rate), "{rate} units a second were let in");
    let share = f64::from(over.refused) / (CREATES * SECONDS) as f64;
    assert!((0.55..=0.63).contains(&share), "{share} of the load was refused");
    let rate = beside.charged / SECONDS as f64;
    assert!(beside.refused == 0 && rate > 290.0, "{} refused, {rate}", beside.refused);
}
