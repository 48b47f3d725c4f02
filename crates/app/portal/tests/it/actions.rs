//! Actions: what each page says before it acts, what it asks of the admin API, and that nothing is asked without the secret
//! of the session.

use std::sync::{Arc, Mutex};

use crate::stand_in::{HOSTILE, Site};
use lazuli_http::StatusCode;
use serde_json::{Value, json};

type Asked = Arc<Mutex<Vec<String>>>;

/// A portal whose API notes what it is asked to change.
fn site() -> (Site, Asked) {
    let asked: Asked = Arc::default();
    let noted = asked.clone();
    let site = Site::with(move |ask| {
        if ask.method != "GET" {
            noted.lock().unwrap().push(format!("{} {}", ask.method, ask.path));
        }
        answer(ask.method.as_str(), &ask.path)
    });
    (site, asked)
}

fn answer(method: &str, path: &str) -> Option<Value> {
    let load = json!({ "bytes": 2_000_000, "requests": 10.0, "items": 3 });
    let none = json!({ "bytes": 0, "requests": 0.0, "items": 0 });
    Some(match (method, path) {
        ("GET", "/v1/rebalance/plan") => json!({
            "actions": [{ "kind": "move", "partition": 7, "from": "shard-0001", "to": "shard-0002",
                "why": "bytes are uneven", "load": load, "round": 1 }],
            "actions_count": 1, "cut_short": false, "bytes_to_move": 2_000_000, "left": [],
            "shards": [
                { "shard": "shard-0001", "state": "online", "partitions": 2, "before": load, "after": none },
                { "shard": "shard-0002", "state": "online", "partitions": 0, "before": none, "after": load },
            ],
        }),
        ("GET", "/v1/rebalance") => json!({ "running": null, "automatic": false, "plans": 0,
            "underway": [], "waiting": 0, "ended": [], "trouble": null }),
        ("GET", "/v1/accounts") => json!({ "accounts": [
            { "name": "mine", "from": "catalog" }, { "name": "theirs", "from": "setting" },
        ] }),
        ("POST", "/v1/accounts/mine/rotate-key") => json!({ "name": "mine", "key2": "FRESH" }),
        ("GET", "/v1/restores") => json!({ "restores": [] }),
        ("GET", "/v1/partitions/7/backup") => json!("the bytes of a backup"),
        ("POST", "/v1/restores") => json!({ "restore": 3, "map": "tables/mine/copy" }),
        ("GET", "/v1/audit") => json!({ "changes": [{
            "number": 5, "time_ms": 0, "via": "portal", "operation": "drain-shard", "path": HOSTILE,
            "parameters": { "name": HOSTILE }, "outcome": "done", "status": 200, "code": null, "took_ms": 3,
        }], "next": 5 }),
        ("GET", "/v1/settings") => json!({
            "table-port": { "value": "10002", "origin": "default" },
            "admin-token": { "value": "********", "origin": "the variable LAZULI_ADMIN_TOKEN" },
        }),
        ("GET", "/v1/sql") => {
            json!({ "databases": [{ "name": "shop", "shards": 2, "maps": 1, "tables": 1, "mappings": 1, "jobs": 1 }] })
        }
        ("GET", "/v1/sql/shop") => json!({ "name": "shop",
            "shards": [{ "id": 1, "name": "one", "draining": false }, { "id": 2, "name": "two", "draining": true }],
            "maps": [{ "id": 1, "name": "customers", "kind": "range", "mappings": [
                { "id": 4, "range": "from 1 to below 9", "shard": "one", "state": "online", "epoch": 2, "lock": null },
            ] }],
            "tables": [{ "schema": "public", "name": "orders", "kind": "sharded", "map": "customers", "columns": ["customer"] }],
            "jobs": [],
        }),
        ("GET", "/v1/sql/shop/sizes") => json!({ "shards": [
            { "shard": "one", "tables": [{ "table": "public.orders", "rows": 1_234, "bytes": 98_000 }] },
            { "shard": "two", "error": "it does not answer" },
        ] }),
        ("GET", "/v1/sql/shop/jobs") => {
            json!({ "jobs": [{ "job": 11, "kind": "move", "map": "customers",
            "mapping": 4, "from": "one", "to": "two", "step": "copy", "rows": 50, "rows_expected": 100,
            "changes": 2, "rows_per_second": 10.0, "eta_s": 5.0, "ended_ms": null, "trouble": null }] })
        }
        ("POST" | "DELETE", _) => json!({ "name": "shard-0003", "job": 12 }),
        _ => return None,
    })
}

