//! What SDKs hide: raw requests in, raw answers out.

#![allow(clippy::unwrap_used, reason = "a panic in a test is the failure report")]

mod raw;

use raw::Server;
use serde_json::json;

#[test]
fn every_refusal_is_an_error_document_with_code_and_message() {
    let server = Server::with_index();
    for (request, expected) in [
        ("GET /indexes\napi-key: wrong", "403"),
        ("GET /indexes\napi-key: ", "403"),
        ("GET /nothing", "404"),
        ("GET /indexes/none", "404"),
        ("PATCH /indexes/texts", "405"),
        ("GET /indexes/texts/docs/none", "404"),
        ("GET /indexes/texts/docs/no%20key", "404"),
        ("POST /indexes\n\n{", "400"),
        ("POST /indexes\n\n[]", "400"),
        ("POST /indexes\n\n{}", "400"),
        ("PUT /indexes/other\n\n{\"name\":\"texts\",\"fields\":[]}", "400"),
        ("POST /indexes/texts/docs/index\n\n{}", "400"),
        ("POST /indexes/texts/docs/index\n\n{\"value\":[]}", "400"),
        (
            "POST /indexes/texts/docs/index\n\n{\"value\":[{\"@search.action\":\"x\",\"id\":\"1\"}]}",
            "400",
        ),
        ("POST /indexes/texts/docs/search\n\n{\"serch\":\"x\"}", "400"),
        ("POST /indexes/texts/docs/search\n\n{\"top\":\"x\"}", "400"),
        ("POST /indexes/texts/docs/search\n\n{\"queryType\":\"semantic\"}", "501"),
        ("GET /indexes/texts/docs?search=x&$top=-1", "400"),
        ("GET /indexes/texts/docs/suggest?search=x", "400"),
        ("GET /skillsets", "501"),
        ("PUT /indexes/texts/lazuli.scale\n\n{\"partitionCount\":5}", "400"),
        ("PUT /indexes/texts/lazuli.scale\n\n{\"partitionCount\":12,\"replicaCount\":6}", "400"),
    ] {
        assert_eq!(server.refusal(request), expected, "{request}");
    }
}

#[test]
fn both_shapes_of_paths_and_both_methods_find_the_same() {
    let server = Server::with_index();
    server.write(json!([{"id": "1", "text": "one two"}, {"id": "2", "text": "two three"}]));
    for request in [
        "GET /indexes/texts/docs?search=three",
        "GET /indexes('texts')/docs?search=three",
        "POST /indexes/texts/docs/search\n\n{\"search\":\"three\"}",
        "POST /indexes('texts')/docs/search.post.search\n\n{\"search\":\"three\"}",
        "GET /indexes(%27texts%27)/docs?search=*&%24filter=id%20eq%20'2'",
    ] {
        let found = server.json(request);
        assert_eq!(found["value"].as_array().unwrap().len(), 1, "{request}: {found}");
        assert_eq!(found["value"][0]["id"], "2");
        assert!(found.get("@odata.nextLink").is_none());
    }
    assert_eq!(server.ok("GET /indexes/texts/docs/$count"), "\u{feff}2");
    assert_eq!(
        server.json("GET /indexes('texts')/docs('1')"),
        json!({"id": "1", "text": "one two"})
    );
    assert_eq!(server.json("GET /indexes/texts/docs/1?$select=id"), json!({"id": "1"}));
}

#[test]
fn a_batch_with_a_refused_document_is_a_multi_status() {
    let server = Server::with_index();
    let (status, results) = server.write_any(json!([
        {"id": "1", "text": "one"},
        {"@search.action": "merge", "id": "2", "text": "two"},
        {"@search.action": "delete", "id": "3"},
        {"id": "not a key", "text": "four"},
    ]));
    assert_eq!(status, 207);
    let codes: Vec<_> =
        results.as_array().unwrap().iter().map(|it| it["statusCode"].as_u64().unwrap()).collect();
    assert_eq!(codes, [201, 404, 200, 400]);
    assert_eq!(results[0]["errorMessage"], json!(null));
}

#[test]
fn a_page_names_the_next_one_only_where_the_server_has_cut_it_short() {
    let server = Server::with_index();
    let many: Vec<_> = (0..60).map(|it| json!({"id": format!("{it:03}"), "text": "x"})).collect();
    server.write(json!(many));
    let first =
        server.json("POST /indexes/texts/docs/search\n\n{\"search\":\"*\",\"orderby\":\"id\"}");
    assert_eq!(first["value"].as_array().unwrap().len(), 50);
    let next = &first["@search.nextPageParameters"];
    assert_eq!(*next, json!({"search": "*", "orderby": "id", "skip": 50}));
    assert!(first["@odata.nextLink"].as_str().unwrap().contains("/indexes('texts')/docs/"));
    let last = server.json(&format!("POST /indexes/texts/docs/search\n\n{next}"));
    assert_eq!(last["value"].as_array().unwrap().len(), 10);
    assert!(last.get("@search.nextPageParameters").is_none());
    let asked = server.json("POST /indexes/texts/docs/search\n\n{\"search\":\"*\",\"top\":5}");
    assert!(asked.get("@search.nextPageParameters").is_none());
}

