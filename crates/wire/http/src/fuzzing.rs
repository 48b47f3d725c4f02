//! What a fuzzer calls: one function for each parser, which takes any bytes and panics if something that must hold does
//! not. The targets in `fuzz/` are these functions; the tests here run the same ones on fixed seeds.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::{Method, Uri};

use crate::auth::bearer::{self, Tokens};
use crate::auth::service_sas::{self, Resource};
use crate::auth::{
    Accounts, Authorization, Key, Keys, Refusal, Scheme, sas, shared_key, table, table_sas,
};
use crate::body::Body;
use crate::date::{Fraction, format_iso8601, format_rfc1123, parse_iso8601, parse_rfc1123};
use crate::message::{Request, RequestId};
use crate::multipart::{self, PART_HEADERS_MAX};
use crate::odata::{Metadata, read_entity, write_property};
use crate::properties::Properties;
use crate::serve::framing::Framing;
use crate::uri::{Query, percent_decode, percent_encode};
use crate::xml::{self, Element};
use crate::{acl, storage};

const ACCOUNT: &str = "dev";
/// 2026-11-15T22:24:23Z, when every request of a target arrives.
const NOW_MS: u64 = 1_794_781_463_000;
const PARTS_MAX: usize = 100;

/// Escapes and query parameters: what is read can be written and is read the same again.
pub fn uri(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Ok(decoded) = percent_decode(&text) {
        let encoded = percent_encode(&decoded);
        assert_eq!(percent_decode(&encoded).as_deref(), Ok(&*decoded), "{encoded}");
        let named = format!("a={encoded}");
        let query = Query::parse(&named);
        assert_eq!(query.ok().as_ref().and_then(|it| it.get("A")), Some(&*decoded), "{named}");
    }
    if let Ok(query) = Query::parse(&text) {
        let _ = (query.get("comp"), query.get(""));
    }
}

/// What a client sends over one connection: however it comes in pieces, the same bytes are refused, and no head that passes
/// has a line feed that stands alone.
pub fn framing(data: &[u8]) {
    let (piece, data) = match data {
        [first, rest @ ..] => (usize::from(*first) + 1, rest),
        [] => return,
    };
    let (mut whole, mut pieces) = (data.to_vec(), data.to_vec());
    Framing::default().pass(&mut whole);
    let mut framing = Framing::default();
    pieces.chunks_mut(piece).for_each(|piece| framing.pass(piece));
    assert_eq!(whole, pieces, "{data:?} in pieces of {piece}");
    let changed = whole.iter().zip(data).filter(|(passed, sent)| passed != sent);
    assert!(changed.clone().all(|(passed, _)| *passed == 0) && changed.count() <= 1, "{data:?}");
    let head = whole.windows(4).position(|end| end == b"\r\n\r\n").map_or(whole.len(), |at| at + 4);
    let head = &whole[..head];
    let refused = head.iter().zip(data).position(|(passed, sent)| passed != sent);
    let passed = &head[..refused.unwrap_or(head.len())];
    let is_alone = |pair: &[u8]| pair[1] == b'\n' && pair[0] != b'\r';
    assert!(!passed.windows(2).any(is_alone) && passed.first() != Some(&b'\n'), "{data:?}");
}

/// Dates: what is read is written in full and is the same moment again.
pub fn date(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Some(ticks) = parse_iso8601(&text) {
        for fraction in [Fraction::Shortest, Fraction::Seven] {
            let written = format_iso8601(ticks, fraction);
            assert_eq!(parse_iso8601(&written), Some(ticks), "{text:?} is written as {written}");
        }
    }
    if let Some(seconds) = parse_rfc1123(&text) {
        let written = format_rfc1123(seconds);
        assert_eq!(parse_rfc1123(&written), Some(seconds), "{text:?} is written as {written}");
    }
}

