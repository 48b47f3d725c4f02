//! Shared access signatures and stored policies on the wire.

use expect_test::expect;

use crate::raw::{Server, shared_access};
use crate::{check, with_entity};

const VERSION: &str = "2019-02-02";
/// A time after that of all requests.
const LATER: &str = "2030-01-01T00:00:00Z";

pub(crate) fn account(permissions: &str, types: &str) -> String {
    let parameters = format!("sv={VERSION}&ss=t&srt={types}&sp={permissions}&se={LATER}");
    let text = format!("dev\n{permissions}\nt\n{types}\n\n{LATER}\n\n\n{VERSION}\n");
    shared_access(&parameters, &text)
}

/// A signature for the table People: permissions, the name of a policy, and a range of keys.
pub(crate) fn table(permissions: &str, policy: &str, range: [&str; 4]) -> String {
    let expiry = if policy.is_empty() { LATER } else { "" };
    let mut parameters = format!("sv={VERSION}&tn=People");
    let names = ["sp", "se", "si", "spk", "srk", "epk", "erk"];
    let values = [permissions, expiry, policy, range[0], range[1], range[2], range[3]];
    for (name, value) in names.iter().zip(values).filter(|(_, value)| !value.is_empty()) {
        parameters += &format!("&{name}={value}");
    }
    let text = format!(
        "{permissions}\n\n{expiry}\n/table/dev/people\n{policy}\n\n\n{VERSION}\n{}",
        range.join("\n")
    );
    shared_access(&parameters, &text)
}

/// Status and code of a request that is signed by its address alone.
fn answer(server: &Server, request: &str, signature: &str) -> String {
    let (line, rest) = request.split_once('\n').unwrap_or((request, ""));
    let mark = if line.contains('?') { '&' } else { '?' };
    server.refusal(&format!("{line}{mark}{signature}\nauthorization: none\n{rest}"))
}

const ENTITY: &str = "/dev/People(PartitionKey='p',RowKey='r')";
const FORBIDDEN: &str = "403 AuthorizationPermissionMismatch";
const OTHER_TYPE: &str = "403 AuthorizationResourceTypeMismatch";

#[test]
fn an_account_signature_grants_what_it_says() {
    let server = with_entity();
    let get = format!("GET {ENTITY}");
    assert_eq!(answer(&server, &get, &account("r", "o")), "200 without a code");
    assert_eq!(answer(&server, &get, &account("a", "o")), FORBIDDEN);
    assert_eq!(answer(&server, &get, &account("r", "sc")), OTHER_TYPE);
    let list = "GET /dev/Tables";
    assert_eq!(answer(&server, list, &account("l", "c")), "200 without a code");
    assert_eq!(answer(&server, list, &account("r", "c")), FORBIDDEN);
    let create = "POST /dev/Tables\n\n{\"TableName\":\"Places\"}";
    assert_eq!(answer(&server, create, &account("w", "c")), "201 without a code");
    let upsert = format!("PUT {ENTITY}\n\n{{}}");
    assert_eq!(answer(&server, &upsert, &account("u", "o")), FORBIDDEN);
    assert_eq!(answer(&server, &upsert, &account("au", "o")), "204 without a code");
    let delete = format!("DELETE {ENTITY}\nif-match: *");
    assert_eq!(answer(&server, &delete, &account("rau", "o")), FORBIDDEN);
    assert_eq!(answer(&server, &delete, &account("d", "o")), "204 without a code");
    let acl = "GET /dev/People?comp=acl";
    assert_eq!(answer(&server, acl, &account("rwdlacu", "sco")), "403 AuthorizationFailure");
    let forged = account("r", "o").replace("sp=r", "sp=raud");
    assert_eq!(answer(&server, &get, &forged), "403 AuthenticationFailed");
}

#[test]
fn a_table_signature_is_for_one_table() {
    let server = with_entity();
    server.send("POST /dev/Tables\n\n{\"TableName\":\"Places\"}");
    let read = table("r", "", [""; 4]);
    assert_eq!(answer(&server, "GET /dev/People()", &read), "200 without a code");
    assert_eq!(answer(&server, "GET /dev/PEOPLE()", &read), "200 without a code");
    assert_eq!(answer(&server, "GET /dev/Places()", &read), "403 AuthorizationFailure");
    assert_eq!(answer(&server, "GET /dev/Tables", &read), OTHER_TYPE);
    let insert = "POST /dev/People\n\n{\"PartitionKey\":\"p\",\"RowKey\":\"n\"}";
    assert_eq!(answer(&server, insert, &read), FORBIDDEN);
    assert_eq!(answer(&server, insert, &table("a", "", [""; 4])), "201 without a code");
}

