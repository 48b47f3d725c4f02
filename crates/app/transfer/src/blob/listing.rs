//! Lists of the service, page by page: containers, and blobs with the properties that a comparison needs.

use lazuli_console::{Failure, Result};
use lazuli_http::date::parse_rfc1123;
use lazuli_http::uri::{percent_decode, percent_encode};
use lazuli_http::xml::Element;

use super::address::BlobAddress;
use crate::pages::{each, marker, wrong};
use crate::session::Session;

/// The most names on a page that are asked for.
const PAGE_NAMES_MAX: usize = 2_000;
/// The most blobs or files that one command works on, since it keeps their names in memory.
pub(super) const ENTRIES_MAX: usize = 5_000_000;

/// A blob as a list has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub name: String,
    pub size: u64,
    /// As the service has it; blobs that were written in parts need not have one.
    pub md5: Option<String>,
    pub etag: String,
    /// Seconds since the Unix epoch.
    pub modified: i64,
    pub kind: String,
}

/// Blobs, and with a delimiter the prefixes that stand for many.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) blobs: Vec<Entry>,
    pub(super) prefixes: Vec<String>,
    next: Option<String>,
}

/// Visits all pages of the blobs whose names begin as the address says.
pub(super) fn pages(
    session: &mut Session,
    begin: &BlobAddress,
    recursive: bool,
    mut visit: impl FnMut(Page) -> Result<()>,
) -> Result<()> {
    let path = format!("/{}", begin.container);
    let mut fixed = format!("restype=container&comp=list&maxresults={PAGE_NAMES_MAX}");
    if !begin.name.is_empty() {
        fixed.push_str(&format!("&prefix={}", percent_encode(&begin.name)));
    }
    if !recursive {
        fixed.push_str("&delimiter=%2F");
    }
    each(session, &path, &fixed, |root| {
        let mut page = read_page(root).ok_or_else(wrong)?;
        let next = page.next.take();
        visit(page)?;
        Ok(next)
    })
}

/// All blobs below an address, which is a whole container or ends with a slash.
pub(super) fn below(session: &mut Session, address: &BlobAddress) -> Result<Vec<Entry>> {
    let mut all = Vec::new();
    pages(session, address, true, |page| {
        all.extend(page.blobs);
        check_count(all.len())
    })?;
    Ok(all)
}

pub(super) fn check_count(count: usize) -> Result<()> {
    if count <= ENTRIES_MAX {
        return Ok(());
    }
    let message = format!("there are over {ENTRIES_MAX} names");
    Err(Failure::failed(message).hint("take the folders below it one by one"))
}

/// The names of all containers.
pub(super) fn containers(session: &mut Session) -> Result<Vec<String>> {
    let mut names = Vec::new();
    each(session, "/", &format!("comp=list&maxresults={PAGE_NAMES_MAX}"), |root| {
        let list = root.child("Containers").map_or(&[][..], |list| &list.children);
        names.extend(list.iter().filter_map(|one| one.child_text("Name").map(str::to_owned)));
        check_count(names.len())?;
        Ok(marker(root))
    })?;
    Ok(names)
}

fn read_page(root: &Element) -> Option<Page> {
    let mut page = Page { next: marker(root), ..Page::default() };
    for element in &root.child("Blobs")?.children {
        match element.name.as_str() {
            "Blob" => page.blobs.push(read_blob(element)?),
            "BlobPrefix" => page.prefixes.push(name(element)?),
            _ => {}
        }
    }
    Some(page)
}

fn read_blob(element: &Element) -> Option<Entry> {
    let properties = element.child("Properties")?;
    let text = |name: &str| properties.child_text(name);
    let modified = text("Last-Modified").and_then(parse_rfc1123)?;
    Some(Entry {
        name: name(element)?,
        size: text("Content-Length")?.parse().ok()?,
        md5: text("Content-MD5").map(str::to_owned),
        etag: quoted(text("Etag")?),
        modified,
        kind: text("BlobType").unwrap_or("BlockBlob").to_owned(),
    })
}

/// Names that XML cannot hold are escaped, and marked so.
fn name(element: &Element) -> Option<String> {
    let name = element.child("Name")?;
    match name.encoded {
        true => percent_decode(&name.text).ok().map(|name| name.into_owned()),
        false => Some(name.text.clone()),
    }
}

/// As conditions have it, though lists leave the quotation marks out.
fn quoted(etag: &str) -> String {
    if etag.starts_with('"') { etag.to_owned() } else { format!("\"{etag}\"") }
}

#[cfg(test)]
mod tests {
    use lazuli_http::xml;

    use super::*;

    const PAGE: &str = "<?xml version=\"1.0\"?><EnumerationResults><Blobs>\
        <Blob><Name>a &amp; b</Name><Properties><Last-Modified>Thu, 01 Jan 1970 00:00:07 GMT</Last-Modified>\
        <Etag>0x1</Etag><Content-Length>12</Content-Length><Content-MD5>M==</Content-MD5>\
        <BlobType>PageBlob</BlobType></Properties></Blob>\
        <Blob><Name Encoded=\"true\">x%01%2F</Name><Properties>\
        <Last-Modified>Thu, 01 Jan 1970 00:00:08 GMT</Last-Modified><Etag>\"0x2\"</Etag>\
        <Content-Length>0</Content-Length><Content-MD5/></Properties></Blob>\
        <BlobPrefix><Name>p/</Name></BlobPrefix></Blobs><NextMarker>m 1</NextMarker></EnumerationResults>";

    #[test]
    fn pages_have_blobs_prefixes_and_a_marker() {
        let page = read_page(&xml::parse(PAGE.as_bytes()).unwrap()).unwrap();
        let entry = |name: &str, size, md5: Option<&str>, etag: &str, modified, kind: &str| Entry {
            name: name.to_owned(),
            size,
            md5: md5.map(str::to_owned),
            etag: etag.to_owned(),
            modified,
            kind: kind.to_owned(),
        };
        let expected = [
            entry("a & b", 12, Some("M=="), "\"0x1\"", 7, "PageBlob"),
            entry("x\u{1}/", 0, None, "\"0x2\"", 8, "BlockBlob"),
        ];
        assert_eq!(page.blobs, expected);
        assert_eq!((page.prefixes, page.next), (vec!["p/".to_owned()], Some("m 1".to_owned())));
        for bad in ["<A/>", "<A><Blobs><Blob/></Blobs></A>"] {
            assert_eq!(read_page(&xml::parse(bad.as_bytes()).unwrap()), None);
        }
    }
}
