//! Entry points of the fuzzer: one function for each parser. Each takes any bytes and panics if an invariant does not
//! hold. The targets in `fuzz/` are these functions; the tests here run the same ones on fixed seeds.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use lazuli_http::uri::{Query, percent_encode};
use lazuli_http::xml::{self, Element};
use lazuli_http::{Body, HeaderMap, HeaderName, HeaderValue, Method, Request, RequestId, Uri};

use crate::auth::bearer::{self, Tokens};
use crate::auth::service_sas::{self, Resource};
use crate::auth::{
    Accounts, Authorization, Key, Keys, Refusal, Scheme, sas, shared_key, table_sas,
};
use crate::odata::{Metadata, read_entity, write_property};
use crate::properties::Properties;
use crate::service::ServiceProperties;
use crate::{acl, storage};

const ACCOUNT: &str = "dev";
/// 2026-11-15T22:24:23Z, when every request of a target arrives.
const NOW_MS: u64 = 1_794_781_463_000;

/// The header of shared keys, and lines for the date, the path and the query that it signs: what is read is written the
/// same again, and no made-up request is let in.
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
    let checked = shared_key::check_table(&request, &query, ACCOUNT, &accounts);
    assert!(checked.is_err(), "a request that nobody signed is let in: {text:?}");
    let checked = shared_key::check(&request, &query, ACCOUNT, &accounts);
    assert!(checked.is_err(), "a request that nobody signed is let in: {text:?}");
    let _ = storage::version(&request.headers);
}

/// The name of a blob in the first line, and in the second one the parameters of a signature for it, for its container,
/// or for a queue of that name: no request with a made-up signature is let in.
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
    use lazuli_http::mutate::corpus;

    /// Texts of each kind that a target is tried on here; `cargo fuzz` has no end.
    const ROUNDS: u32 = 10_000;

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
