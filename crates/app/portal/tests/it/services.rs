//! The page of a service: made of what the admin API says, whatever service it is.

use crate::stand_in::{HOSTILE, Site};
use lazuli_http::StatusCode;
use serde_json::{Value, json};

/// A service that nobody knows, with figures of every unit.
fn front() -> Value {
    let step = |requests: u64| json!({ "requests": requests, "refused": 0, "failed": 0, "p50_us": 900, "p99_us": 2_500 });
    json!({
        "name": "brews", "title": HOSTILE, "urls": ["tea://127.0.0.1:1"],
        "counts": {
            "connections_open": 3, "connections": 17, "connections_refused": 0,
            "received_bytes": 1_000_000, "sent_bytes": 2_000, "panics": 0, "timeouts": 0,
        },
        "operations": [{
            "name": "Steep", "requests": 1_234, "requests_per_second": 7.5, "refused": 4, "failed": 1,
            "outcomes": { "ok": 1_229, "COLD": 4, "SPILT": 1 }, "mean_us": 1_000, "p50_us": 900, "p99_us": null,
        }],
        "step_s": 5, "recent": [step(10), step(50), step(20)],
        "sections": [
            { "title": "Kettle", "figures": [
                { "name": "Full", "value": { "share": 0.875 } }, { "name": "Held", "value": { "bytes": 1_500 } },
                { "name": "Maker", "value": { "text": HOSTILE } }, { "name": "Hot", "value": {} },
            ] },
            { "title": "Leaves", "columns": ["Leaf", "Shard", "Number"], "note": "A sample.",
              "rows": [[{ "text": HOSTILE }, { "shard": "shard-0002" }, { "count": 12_345 }]] },
        ],
    })
}

fn site() -> Site {
    Site::with(|ask| match ask.path.as_str() {
        "/v1/fronts/brews" => Some(front()),
        _ => None,
    })
}

#[tokio::test]
async fn a_service_has_its_own_figures_on_its_page_whatever_it_is() {
    let site = site();
    let (cookie, _) = site.log_in().await;
    let page = site.get("/portal/services/brews?step=1m", &cookie).await;
    assert_eq!(page.status, StatusCode::OK, "{}", page.body);
    assert!(!page.body.contains("<script>alert"), "{}", page.body);
    for words in [
        "data-operation=\"Steep\"",
        "COLD: 4, SPILT: 1, ok: 1,229",
        "1.0 MB",
        "<dd>87.5 %</dd>",
        "<dd>1.5 kB</dd>",
        "<dd>–</dd>",
        "12,345",
        "A sample.",
        "class=\"s1\"",
        "<title>5 s ago: Requests 10/s</title>",
        "aria-current=\"true\">2 hours",
    ] {
        assert!(page.body.contains(words), "{words}: {}", page.body);
    }
    let missing = site.get("/portal/services/nobody", &cookie).await;
    assert_eq!(missing.status, StatusCode::NOT_FOUND);
}
