//! Entity group transactions on the wire.

use expect_test::{Expect, expect};

use crate::raw::Server;
use crate::with_entity;

const PEOPLE: &str = "http://127.0.0.1:10002/dev/People";
const ENTITY: &str = "/dev/People(PartitionKey='p',RowKey='r')";

/// A request whose only change set has these requests in it. Each is a request line, headers, and perhaps a body.
fn batch(requests: &[String]) -> String {
    let part = |request: &String| {
        let request = match request.contains("\n\n") {
            true => request.clone(),
            false => format!("{request}\n\n"),
        };
        format!("--c\nContent-Type: application/http\n\n{request}\n")
    };
    let parts: String = requests.iter().map(part).collect();
    format!(
        "POST /dev/$batch\ncontent-type: multipart/mixed; boundary=b\n\n\
         --b\nContent-Type: multipart/mixed; boundary=c\n\n{parts}--c--\n--b--\n"
    )
}

fn insert(partition: &str, row: &str) -> String {
    let entity = format!("{{\"PartitionKey\":\"{partition}\",\"RowKey\":\"{row}\",\"Age\":1}}");
    format!("POST {PEOPLE} HTTP/1.1\nPrefer: return-no-content\n\n{entity}")
}

fn change(method: &str, row: &str, rest: &str) -> String {
    format!("{method} {PEOPLE}(PartitionKey='p',RowKey='{row}') HTTP/1.1\n{rest}")
}

/// Carriage returns end every line of the answer and are left out.
#[track_caller]
fn check(server: &Server, request: &str, expected: Expect) {
    expected.assert_eq(&server.send(request).replace('\r', ""));
}

/// The status lines and the error of an answer to a batch.
fn outcome(server: &Server, requests: &[String]) -> String {
    let answer = server.send(&batch(requests)).replace('\r', "");
    let of_interest = |line: &&str| line.starts_with("HTTP/1.1") || line.contains("odata.error");
    let lines = answer.lines().filter(of_interest).map(|line| line.replace("HTTP/1.1 ", ""));
    lines.collect::<Vec<_>>().join(" | ")
}

