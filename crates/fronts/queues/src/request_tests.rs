//! Which operation a head means, and what its parameters may be.

use lazuli_azure::Operation as _;
use lazuli_http::{HeaderName, HeaderValue};

use super::*;

const ID: &str = "01234567-89ab-cdef-00ff-000000000042";
const RECEIPT: &str = "00ff0000000000420000000000000009";

fn parse(
    method: &str,
    path: &str,
    query: &str,
    headers: &[(&str, &str)],
) -> std::result::Result<Operation, Code> {
    let method = Method::from_bytes(method.as_bytes()).unwrap();
    let headers = headers.iter().map(|(name, value)| {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        (name, HeaderValue::from_str(value).unwrap())
    });
    let headers = HeaderMap::from_iter(headers);
    let resource = Resource::parse(path).unwrap();
    let query = Query::parse(query).unwrap();
    Operation::parse(&method, &headers, resource, &query, &Limits::default())
        .map_err(|fault| fault.code)
}

/// Each row's method and path are those of the operation it names, in the order of the enum.
#[test]
fn operations_toml_names_every_operation() {
    let table: toml::Table = include_str!("../operations.toml").parse().unwrap();
    let rows = table["operation"].as_array().unwrap();
    assert_eq!(rows.len(), 18);
    for row in rows {
        let text = |field: &str| row[field].as_str().unwrap();
        let path = text("path").replace("{queue}", "orders").replace("{any}", "orders");
        let path = path.replace("{id}", ID).replace("{receipt}", RECEIPT);
        let (path, query) = path.split_once('?').unwrap_or((&path, ""));
        let parsed = parse(text("method"), path, query, &[]).unwrap();
        assert_eq!(parsed.row().name, text("name"));
        let needed = match parsed.row().need {
            None => "token",
            Some(Need::Key) => "key",
            Some(Need::Any(_, "")) => "none",
            Some(Need::Any(_, letters) | Need::All(_, letters)) => letters,
        };
        assert_eq!(needed, text("permission"), "{}", parsed.row().name);
        assert_eq!(text("status"), "done");
    }
}

#[test]
fn other_methods_and_components_are_refused() {
    let code = |method: &str, path: &str, query: &str| parse(method, path, query, &[]).unwrap_err();
    let verb = Code::Common(CommonCode::UnsupportedHttpVerb);
    assert_eq!(code("POST", "", "comp=list"), verb);
    assert_eq!(code("GET", "orders", ""), verb);
    assert_eq!(code("PUT", "orders/messages", ""), verb);
    assert_eq!(code("GET", &format!("orders/messages/{ID}"), ""), verb);
    assert_eq!(code("GET", "", ""), Code::Common(CommonCode::InvalidUri));
    let parameter = Code::Common(CommonCode::InvalidQueryParameterValue);
    assert_eq!(code("GET", "", "comp=other"), parameter);
    assert_eq!(code("GET", "orders", "comp=list"), parameter);
    assert_eq!(code("GET", "orders/messages", "comp=list"), parameter);
}

#[test]
fn times_of_messages_depend_on_the_version() {
    let put = |query: &str, version: &str| match parse(
        "POST",
        "orders/messages",
        query,
        &[("x-ms-version", version)],
    ) {
        Ok(Operation::PutMessage { hidden_seconds, lives_seconds, .. }) => {
            Ok((hidden_seconds, lives_seconds))
        }
        Ok(other) => panic!("{other:?}"),
        Err(code) => Err(code),
    };
    let (old, new) = ("2017-04-17", "2017-07-29");
    let out = Err(Code::Common(CommonCode::OutOfRangeQueryParameterValue));
    assert_eq!(put("", new), Ok((0, Some(604_800))));
    assert_eq!(put("messagettl=-1", new), Ok((0, None)));
    assert_eq!(put("messagettl=-1", old), out);
    assert_eq!(put("messagettl=604801", new), Ok((0, Some(604_801))));
    assert_eq!(put("messagettl=604801", old), out);
    assert_eq!(put("messagettl=0", new), out);
    assert_eq!(put("messagettl=-2", new), out);
    assert_eq!(put("visibilitytimeout=604800&messagettl=-1", new), Ok((604_800, None)));
    assert_eq!(put("visibilitytimeout=604801&messagettl=-1", new), out);
    assert_eq!(put("visibilitytimeout=10&messagettl=11", new), Ok((10, Some(11))));
    assert_eq!(put("visibilitytimeout=10&messagettl=10", new), out);
    let bad = Err(Code::Common(CommonCode::InvalidQueryParameterValue));
    assert_eq!(put("messagettl=soon", new), bad);
}