/// The header of shared keys, and lines for the date, the path and the query that it signs: what is read is written the
/// same again, and nothing that a stranger makes up is let in.
pub fn authorization(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut lines = text.split('\n');
    let mut next = || lines.next().unwrap_or_default();
    let (header, date, path, query) = (next(), next(), next(), next());
    if let Ok(read) = Authorization::parse(header) {
        let scheme = match read.scheme {
            Scheme::SharedKey => "SharedKey",
            Scheme::SharedKeyLite => "SharedKeyLite",
        };
        let written = format!("{scheme} {}:{}", read.account, STANDARD.encode(&read.signature));
        assert_eq!(Authorization::parse(&written), Ok(read), "{written}");
    }
    let Ok(query) = Query::parse(query) else { return };
    let headers = [("authorization", header), ("x-ms-date", date)];
    let request = request(path, &headers);
    let accounts = Accounts::new();
    accounts.set(ACCOUNT, keys());
    let checked = table::check(&request, &query, ACCOUNT, &accounts);
    assert!(checked.is_err(), "a request that nobody signed is let in: {text:?}");
    let checked = shared_key::check(&request, &query, ACCOUNT, &accounts);
    assert!(checked.is_err(), "a request that nobody signed is let in: {text:?}");
    let _ = storage::version(&request.headers);
}

/// The name of a blob in the first line, and in the second one the parameters of a signature for it, for its container,
/// or for a queue of that name: nobody is let in by a signature that nobody made.
pub fn service_access(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (blob, parameters) = text.split_once('\n').unwrap_or(("a", &text));
    let Ok(query) = Query::parse(parameters) else { return };
    let (request, keys) = (request("/dev/c/a", &[("x-ms-a", "1")]), keys());
    let at = query.get("snapshot");
    for resource in [
        Resource::Queue(blob),
        Resource::Container("c"),
        Resource::Blob { container: "c", blob, at },
    ] {
        let checked = service_sas::check(&request, &query, ACCOUNT, &keys, resource, None, None);
        assert!(checked.is_err(), "a signature that nobody made is let in: {text:?}");
    }
}

/// The claims of a bearer token, or a whole header: read or refused, and refused wherever tokens are off.
pub fn token(data: &[u8]) {
    let claims = URL_SAFE_NO_PAD.encode(data);
    for header in [String::from_utf8_lossy(data).into_owned(), format!("Bearer e30.{claims}.AAEC")]
    {
        let mut request = request("/dev/a", &[("authorization", &header)]);
        request.secure = true;
        let _ = bearer::check(&request, ACCOUNT, "queue", Tokens::Basic);
        assert!(bearer::check(&request, ACCOUNT, "queue", Tokens::Off).is_err());
        request.secure = false;
        assert!(bearer::check(&request, ACCOUNT, "queue", Tokens::Basic).is_err());
    }
}

/// The parameters of shared access signatures. Without a good signature nothing is let in; with one it is never called
/// wrong, whatever else is refused.
pub fn shared_access(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let Ok(query) = Query::parse(&text) else { return };
    let (request, keys) = (request("/dev/People", &[]), keys());
    let account = sas::check_account(&request, &query, ACCOUNT, &keys, 't');
    assert!(account.is_err(), "a signature that nobody made is let in: {text:?}");
    let table = table_sas::check(&request, &query, ACCOUNT, &keys, None);
    assert!(table.is_err(), "a signature that nobody made is let in: {text:?}");
    if sas::is_present(&query) {
        return;
    }
    let for_table = table_sas::named(&query).is_some();
    let signed = if for_table { table_text(&query) } else { account_text(&query) };
    let signature = percent_encode(&STANDARD.encode(keys.first.sign(&signed)));
    let whole = format!("{text}&sig={signature}");
    let Ok(query) = Query::parse(&whole) else { return };
    let refused = match for_table {
        true => table_sas::check(&request, &query, ACCOUNT, &keys, None).err(),
        false => sas::check_account(&request, &query, ACCOUNT, &keys, 't').err(),
    };
    assert_ne!(refused, Some(Refusal::WrongSignature), "{whole}");
}

/// A boundary in the first line and a body in the rest, read as a change set is: what is read can be written and is read
/// the same again.
pub fn multipart(data: &[u8]) {
    let at = data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len());
    let (first, body) = data.split_at(at);
    let content_type = HeaderValue::from_bytes(first);
    let content_type = content_type.as_ref().ok().and_then(|value| value.to_str().ok());
    let Ok(boundary) = multipart::boundary(content_type.unwrap_or_default()) else { return };
    let Ok(parts) = multipart::parts(body, boundary, PARTS_MAX) else { return };
    assert!(parts.len() <= PARTS_MAX);
    let mut written = Vec::new();
    for part in &parts {
        assert!(part.headers().count() <= PART_HEADERS_MAX);
        written.extend_from_slice(format!("--{boundary}\r\n").as_bytes());
        for (name, value) in part.headers() {
            written.extend([name, b": ", value, b"\r\n"].concat());
        }
        written.extend([b"\r\n", part.body, b"\r\n"].concat());
        let nested = part.header("content-type").unwrap_or_default();
        if let Ok(inner) = multipart::boundary(nested) {
            for part in multipart::parts(part.body, inner, PARTS_MAX).unwrap_or_default() {
                let _ = multipart::request(&part);
            }
        }
        let _ = multipart::request(part);
    }
    written.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    let again = multipart::parts(&written, boundary, PARTS_MAX).unwrap_or_default();
    let plain = |parts: &[multipart::Part<'_>]| {
        let plain = parts.iter().map(|part| (part.headers().collect::<Vec<_>>(), part.body));
        format!("{:?}", plain.collect::<Vec<_>>())
    };
    assert_eq!(plain(&again), plain(&parts), "{}", String::from_utf8_lossy(&written));
}

