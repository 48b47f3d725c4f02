//! Who may do what: the owner of the account everything, a shared access signature what it says, anybody what is public.

use lazuli_azure::Operation as _;
use lazuli_azure::acl::{self, StoredPolicy};
use lazuli_azure::auth::access::{Access, Signature};
use lazuli_azure::auth::sas;
use lazuli_azure::auth::service_sas::{Resource as Signed, Scope, ServiceGrant};
use lazuli_azure::front::policy_of;
use lazuli_http::Request;
use lazuli_http::uri::Query;
use lazuli_shapes::blob::{ContainerAddress, PublicAccess};

use crate::Front;
use crate::address::Resource;
use crate::error::{Common, Fault, Result, refused};
use crate::request::{BlobOperation, ContainerOperation, Operation};

/// What policies of containers can permit.
pub(crate) const PERMISSIONS: &str = "racwdxyltmeopif";

/// From this version on an anonymous client is told how to sign; before it, that there is nothing.
const VERSION_WITH_CHALLENGE: &str = "2019-12-12";

/// What an operation needs of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Anybody may, or each part of it needs what it needs by itself.
    Nothing,
    /// A key or a token: no signature will do.
    Key,
    /// A token: not even a key will do.
    Bearer,
    /// One of the types of resource as signatures of accounts call them, and one of the permissions.
    Any(&'static str, &'static str),
}

impl Need {
    /// For operations that tell nothing of what is stored: any permission will do.
    pub(crate) const ACCOUNT: Self = Self::Any("sco", "rwdlacupxtfi");
}

/// Verifies a signature for a container or a blob.
pub(crate) async fn grant(
    front: &Front,
    signature: &Signature<'_>,
    resource: &Resource,
) -> Result<ServiceGrant> {
    let query = signature.query();
    let (signed, container) = match resource {
        Resource::Service => return Err(Fault::new(Common::AuthorizationFailure)),
        Resource::Container(container) => (listed(container, query), container),
        Resource::Blob(container, blob) => {
            let at = query.get("snapshot").or_else(|| query.get("versionid"));
            (Signed::Blob { container, blob, at }, container)
        }
    };
    let policy = policy_of(front, signature, container).await?;
    Ok(signature.check(signed, policy.as_ref())?)
}

/// What a request on a container is about. A signature for a folder is good for lists of what is in that folder, which the
/// prefix must say: what begins with the name of the folder alone can be another one.
fn listed<'r>(container: &'r str, query: &'r Query<'_>) -> Signed<'r> {
    match query.get("prefix").and_then(|prefix| prefix.rsplit_once('/')) {
        Some((blob, _)) if query.get("sr") == Some("d") => {
            Signed::Blob { container, blob, at: None }
        }
        _ => Signed::Container(container),
    }
}

/// The policies that a container keeps.
pub(crate) fn policies(stored: &[u8]) -> Result<Vec<StoredPolicy>> {
    acl::read(stored, PERMISSIONS)
        .map_err(|_| Fault::new(Common::InternalError).because("stored policies can't be read"))
}

/// Refuses an operation that is not granted.
pub(crate) async fn check(
    front: &Front,
    access: &Access,
    operation: &Operation,
    account: &str,
    version: &str,
) -> Result<()> {
    let (types, letters) = match (operation.row().need, access) {
        (Need::Nothing, _) => return Ok(()),
        (Need::Bearer, Access::User(_)) => return Ok(()),
        (Need::Bearer, _) => return Err(Fault::new(Common::AuthenticationFailed)),
        (_, Access::Owner | Access::User(_)) => return Ok(()),
        (_, Access::Anonymous) => return anybody(front, operation, account, version).await,
        (Need::Key, _) => return Err(Fault::new(Common::AuthorizationFailure)),
        (Need::Any(types, letters), _) => (types, letters),
    };
    let granted = match access {
        Access::Account(grant) => {
            if !grant.resource_types.chars().any(|kind| types.contains(kind)) {
                return Err(Fault::new(Common::AuthorizationResourceTypeMismatch));
            }
            &grant.permissions
        }
        Access::Resource(grant) => {
            if !covers(grant.scope, operation) {
                return Err(Fault::new(Common::AuthorizationFailure));
            }
            &grant.permissions
        }
        Access::Owner | Access::User(_) | Access::Anonymous => return Ok(()),
    };
    let has = |letter: char| granted.contains(letter);
    let is_granted = letters.chars().any(has) && (!sets_tags(operation) || has('t'));
    if is_granted { Ok(()) } else { Err(Fault::new(Common::AuthorizationPermissionMismatch)) }
}

