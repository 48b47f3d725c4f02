//! The map of ranges as clients follow it, and budgets.

use lazuli_documents::Limits;

use crate::raw::Server;

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
    server.ok(&format!("PUT {path}\n\n{changed}"));
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
