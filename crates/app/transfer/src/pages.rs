//! Lists of the storage services that come in XML, page by page: containers, blobs and queues.

use lazuli_console::{Failure, Result};
use lazuli_http::uri::percent_encode;
use lazuli_http::xml::{self, Element};

use crate::session::{Call, Session};

/// The most elements of a page that are read: a page has at most 5,000 names, with about thirty elements each.
const PAGE_ELEMENTS_MAX: usize = 160_000;

/// Asks for page after page. The visitor says where the next one begins.
pub(crate) fn each(
    session: &mut Session,
    path: &str,
    fixed: &str,
    mut visit: impl FnMut(&Element) -> Result<Option<String>>,
) -> Result<()> {
    let mut marker: Option<String> = None;
    loop {
        let from = marker.as_deref().map(|marker| format!("&marker={}", percent_encode(marker)));
        let query = format!("{fixed}{}", from.unwrap_or_default());
        let answer = session.expect(Call { query: &query, ..Call::new("GET", path) })?;
        let root = xml::parse_up_to(&answer.body, PAGE_ELEMENTS_MAX).map_err(|_| wrong())?;
        let next = visit(&root)?;
        match next {
            None => return Ok(()),
            Some(next) if marker.as_ref() == Some(&next) => return Err(wrong()),
            Some(next) => marker = Some(next),
        }
    }
}

/// The error of an answer that cannot be read.
pub(crate) fn wrong() -> Failure {
    Failure::failed("the answer of the service is not a list")
}

/// Where the page after this one begins.
pub(crate) fn marker(root: &Element) -> Option<String> {
    root.child_text("NextMarker").map(str::to_owned)
}