/// Whether a signature for a resource is for operations of this kind: those on blobs, and on a container only what looks
/// into it.
fn covers(scope: Scope, operation: &Operation) -> bool {
    match operation {
        Operation::Blob(..) => scope != Scope::Queue,
        Operation::Container(_, ContainerOperation::List(_)) => {
            matches!(scope, Scope::Container | Scope::Directory)
        }
        Operation::Container(_, ContainerOperation::Find(_)) => scope == Scope::Container,
        Operation::Container(_, ContainerOperation::Account) | Operation::DataLake(_) => true,
        Operation::Container(..)
        | Operation::Service(_)
        | Operation::Preflight
        | Operation::Website(_) => false,
    }
}

/// Tags have a permission of their own, also where they come with a blob.
fn sets_tags(operation: &Operation) -> bool {
    let Operation::Blob(_, operation) = operation else { return false };
    let new = match &**operation {
        BlobOperation::Put(put) => &put.blob,
        BlobOperation::PutFromUrl(put) => &put.blob,
        BlobOperation::Copy(copy) => &copy.blob,
        BlobOperation::PutBlockList(put) => &put.blob,
        _ => return false,
    };
    new.tags.is_some()
}

/// Whether an existing blob may be replaced: a signature that grants only creation may not.
pub(crate) fn may_overwrite(access: &Access) -> bool {
    match access {
        Access::Owner | Access::User(_) => true,
        Access::Account(grant) => grant.permissions.contains('w'),
        Access::Resource(grant) => grant.permissions.contains('w'),
        Access::Anonymous => false,
    }
}

/// What may be done without any signature: reading what is public.
async fn anybody(front: &Front, operation: &Operation, account: &str, version: &str) -> Result<()> {
    let (container, least) = match operation {
        Operation::Blob(path, operation) if is_read(operation) => {
            (&path.container, PublicAccess::Blob)
        }
        Operation::Container(
            container,
            ContainerOperation::List(_)
            | ContainerOperation::Properties { .. }
            | ContainerOperation::Metadata { .. },
        ) => (container, PublicAccess::Container),
        _ => return Err(stranger(version)),
    };
    let address = ContainerAddress { account: account.into(), container: container.clone() };
    match front.blobs.container(&address, None).await.map_err(refused) {
        Ok(record) => match (record.public_access, least) {
            (PublicAccess::Container, _) | (PublicAccess::Blob, PublicAccess::Blob) => Ok(()),
            _ => Err(stranger(version)),
        },
        Err(fault) if fault.is_ours() => Err(fault),
        Err(_) => Err(stranger(version)),
    }
}

fn is_read(operation: &BlobOperation) -> bool {
    matches!(
        operation,
        BlobOperation::Get(_)
            | BlobOperation::Properties { .. }
            | BlobOperation::Metadata { .. }
            | BlobOperation::BlockList { .. }
            | BlobOperation::PageRanges(_)
    )
}

fn stranger(version: &str) -> Fault {
    match version >= VERSION_WITH_CHALLENGE {
        true => Fault::new(Common::NoAuthenticationInformation),
        false => Fault::new(Common::ResourceNotFound),
    }
}

/// Whether a request has a signature of its own.
pub(crate) fn is_signed(request: &Request, query: &Query<'_>) -> bool {
    request.headers.contains_key("authorization") || sas::is_present(query)
}
