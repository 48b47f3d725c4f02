//! What a fuzzer calls: one function for each parser, which takes any bytes and panics if something that must hold does
//! not. The targets in `fuzz/` are these functions; `tests.rs` runs the same ones on fixed seeds.

#[cfg(test)]
mod tests;

use lazuli_azure::Operation as _;
use lazuli_azure::odata::ErrorFormat;
use lazuli_azure::service::ServiceProperties as _;
use lazuli_http::uri::Query;
use lazuli_http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};

use crate::address::Resource;
use crate::error::Fault;
use crate::limits::{Limits, PAGE_BYTES};
use crate::range::ByteRange;
use crate::request::{Head, Operation};
use crate::service::BlobProperties;
use crate::{blocks, etag, filter, list, tags};

/// A refusal has a status of its own, and can be said.
fn refused(fault: &Fault) {
    assert!(fault.status().is_client_error(), "{fault:?}");
    let _ = fault.response(ErrorFormat::Storage, "id", "now");
}

/// The list of a blob's blocks: as many as it says, each with an id.
pub fn block_list(data: &[u8]) {
    let limits = Limits { block_count_max: 100, ..Limits::default() };
    match blocks::read(data, &limits) {
        Ok(list) => {
            assert!(list.len() <= limits.block_count_max);
            assert!(list.iter().all(|(_, id)| !id.is_empty()));
        }
        Err(fault) => refused(&fault),
    }
}

/// A range of bytes: what is read can be written and is read the same again.
pub fn range(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let Some(range) = ByteRange::parse(&text) else { return };
    let end = range.end.map(|end| end.to_string()).unwrap_or_default();
    let written = format!("bytes={}-{end}", range.start);
    assert_eq!(ByteRange::parse(&written), Some(range), "{written}");
    assert!(range.end.is_none_or(|end| end >= range.start));
    match range.pages() {
        Ok((start, length)) => {
            assert!(length > 0 && start % PAGE_BYTES == 0 && length % PAGE_BYTES == 0);
        }
        Err(fault) => refused(&fault),
    }
}

/// A filter of tags: what is read can be written and is read the same again, and matches without a panic.
pub fn tag_filter(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let Ok(read) = filter::parse(&text) else { return };
    let written = filter::write(&read);
    if written.len() <= crate::limits::FILTER_BYTES_MAX {
        assert_eq!(filter::parse(&written).as_ref(), Ok(&read), "{written}");
    }
    let terms = read.0.iter().flatten();
    let tags: Vec<_> = terms.map(|term| (term.key.clone(), term.value.clone())).collect();
    let _ = (read.matches(&tags), read.matches(&[]));
    if let Err(fault) = filter::search(&text) {
        refused(&fault);
    }
}

/// Tags, as a header and as a document: what is read can be written and is read the same again.
pub fn tag_set(data: &[u8]) {
    let limits = Limits::default();
    let text = String::from_utf8_lossy(data);
    for read in [tags::from_header(&text, &limits), tags::from_xml(data, &limits)] {
        match read {
            Ok(read) => {
                assert!(read.len() <= limits.tag_count_max);
                // The text of an element has no space around it.
                if read.iter().any(|(key, value)| key.trim() != key || value.trim() != value) {
                    continue;
                }
                let mut document = String::from("<Tags>");
                tags::write_set(&mut document, &read);
                document.push_str("</Tags>");
                assert_eq!(tags::from_xml(document.as_bytes(), &limits), Ok(read), "{document}");
            }
            Err(fault) => refused(&fault),
        }
    }
}

/// A method, a path, a query and headers, each in a line: the operation that they mean.
pub fn operation(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut lines = text.split('\n');
    let mut next = || lines.next().unwrap_or_default();
    let (method, target) = (next(), next());
    let method = Method::from_bytes(method.as_bytes()).unwrap_or(Method::GET);
    let Ok(uri) = target.parse::<Uri>() else { return };
    let mut headers = HeaderMap::new();
    for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
        let name = HeaderName::from_bytes(name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(value)) {
            headers.append(name, value);
        }
    }
    let Ok(query) = Query::parse(uri.query().unwrap_or_default()) else { return };
    let head = Head { method: &method, headers: &headers, query: &query };
    let limits = Limits::default();
    let parsed = Resource::parse(uri.path(), head)
        .and_then(|resource| Operation::parse(head, resource, &limits));
    match parsed {
        Ok(operation) => {
            assert!(!operation.row().name.is_empty());
            let _ = operation.has_content();
        }
        Err(fault) => refused(&fault),
    }
    let _ = crate::options::customer_key(head, "x-ms-").map_err(|fault| refused(&fault));
}

/// Names of versions, ETags and markers: what is read can be written and is read the same again.
pub fn moment(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Some(version) = etag::read(&text) {
        assert_eq!(etag::read(&etag::etag(version)), Some(version));
    }
    if let Some(version) = etag::moment(&text) {
        assert_eq!(etag::moment(&etag::moment_text(version)), Some(version));
    }
    if let Some(place) = list::read_marker(&text) {
        assert_eq!(list::read_marker(&list::write_marker(&place)), Some(place));
    }
}

/// The properties of a service: what is read can be written and is read the same again.
pub fn properties(data: &[u8]) {
    let Ok(read) = BlobProperties::default().changed_by(data) else { return };
    let written = read.write();
    assert_eq!(BlobProperties::default().changed_by(written.as_bytes()), Ok(read), "{written}");
}