#[test]
fn a_range_of_keys_bounds_reading_and_writing() {
    let server = with_entity();
    for (partition, row) in [("o", "1"), ("p", "1"), ("p", "5"), ("q", "1")] {
        let entity = format!("{{\"PartitionKey\":\"{partition}\",\"RowKey\":\"{row}\"}}");
        server.send(&format!("POST /dev/People\n\n{entity}"));
    }
    let range = ["p", "3", "q", "2"];
    let found = server.send(&format!(
        "GET /dev/People()?$select=PartitionKey,RowKey&{}\nauthorization: none\n\
         accept: application/json;odata=nometadata",
        table("r", "", range)
    ));
    let expected = r#"{"value":[{"PartitionKey":"p","RowKey":"5"},{"PartitionKey":"p","RowKey":"r"},{"PartitionKey":"q","RowKey":"1"}]}"#;
    assert!(found.contains(expected), "{found}");
    let get = |row: &str| format!("GET /dev/People(PartitionKey='p',RowKey='{row}')");
    assert_eq!(answer(&server, &get("5"), &table("r", "", range)), "200 without a code");
    assert_eq!(answer(&server, &get("1"), &table("r", "", range)), "404 ResourceNotFound");
    let insert = |partition: &str| {
        format!("POST /dev/People\n\n{{\"PartitionKey\":\"{partition}\",\"RowKey\":\"2\"}}")
    };
    let add = table("a", "", range);
    assert_eq!(answer(&server, &insert("q"), &add), "201 without a code");
    assert_eq!(answer(&server, &insert("r"), &add), "403 AuthorizationFailure");
    let batch = |partition: &str| {
        format!(
            "POST /dev/$batch\ncontent-type: multipart/mixed; boundary=b\n\n--b\nContent-Type: \
             multipart/mixed; boundary=c\n\n--c\n\n{}\n--c--\n--b--\n",
            insert(partition).replace("People\n", "People HTTP/1.1\n").replace("\"2\"", "\"1x\"")
        )
    };
    let inside = |partition: &str| {
        let text = batch(partition).replace("$batch\n", &format!("$batch?{add}\n"));
        server.send(&text.replacen('\n', "\nauthorization: none\n", 1))
    };
    assert!(inside("q").contains("HTTP/1.1 201 Created"), "{}", inside("q"));
    assert!(inside("r").contains("0:This request is not authorized"), "{}", inside("r"));
}

#[test]
fn a_token_is_refused_where_anybody_can_read_it() {
    let server = with_entity();
    let get = format!("GET {ENTITY}\nauthorization: Bearer e30.e30.AAEC");
    assert_eq!(server.refusal(&get), "403 AuthenticationFailed");
    assert!(server.send(&get).contains("not allowed with HTTP"), "{}", server.send(&get));
}

const POLICY: &str = "<SignedIdentifiers><SignedIdentifier><Id>readers</Id><AccessPolicy><Expiry>\
    2030-01-01T00:00:00Z</Expiry><Permission>r</Permission></AccessPolicy></SignedIdentifier>\
    </SignedIdentifiers>";

#[test]
fn stored_policies_are_kept_and_can_be_taken_back() {
    let server = with_entity();
    let empty = "GET /dev/People?comp=acl\naccept: application/xml";
    check(
        &server,
        empty,
        expect![[r#"
        200 OK
        content-type: application/xml

        <?xml version="1.0" encoding="utf-8"?><SignedIdentifiers></SignedIdentifiers>
    "#]],
    );
    let set = format!("PUT /dev/People?comp=acl\n\n{POLICY}");
    check(
        &server,
        &set,
        expect![[r#"
        204 No Content
    "#]],
    );
    check(
        &server,
        empty,
        expect![[r#"
        200 OK
        content-type: application/xml

        <?xml version="1.0" encoding="utf-8"?><SignedIdentifiers><SignedIdentifier><Id>readers</Id><AccessPolicy><Expiry><time></Expiry><Permission>r</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>
    "#]],
    );
    let signature = table("", "readers", [""; 4]);
    let get = format!("GET {ENTITY}");
    assert_eq!(answer(&server, &get, &signature), "200 without a code");
    let delete = format!("DELETE {ENTITY}\nif-match: *");
    assert_eq!(answer(&server, &delete, &signature), FORBIDDEN);
    let both = table("r", "readers", [""; 4]);
    assert_eq!(answer(&server, &get, &both), "400 InvalidAuthenticationInfo");
    assert_eq!(server.refusal("PUT /dev/People?comp=acl\n\n"), "204 without a code");
    assert_eq!(answer(&server, &get, &signature), "403 AuthenticationFailed");
    let bad = |body: &str| server.refusal(&format!("PUT /dev/People?comp=acl\n\n{body}"));
    assert_eq!(bad("<a>"), "400 InvalidXmlDocument");
    assert_eq!(bad(&POLICY.replace(">r<", ">x<")), "400 InvalidXmlNodeValue");
    assert_eq!(server.refusal("GET /dev/Nobody?comp=acl"), "404 TableNotFound");
    assert_eq!(server.refusal("PUT /dev/Nobody?comp=acl"), "404 TableNotFound");
}