/// What the page of an action says, the words on its button, what the form sends, and what is asked for then.
const ACTIONS: [(&str, &str, &str, &str); 11] = [
    ("shards/shard-0001/drain", ">Drain shard-0001</button>", "", ""),
    (
        "shards/shard-0002/fill",
        ">Let shard-0002 be filled again</button>",
        "",
        "DELETE /v1/shards/shard-0002/drain",
    ),
    ("shards/shard-0002/remove", ">Remove shard-0002</button>", "", "DELETE /v1/shards/shard-0002"),
    (
        "shards/add?name=shard-0003&region=west&labels=disk%3Dfast",
        ">Add the shard shard-0003</button>",
        "name=shard-0003&region=west&labels=disk%3Dfast&at=",
        "POST /v1/shards",
    ),
    (
        "accounts/mine/rotate",
        ">Regenerate key 2 of mine</button>",
        "key=2",
        "POST /v1/accounts/mine/rotate-key",
    ),
    ("accounts/mine/delete", ">Delete the account mine</button>", "", "DELETE /v1/accounts/mine"),
    (
        "sql/shop/move?mapping=4&to=two",
        ">Move range 4 to two</button>",
        "mapping=4&to=two",
        "POST /v1/sql/shop/move",
    ),
    (
        "sql/shop/split?mapping=4&at=5",
        ">Split range 4 at 5</button>",
        "mapping=4&at=5",
        "POST /v1/sql/shop/split",
    ),
    ("sql/shop/drain?shard=one", ">Drain one</button>", "shard=one", "POST /v1/sql/shop/drain"),
    (
        "sql/shop/ddl?statement=ALTER+TABLE+x",
        ">Run it on all shards</button>",
        "statement=ALTER+TABLE+x",
        "POST /v1/sql/shop/ddl",
    ),
    ("sql/shop/cancel?job=11", ">Cancel job 11</button>", "job=11", "POST /v1/sql/shop/cancel"),
];

#[tokio::test]
async fn every_action_is_shown_first_and_then_asked_for_with_the_secret_alone() {
    let (site, asked) = site();
    let (cookie, secret) = site.log_in().await;
    for (path, button, form, expected) in ACTIONS {
        let (page, _) = path.split_once('?').unwrap_or((path, ""));
        let shown = site.get(&format!("/portal/{path}"), &cookie).await;
        assert_eq!(shown.status, StatusCode::OK, "{path}: {}", shown.body);
        assert_eq!(asked.lock().unwrap().len(), 0, "{path} has changed something");
        if expected.is_empty() {
            // The only other shard is being drained, so there is no place for its partitions.
            assert!(!shown.body.contains(button), "{path}");
            assert!(shown.body.contains("There is no other shard online"), "{path}");
            continue;
        }
        assert!(shown.body.contains(button), "{path}: {}", shown.body);
        let page = format!("/portal/{page}");
        let refused = site.post(&page, &cookie, &format!("csrf=guess&{form}")).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{path}");
        assert_eq!(asked.lock().unwrap().len(), 0, "{path}");
        let done = site.post(&page, &cookie, &format!("csrf={secret}&{form}")).await;
        assert!(done.status.is_success() || done.status == StatusCode::SEE_OTHER, "{path}");
        assert_eq!(std::mem::take(&mut *asked.lock().unwrap()), [expected], "{path}");
    }
}

