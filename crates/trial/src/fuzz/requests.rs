//! Requests that are nearly right: good ones of every operation, with something changed, and some that are only large.

use lazuli_env::SplitMix64;
use lazuli_http::mutate;
use lazuli_http::uri::percent_encode;
use lazuli_trial::client::{ACCOUNT, Request, signature, transaction};

use super::TABLE;

const METHODS: &[&str] =
    &["GET", "POST", "PUT", "MERGE", "PATCH", "DELETE", "OPTIONS", "HEAD", "TRACE", "QUERY"];

/// Headers that some operation or the protocol itself looks at, with values worth a try.
const HEADERS: &[(&str, &str)] = &[
    ("accept", "application/atom+xml"),
    ("accept", "application/json;odata=fullmetadata"),
    ("content-type", "multipart/mixed; boundary=batch_trial"),
    ("content-type", "text/plain"),
    ("dataserviceversion", "9.0"),
    ("expect", "100-continue"),
    ("host", "devstoreaccount1.table.localhost"),
    ("if-match", "*"),
    ("if-match", "W/\"datetime'2026-11-15T22%3A24%3A23.1230007Z'\""),
    ("origin", "http://example.org"),
    ("access-control-request-method", "PUT"),
    ("prefer", "return-content"),
    ("range", "bytes=0-1"),
    ("x-http-method", "MERGE"),
    ("x-lazuli-map", "hash"),
    ("x-ms-client-request-id", "mine"),
    ("x-ms-version", "2099-01-01"),
];

/// How often a count is well over what the service takes.
const MANY: usize = 1_500;