#[test]
fn every_kind_of_change_in_one_transaction() {
    let server = with_entity();
    for row in ["u", "m", "d"] {
        server.send(&format!(
            "POST /dev/People\n\n{{\"PartitionKey\":\"p\",\"RowKey\":\"{row}\",\"Age\":1}}"
        ));
    }
    let requests = [
        insert("p", "i"),
        change("PUT", "u", "If-Match: *\n\n{\"B\":2}"),
        change("MERGE", "m", "If-Match: *\n\n{\"B\":2}"),
        change("PUT", "ir", "\n{\"B\":2}"),
        change("PATCH", "im", "\n{\"B\":2}"),
        change("DELETE", "d", "If-Match: *\n"),
        format!("POST {PEOPLE} HTTP/1.1\n\n{{\"PartitionKey\":\"p\",\"RowKey\":\"j\"}}"),
    ];
    let created = "201 Created";
    let no = "204 No Content";
    let expected = [no, no, no, no, no, no, created].join(" | ");
    assert_eq!(outcome(&server, &requests), expected);
    check(
        &server,
        "GET /dev/People()?$select=RowKey,Age,B\naccept: application/json;odata=nometadata",
        expect![[r#"
            200 OK
            content-type: application/json;odata=nometadata;streaming=true;charset=utf-8
            cache-control: no-cache

            {"value":[{"RowKey":"i","Age":1,"B":null},{"RowKey":"im","B":2,"Age":null},{"RowKey":"ir","B":2,"Age":null},{"RowKey":"j","Age":null,"B":null},{"RowKey":"m","Age":1,"B":2},{"RowKey":"r","Age":23,"B":null},{"RowKey":"u","B":2,"Age":null}]}
        "#]],
    );
}

#[test]
fn the_answer_has_one_part_for_each_change() {
    let server = with_entity();
    let requests = [
        insert("p", "i"),
        change("DELETE", "r", "If-Match: *\n"),
        format!("POST {PEOPLE} HTTP/1.1\n\n{{\"PartitionKey\":\"p\",\"RowKey\":\"j\"}}"),
    ];
    let with_carriage_returns = batch(&requests).replace('\n', "\r\n").replacen("\r\n", "\n", 3);
    check(
        &server,
        &with_carriage_returns,
        expect![[r#"
            202 Accepted
            content-type: multipart/mixed; boundary=batchresponse_00000000-0000-0000-0000-000000000007
            cache-control: no-cache

            --batchresponse_00000000-0000-0000-0000-000000000007
            Content-Type: multipart/mixed; boundary=changesetresponse_00000000-0000-0000-0000-000000000007

            --changesetresponse_00000000-0000-0000-0000-000000000007
            Content-Type: application/http
            Content-Transfer-Encoding: binary

            HTTP/1.1 204 No Content
            Preference-Applied: return-no-content
            DataServiceId: http://127.0.0.1:10002/dev/People(PartitionKey='p',RowKey='i')
            Location: http://127.0.0.1:10002/dev/People(PartitionKey='p',RowKey='i')
            ETag: W/"datetime'<time>'"
            X-Content-Type-Options: nosniff


            --changesetresponse_00000000-0000-0000-0000-000000000007
            Content-Type: application/http
            Content-Transfer-Encoding: binary

            HTTP/1.1 204 No Content
            X-Content-Type-Options: nosniff


            --changesetresponse_00000000-0000-0000-0000-000000000007
            Content-Type: application/http
            Content-Transfer-Encoding: binary

            HTTP/1.1 201 Created
            Content-Type: application/json;odata=minimalmetadata;streaming=true;charset=utf-8
            Cache-Control: no-cache
            Location: http://127.0.0.1:10002/dev/People(PartitionKey='p',RowKey='j')
            ETag: W/"datetime'<time>'"
            X-Content-Type-Options: nosniff

            {"odata.metadata":"http://127.0.0.1:10002/dev/$metadata#People/@Element","odata.etag":"W/\"datetime'<time>'\"","PartitionKey":"p","RowKey":"j","Timestamp":"<time>"}
            --changesetresponse_00000000-0000-0000-0000-000000000007--
            --batchresponse_00000000-0000-0000-0000-000000000007--

        "#]],
    );
}

#[test]
fn nothing_is_changed_when_one_change_is_refused() {
    let server = with_entity();
    let before = server.send(&format!("GET {ENTITY}"));
    let requests = [
        insert("p", "new"),
        change("PUT", "r", "If-Match: *\n\n{\"Age\":99}"),
        change("DELETE", "missing", "If-Match: *\n"),
    ];
    check(
        &server,
        &batch(&requests),
        expect![[r#"
            202 Accepted
            content-type: multipart/mixed; boundary=batchresponse_00000000-0000-0000-0000-000000000007
            cache-control: no-cache

            --batchresponse_00000000-0000-0000-0000-000000000007
            Content-Type: multipart/mixed; boundary=changesetresponse_00000000-0000-0000-0000-000000000007

            --changesetresponse_00000000-0000-0000-0000-000000000007
            Content-Type: application/http
            Content-Transfer-Encoding: binary

            HTTP/1.1 404 Not Found
            x-ms-error-code: ResourceNotFound
            Content-Type: application/json;odata=minimalmetadata;streaming=true;charset=utf-8
            X-Content-Type-Options: nosniff

            {"odata.error":{"code":"ResourceNotFound","message":{"lang":"en-US","value":"2:The specified resource does not exist."}}}
            --changesetresponse_00000000-0000-0000-0000-000000000007--
            --batchresponse_00000000-0000-0000-0000-000000000007--

        "#]],
    );
    assert_eq!(server.send(&format!("GET {ENTITY}")), before);
    let new = "GET /dev/People(PartitionKey='p',RowKey='new')";
    assert_eq!(server.refusal(new), "404 ResourceNotFound");
}

#[test]
fn refusals_name_the_place_and_the_reason() {
    let server = with_entity();
    let starts = |requests: &[String], status: &str, code: &str, message: &str| {
        let outcome = outcome(&server, requests);
        let expected = format!(
            "{status} | {{\"odata.error\":{{\"code\":\"{code}\",\"message\":{{\"lang\":\"en-US\",\
             \"value\":\"{message}"
        );
        assert!(outcome.starts_with(&expected), "{outcome}");
    };
    let one = insert("p", "1");
    let exists = [one.clone(), insert("p", "r")];
    starts(&exists, "409 Conflict", "EntityAlreadyExists", "1:The specified entity");
    let elsewhere = [one.clone(), insert("q", "2")];
    let code = "CommandsInBatchActOnDifferentPartitions";
    starts(&elsewhere, "400 Bad Request", code, "1:All commands");
    let other_table = insert("p", "2").replace("People", "Places");
    starts(&[one.clone(), other_table], "400 Bad Request", code, "1:All commands");
    let twice = [one.clone(), insert("p", "2"), one.clone()];
    starts(&twice, "400 Bad Request", "InvalidDuplicateRow", "2:The batch request contains");
    let stale = "If-Match: W/\"datetime'2001-01-01T00%3A00%3A00.0000000Z'\"\n\n{}";
    let stale = [one.clone(), change("PUT", "r", stale)];
    let code = "UpdateConditionNotSatisfied";
    starts(&stale, "412 Precondition Failed", code, "1:The update condition");
    let no_table = [insert("p", "1").replace("People", "Nobody")];
    starts(&no_table, "404 Not Found", "TableNotFound", "0:The table specified");
    let read = [one.clone(), format!("GET {PEOPLE}() HTTP/1.1\n\n")];
    starts(&read, "400 Bad Request", "InvalidInput", "1:A change set holds nothing but");
    let bad = [one.clone(), format!("POST {PEOPLE} HTTP/1.1\n\n{{\"PartitionKey\":5}}")];
    starts(&bad, "400 Bad Request", "InvalidInput", "1:The 'PartitionKey' must be");
    let other_account = [one.replace("/dev/", "/other/")];
    starts(&other_account, "400 Bad Request", "InvalidInput", "0:One of the request inputs");
    let many: Vec<_> = (0..101).map(|row| insert("many", &row.to_string())).collect();
    let message = "100:The batch request operation exceeds the maximum 100 changes";
    starts(&many, "400 Bad Request", "InvalidInput", message);
    assert!(outcome(&server, &many[..100]).starts_with("204 No Content | 204"));
    assert_eq!(
        server.refusal("GET /dev/People(PartitionKey='p',RowKey='1')"),
        "404 ResourceNotFound"
    );
}

#[test]
fn a_batch_may_hold_a_single_query() {
    let server = with_entity();
    let head = "POST /dev/$batch\ncontent-type: multipart/mixed; boundary=b\n\n--b\n\
                content-type: application/http\n\n";
    let get = format!("GET {ENTITY} HTTP/1.1\nAccept: application/json;odata=nometadata\n\n");
    check(
        &server,
        &format!("{head}{get}\n--b--\n"),
        expect![[r#"
            202 Accepted
            content-type: multipart/mixed; boundary=batchresponse_00000000-0000-0000-0000-000000000007
            cache-control: no-cache

            --batchresponse_00000000-0000-0000-0000-000000000007
            Content-Type: application/http
            Content-Transfer-Encoding: binary

            HTTP/1.1 200 OK
            Content-Type: application/json;odata=nometadata;streaming=true;charset=utf-8
            Cache-Control: no-cache
            ETag: W/"datetime'<time>'"
            X-Content-Type-Options: nosniff

            {"PartitionKey":"p","RowKey":"r","Timestamp":"<time>","Age":23}
            --batchresponse_00000000-0000-0000-0000-000000000007--

        "#]],
    );
}

#[test]
fn what_is_no_batch_is_refused_as_a_whole() {
    let server = with_entity();
    let batch = batch(&[insert("p", "1")]);
    let refused = |text: String| server.refusal(&text);
    assert_eq!(refused(batch.replace("multipart/mixed; boundary=b", "a/b")), "400 InvalidInput");
    assert_eq!(refused(batch.replace("--b\n", "--x\n")), "400 InvalidInput");
    let two = batch.replace("--b--", "--b\n\nmore\n--b--");
    assert_eq!(refused(two), "400 InvalidInput");
    let large = batch.replace("{\"Part", &format!("{}{{\"Part", " ".repeat(4 * 1024 * 1024)));
    assert_eq!(refused(large), "413 RequestBodyTooLarge");
    let secondary = batch.replace("/dev/$batch", "/dev-secondary/$batch");
    assert_eq!(refused(secondary), "403 InsufficientAccountPermissions");
}

/// A bounded stand-in for a fuzzer, through the whole front.
#[test]
fn random_changes_get_documented_answers() {
    let server = with_entity();
    let seed = batch(&[insert("p", "1"), change("MERGE", "r", "If-Match: *\n\n{\"B\":2}")]);
    lazuli_http::mutate::each(seed.as_bytes(), 2_000, |text| {
        let Some(answer) = server.try_send(&String::from_utf8_lossy(text)) else { return };
        let known = matches!(&answer[..3], "202" | "400" | "403" | "404" | "405" | "413" | "415");
        assert!(known, "{:?}: {answer}", String::from_utf8_lossy(text));
    });
}
