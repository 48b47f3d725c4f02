//! Lists of blobs: by name in a container, by tags, and the markers with which the next page begins.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use lazuli_http::Response;
use lazuli_shapes::blob::{Include, ListOptions, Listed};

use crate::error::{Result, refused};
use crate::listing::Page;
use crate::request::{BlobList, Find};
use crate::{Call, Front, OnContainer, response};

pub(crate) async fn run(on: &OnContainer<'_>, list: BlobList) -> Result<Response> {
    let options = ListOptions {
        prefix: list.prefix.clone(),
        from: list.from.clone(),
        delimiter: list.delimiter.clone(),
        include: Include {
            snapshots: list.snapshots,
            versions: list.versions,
            deleted: list.deleted,
            uncommitted: list.uncommitted,
            versions_only: list.deleted_with_versions,
        },
        most: list.most,
    };
    let listed = on.front.blobs.list(&on.address, &options, list.marker.as_ref()).await;
    let listed = listed.map_err(refused)?;
    let mut page =
        Page::new(&on.call.target.base, Some(&on.address.container), on.call.received_ms);
    page.asked(&list.prefix, list.sent_marker.as_deref(), list.asked);
    if let Some(delimiter) = &list.delimiter {
        page.element("Delimiter", delimiter);
    }
    page.open("Blobs");
    for entry in listed.entries {
        match entry {
            Listed::Prefix(name) => page.prefix(&name),
            Listed::Blob(blob) => page.blob(&blob, &list),
        }
        page.cut();
    }
    page.close("Blobs");
    let next = listed.next.as_ref().map(|place| write_marker(place));
    Ok(response::list(page.end(next.as_deref())))
}

pub(crate) async fn find(
    front: &Front,
    call: &Call,
    container: Option<&str>,
    find: Find,
) -> Result<Response> {
    let search = find.search;
    // A search in a container may name it too; naming another one finds nothing.
    let named = search.container.as_deref();
    let is_elsewhere = container.is_some_and(|one| named.is_some_and(|other| one != other));
    let inside = container.or(named);
    let filter = Arc::new(search.filter);
    let asked = filter.clone();
    let test =
        Arc::new(move |_: &str, tags: &[(String, String)]| !is_elsewhere && asked.matches(tags));
    let account = &call.target.account;
    let found =
        front.blobs.find_by_tags(account, inside, test, find.most, find.marker.as_ref()).await;
    let found = found.map_err(refused)?;
    let mut page = Page::new(&call.target.base, None, call.received_ms);
    page.element("Where", &search.text);
    page.open("Blobs");
    for mut blob in found.entries {
        // Of all tags of a blob only those that the search names are answered.
        blob.tags.retain(|(key, _)| filter.names(key));
        page.found(&blob.container, &blob.name, &blob.tags);
    }
    page.close("Blobs");
    let next = found.next.as_ref().map(|place| write_marker(place));
    Ok(response::list(page.end(next.as_deref())))
}

/// Says which form the marker has, should there ever be another.
const FORM: &str = "1!";

pub(crate) fn write_marker(place: &[u8]) -> String {
    format!("{FORM}{}", URL_SAFE_NO_PAD.encode(place))
}

pub(crate) fn read_marker(marker: &str) -> Option<Bytes> {
    URL_SAFE_NO_PAD.decode(marker.strip_prefix(FORM)?).ok().map(Bytes::from)
}

#[cfg(test)]
mod token_tests {
    use super::*;

    #[test]
    fn any_place_survives() {
        for place in [b"".as_slice(), b"a", b"a'b +%&=", b"1!x", b"a\0b", b"\xff\xfe"] {
            assert_eq!(read_marker(&write_marker(place)).as_deref(), Some(place));
        }
        for bad in ["", "a", "1!?", "2!YQ", "1!Y"] {
            assert_eq!(read_marker(bad), None, "{bad}");
        }
    }
}