/// One of the good requests.
pub(super) fn good(random: &mut SplitMix64) -> Request {
    let keys = format!("(PartitionKey='p{}',RowKey='r{}')", random.below(4), random.below(50));
    let one = format!("/{TABLE}{keys}");
    let all = format!("/{TABLE}()");
    let entity = r#"{"A":1,"L@odata.type":"Edm.Int64","L":"5","D@odata.type":"Edm.DateTime","D":"2024-05-06T07:08:09Z","T":"text","N@odata.type":"Edm.Double","N":"NaN"}"#;
    let filter = "?$filter=PartitionKey%20eq%20'p1'%20and%20(A%20gt%200%20or%20not%20(T%20eq%20'x'))&$top=5&$select=A,T";
    let insert = format!(
        r#"{{"PartitionKey":"p{}","RowKey":"r{}","A":{}}}"#,
        random.below(4),
        random.below(1000),
        random.below(9)
    );
    match random.below(16) {
        0 | 1 => Request::tables("POST", &format!("/{TABLE}"), "", insert),
        2 => Request::tables("GET", &one, "", ""),
        3 => Request::tables("PUT", &one, "", entity),
        4 => Request::tables("PATCH", &one, "", entity).with("if-match", "*"),
        5 => Request::tables("DELETE", &one, "", "").with("if-match", "*"),
        6 => Request::tables("GET", &all, filter, ""),
        7 => Request::tables("GET", &all, "?$top=3&NextPartitionKey=1!cDE&NextRowKey=1!cjE", ""),
        8 => Request::tables("GET", "/Tables", "?$filter=TableName%20ge%20'f'&$top=3", ""),
        9 => Request::tables(
            "POST",
            "/Tables",
            "",
            format!(r#"{{"TableName":"other{}"}}"#, random.below(20)),
        ),
        10 => Request::tables("DELETE", &format!("/Tables('other{}')", random.below(20)), "", ""),
        11 => Request::tables("GET", "/", "?restype=service&comp=properties", ""),
        12 => Request::tables("PUT", &format!("/{TABLE}"), "?comp=acl", policies()),
        13 => Request::tables("PUT", "/", "?restype=service&comp=properties", properties()),
        14 => Request::tables("GET", &format!("/{TABLE}"), "?comp=acl", ""),
        _ => {
            let changes: Vec<_> = (0..=random.below(4)).map(|nth| change(random, nth)).collect();
            transaction(&changes)
        }
    }
}

fn change(random: &mut SplitMix64, nth: usize) -> Request {
    let path = format!("/{TABLE}(PartitionKey='p0',RowKey='r{nth}')");
    match random.below(3) {
        0 => Request::tables("PUT", &path, "", r#"{"A":1}"#),
        1 => Request::tables("MERGE", &path, "", r#"{"B":"x"}"#),
        _ => Request::tables("DELETE", &path, "", "").with("if-match", "*"),
    }
}

fn policies() -> &'static str {
    "<SignedIdentifiers><SignedIdentifier><Id>p</Id><AccessPolicy><Expiry>2030-01-01</Expiry>\
     <Permission>raud</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>"
}

fn properties() -> &'static str {
    "<StorageServiceProperties><Cors><CorsRule><AllowedMethods>GET,PUT</AllowedMethods>\
     <AllowedOrigins>*</AllowedOrigins><AllowedHeaders>x-ms-*</AllowedHeaders><ExposedHeaders>*\
     </ExposedHeaders><MaxAgeInSeconds>5</MaxAgeInSeconds></CorsRule></Cors>\
     </StorageServiceProperties>"
}

/// The same request with one to three of its parts changed. It stays a request: what is broken below that is `broken`.
pub(super) fn changed(random: &mut SplitMix64, mut request: Request) -> Request {
    for _ in 0..=random.below(3) {
        match random.below(5) {
            0 => request.method = METHODS[random.below(METHODS.len())].to_owned(),
            1 => request.path = address(&mutate::variant(random, request.path.as_bytes()), "/"),
            2 => request.query = address(&mutate::variant(random, request.query.as_bytes()), "?"),
            3 => {
                let (name, value) = HEADERS[random.below(HEADERS.len())];
                let value = match random.below(2) {
                    0 => value.to_owned(),
                    _ => header(&mutate::variant(random, value.as_bytes())),
                };
                request = request.with(name, &value);
            }
            _ => request.body = mutate::variant(random, &request.body),
        }
    }
    request
}

/// A request with far too much of something.
pub(super) fn large(random: &mut SplitMix64) -> Request {
    let table = format!("/{TABLE}");
    let repeated = |piece: &str| piece.repeat(MANY);
    let one = |key: &str| format!("/{TABLE}(PartitionKey='{key}',RowKey='r')");
    match random.below(11) {
        0 => {
            let properties: Vec<_> = (0..MANY).map(|nth| format!("\"P{nth}\":1")).collect();
            Request::tables("PUT", &one("p"), "", format!("{{{}}}", properties.join(",")))
        }
        1 => Request::tables("PUT", &one(&repeated("k")), "", "{}"),
        2 => Request::tables("PUT", &one("p"), "", format!("{{\"{}\":1}}", repeated("n"))),
        3 => Request::tables(
            "PUT",
            &one("p"),
            "",
            format!("{{\"A\":\"{}\"}}", repeated(&"x".repeat(99))),
        ),
        4 => Request::tables("GET", &table, &format!("?{}", repeated("a=1&")), ""),
        5 => Request::tables("GET", &table, &format!("?$filter={}A", repeated("not%20")), ""),
        6 => Request::tables("GET", &table, &format!("?$filter={}A", repeated("A%20or%20")), ""),
        7 => Request::tables("GET", &table, &format!("?$select={}A", repeated("A,")), ""),
        8 => {
            let changes: Vec<_> = (0..101).map(|nth| change(random, nth)).collect();
            transaction(&changes)
        }
        9 => Request::tables("POST", &table, "", repeated("[")),
        _ => Request::tables("PUT", "/", "?comp=properties", repeated("<A>")),
    }
}

/// A request by shared access signature, its terms changed before they are signed or after.
pub(super) fn shared_access(random: &mut SplitMix64, mut request: Request) -> Request {
    let now = ["r", "raud", "l", ""][random.below(4)];
    let mut fields = [
        ("sp", now.to_owned()),
        ("ss", "t".to_owned()),
        ("srt", "sco".to_owned()),
        ("st", String::new()),
        ("se", "2099-01-01T00:00:00Z".to_owned()),
        ("sip", String::new()),
        ("spr", "https,http".to_owned()),
        ("sv", "2019-02-02".to_owned()),
    ];
    let at = random.below(fields.len());
    let before = random.below(3);
    let variant = |random: &mut SplitMix64, value: &str| {
        String::from_utf8_lossy(&mutate::variant(random, value.as_bytes())).into_owned()
    };
    if before == 0 {
        fields[at].1 = variant(random, &fields[at].1.clone());
    }
    let values: Vec<_> = fields.iter().map(|(_, value)| value.as_str()).collect();
    let mut signed = signature(&format!("{ACCOUNT}\n{}\n", values.join("\n")));
    match before {
        1 => fields[at].1 = variant(random, &fields[at].1.clone()),
        2 if random.below(4) == 0 => signed = variant(random, &signed),
        _ => {}
    }
    let fields = fields.iter().map(|(name, value)| format!("{name}={}", percent_encode(value)));
    let fields: Vec<_> = fields.collect();
    let mark = if request.query.is_empty() { '?' } else { '&' };
    let query =
        format!("{}{mark}{}&sig={}", request.query, fields.join("&"), percent_encode(&signed));
    request.query = query;
    request
}

/// What can stand in the first line of a request: no spaces, no control characters, and the sign that it begins with.
fn address(bytes: &[u8], first: &str) -> String {
    let text: String = text(bytes).chars().filter(|c| !c.is_whitespace()).collect();
    if text.starts_with(first) { text } else { format!("{first}{text}") }
}

fn header(bytes: &[u8]) -> String {
    text(bytes)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).chars().filter(|c| !c.is_control()).collect()
}
