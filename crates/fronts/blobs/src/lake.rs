//! Calls of the Data Lake service, which clients send to ask whether an account has real folders. No account has: such a
//! call is refused as the service refuses it for accounts without them, so that a client goes on with blobs.

use lazuli_http::Method;

use crate::error::Code;
use crate::error::{Fault, Result, refused};
use crate::request::Head;
use crate::{Call, Front, OnContainer};

/// What can be done with paths.
const ACTIONS: [&str; 8] = [
    "append",
    "checkAccess",
    "flush",
    "getAccessControl",
    "getStatus",
    "setAccessControl",
    "setAccessControlRecursive",
    "setProperties",
];
/// What such calls are about.
const RESOURCES: [&str; 4] = ["account", "filesystem", "directory", "file"];

/// Whether a request is such a call: no operation on blobs has these parameters.
pub(crate) fn is_meant(head: Head<'_>) -> bool {
    let is_one_of = |name: &str, known: &[&str]| {
        head.parameter(name)
            .is_some_and(|text| known.iter().any(|it| it.eq_ignore_ascii_case(text)))
    };
    is_one_of("action", &ACTIONS)
        || is_one_of("resource", &RESOURCES)
        || head.text("x-ms-rename-source").is_some()
}

/// Whether the call makes what it is about, so that it need not be there.
pub(crate) fn creates(head: Head<'_>) -> bool {
    *head.method == Method::PUT && head.parameter("resource") == Some("filesystem")
}

/// A container that is not there is said to be missing before anything else, because clients ask that too.
pub(crate) async fn refuse(front: &Front, call: &Call, container: Option<&str>) -> Fault {
    let found: Result<()> = match container {
        Some(container) => {
            let on = OnContainer::new(front, call, container.to_owned());
            let found = front.blobs.container(&on.address, None).await;
            found.map(|_| ()).map_err(refused)
        }
        None => Ok(()),
    };
    found.err().unwrap_or_else(|| Fault::new(Code::HierarchicalNamespaceNotEnabled))
}
