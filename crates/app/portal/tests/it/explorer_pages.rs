//! The explorer's pages by their answers: what is asked of the admin API, that names lead back to themselves, that files
//! are sent as files, and that no change is made without the secret of the session.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::stand_in::Site;
use lazuli_http::uri::percent_encode;
use lazuli_http::{Body, StatusCode};
use lazuli_portal::Ask;
use serde_json::{Value, json};

const NAME: &str = "a/../<b>\"'\u{202e}\n%2f";

/// A portal on an admin API with one table, one container and one queue, and what it is asked.
fn site() -> (Site, Arc<Mutex<Vec<String>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let noted = asked.clone();
    let site = Site::with(move |ask: &Ask| {
        let if_match = ask.headers.get("if-match").map_or("", |value| value.to_str().unwrap());
        let note = format!("{} {}?{} {if_match}", ask.method, ask.path, ask.query);
        noted.lock().unwrap().push(note.trim_end_matches([' ', '?']).to_owned());
        answer(ask)
    });
    (site, asked)
}

fn answer(ask: &Ask) -> Option<Value> {
    let path = ask.path.strip_prefix("/v1/explorer/")?;
    let entity =
        json!({ "PartitionKey": NAME, "RowKey": NAME, "odata.etag": "W/\"1\"", "Text": NAME });
    Some(match (ask.method.as_str(), path) {
        ("GET", "tables/mine") => json!({ "tables": [{ "name": "things" }], "next": null }),
        ("GET", "tables/mine/things/entities") => json!({ "entities": [entity], "next": "n~" }),
        ("GET", "tables/mine/things/entity") => json!({ "entity": entity }),
        ("GET", "blobs/mine/box/list") => json!({
            "prefixes": ["a/"], "next": null,
            "blobs": [{ "name": NAME, "bytes": 3, "content_type": "text/html", "changed": "now" }],
        }),
        ("GET", "blobs/mine/box/blob") => json!({
            "name": NAME, "bytes": 3, "etag": "\"e\"", "metadata": { "m": NAME }, "tags": { "k": "v" },
        }),
        ("GET", "blobs/mine/box/preview") => {
            json!({ "kind": "text", "bytes": 3, "shown": 3, "text": NAME })
        }
        ("GET", "blobs/mine/box/content") => json!("<script>"),
        ("GET", "queues/mine/line") => json!({ "name": "line", "messages": 1 }),
        ("GET", "queues/mine/line/messages") => json!({
            "messages": [{ "id": "1", "inserted": "", "expires": "", "dequeues": 0, "text": NAME }],
        }),
        ("GET", "documents/mine") => {
            json!({ "collections": [{ "name": "db/things", "key": ["/pk"] }], "next": null })
        }
        ("GET", "documents/mine/db%2Fthings") => json!({
            "name": "db/things", "key": ["/pk"], "throughput": 400, "is_autoscale": false,
            "is_pending": true, "definition": {},
            "ranges": [{ "id": "1", "min": "", "max": "FF", "kilobytes": 3, "items": 2,
                         "units_per_second": 1.5 }],
        }),
        ("GET", "documents/mine/db%2Fthings/items") => json!({
            "rows": [{ "id": NAME, "pk": NAME, "_rid": "r", "_etag": "e" }], "units": 2.83,
            "items_read": 1, "bytes_read": 100, "next": "n~",
            "indexes": { "UtilizedIndexes": { "SingleIndexes": [{ "IndexSpec": "/pk/?" }] } },
        }),
        ("GET", "documents/mine/db%2Fthings/item") => {
            json!({ "item": { "id": NAME, "pk": NAME, "_etag": "\"e\"", "_ts": 7 } })
        }
        ("GET", "documents/mine/db%2Fthings/throughput") => {
            json!({ "units": 30_000, "ranges": 1, "ranges_then": 5, "units_per_range": 6_000 })
        }
        ("POST" | "PUT" | "PATCH" | "DELETE", _) => json!({}),
        _ => return None,
    })
}