/// The JSON of an entity: what is read can be written and is read the same again.
pub fn entity(data: &[u8]) {
    let Ok(properties) = read_entity(data) else { return };
    let mut written = b"{".to_vec();
    for (at, (name, value)) in properties.iter().enumerate() {
        if at > 0 {
            written.push(b',');
        }
        write_property(&mut written, name, value, Metadata::Full);
    }
    written.push(b'}');
    let again = read_entity(&written);
    // NaN is not equal to itself, but prints as itself.
    let (read, again) = (format!("{properties:?}"), format!("{:?}", again.unwrap_or_default()));
    assert_eq!(read, again, "{}", String::from_utf8_lossy(&written));
}

/// The XML of settings: it stays within its limits, and policies and properties that are read can be written and are read
/// the same again.
pub fn settings(data: &[u8]) {
    if let Ok(root) = xml::parse(data) {
        let (elements, depth) = measure(&root);
        assert!(elements <= xml::ELEMENTS_MAX && depth <= xml::DEPTH_MAX);
    }
    if let Ok(policies) = acl::read(data, "raud") {
        let written = acl::write(&policies);
        assert_eq!(acl::read(written.as_bytes(), "raud"), Ok(policies), "{written}");
    }
    if let Ok(properties) = Properties::default().changed_by(data) {
        let written = properties.write();
        let again = Properties::default().changed_by(written.as_bytes());
        assert_eq!(again, Ok(properties), "{written}");
    }
}

/// How many elements there are, and how deep they nest.
fn measure(element: &Element) -> (usize, usize) {
    element
        .children
        .iter()
        .map(measure)
        .fold((1, 1), |(elements, depth), (more, below)| (elements + more, depth.max(below + 1)))
}

fn keys() -> Keys {
    Keys { first: Key::from_base64("a2V5").expect("it is base64"), second: None }
}

