//! Searching for blobs by their tags, in one container or in all of an account.

use std::sync::Arc;

use lazuli_http::Response;

use crate::error::{Result, refused};
use crate::listing::Page;
use crate::request::Find;
use crate::{Call, Front, response, token};

pub(crate) async fn run(
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
    let next = found.next.as_ref().map(|place| token::write(place));
    Ok(response::list(page.end(next.as_deref())))
}
