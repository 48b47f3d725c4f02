//! What must hold of every parser of this front, whatever comes from the network. `fuzz/fuzz_targets` call these, and so do
//! the tests below on the seeds.

use lazuli_http::uri::percent_encode;
use lazuli_shapes::document::{FeedPosition, PatchPath, Rid};
use lazuli_value::Value;

use crate::access::Authorization;
use crate::address::Target;
use crate::batch;
use crate::headers::parse_key;
use crate::patch::Patch;

/// A path that is read names the same when its link is written as a path again.
pub fn document_address(data: &[u8]) {
    let text = &*String::from_utf8_lossy(data);
    let Ok(target) = Target::parse(text) else { return };
    assert!(target.link.split('/').count() <= 8);
    let segments: Vec<String> = target.link.split('/').map(percent_encode).collect();
    if target.link.starts_with("dbs/") && segments.len().is_multiple_of(2) {
        let again = Target::parse(&format!("/{}/", segments.join("/")));
        assert_eq!(again.map(|again| again.link), Ok(target.link));
    }
}

/// A partition key that is read is written as the same key.
pub fn document_key(data: &[u8]) {
    let text = &*String::from_utf8_lossy(data);
    let Some(values) = parse_key(text) else { return };
    let written = Value::Array(values.clone()).to_json();
    assert_eq!(parse_key(&written), Some(values));
}

/// The parts of an authorization are those of its text.
pub fn document_authorization(data: &[u8]) {
    let text = &*String::from_utf8_lossy(data);
    match Authorization::parse(text) {
        Some(Authorization::Master(signature) | Authorization::Resource(signature)) => {
            assert!(text.ends_with(signature));
        }
        Some(Authorization::Identity) | None => {}
    }
}

/// A batch is read or refused, whatever its operations are.
pub fn document_batch(data: &[u8]) {
    let text = &*String::from_utf8_lossy(data);
    if let Ok(body) = Value::from_json(text.as_bytes())
        && let Ok(entries) = batch::entries(body)
    {
        assert!((1..=crate::limits::BATCH_OPERATIONS_MAX).contains(&entries.len()));
    }
}

/// A patch is read or refused, and reading it again gives the same.
pub fn document_patch(data: &[u8]) {
    let text = &*String::from_utf8_lossy(data);
    if let Ok(body) = Value::from_json(text.as_bytes()) {
        assert_eq!(Patch::parse(body.clone()), Patch::parse(body));
    }
}

/// A position in the change feed that is read is written as the same position.
pub fn document_position(data: &[u8]) {
    if let Ok(position) = FeedPosition::decode(data) {
        assert_eq!(FeedPosition::decode(&position.encode()).ok(), Some(position));
    }
}

/// A resource id that is read is written as the same id, and names what it is in.
pub fn document_rid(data: &[u8]) {
    let text = &*String::from_utf8_lossy(data);
    let Some(rid) = Rid::parse(text) else { return };
    assert_eq!(Rid::parse(&rid.to_string()).as_ref(), Some(&rid));
    assert!(rid.bytes().starts_with(rid.database().bytes()));
    if let Some(collection) = rid.collection() {
        assert!(rid.bytes().starts_with(collection.bytes()));
    }
}

/// The path of a patch begins with a slash and has something behind it.
pub fn document_patch_path(data: &[u8]) {
    let text = &*String::from_utf8_lossy(data);
    assert_eq!(PatchPath::parse(text).is_ok(), text.len() > 1 && text.starts_with('/'));
}

#[cfg(test)]
mod tests {
    use lazuli_http::mutate::corpus;

    const ROUNDS: u32 = 10_000;

    #[test]
    fn addresses_are_read_or_refused() {
        let words = [
            "/",
            "dbs",
            "d",
            "colls",
            "c",
            "docs",
            "%2F",
            "%25",
            "users",
            "permissions",
            "offers",
            "sprocs",
            "pkranges",
            "operations",
            "partitionkeydelete",
            "AAAAAA==",
            "я",
            "attachments",
        ];
        corpus("document_address", &words, ROUNDS, super::document_address);
    }

    #[test]
    fn partition_keys_are_read_or_refused() {
        let words =
            ["[", "]", ",", "\"a\"", "1", "-0", "1e5", "null", "true", "{}", "{", "\\u0441"];
        corpus("document_key", &words, ROUNDS, super::document_key);
    }

    #[test]
    fn authorizations_are_read_or_refused() {
        let words =
            ["type=", "master", "resource", "aad", "&", "ver=", "1.0", "sig=", ";", "a", "="];
        corpus("document_authorization", &words, ROUNDS, super::document_authorization);
    }

    #[test]
    fn positions_are_read_or_refused() {
        let words = ["\u{1}", "\u{2}", "\0", "\0\0\0\u{1}", "\u{8}", "\u{10}", "abcdefgh"];
        corpus("document_position", &words, ROUNDS, super::document_position);
    }

    #[test]
    fn resource_ids_are_read_or_refused() {
        let words = ["AAAA", "AAAAAA==", "A", "=", "==", "-", "+", "/", "zzzz", "AQAAAIAAAAA="];
        corpus("document_rid", &words, ROUNDS, super::document_rid);
    }

    #[test]
    fn paths_of_patches_are_read_or_refused() {
        let words = ["/", "a", "0", "-", "~0", "~1", "~", "я", "//"];
        corpus("document_patch_path", &words, ROUNDS, super::document_patch_path);
    }

    #[test]
    fn batches_are_read_or_refused() {
        let words = [
            "[",
            "]",
            "{",
            "}",
            ",",
            ":",
            "\"operationType\"",
            "\"Create\"",
            "\"Patch\"",
            "\"id\"",
            "\"1\"",
            "\"resourceBody\"",
            "\"ifMatch\"",
            "null",
            "\"partitionKey\"",
            "\"[1]\"",
        ];
        corpus("document_batch", &words, ROUNDS, super::document_batch);
    }

    #[test]
    fn patches_are_read_or_refused() {
        let words = [
            "[",
            "]",
            "{",
            "}",
            ",",
            ":",
            "\"op\"",
            "\"add\"",
            "\"move\"",
            "\"path\"",
            "\"/a/0\"",
            "\"from\"",
            "\"value\"",
            "1",
            "\"operations\"",
            "\"condition\"",
            "\"from c\"",
        ];
        corpus("document_patch", &words, ROUNDS, super::document_patch);
    }
}