fn request(path: &str, headers: &[(&'static str, &str)]) -> Request {
    let values = headers.iter().filter_map(|(name, value)| {
        Some((HeaderName::from_static(name), HeaderValue::from_str(value).ok()?))
    });
    let uri: Uri = path.parse().unwrap_or_default();
    Request {
        method: Method::GET,
        path: uri.path().to_owned(),
        query: uri.query().unwrap_or_default().to_owned(),
        headers: HeaderMap::from_iter(values),
        body: Body::empty(),
        peer: ([127, 0, 0, 1], 1).into(),
        secure: false,
        received_ms: NOW_MS,
        id: RequestId(1),
    }
}

/// What the owner of an account signs, as the documentation of the service says.
fn account_text(query: &Query<'_>) -> String {
    let get = |name| query.get(name).unwrap_or_default();
    let fields = ["sp", "ss", "srt", "st", "se", "sip", "spr", "sv"].map(get).join("\n");
    let scope = if get("sv") >= "2020-12-06" { format!("{}\n", get("ses")) } else { String::new() };
    format!("{ACCOUNT}\n{fields}\n{scope}")
}

/// The same for one table.
fn table_text(query: &Query<'_>) -> String {
    let get = |name| query.get(name).unwrap_or_default();
    let version = get("sv");
    let service = if version >= "2015-02-21" { "/table" } else { "" };
    let resource = format!("{service}/{ACCOUNT}/{}", get("tn").to_ascii_lowercase());
    let mut lines = vec![get("sp"), get("st"), get("se"), &resource, get("si")];
    if version >= "2015-04-05" {
        lines.extend([get("sip"), get("spr")]);
    }
    lines.push(version);
    lines.extend(["spk", "srk", "epk", "erk"].map(get));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use crate::mutate::corpus;

    /// Texts of each kind that a target is tried on here; `cargo fuzz` has no end.
    const ROUNDS: u32 = 10_000;

    #[test]
    fn addresses_are_read_or_refused() {
        let words = ["%", "%4", "%41", "%c3%a4", "%ff", "a", "=", "&", "+", "$filter=", "comp="];
        corpus("uri", &words, ROUNDS, super::uri);
    }

    #[test]
    fn line_feeds_alone_are_refused_however_they_come() {
        let words = [
            "GET / HTTP/1.1\r\n",
            "Host: a\r\n",
            "\r\n",
            "\n",
            "\r",
            "Content-Length: 3\r\n",
            "Transfer-Encoding: chunked\r\n",
            "abc",
            "3\r\n",
            "0\r\n\r\n",
            ";",
        ];
        corpus("framing", &words, ROUNDS, super::framing);
    }

    #[test]
    fn dates_are_read_or_refused() {
        let words =
            ["9999-12-31", "0000-01-01", "T", "23:59:59", ".9999999", "-14:00", "+14", "Z", "Sun,"];
        corpus("date", &words, ROUNDS, super::date);
    }

    #[test]
    fn nobody_gets_in_by_a_made_up_authorization() {
        let words = ["SharedKey", "SharedKeyLite", "dev", ":", "AAEC", "=", "\n", "/dev/", "?"];
        corpus("authorization", &words, ROUNDS, super::authorization);
    }

    #[test]
    fn nobody_gets_in_by_a_made_up_shared_access_signature() {
        let words = ["sp=r&", "ss=t&", "srt=sco&", "se=2027&", "sv=2019-02-02&", "sig=", "tn=a&"];
        corpus("shared_access", &words, ROUNDS, super::shared_access);
    }

    #[test]
    fn nobody_gets_in_by_a_made_up_signature_of_a_resource() {
        let words = [
            "a/b/c\n",
            "sp=r&",
            "se=2027&",
            "sv=2026-10-06&",
            "sig=AAEC&",
            "sr=",
            "b&",
            "c&",
            "d&",
            "sdd=1&",
            "skoid=o&",
            "srh=x-ms-a,",
            "srq=%ff&",
            "si=p&",
        ];
        corpus("service_access", &words, ROUNDS, super::service_access);
    }

    #[test]
    fn tokens_are_read_or_refused() {
        let words = [
            "Bearer ",
            "e30",
            ".",
            "{",
            "}",
            "\"aud\":",
            "\"iss\":",
            "\"nbf\":1,",
            "\"exp\":1e400,",
            "\"iat\":0,",
            "\"https://storage.azure.com\",",
        ];
        corpus("token", &words, ROUNDS, super::token);
    }

    #[test]
    fn bodies_of_parts_are_read_or_refused() {
        let words = [
            "multipart/mixed; boundary=b\n",
            "--b",
            "--b--",
            "\r\n",
            "\n",
            "A: 1",
            "x",
            "--",
            "b",
            "GET / HTTP/1.1",
            "Content-Type: multipart/mixed; boundary=c\r\n\r\n",
            "--c\r\n",
        ];
        corpus("multipart", &words, ROUNDS, super::multipart);
    }

    #[test]
    fn entities_are_read_or_refused() {
        let words = [
            "{",
            "}",
            ",",
            ":",
            "\"A\"",
            "\"A@odata.type\"",
            "\"Edm.Int64\"",
            "\"Edm.DateTime\"",
            "\"Edm.Double\"",
            "\"NaN\"",
            "1",
            "-0.0",
            "1e400",
            "\"9999-12-31T23:59:59-14:00\"",
            "null",
            "true",
            "[",
            "]",
            "\"\\u0000\"",
            "\"Edm.Guid\"",
            "\"Edm.Binary\"",
        ];
        corpus("entity_json", &words, ROUNDS, super::entity);
    }

    #[test]
    fn settings_are_read_or_refused() {
        let words = [
            "<A>",
            "</A>",
            "<B/>",
            "&lt;",
            "&#x41;",
            "<![CDATA[",
            "]]>",
            "<!--",
            "-->",
            "<?",
            "?>",
            "text",
            "<Cors>",
            "<CorsRule>",
            "</CorsRule>",
            "</Cors>",
        ];
        corpus("settings", &words, ROUNDS, super::settings);
    }
}
