//! What clients send that are older or other than today's official SDKs: the service takes it, and so must we.

use expect_test::expect;

use crate::access::{account, table};
use crate::raw::Server;
use crate::{check, with_entity, with_table};

const ENTITY: &str = "/dev/People(PartitionKey='p',RowKey='r')";

/// A batch with one part in it.
fn batch(accept: &str, part: &str) -> String {
    format!(
        "POST /dev/$batch\naccept: {accept}\ncontent-type: multipart/mixed; boundary=b\n\n\
         --b\n{part}\n--b--\n"
    )
}

/// A change set with one request in it.
fn change(request: &str) -> String {
    format!(
        "Content-Type: multipart/mixed; boundary=c\n\n--c\nContent-Type: application/http\n\n\
         {request}\n--c--"
    )
}

/// A query in a batch.
fn single(request: &str) -> String {
    format!("Content-Type: application/http\nContent-Transfer-Encoding: binary\n\n{request}\n")
}

fn insert(path: &str, row: &str) -> String {
    let entity = format!("{{\"PartitionKey\":\"p\",\"RowKey\":\"{row}\"}}");
    format!("POST {path} HTTP/1.1\nPrefer: return-no-content\n\n{entity}")
}

/// The status lines of the answers in a batch, or that of the batch if it has none.
fn statuses(server: &Server, request: &str) -> Vec<String> {
    let answer = server.send(request);
    let inner: Vec<_> = answer
        .lines()
        .filter_map(|line| line.strip_prefix("HTTP/1.1 "))
        .map(|line| line.trim().to_owned())
        .collect();
    if inner.is_empty() { vec![answer] } else { inner }
}

#[test]
fn a_batch_is_taken_whatever_its_outer_accept_says() {
    let server = with_entity();
    for (row, accept) in [
        "application/atom+xml,application/xml",
        "application/atom+xml",
        "multipart/mixed",
        "application/json;odata=minimalmetadata",
        "*/*",
    ]
    .into_iter()
    .enumerate()
    {
        let request = batch(accept, &change(&insert("/dev/People", &row.to_string())));
        assert_eq!(statuses(&server, &request), ["204 No Content"], "{accept}");
    }
}

#[test]
fn a_batch_may_leave_the_account_out_of_its_paths() {
    let server = with_entity();
    for (row, path) in
        ["/People", "http://127.0.0.1:10002/dev/People", "/dev/People"].into_iter().enumerate()
    {
        let request = batch("*/*", &change(&insert(path, &row.to_string())));
        assert_eq!(statuses(&server, &request), ["204 No Content"], "{path}");
    }
    let delete = "DELETE /People(PartitionKey='p',RowKey='0') HTTP/1.1\nIf-Match: *\n\n";
    assert_eq!(statuses(&server, &batch("*/*", &change(delete))), ["204 No Content"]);
    let get = single("GET /People(PartitionKey='p',RowKey='1') HTTP/1.1\n\n");
    assert_eq!(statuses(&server, &batch("*/*", &get)), ["200 OK"]);
    let other = change(&insert("/other/People", "5"));
    assert_eq!(statuses(&server, &batch("*/*", &other)), ["400 Bad Request"]);
}

