//! The explorer in the admin API: what is stored, looked at and changed, with names that are meant to do harm.

use crate::program::{ACCOUNT, Server, exchange};
use lazuli_http::uri::percent_encode;
use serde_json::{Value, json};

/// Names that break whatever does not escape them.
const HOSTILE: [&str; 7] = [
    "<script>alert(1)</script>",
    "\"quoted\" & 'single'",
    "up\u{202e}down",
    "line\nbreak",
    "%2f..%2F",
    "a/../b",
    "~tilde~ ünïcödé 😀",
];

struct Explorer {
    server: Server,
    token: String,
    _folder: tempfile::TempDir,
}

struct Answer {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }
}

impl Explorer {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::start_with(folder.path(), &["--durability", "relaxed"], &[]);
        let file = server.ready["admin_token_file"].as_str().unwrap();
        let token = std::fs::read_to_string(file).unwrap().trim().to_owned();
        Self { server, token, _folder: folder }
    }

    fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let bearer = format!("Bearer {}", self.token);
        let headers = [&[("authorization", bearer.as_str())], headers].concat();
        let authority = self.server.endpoint("admin");
        let path = format!("/v1/explorer/{path}");
        let answer = exchange(&authority, None, method, &path, &headers, body).unwrap();
        let head = answer.headers.iter().map(|(name, value)| format!("{name}: {value}\n"));
        let head = head.collect::<String>().to_ascii_lowercase();
        Answer { status: answer.status, head, body: answer.body }
    }

    /// Asks for what must be done.
    fn done(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Value {
        let answer = self.ask(method, path, headers, body);
        assert_eq!(answer.status, 200, "{method} {path}: {}", answer.text());
        answer.json()
    }

    fn get(&self, path: &str) -> Value {
        self.done("GET", path, &[], "")
    }

    /// Asks for what must be refused, with this status and code.
    fn refused(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> (u16, String) {
        let answer = self.ask(method, path, headers, body);
        (answer.status, answer.json()["error"]["code"].as_str().unwrap().to_owned())
    }
}

fn table() -> String {
    format!("tables/{ACCOUNT}/things")
}

fn keys(partition_key: &str, row_key: &str) -> String {
    let (partition_key, row_key) = (percent_encode(partition_key), percent_encode(row_key));
    format!("{}/entity?partition_key={partition_key}&row_key={row_key}", table())
}

#[test]
fn entities_are_inserted_found_edited_and_deleted_by_whatever_keys() {
    let explorer = Explorer::start();
    let create = format!("tables/{ACCOUNT}");
    explorer.done("POST", &create, &[], r#"{"name":"things"}"#);
    let again = explorer.refused("POST", &create, &[], r#"{"name":"things"}"#);
    assert_eq!(again, (409, "TableAlreadyExists".to_owned()));
    assert_eq!(explorer.get(&create)["tables"], json!([{ "name": "things" }]));
    // Slashes, and signs that cannot be written, are in no key of the service.
    let allowed: Vec<&str> =
        HOSTILE.into_iter().filter(|name| !name.contains(['/', '\n'])).chain([""]).collect();
    for (at, name) in allowed.iter().enumerate() {
        let entity = json!({
            "PartitionKey": name, "RowKey": name, "At": at, "Text": name,
            "Big": "9007199254740993", "Big@odata.type": "Edm.Int64",
        });
        let body = entity.to_string();
        explorer.done("POST", &format!("{}/entities", table()), &[], &body);
        let found = &explorer.get(&keys(name, name))["entity"];
        assert_eq!(found["Text"], *name);
        assert_eq!(found["Big"], "9007199254740993");
        let etag = found["odata.etag"].as_str().unwrap().to_owned();
        let change = json!({ "At": at + 100 }).to_string();
        let if_match = [("if-match", etag.as_str())];
        let merged = explorer.done("PATCH", &keys(name, name), &if_match, &change);
        assert_ne!(merged["etag"], etag);
        let stale = explorer.refused("PUT", &keys(name, name), &if_match, &change);
        assert_eq!(stale, (412, "UpdateConditionNotSatisfied".to_owned()));
        let filter = format!("PartitionKey eq '{}'", name.replace('\'', "''"));
        let query = format!("{}/entities?filter={}", table(), percent_encode(&filter));
        let page = explorer.get(&query);
        assert_eq!(page["entities"].as_array().unwrap().len(), 1, "{page}");
        assert_eq!(page["entities"][0]["At"], at + 100);
    }
    let first = explorer.get(&format!("{}/entities?limit=2", table()));
    let after = percent_encode(first["next"].as_str().unwrap());
    let rest = explorer.get(&format!("{}/entities?after={after}", table()));
    let count = |page: &Value| page["entities"].as_array().unwrap().len();
    assert_eq!((count(&first), count(&rest)), (2, allowed.len() - 2));
    assert_eq!(rest["next"], Value::Null);
    for name in allowed {
        let bare = explorer.refused("DELETE", &keys(name, name), &[], "");
        assert_eq!(bare, (400, "bad-request".to_owned()));
        explorer.done("DELETE", &keys(name, name), &[("if-match", "*")], "");
        let gone = explorer.refused("GET", &keys(name, name), &[], "");
        assert_eq!(gone, (404, "ResourceNotFound".to_owned()));
    }
}

#[test]
fn what_is_exported_can_be_imported_and_lines_that_cannot_are_named() {
    let explorer = Explorer::start();
    for name in ["things", "copies"] {
        let body = json!({ "name": name }).to_string();
        explorer.done("POST", &format!("tables/{ACCOUNT}"), &[], &body);
    }
    let line = |n: usize| {
        let entity = json!({
            "PartitionKey": "p", "RowKey": format!("{n:04}"), "Text": "ü\n<b>".repeat(200),
            "When": "2024-01-01T00:00:00Z", "When@odata.type": "Edm.DateTime",
        });
        format!("{entity}\n")
    };
    let mut lines: String = (0..1500).map(line).collect();
    lines.push_str("\n{\"PartitionKey\":\"p\"}\nnot json\n");
    lines.push_str(&line(7));
    let import = format!("{}/import", table());
    let done = explorer.done("POST", &import, &[], &lines);
    assert_eq!((&done["written"], &done["refused"]), (&1500.into(), &3.into()));
    let refused: Vec<(u64, &str)> = done["refusals"]
        .as_array()
        .unwrap()
        .iter()
        .map(|refusal| (refusal["line"].as_u64().unwrap(), refusal["code"].as_str().unwrap()))
        .collect();
    let expected = [(1502, "bad-request"), (1503, "bad-request"), (1504, "EntityAlreadyExists")];
    assert_eq!(refused, expected);
    let export = |table: &str| {
        let answer = explorer.ask("GET", &format!("tables/{ACCOUNT}/{table}/export"), &[], "");
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.text()
    };
    let exported = export("things");
    assert_eq!(exported.lines().count(), 1500);
    let copied = explorer.done("POST", &format!("tables/{ACCOUNT}/copies/import"), &[], &exported);
    assert_eq!((&copied["written"], &copied["refused"]), (&1500.into(), &0.into()));
    let without_time = |text: &str| -> Vec<Value> {
        let read = |line: &str| {
            let mut entity: Value = serde_json::from_str(line).unwrap();
            entity.as_object_mut().unwrap().remove("Timestamp");
            entity
        };
        text.lines().map(read).collect()
    };
    assert_eq!(without_time(&export("copies")), without_time(&exported));
    let one = format!("{}/export?filter={}", table(), percent_encode("RowKey eq '0003'"));
    assert_eq!(explorer.ask("GET", &one, &[], "").text().lines().count(), 1);
    let missing = format!("tables/{ACCOUNT}/nothing/export");
    assert_eq!(explorer.refused("GET", &missing, &[], "").1, "TableNotFound");
    // Of two lines with the same keys the second one stays, however many are written at once.
    let twice: String = (0..100)
        .map(|n| format!("{{\"PartitionKey\":\"q\",\"RowKey\":\"{}\",\"N\":{n}}}\n", n % 3))
        .collect();
    let done = explorer.done("POST", &format!("{import}?mode=replace"), &[], &twice);
    assert_eq!((&done["written"], &done["refused"]), (&100.into(), &0.into()));
    let last = |row: &str| explorer.get(&keys("q", row))["entity"]["N"].clone();
    assert_eq!([last("0"), last("1"), last("2")], [json!(99), json!(97), json!(98)]);
    let wrong = format!("{import}?mode=explode");
    assert_eq!(explorer.refused("POST", &wrong, &[], "").0, 400);
}

#[test]
fn blobs_are_uploaded_listed_shown_and_never_run() {
    let explorer = Explorer::start();
    explorer.done("POST", &format!("blobs/{ACCOUNT}"), &[], r#"{"name":"box"}"#);
    let listed = explorer.get(&format!("blobs/{ACCOUNT}"));
    assert_eq!(listed["containers"][0]["name"], "box");
    let at = |what: &str, name: &str| {
        format!("blobs/{ACCOUNT}/box/{what}?name={}", percent_encode(name))
    };
    let page = "<html><script>alert(1)</script></html>";
    let html = [("content-type", "text/html")];
    for name in HOSTILE {
        explorer.done("PUT", &at("blob", name), &html, page);
        let again = explorer.refused("PUT", &at("blob", name), &html, "other");
        assert_eq!(again, (409, "BlobAlreadyExists".to_owned()));
        let over = format!("{}&overwrite=true", at("blob", name));
        explorer.done("PUT", &over, &html, page);
        let shown = explorer.get(&at("blob", name));
        assert_eq!((&shown["name"], &shown["bytes"]), (&name.into(), &page.len().into()));
        assert_eq!(shown["content_type"], "text/html");
        let tags = json!({ "tags": { "colour": "blue" } }).to_string();
        explorer.done("PUT", &at("tags", name), &[], &tags);
        assert_eq!(explorer.get(&at("blob", name))["tags"], json!({ "colour": "blue" }));
        let content = explorer.ask("GET", &at("content", name), &[], "");
        assert_eq!((content.status, content.text().as_str()), (200, page));
        assert!(content.head.contains("content-type: application/octet-stream"));
        assert!(content.head.contains("x-content-type-options: nosniff"));
        assert!(content.head.contains("content-disposition: attachment; filename*=utf-8''"));
        assert!(content.head.contains("content-security-policy: sandbox; default-src 'none'"));
        let preview = explorer.get(&at("preview", name));
        assert_eq!((&preview["kind"], &preview["text"]), (&"text".into(), &page.into()));
        let image = explorer.refused("GET", &at("image", name), &[], "");
        assert_eq!(image, (415, "not-an-image".to_owned()));
    }
    let all = explorer.get(&format!("blobs/{ACCOUNT}/box/list"));
    let mut names: Vec<&str> = all["blobs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|blob| blob["name"].as_str().unwrap())
        .collect();
    names.sort_unstable();
    let mut expected = HOSTILE;
    expected.sort_unstable();
    assert_eq!(names, expected);
    let folders = explorer.get(&format!("blobs/{ACCOUNT}/box/list?delimiter=%2F"));
    assert_eq!(folders["prefixes"], json!(["<script>alert(1)</", "a/"]));
    for name in HOSTILE {
        explorer.done("DELETE", &at("blob", name), &[], "");
    }
    assert_eq!(explorer.get(&format!("blobs/{ACCOUNT}/box/list"))["blobs"], json!([]));
    assert_eq!(explorer.refused("GET", &at("blob", "gone"), &[], "").0, 404);
}

#[test]
fn previews_tell_text_digits_and_images_apart_and_stay_within_their_limits() {
    let explorer = Explorer::start();
    explorer.done("POST", &format!("blobs/{ACCOUNT}"), &[], r#"{"name":"box"}"#);
    let at = |what: &str, name: &str| format!("blobs/{ACCOUNT}/box/{what}?name={name}");
    let put = |name: &str, body: &str| explorer.done("PUT", &at("blob", name), &[], body);
    put("empty", "");
    put("long", &"ü".repeat(100_000));
    put("zero", "a\0b");
    put("picture", "GIF89a but no more than that");
    let kind = |name: &str| {
        let preview = explorer.get(&at("preview", name));
        (preview["kind"].as_str().unwrap().to_owned(), preview["shown"].as_u64().unwrap())
    };
    assert_eq!(kind("empty"), ("text".to_owned(), 0));
    assert_eq!(kind("long"), ("text".to_owned(), 65_536));
    assert_eq!(kind("zero"), ("hex".to_owned(), 3));
    assert_eq!(kind("picture").0, "image");
    let short = explorer.get(&format!("{}&bytes=3", at("preview", "long")));
    assert_eq!(short["text"], "ü", "a sign that is cut is left out");
    let image = explorer.ask("GET", &at("image", "picture"), &[], "");
    assert_eq!(image.status, 200);
    assert!(image.head.contains("content-type: image/gif") && image.head.contains("nosniff"));
}

#[test]
fn messages_are_put_peeked_at_and_cleared() {
    let explorer = Explorer::start();
    explorer.done("POST", &format!("queues/{ACCOUNT}"), &[], r#"{"name":"line"}"#);
    assert_eq!(explorer.get(&format!("queues/{ACCOUNT}"))["queues"], json!([{ "name": "line" }]));
    let (queue, messages) =
        (format!("queues/{ACCOUNT}/line"), format!("queues/{ACCOUNT}/line/messages"));
    for text in HOSTILE {
        let body = json!({ "text": text, "lives_seconds": 60 }).to_string();
        explorer.done("POST", &messages, &[], &body);
    }
    assert_eq!(explorer.get(&queue)["messages"], HOSTILE.len());
    let seen = explorer.get(&messages);
    let texts: Vec<&str> = seen["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["text"].as_str().unwrap())
        .collect();
    assert_eq!(texts, HOSTILE);
    let two = explorer.get(&format!("{messages}?limit=2"));
    assert_eq!(two["messages"].as_array().unwrap().len(), 2);
    assert_eq!(two["messages"][0]["dequeues"], 0, "nobody notices");
    let control = json!({ "text": "a\u{1}b" }).to_string();
    assert_eq!(explorer.refused("POST", &messages, &[], &control).0, 400);
    let long = json!({ "text": "x".repeat(70_000) }).to_string();
    assert_eq!(explorer.refused("POST", &messages, &[], &long).1, "RequestBodyTooLarge");
    explorer.done("DELETE", &messages, &[], "");
    assert_eq!(explorer.get(&messages)["messages"], json!([]));
    let missing = format!("queues/{ACCOUNT}/nothing/messages");
    assert_eq!(explorer.refused("GET", &missing, &[], "").1, "QueueNotFound");
    let stranger = explorer.refused("GET", "queues/stranger", &[], "");
    assert_eq!(stranger, (404, "account-not-found".to_owned()));
}

#[test]
fn changes_of_data_are_written_down_without_the_data_and_need_the_token() {
    let mut explorer = Explorer::start();
    explorer.done("POST", &format!("tables/{ACCOUNT}"), &[], r#"{"name":"things"}"#);
    let body = r#"{"PartitionKey":"p","RowKey":"r","Secret":"hush"}"#;
    explorer.done("PUT", &keys("p", "r"), &[], body);
    let audit = explorer.server.json(&["audit"]);
    let change = &audit["changes"][0];
    assert_eq!(change["operation"], "replace-entity");
    assert_eq!(change["parameters"], json!({ "partition_key": "p", "row_key": "r" }));
    assert!(!audit.to_string().contains("hush"));
    explorer.token.push('0');
    let refused = explorer.refused("GET", &keys("p", "r"), &[], "");
    assert_eq!(refused, (401, "token-wrong".to_owned()));
    let refused = explorer.refused("DELETE", &keys("p", "r"), &[("if-match", "*")], "");
    assert_eq!(refused, (401, "token-wrong".to_owned()));
}