#[test]
fn counts_and_times_of_receiving_have_bounds() {
    let get = |query: &str| parse("GET", "orders/messages", query, &[]);
    let queue = || "orders".to_owned();
    let received =
        |most, hidden_seconds| Ok(Operation::GetMessages { queue: queue(), most, hidden_seconds });
    assert_eq!(get(""), received(1, 30));
    assert_eq!(get("numofmessages=32&visibilitytimeout=604800"), received(32, 604_800));
    assert_eq!(get("peekonly=false"), received(1, 30));
    let peeked = Operation::PeekMessages { queue: queue(), most: 2 };
    assert_eq!(get("peekonly=true&numofmessages=2"), Ok(peeked));
    for bad in ["numofmessages=0", "numofmessages=33", "visibilitytimeout=0", "numofmessages=-1"] {
        let code = Code::Common(CommonCode::OutOfRangeQueryParameterValue);
        assert_eq!(get(bad), Err(code), "{bad}");
    }
    let bad = Code::Common(CommonCode::InvalidQueryParameterValue);
    assert_eq!(get("peekonly=maybe"), Err(bad));
}

#[test]
fn a_message_is_settled_by_name_and_receipt() {
    let path = format!("orders/messages/{ID}");
    let delete = |query: &str| parse("DELETE", &path, query, &[]).map(|parsed| parsed.row().name);
    assert_eq!(delete(&format!("popreceipt={RECEIPT}")), Ok("DeleteMessage"));
    let missing = Code::Common(CommonCode::MissingRequiredQueryParameter);
    assert_eq!(delete(""), Err(missing));
    let bad = Code::Common(CommonCode::InvalidQueryParameterValue);
    assert_eq!(delete("popreceipt=mine"), Err(bad));
    let unknown = parse("DELETE", "orders/messages/mine", "popreceipt=x", &[]);
    assert_eq!(unknown, Err(Code::MessageNotFound));
    let update = parse("PUT", &path, &format!("popreceipt={RECEIPT}"), &[]);
    assert_eq!(update, Err(missing), "it must say for how long");
}

#[test]
fn metadata_comes_in_headers_and_has_a_bound() {
    let create = |headers: &[(&str, &str)]| match parse("PUT", "orders", "", headers) {
        Ok(Operation::CreateQueue { metadata, .. }) => Ok(metadata),
        Ok(other) => panic!("{other:?}"),
        Err(code) => Err(code),
    };
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let given = [("x-ms-meta-b", "2"), ("x-ms-meta-a", "1"), ("x-ms-other", "3")];
    assert_eq!(create(&given), Ok(vec![pair("a", "1"), pair("b", "2")]));
    let long = "x".repeat(METADATA_BYTES_MAX - 1);
    assert!(create(&[("x-ms-meta-a", &long)]).is_ok());
    let too_large = Err(Code::Common(CommonCode::MetadataTooLarge));
    assert_eq!(create(&[("x-ms-meta-ab", &long)]), too_large);
    let invalid = Err(Code::Common(CommonCode::InvalidMetadata));
    assert_eq!(create(&[("x-ms-meta-a-b", "1")]), invalid);
    let empty = Err(Code::Common(CommonCode::EmptyMetadataKey));
    assert_eq!(create(&[("x-ms-meta-", "1")]), empty);
}

#[test]
fn lists_have_pages_and_wishes() {
    let list = |query: &str| match parse("GET", "", &format!("comp=list&{query}"), &[]) {
        Ok(Operation::ListQueues(query)) => Ok(query),
        Ok(other) => panic!("{other:?}"),
        Err(code) => Err(code),
    };
    let all = list("").unwrap();
    assert_eq!((all.prefix.as_str(), all.most, all.with_metadata), ("", None, false));
    let some = list("prefix=a&marker=b&maxresults=9999&include=metadata").unwrap();
    assert_eq!((some.prefix.as_str(), some.marker.as_deref()), ("a", Some("b")));
    assert_eq!((some.most, some.with_metadata), (Some(5000), true));
    let out = Code::Common(CommonCode::OutOfRangeQueryParameterValue);
    assert_eq!(list("maxresults=0"), Err(out));
    let bad = Code::Common(CommonCode::InvalidQueryParameterValue);
    assert_eq!(list("maxresults=many"), Err(bad));
    assert_eq!(list("include=everything"), Err(bad));
}
