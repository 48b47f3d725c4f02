//! Static websites: what is in `$web`, served to browsers at a host name of its own.
//!
//! In the original an account's website has another host than its blobs. Here it is the account's host with `web` behind
//! the account: `account.web.localhost`.

use lazuli_azure::account::Target;
use lazuli_http::uri::percent_decode;
use lazuli_http::{HeaderMap, Method, Request, Response, StatusCode};
use lazuli_shapes::blob::{Conditions, Which};

use crate::address::WEB;
use crate::error::Code;
use crate::error::{Common, Fault, Result};
use crate::range::ByteRange;
use crate::request::{BlobPath, Get};
use crate::service::Website;
use crate::{Call, Front, OnBlob, read};

/// The label behind the account in the host of a website.
const LABEL: &str = "web";

/// Whether a request is for the website and not for the service.
pub(crate) fn is_meant(request: &Request, target: &Target) -> bool {
    let host = request.header("host").unwrap_or_default();
    let mut labels = host.split(['.', ':']);
    let account = labels.next().is_some_and(|label| label == &*target.account || target.secondary);
    account && labels.next() == Some(LABEL)
}

/// A website is only read.
pub(crate) fn check(method: &Method) -> Result<()> {
    match *method {
        Method::GET | Method::HEAD => Ok(()),
        _ => Err(Fault::new(Common::UnsupportedHttpVerb)),
    }
}

pub(crate) async fn get(
    front: &Front,
    call: &Call,
    path: &str,
    headers: &HeaderMap,
) -> Result<Response> {
    let properties = front.properties(&call.target.account).await?;
    let site = &properties.website;
    if !site.enabled {
        return Err(Fault::new(Common::ResourceNotFound));
    }
    let path = percent_decode(path)?;
    let name = document(site, path.trim_start_matches('/'));
    let range = headers.get("range").and_then(|value| value.to_str().ok());
    let found = page(front, call, &name, range.and_then(ByteRange::parse)).await;
    match (found, &site.missing) {
        (Err(fault), Some(missing)) if is_missing(&fault) => {
            let answer = page(front, call, missing.trim_start_matches('/'), None).await;
            let mut answer = answer.map_err(|_| fault)?;
            answer.status = StatusCode::NOT_FOUND;
            Ok(answer)
        }
        (found, _) => found,
    }
}

/// The blob that a path stands for.
fn document(site: &Website, path: &str) -> String {
    if path.is_empty() {
        let root = site.default_index.as_ref().or(site.index.as_ref());
        return root.cloned().unwrap_or_default().trim_start_matches('/').to_owned();
    }
    match (&site.index, path.ends_with('/')) {
        (Some(index), true) => format!("{path}{index}"),
        _ => path.to_owned(),
    }
}

fn is_missing(fault: &Fault) -> bool {
    matches!(fault.code, Code::BlobNotFound | Code::ContainerNotFound)
}

async fn page(
    front: &Front,
    call: &Call,
    name: &str,
    range: Option<ByteRange>,
) -> Result<Response> {
    if name.is_empty() {
        return Err(Fault::new(Code::BlobNotFound));
    }
    let path = BlobPath { container: WEB.to_owned(), name: name.to_owned() };
    let conditions = Conditions::default();
    let get = Get { which: Which::Current, range, digest: None, conditions };
    read::get(&OnBlob::new(front, call, path), get).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_its_index() {
        let site =
            Website { enabled: true, index: Some("index.html".into()), ..Website::default() };
        assert_eq!(document(&site, ""), "index.html");
        assert_eq!(document(&site, "a/"), "a/index.html");
        assert_eq!(document(&site, "a/b.css"), "a/b.css");
        let site = Website { default_index: Some("/home.html".into()), ..site };
        assert_eq!(document(&site, ""), "home.html");
        assert_eq!(document(&Website::default(), "a/"), "a/");
    }
}
