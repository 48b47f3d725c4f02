//! Items: what stands in headers, and bodies that SDKs would not send.

use expect_test::{Expect, expect};

use crate::raw::Server;

const KEY: &str = "x-ms-documentdb-partitionkey: [\"a\"]";
const DOCS: &str = "/dbs/d/colls/c/docs";

/// An answer whose numbers and ids are masked.
#[track_caller]
fn check(server: &Server, request: &str, expected: Expect) {
    let mut shown = String::new();
    for line in server.send(request).lines() {
        let line = match line.split_once(": ") {
            Some((name, _))
                if ["etag", "lsn", "x-ms-item-lsn", "x-ms-cosmos-llsn", "x-ms-session-token"]
                    .contains(&name)
                    || name.ends_with("rangeid") =>
            {
                format!("{name}: …")
            }
            _ => match line.find(",\"_rid\":") {
                Some(at) => format!("{},…", &line[..at]),
                None => line.to_owned(),
            },
        };
        shown += &line;
        shown.push('\n');
    }
    expected.assert_eq(&shown);
}

#[test]
fn a_write_says_where_its_container_is_and_how_far_it_has_come() {
    let server = Server::with_container();
    check(
        &server,
        &format!("POST {DOCS}\n{KEY}\n\n{{\"id\":\"1\",\"pk\":\"a\"}}"),
        expect![[r#"
            201 Created
            content-type: application/json
            etag: …
            x-ms-item-lsn: …
            x-ms-alt-content-path: dbs/d/colls/c
            x-ms-content-path: AAAAAYAAAAI=
            x-ms-session-token: …
            lsn: …
            x-ms-cosmos-llsn: …
            x-ms-documentdb-partitionkeyrangeid: …
            x-ms-request-charge: 5.98

            {"id":"1","pk":"a",…
        "#]],
    );
    check(
        &server,
        &format!("DELETE {DOCS}/1\n{KEY}"),
        expect![[r#"
            204 No Content
            x-ms-alt-content-path: dbs/d/colls/c
            x-ms-content-path: AAAAAYAAAAI=
            x-ms-session-token: …
            lsn: …
            x-ms-cosmos-llsn: …
            x-ms-documentdb-partitionkeyrangeid: …
            x-ms-request-charge: 5.98
        "#]],
    );
}

#[test]
fn bodies_that_are_no_items_are_refused() {
    let server = Server::with_container();
    let deep =
        format!("{{\"id\":\"1\",\"pk\":\"a\",\"x\":{}{}}}", "[".repeat(200), "]".repeat(200));
    for body in [
        "",
        "{",
        "[]",
        "null",
        "{\"pk\":\"a\"}",
        "{\"id\":1,\"pk\":\"a\"}",
        "{\"id\":\"a/b\",\"pk\":\"a\"}",
        "{\"id\":\"1\",\"pk\":{}}",
        &deep,
    ] {
        assert_eq!(server.refusal(&format!("POST {DOCS}\n{KEY}\n\n{body}")), "400", "{body}");
    }
    let other = format!("POST {DOCS}\n{KEY}\n\n{{\"id\":\"1\",\"pk\":\"b\"}}");
    assert_eq!(server.refusal(&other), "400/1001");
    let two = "x-ms-documentdb-partitionkey: [\"a\",\"b\"]";
    let other = format!("POST {DOCS}\n{two}\n\n{{\"id\":\"1\",\"pk\":\"a\"}}");
    assert_eq!(server.refusal(&other), "400/1001");
}

#[test]
fn a_read_of_what_the_client_has_is_not_modified() {
    let server = Server::with_container();
    let create = format!("POST {DOCS}\n{KEY}\n\n{{\"id\":\"1\",\"pk\":\"a\"}}");
    let etag = server.header(&create, "etag").unwrap();
    let read = format!("GET {DOCS}/1\n{KEY}\nif-none-match: {etag}");
    let answer = server.send(&read);
    assert!(answer.starts_with("304 ") && !answer.contains("\n\n"), "{answer}");
    assert!(server.send(&read.replace(&etag, "\"other\"")).starts_with("200 "));
    let never =
        format!("PUT {DOCS}/1\n{KEY}\nif-match: \"other\"\n\n{{\"id\":\"1\",\"pk\":\"a\"}}");
    assert_eq!(server.refusal(&never), "412");
}

#[test]
fn a_client_that_wants_little_gets_no_body() {
    let server = Server::with_container();
    let create =
        format!("POST {DOCS}\n{KEY}\nprefer: return=minimal\n\n{{\"id\":\"1\",\"pk\":\"a\"}}");
    let answer = server.send(&create);
    assert!(answer.starts_with("201 ") && answer.contains("\netag: "), "{answer}");
    assert!(!answer.contains("\n\n"), "{answer}");
}

#[test]
fn a_session_from_the_future_is_not_available() {
    let server = Server::with_container();
    let create = format!("POST {DOCS}\n{KEY}\n\n{{\"id\":\"1\",\"pk\":\"a\"}}");
    let token = server.header(&create, "x-ms-session-token").unwrap();
    let read = |token: &str| format!("GET {DOCS}/1\n{KEY}\nx-ms-session-token: {token}");
    server.ok(&read(&token));
    assert_eq!(server.refusal(&read(&format!("{token}000"))), "404/1002");
    assert_eq!(server.refusal(&read("nonsense")), "400");
}

#[test]
fn a_plan_runs_no_query_and_a_query_needs_leave() {
    let server = Server::with_container();
    let query = "{\"query\":\"SELECT * FROM c ORDER BY c.n\"}";
    let plan = format!(
        "POST {DOCS}\nx-ms-cosmos-is-query-plan-request: True\n\
         x-ms-cosmos-supported-query-features: OrderBy\nx-ms-documentdb-isquery: true\n\n{query}"
    );
    let answer = server.ok(&plan);
    assert!(answer.contains("\"rewrittenQuery\"") && answer.contains("\"max\":\"FF\""), "{answer}");
    assert_eq!(server.refusal(&plan.replace("OrderBy", "Top")), "400");
    let run = format!("POST {DOCS}\nx-ms-documentdb-isquery: true\n\n{query}");
    assert_eq!(server.refusal(&run), "400");
    let by_key = run.replace("ORDER BY c.n", "WHERE c.pk = 'a'");
    assert!(server.ok(&by_key).contains("\"Documents\":[]"));
    let bad = run.replace("ORDER BY", "ORDR BY");
    let answer = server.send(&bad);
    assert!(answer.starts_with("400 ") && answer.contains("SC1001"), "{answer}");
}

#[test]
fn operations_in_bulk_succeed_and_fail_each_by_itself() {
    let server = Server::with_container();
    let one = |id: &str, key: &str| {
        format!(
            "{{\"operationType\":\"Create\",\"partitionKey\":\"[\\\"{key}\\\"]\",\
             \"resourceBody\":{{\"id\":\"{id}\",\"pk\":\"{key}\"}}}}"
        )
    };
    let body = [one("1", "a"), one("1", "a"), one("2", "b")].join(",");
    let bulk = format!(
        "POST {DOCS}\nx-ms-cosmos-is-batch-request: true\nx-ms-cosmos-batch-continue-on-error: true\n\n[{body}]"
    );
    let answer = server.send(&bulk);
    assert!(answer.starts_with("207 "), "{answer}");
    let codes: Vec<&str> = answer.split("\"statusCode\":").skip(1).map(|rest| &rest[..3]).collect();
    assert_eq!(codes, ["201", "409", "201"]);
    let gone = bulk.replacen('\n', "\nx-ms-documentdb-partitionkeyrangeid: 999999\n", 1);
    assert_eq!(server.refusal(&gone), "410/1002");
}

fn found(server: &Server, query: &str) -> String {
    let key = "x-ms-documentdb-isquery: true\nx-ms-documentdb-query-enablecrosspartition: true";
    let answer = server.ok(&format!("POST {DOCS}\n{key}\n\n{{\"query\":\"{query}\"}}"));
    answer.split_once("\"Documents\":").unwrap().1.split_once(",\"_count\"").unwrap().0.to_owned()
}

#[test]
fn an_item_that_is_left_out_of_the_index_is_read_but_not_found() {
    let server = Server::with_container();
    let put = |id: &str, directive: &str| {
        let body = format!("{{\"id\":\"{id}\",\"pk\":\"a\",\"n\":1}}");
        let upsert = "x-ms-documentdb-is-upsert: true";
        let index = format!("x-ms-indexing-directive: {directive}");
        server.send(&format!("POST {DOCS}\n{KEY}\n{upsert}\n{index}\n\n{body}"))
    };
    let charge = |answer: String| crate::raw::header(&answer, "x-ms-request-charge").unwrap();
    let indexed = charge(put("in", "Include"));
    let left_out = charge(put("out", "exclude"));
    // Entries that are not written cost nothing.
    assert!(left_out.parse::<f64>().unwrap() < indexed.parse::<f64>().unwrap());
    assert!(put("bad", "sometimes").starts_with("400 "));
    for query in [
        "SELECT VALUE c.id FROM c",
        "SELECT VALUE c.id FROM c WHERE c.n = 1",
        "SELECT VALUE c.id FROM c WHERE c.n + 1 = 2",
        "SELECT VALUE c.id FROM c ORDER BY c.n",
        "SELECT VALUE c.id FROM c WHERE c.pk = 'a'",
    ] {
        assert_eq!(found(&server, query), "[\"in\"]", "{query}");
    }
    assert_eq!(found(&server, "SELECT VALUE COUNT(1) FROM c"), "[1]");
    server.ok(&format!("GET {DOCS}/out\n{KEY}"));
    assert!(server.ok(&format!("GET {DOCS}")).contains("\"_count\":2"));
    // The next write decides anew.
    server.ok(&format!("PUT {DOCS}/out\n{KEY}\n\n{{\"id\":\"out\",\"pk\":\"a\",\"n\":1}}"));
    assert_eq!(found(&server, "SELECT VALUE COUNT(1) FROM c WHERE c.n = 1"), "[2]");
    let patch = "{\"operations\":[{\"op\":\"incr\",\"path\":\"/n\",\"value\":1}]}";
    let exclude = "x-ms-indexing-directive: Exclude";
    server.ok(&format!("PATCH {DOCS}/out\n{KEY}\n{exclude}\n\n{patch}"));
    assert_eq!(found(&server, "SELECT VALUE COUNT(1) FROM c"), "[1]");
}
