//! Lists of the blobs of a container, flat or by folders.

use lazuli_http::Response;
use lazuli_shapes::blob::{Include, ListOptions, Listed};

use crate::error::{Result, refused};
use crate::listing::Page;
use crate::request::BlobList;
use crate::{Call, Front, response, token};

pub(crate) async fn run(
    front: &Front,
    call: &Call,
    container: &str,
    list: BlobList,
) -> Result<Response> {
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
    let address = call.container(container);
    let listed = front.blobs.list(&address, &options, list.marker.as_ref()).await;
    let listed = listed.map_err(refused)?;
    let mut page = Page::new(&call.target.base, Some(container), call.received_ms);
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
    let next = listed.next.as_ref().map(|place| token::write(place));
    Ok(response::list(page.end(next.as_deref())))
}