#[tokio::test]
async fn a_shard_with_partitions_and_an_account_of_the_settings_cannot_be_removed() {
    let (site, _) = site();
    let (cookie, _) = site.log_in().await;
    let page = site.get("/portal/shards/shard-0001/remove", &cookie).await;
    assert!(
        page.body.contains("Drain it first") && !page.body.contains(">Remove shard-0001</button>")
    );
    let page = site.get("/portal/accounts/theirs/delete", &cookie).await;
    assert!(!page.body.contains(">Delete the account theirs</button>"), "{}", page.body);
    let missing = site.get("/portal/shards/shard-0009/drain", &cookie).await;
    assert_eq!(missing.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_plan_is_drawn_before_and_after_and_carried_out_when_asked() {
    let (site, asked) = site();
    let (cookie, secret) = site.log_in().await;
    let page = site.get("/portal/rebalance", &cookie).await;
    for words in ["shard-0001 before: 2.0 MB", "shard-0002 after: 2.0 MB", "bytes are uneven"] {
        assert!(page.body.contains(words), "{words}: {}", page.body);
    }
    assert!(page.body.contains("Carry out this plan of 1 actions"));
    for (word, expected) in [("begin", "POST /v1/rebalance"), ("stop", "DELETE /v1/rebalance")] {
        let path = format!("/portal/rebalance/{word}");
        let refused = site.post(&path, &cookie, "csrf=guess").await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN);
        let done = site.post(&path, &cookie, &format!("csrf={secret}")).await;
        assert_eq!(done.status, StatusCode::SEE_OTHER);
        assert_eq!(std::mem::take(&mut *asked.lock().unwrap()), [expected]);
    }
}

#[tokio::test]
async fn a_new_key_is_shown_in_the_answer_and_nowhere_else() {
    let (site, _) = site();
    let (cookie, secret) = site.log_in().await;
    let form = format!("csrf={secret}&key=2");
    let page = site.post("/portal/accounts/mine/rotate", &cookie, &form).await;
    assert!(page.body.contains("FRESH"), "{}", page.body);
    assert_eq!(page.header("cache-control"), "no-store");
    assert!(!site.get("/portal/accounts", &cookie).await.body.contains("FRESH"));
}

#[tokio::test]
async fn a_backup_is_a_file_and_a_restore_takes_one() {
    let (site, asked) = site();
    let (cookie, secret) = site.log_in().await;
    let file = site.get("/portal/partitions/7/backup", &cookie).await;
    assert_eq!(file.body, "\"the bytes of a backup\"");
    assert!(file.header("content-disposition").contains("partition-7.lazuli-backup"));
    let body = format!(
        "--B\r\nContent-Disposition: form-data; name=\"csrf\"\r\n\r\n{secret}\r\n--B\r\nContent-Disposition: \
         form-data; name=\"into\"\r\n\r\ntables/mine/copy\r\n--B\r\nContent-Disposition: form-data; \
         name=\"file\"; filename=\"f\"\r\n\r\nbackup\r\n--B--\r\n"
    );
    let kind = "multipart/form-data; boundary=B";
    let body = lazuli_http::Body::from(bytes::Bytes::from(body));
    let done = site.post_as("/portal/backups", &cookie, kind, body).await;
    assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.body);
    assert_eq!(*asked.lock().unwrap(), ["POST /v1/restores"]);
    let page = site.get(done.header("location"), &cookie).await;
    assert!(page.body.contains("Restore 3 into tables/mine/copy has begun."), "{}", page.body);
}

#[tokio::test]
async fn the_audit_log_the_settings_and_sharded_databases_are_shown_as_text() {
    let (site, _) = site();
    let (cookie, _) = site.log_in().await;
    let page = site.get("/portal/audit", &cookie).await;
    assert!(page.body.contains("1970-01-01 00:00:00") && page.body.contains("?before=5"));
    assert!(!page.body.contains("<script>alert"), "{}", page.body);
    let page = site.get("/portal/settings", &cookie).await;
    assert!(page.body.contains("data-setting=\"admin-token\"") && page.body.contains("********"));
    let page = site.get("/portal/settings?name=table", &cookie).await;
    assert!(!page.body.contains("data-setting=\"admin-token\""));
    let page = site.get("/portal/sql/shop", &cookie).await;
    for words in ["1,234", "98.0 kB", "it does not answer", "50 of 100 rows", "from 1 to below 9"] {
        assert!(page.body.contains(words), "{words}: {}", page.body);
    }
}