/// Nothing of the name is markup, and its signs are written out.
fn is_escaped(body: &str) {
    assert!(!body.contains("<b>") && !body.contains("\"'\u{202e}"), "{body}");
}

#[tokio::test]
async fn what_is_stored_is_text_on_every_page_and_leads_back_to_itself() {
    let (site, asked) = site();
    let (cookie, _) = site.log_in().await;
    let name = percent_encode(NAME);
    let entity = format!("tables/mine/things/entity?partition_key={name}&row_key={name}");
    let blob = format!("blobs/mine/box/blob?name={name}");
    let key = percent_encode(&json!([NAME]).to_string());
    let item = format!("documents/mine/db%2Fthings/item?id={name}&key={key}");
    for (page, leads_to) in [
        ("tables/mine/things", entity.as_str()),
        ("blobs/mine/box", blob.as_str()),
        ("queues/mine/line", "queues/mine/line/put"),
        (entity.as_str(), "tables/mine/things/change?partition_key="),
        ("documents/mine", "documents/mine/db%2Fthings"),
        ("documents/mine/db%2Fthings", item.as_str()),
        (
            "documents/mine/db%2Fthings?as=json&query=SELECT%201",
            "documents/mine/db%2Fthings?query=SELECT%201",
        ),
        (item.as_str(), "documents/mine/db%2Fthings/change?id="),
        ("documents/mine/db%2Fthings/ranges?units=30000", "documents/mine/db%2Fthings/throughput"),
        (blob.as_str(), "blobs/mine/box/content?name="),
    ] {
        let answer = site.get(&format!("/portal/explorer/{page}"), &cookie).await;
        assert_eq!(answer.status, StatusCode::OK, "{page}");
        is_escaped(&answer.body);
        let link = leads_to.replace('&', "&amp;");
        assert!(
            answer.body.contains(&format!("/portal/explorer/{link}")),
            "{page}: {}",
            answer.body
        );
    }
    let last = asked.lock().unwrap().last().unwrap().clone();
    assert_eq!(last, format!("GET /v1/explorer/blobs/mine/box/preview?name={name}"));
}

#[tokio::test]
async fn files_are_attachments_that_no_browser_runs() {
    let (site, _) = site();
    let (cookie, _) = site.log_in().await;
    let path = "/portal/explorer/blobs/mine/box/content?name=x";
    let answer = site.get(path, &cookie).await;
    assert_eq!((answer.status, answer.body.as_str()), (StatusCode::OK, "\"<script>\""));
    assert_eq!(answer.header("content-type"), "application/octet-stream");
    assert_eq!(answer.header("x-content-type-options"), "nosniff");
    assert!(answer.header("content-security-policy").starts_with("default-src 'none'"));
    assert_eq!(site.get(path, "").await.status, StatusCode::SEE_OTHER, "not without a session");
}