#[test]
fn a_batch_may_hold_a_query_of_many_entities() {
    let server = with_entity();
    let accept = "Accept: application/json;odata=nometadata";
    for query in ["People()", "People?$filter=PartitionKey%20eq%20'p'"] {
        let part = single(&format!("GET /dev/{query} HTTP/1.1\n{accept}\n\n"));
        let answer = server.send(&batch("application/atom+xml,application/xml", &part));
        assert!(answer.contains("HTTP/1.1 200 OK"), "{answer}");
        assert!(answer.contains(r#"{"value":[{"PartitionKey":"p","RowKey":"r""#), "{answer}");
    }
    let tables = batch("*/*", &single("GET /dev/Tables HTTP/1.1\n\n"));
    assert_eq!(statuses(&server, &tables), ["400 Bad Request"]);
}

#[test]
fn a_part_is_answered_under_the_number_that_it_has() {
    let server = with_entity();
    let numbered = insert("/dev/People", "1").replace("\n\n", "\nContent-ID: 7\n\n");
    let answer = server.send(&batch("*/*", &change(&numbered)));
    assert!(answer.contains("\r\nContent-ID: 7\r\n"), "{answer}");
    let again = server.send(&batch("*/*", &change(&numbered)));
    assert!(again.contains("HTTP/1.1 409") && again.contains("\r\nContent-ID: 7\r\n"), "{again}");
}

#[test]
fn a_table_is_found_by_its_name() {
    let server = with_table();
    check(
        &server,
        "GET /dev/Tables('people')",
        expect![[r#"
            200 OK
            cache-control: no-cache

            {"odata.metadata":"http://127.0.0.1:10002/dev/$metadata#Tables/@Element","TableName":"People"}
        "#]],
    );
    assert_eq!(server.refusal("GET /dev/Tables('Nobody')"), "404 ResourceNotFound");
    assert_eq!(server.refusal("GET /dev/Tables('Peopl')"), "404 ResourceNotFound");
    assert_eq!(server.refusal("GET /dev/Tables('a-b')"), "400 InvalidResourceName");
    let by = |signature: String| {
        server.refusal(&format!("GET /dev/Tables('People')?{signature}\nauthorization: none"))
    };
    assert_eq!(by(account("l", "c")), "200 without a code");
    assert_eq!(by(account("r", "c")), "403 AuthorizationPermissionMismatch");
    assert_eq!(by(table("r", "", [""; 4])), "403 AuthorizationResourceTypeMismatch");
}

#[test]
fn an_address_may_end_with_a_slash() {
    let server = Server::start();
    let create = "POST /dev/Tables/\n\n{\"TableName\":\"People\"}";
    assert_eq!(server.refusal(create), "201 without a code");
    assert_eq!(server.refusal("GET /dev/Tables/"), "200 without a code");
    let insert = "POST /dev/People/\n\n{\"PartitionKey\":\"p\",\"RowKey\":\"r\"}";
    assert_eq!(server.refusal(insert), "201 without a code");
    assert_eq!(server.refusal(&format!("GET {ENTITY}/")), "200 without a code");
    assert_eq!(server.refusal("GET /dev/Tables/People"), "400 InvalidUri");
}

/// Some clients send the header of a key whatever they have, and a shared access signature beside it.
#[test]
fn a_signature_counts_where_the_header_beside_it_has_no_date() {
    let server = with_entity();
    let get = |signature: &str, header: &str| {
        server.refusal(&format!("GET {ENTITY}?{signature}\n{header}"))
    };
    let undated = "authorization: SharedKeyLite dev:AAEC\nx-ms-date: none";
    assert_eq!(get(&account("r", "o"), undated), "200 without a code");
    assert_eq!(get(&table("r", "", [""; 4]), undated), "200 without a code");
    assert_eq!(get(&account("a", "o"), undated), "403 AuthorizationPermissionMismatch");
    let forged = account("r", "o").replace("sp=r", "sp=raud");
    assert_eq!(get(&forged, undated), "403 AuthenticationFailed");
    assert_eq!(get("", undated), "403 AuthenticationFailed");
    // With a date the header can be checked, and then it must be right.
    let dated = "authorization: SharedKeyLite dev:AAEC";
    assert_eq!(get(&account("r", "o"), dated), "403 AuthenticationFailed");
    assert_eq!(get(&account("a", "o"), "authorization: sign lite"), "200 without a code");
}

#[test]
fn a_boolean_may_be_text_that_says_its_type() {
    let server = with_table();
    let entity = r#"{"PartitionKey":"p","RowKey":"r","Yes@odata.type":"Edm.Boolean","Yes":"true","No@odata.type":"Edm.Boolean","No":"False","Text":"true"}"#;
    assert_eq!(server.refusal(&format!("POST /dev/People\n\n{entity}")), "201 without a code");
    let found = server.send(&format!("GET {ENTITY}\naccept: application/json;odata=nometadata"));
    assert!(found.contains(r#""Yes":true,"No":false,"Text":"true"}"#), "{found}");
    let bad = entity.replace("\"False\"", "\"maybe\"").replace("\"r\"", "\"s\"");
    assert_eq!(server.refusal(&format!("POST /dev/People\n\n{bad}")), "400 InvalidInput");
}

#[test]
fn a_page_of_nothing_is_empty_and_the_last() {
    let server = with_entity();
    for query in ["People()?$top=0", "People()?$top=0&NextPartitionKey=1!YQ&NextRowKey=1!YQ"] {
        let page = server.send(&format!("GET /dev/{query}"));
        assert!(page.starts_with("200") && page.contains("\"value\":[]"), "{page}");
        assert!(!page.contains("x-ms-continuation"), "{page}");
    }
    for query in ["Tables?$top=0", "Tables?$top=0&NextTableName=1!YQ"] {
        let page = server.send(&format!("GET /dev/{query}"));
        assert!(page.starts_with("200") && page.contains("\"value\":[]"), "{page}");
        assert!(!page.contains("x-ms-continuation"), "{page}");
    }
    assert_eq!(server.refusal("GET /dev/Nobody()?$top=0"), "404 TableNotFound");
    assert_eq!(server.refusal("GET /dev/People()?$top=-1"), "400 InvalidInput");
}

#[test]
fn a_strong_etag_is_none_of_this_service() {
    let server = with_entity();
    for strong in ["\"0x8D\"", "\"\"", "\"datetime'2001-01-01T00%3A00%3A00.0000000Z'\""] {
        for request in
            [format!("PUT {ENTITY}"), format!("MERGE {ENTITY}"), format!("DELETE {ENTITY}")]
        {
            let answer = server.refusal(&format!("{request}\nif-match: {strong}\n\n{{}}"));
            assert_eq!(answer, "400 InvalidInput", "{request} {strong}");
        }
    }
    let weak = format!("DELETE {ENTITY}\nif-match: W/\"0x8D\"");
    assert_eq!(server.refusal(&weak), "412 UpdateConditionNotSatisfied");
}

/// `xml` or `json`, as the body of an answer is.
fn form(answer: &str) -> &'static str {
    match answer {
        _ if answer.contains("<error xmlns=") => "xml",
        _ if answer.contains("{\"odata.error\":") => "json",
        _ => "neither",
    }
}

#[test]
fn an_error_has_the_form_that_the_client_asks_for() {
    let server = with_entity();
    let missing = "/dev/People(PartitionKey='p',RowKey='x')";
    for (request, expected) in [
        (format!("GET {missing}"), "json"),
        (format!("GET {missing}\naccept: */*"), "json"),
        (format!("GET {missing}\naccept: application/json;odata=nometadata"), "json"),
        (format!("GET {missing}\naccept: application/atom+xml,application/xml"), "xml"),
        (format!("GET {missing}\naccept: application/xml, application/json"), "json"),
        (format!("GET {missing}\naccept: application/json;q=0.5, application/xml"), "xml"),
        (format!("GET {missing}?$format=json\naccept: application/atom+xml"), "json"),
        (format!("GET {missing}?$format=application/atom%2Bxml"), "xml"),
        ("GET /dev/Nobody?comp=acl".into(), "xml"),
        ("GET /dev/Nobody?comp=acl\naccept: application/json".into(), "json"),
        ("PUT /dev/?restype=service&comp=properties\n\n<a>".into(), "xml"),
        ("GET /dev/Tables\nauthorization: none\naccept: application/xml".into(), "xml"),
    ] {
        let answer = server.send(&request);
        assert_eq!(form(&answer), expected, "{request}: {answer}");
        let media = if expected == "xml" { "application/xml" } else { "application/json" };
        let whole = server.try_send(&request).unwrap();
        assert!(whole.contains(&format!("\ncontent-type: {media}")), "{whole}");
    }
}

#[test]
fn an_error_in_a_batch_has_the_form_that_its_part_asks_for() {
    let server = with_entity();
    let outer = "application/atom+xml,application/xml";
    for (accept, expected) in [
        ("application/json;odata=nometadata", "json"),
        ("application/atom+xml", "xml"),
        ("*/*", "json"),
    ] {
        let accept = format!("Accept: {accept}\n\n");
        let get = format!("GET /dev/People(PartitionKey='p',RowKey='x') HTTP/1.1\n{accept}");
        let answer = server.send(&batch(outer, &single(&get)));
        assert_eq!(form(&answer), expected, "{answer}");
        let again = insert("/dev/People", "r").replace("\n\n", &format!("\n{accept}"));
        let answer = server.send(&batch(outer, &change(&again)));
        assert_eq!(form(&answer), expected, "{answer}");
    }
    assert_eq!(form(&server.send(&batch(outer, "none"))), "xml");
    assert_eq!(form(&server.send(&batch("multipart/mixed", "none"))), "json");
}