#[test]
fn an_update_answers_what_the_client_prefers() {
    let server = Server::with_index();
    let body = r#"{"name":"texts","fields":[{"name":"id","type":"Edm.String","key":true,"sortable":true},{"name":"text","type":"Edm.String"},{"name":"more","type":"Edm.String"}]}"#;
    assert_eq!(server.status(&format!("PUT /indexes/texts\n\n{body}")), 204);
    let prefer = format!("PUT /indexes/texts\nprefer: return=representation\n\n{body}");
    assert_eq!(server.status(&prefer), 200);
    let etag = server.json("GET /indexes/texts")["@odata.etag"].as_str().unwrap().to_owned();
    assert_eq!(server.status(&format!("PUT /indexes/texts\nif-none-match: *\n\n{body}")), 412);
    assert_eq!(server.status(&format!("PUT /indexes/texts\nif-match: \"0x1\"\n\n{body}")), 412);
    assert_eq!(server.status(&format!("PUT /indexes/texts\nif-match: {etag}\n\n{body}")), 204);
    assert_eq!(
        server
            .status(&format!("PUT /indexes/new\nif-match: *\n\n{}", body.replace("texts", "new"))),
        412
    );
    assert_eq!(
        server.status(&format!("PUT /indexes/new\n\n{}", body.replace("texts", "new"))),
        201
    );
}

#[test]
fn an_account_sees_its_own_indexes_alone() {
    let server = Server::with_index();
    assert_eq!(server.json("GET /indexes")["value"].as_array().unwrap().len(), 1);
    let other = server.json("GET /indexes\napi-key: b3RoZXI=");
    assert_eq!(other["value"].as_array().unwrap().len(), 0);
    assert_eq!(server.refusal("GET /indexes/texts\napi-key: b3RoZXI="), "404");
}

#[test]
fn slices_say_what_they_hold() {
    let server = Server::with_index();
    let many: Vec<_> = (0..40).map(|it| json!({"id": it.to_string(), "text": "x"})).collect();
    server.write(json!(many));
    let slices = server.json("GET /indexes/texts/lazuli.slices");
    let documents = slices["slices"].as_array().unwrap().iter();
    assert_eq!(documents.map(|it| it["documents"].as_u64().unwrap()).sum::<u64>(), 40);
    assert_eq!(slices["slices"].as_array().unwrap().len(), 12);
    assert_eq!(slices["textIndex"]["documents"], 40);
}

#[test]
fn pages_of_other_origins_query_as_the_index_allows_them() {
    let server = Server::with_index();
    let put = |options: serde_json::Value| {
        let key = json!({"name": "id", "type": "Edm.String", "key": true, "sortable": true});
        let fields = json!([key, {"name": "text", "type": "Edm.String"}]);
        let body = json!({"name": "texts", "fields": fields, "corsOptions": options});
        server.status(&format!("PUT /indexes/texts\n\n{body}"))
    };
    let ask = "OPTIONS /indexes('texts')/docs/search.post.search\napi-key: \norigin: http://a\n\
               access-control-request-method: POST\naccess-control-request-headers: api-key,content-type";
    let (allowed, age) = ("access-control-allow-origin", "access-control-max-age");
    assert_eq!(server.header(ask, allowed), (403, None));
    assert_eq!(put(json!({"allowedOrigins": []})), 400);
    assert_eq!(put(json!({"allowedOrigins": ["http://a"], "maxAgeInSeconds": 60})), 204);
    assert_eq!(server.header(ask, allowed), (200, Some("http://a".to_owned())));
    assert_eq!(server.header(ask, age), (200, Some("60".to_owned())));
    assert_eq!(server.header(&ask.replace("//a", "//b"), allowed), (403, None));
    let search = "POST /indexes/texts/docs/search\norigin: http://a\n\n{}";
    assert_eq!(server.header(search, allowed), (200, Some("http://a".to_owned())));
    assert_eq!(server.header(&search.replace("//a", "//b"), allowed), (200, None));
    // The definition itself is for no page.
    assert_eq!(server.header("GET /indexes/texts\norigin: http://a", allowed), (200, None));
}