#[tokio::test]
async fn changes_are_sent_on_the_version_that_was_shown_and_only_with_the_secret() {
    let (site, asked) = site();
    let (cookie, secret) = site.log_in().await;
    let changes = [
        ("create/tables/mine", "name=new", "POST /v1/explorer/tables/mine"),
        ("tables/mine/things/insert", "entity={}", "POST /v1/explorer/tables/mine/things/entities"),
        (
            "tables/mine/things/change?partition_key=&row_key=r",
            "how=merge&etag=W%2F%221%22&entity={}",
            "PATCH /v1/explorer/tables/mine/things/entity?partition_key=&row_key=r W/\"1\"",
        ),
        (
            "tables/mine/things/change?partition_key=&row_key=r",
            "how=delete&etag=W%2F%221%22&sure=yes",
            "DELETE /v1/explorer/tables/mine/things/entity?partition_key=&row_key=r W/\"1\"",
        ),
        ("blobs/mine/box/tags?name=b", "tags=k%3Dv", "PUT /v1/explorer/blobs/mine/box/tags?name=b"),
        (
            "blobs/mine/box/delete?name=b",
            "etag=%22e%22&sure=yes",
            "DELETE /v1/explorer/blobs/mine/box/blob?name=b \"e\"",
        ),
        ("queues/mine/line/put", "text=hello", "POST /v1/explorer/queues/mine/line/messages"),
        ("queues/mine/line/clear", "sure=yes", "DELETE /v1/explorer/queues/mine/line/messages"),
        (
            "create/documents/mine",
            "name=d%2Fc&key=%2Fpk&throughput=400",
            "POST /v1/explorer/documents/mine",
        ),
        (
            "documents/mine/db%2Fthings/put",
            "item={}",
            "PUT /v1/explorer/documents/mine/db%2Fthings/item",
        ),
        (
            "documents/mine/db%2Fthings/change?id=1&key=[]",
            "how=replace&etag=e&item={}",
            "PUT /v1/explorer/documents/mine/db%2Fthings/item",
        ),
        (
            "documents/mine/db%2Fthings/change?id=1&key=[]",
            "how=delete&etag=e&sure=yes",
            "DELETE /v1/explorer/documents/mine/db%2Fthings/item?id=1&key=%5B%5D e",
        ),
        (
            "documents/mine/db%2Fthings/throughput",
            "units=30000",
            "PUT /v1/explorer/documents/mine/db%2Fthings/throughput",
        ),
    ];
    for (path, form, expected) in changes {
        let path = format!("/portal/explorer/{path}");
        let before = site.asked();
        let refused = site.post(&path, &cookie, &format!("csrf=guess&{form}")).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{path}");
        assert_eq!(site.asked(), before, "{path} was not even asked for");
        let done = site.post(&path, &cookie, &format!("csrf={secret}&{form}")).await;
        assert_eq!(done.status, StatusCode::SEE_OTHER, "{path}: {}", done.body);
        assert_eq!(asked.lock().unwrap().last().unwrap(), expected);
        assert_eq!(site.get(&path, &cookie).await.status, StatusCode::METHOD_NOT_ALLOWED, "{path}");
    }
    let before = site.asked();
    for path in ["queues/mine/line/clear", "blobs/mine/box/delete?name=b"] {
        let unsure = format!("csrf={secret}&etag=e");
        let refused = site.post(&format!("/portal/explorer/{path}"), &cookie, &unsure).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{path}");
    }
    assert_eq!(site.asked(), before);
}

/// A form with a file, in pieces, and how many of them were read.
fn form(secret: &str) -> (Body, usize, Arc<AtomicUsize>) {
    let text = format!(
        "--B\r\nContent-Disposition: form-data; name=\"csrf\"\r\n\r\n{secret}\r\n--B\r\nContent-Disposition: \
         form-data; name=\"file\"; filename=\"f\"\r\n\r\n{}\r\n--B--\r\n",
        "x".repeat(10_000)
    );
    let pieces: Vec<_> = text.as_bytes().chunks(100).map(bytes::Bytes::copy_from_slice).collect();
    let (all, read) = (pieces.len(), Arc::new(AtomicUsize::new(0)));
    let counted = read.clone();
    let body = Body::made(text.len() as u64, pieces.into_iter(), move |mut pieces| {
        counted.fetch_add(1, Ordering::Relaxed);
        std::future::ready(Ok(pieces.next().map(|piece| (piece, pieces))))
    });
    (body, all, read)
}

#[tokio::test]
async fn a_file_that_is_refused_is_read_to_its_end_so_that_the_browser_gets_to_read_why() {
    let (site, asked) = site();
    let (cookie, secret) = site.log_in().await;
    let kind = "multipart/form-data; boundary=B";
    let before = asked.lock().unwrap().len();
    let upload = "/portal/explorer/blobs/mine/box/upload";
    let (body, all, read) = form("guess");
    let refused = site.post_as(upload, &cookie, kind, body).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    assert_eq!(read.load(Ordering::Relaxed), all);
    assert_eq!(asked.lock().unwrap().len(), before, "nothing was asked for");
    let (body, ..) = form(&secret);
    let done = site.post_as(upload, &cookie, kind, body).await;
    assert_eq!(done.status, StatusCode::SEE_OTHER);
    let expected = "PUT /v1/explorer/blobs/mine/box/blob?name=f&overwrite=false";
    assert_eq!(asked.lock().unwrap().last().unwrap(), expected);
}

