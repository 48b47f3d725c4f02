//! Tags of blobs: as a header, as XML, and what they may hold.

use lazuli_http::uri::Query;
use lazuli_http::xml;

use crate::error::Code;
use crate::error::{Common, Fault, Result};
use crate::limits::{Limits, TAG_KEY_CHARS_MAX, TAG_VALUE_CHARS_MAX};
use crate::options::Pairs;

/// In the order of their keys.
pub(crate) type Tags = Pairs;

/// The `x-ms-tags` header: `key=value&key=value`, percent-encoded.
pub(crate) fn from_header(text: &str, limits: &Limits) -> Result<Tags> {
    let query = Query::parse(text).map_err(|_| Fault::new(Code::InvalidTag))?;
    collect(query.iter().map(|(key, value)| (key.to_owned(), value.to_owned())), limits)
}

/// The document that sets all tags of a blob.
pub(crate) fn from_xml(body: &[u8], limits: &Limits) -> Result<Tags> {
    let root = xml::parse(body)?;
    let set = root.child("TagSet").filter(|_| root.name == "Tags");
    let set = set.ok_or_else(|| Fault::new(Common::InvalidXmlDocument))?;
    let tags = set.children.iter().map(|tag| {
        let text = |name: &str| tag.child(name).map(|child| child.text.clone());
        (text("Key").unwrap_or_default(), text("Value").unwrap_or_default())
    });
    collect(tags, limits)
}

fn collect(pairs: impl Iterator<Item = (String, String)>, limits: &Limits) -> Result<Tags> {
    let mut tags = Tags::new();
    for (key, value) in pairs {
        let key_length = key.chars().count();
        if key_length > TAG_KEY_CHARS_MAX || value.chars().count() > TAG_VALUE_CHARS_MAX {
            return Err(Fault::new(Code::TagsTooLarge));
        }
        let is_known = |text: &str| text.chars().all(is_tag_char);
        if key.is_empty() || !is_known(&key) || !is_known(&value) {
            return Err(Fault::new(Code::InvalidTag));
        }
        if tags.iter().any(|(known, _)| *known == key) {
            return Err(Fault::new(Code::InvalidTag).say("A tag is there more than once."));
        }
        tags.push((key, value));
    }
    tags.sort_unstable();
    if tags.len() > limits.tag_count_max {
        return Err(Fault::new(Code::TagsTooLarge)
            .say(format!("A blob can have {} tags at most.", limits.tag_count_max)));
    }
    Ok(tags)
}

pub(crate) fn is_tag_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || " +-./:=_".contains(c)
}

/// Writes `<TagSet>…</TagSet>`.
pub(crate) fn write_set(out: &mut String, tags: &[(String, String)]) {
    out.push_str("<TagSet>");
    for (key, value) in tags {
        out.push_str("<Tag>");
        xml::write(out, "Key", key);
        xml::write(out, "Value", value);
        out.push_str("</Tag>");
    }
    out.push_str("</TagSet>");
}

#[cfg(test)]
mod tests {
    use lazuli_azure::storage_error::ErrorCode as _;

    use super::*;

    fn tags(pairs: &[(&str, &str)]) -> Tags {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn tags_are_read_from_headers_and_documents() {
        let limits = Limits::default();
        let expected = tags(&[("a", "b c"), ("d/e", "")]);
        assert_eq!(from_header("a=b%20c&d%2Fe=", &limits), Ok(expected.clone()));
        let mut text = String::from("<Tags>");
        write_set(&mut text, &expected);
        text.push_str("</Tags>");
        assert_eq!(from_xml(text.as_bytes(), &limits), Ok(expected));
        assert_eq!(from_xml(b"<Tags><TagSet/></Tags>", &limits), Ok(Tags::new()));
        assert_eq!(from_header("", &limits), Ok(Tags::new()));
    }

    #[test]
    fn bad_tags_are_refused() {
        let code = |text: &str| from_header(text, &Limits::default()).unwrap_err().code.name();
        for bad in ["=b", "a=%3C", "ä=b", "a=b&a=c", "%=a"] {
            assert_eq!(code(bad), "InvalidTag", "{bad}");
        }
        let many: Vec<String> = (0..11).map(|n| format!("k{n}=v")).collect();
        assert_eq!(code(&many.join("&")), "TagsTooLarge");
        assert!(from_header(&many[..10].join("&"), &Limits::default()).is_ok());
        assert_eq!(code(&format!("{}=v", "k".repeat(129))), "TagsTooLarge");
        assert_eq!(code(&format!("k={}", "v".repeat(257))), "TagsTooLarge");
        let document =
            |text: &str| from_xml(text.as_bytes(), &Limits::default()).unwrap_err().code.name();
        assert_eq!(document("<Tags/>"), "InvalidXmlDocument");
        assert_eq!(document("<Tag><TagSet/></Tag>"), "InvalidXmlDocument");
    }
}