#[tokio::test]
async fn a_filter_that_is_refused_stays_on_the_page_with_its_error() {
    let site = Site::with(|ask: &Ask| match ask.query.contains("filter=Size%20gt") {
        // What the stand-in does not know it refuses.
        true => None,
        false => answer(ask),
    });
    let (cookie, _) = site.log_in().await;
    let page = site.get("/portal/explorer/tables/mine/things?filter=Size+gt", &cookie).await;
    assert_eq!(page.status, StatusCode::OK);
    assert!(page.body.contains("there is no such thing"), "{}", page.body);
    assert!(page.body.contains("value=\"Size gt\""), "{}", page.body);
    assert!(page.body.contains("Insert an entity"), "the rest of the page is there");
}

#[tokio::test]
async fn entities_are_files_of_three_kinds() {
    let site = Site::with(|ask: &Ask| match ask.path.ends_with("/entities") {
        true if ask.query.contains("after=n") => Some(json!({ "entities": [], "next": null })),
        _ => answer(ask),
    });
    let (cookie, _) = site.log_in().await;
    let path = "/portal/explorer/tables/mine/things/export";
    let csv = site.get(&format!("{path}?format=csv"), &cookie).await;
    assert_eq!(csv.header("content-disposition"), "attachment; filename=\"things.csv\"");
    assert!(csv.body.starts_with("PartitionKey,RowKey,Text\r\n"), "{}", csv.body);
    let all: Value =
        serde_json::from_str(&site.get(&format!("{path}?format=json"), &cookie).await.body)
            .unwrap();
    assert_eq!(all[0]["RowKey"], NAME);
}

#[tokio::test]
async fn an_index_is_searched_and_analyzed_on_its_page_and_refusals_stay_there() {
    let site = Site::with(|ask: &Ask| {
        Some(match ask.path.strip_prefix("/v1/explorer/")? {
            "indexes/mine" => {
                json!({ "indexes": [{ "name": "hotels", "documents": 3, "bytes": 2_000 }], "next": null })
            }
            "indexes/mine/hotels" => json!({
                "name": "hotels", "partitions": 1, "replicas": 1, "partitions_to_move": 0,
                "text_index": { "documents": 3, "bytes": 2_000, "segments": 1 },
                "definition": { "fields": [{ "name": "text", "type": "Edm.String", "searchable": true }] },
                "slices": [{ "slice": 0, "partition": "4", "shard": "2", "documents": 3, "bytes": 900 }],
            }),
            "indexes/mine/hotels/search" if ask.query.contains("filter=bad") => return None,
            "indexes/mine/hotels/search" => json!({
                "count": 1, "query": NAME, "results": [{ "score": 1.25, "document": { "text": NAME } }],
            }),
            "indexes/mine/hotels/analyze" => json!({
                "tokens": [{ "token": NAME, "from": 0, "to": 3, "position": 0 }],
            }),
            _ => return None,
        })
    });
    let (cookie, _) = site.log_in().await;
    let page = site.get("/portal/explorer/indexes/mine", &cookie).await;
    assert!(page.body.contains("/portal/explorer/indexes/mine/hotels"), "{}", page.body);
    let path = "/portal/explorer/indexes/mine/hotels";
    let page = site.get(&format!("{path}?q=sea&analyzer=simple&text=x"), &cookie).await;
    is_escaped(&page.body);
    for words in ["1.2500", "1 documents", "Slice 0 on shard-0002: 3", "data-slice=\"0\""] {
        assert!(page.body.contains(words), "{words}: {}", page.body);
    }
    let page = site.get(&format!("{path}?q=sea&filter=bad"), &cookie).await;
    assert_eq!(page.status, StatusCode::OK);
    assert!(page.body.contains("there is no such thing") && page.body.contains("value=\"bad\""));
}
