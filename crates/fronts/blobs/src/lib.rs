//! The Azure Blob storage front: the service's protocol on the blob shape.
//!
//! One request: `Resource::parse` and `Operation::parse` say what is addressed and what is asked for, the one `match` below
//! calls the operation, the operation makes one call of the shape, `response` or `error` writes the response. The steps
//! around these are those of every storage front (`lazuli_azure::front`). Contents stream both ways: no operation holds
//! more than a piece of them. `operations.toml` lists every operation of the service and whether it is done.

mod access;
mod address;
mod batch;
mod blocks;
mod containers;
mod copy;
mod error;
mod etag;
mod filter;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod lake;
mod leases;
pub mod limits;
mod list;
mod listing;
mod options;
mod pages;
mod properties;
mod put;
mod range;
mod read;
mod request;
mod response;
mod service;
mod source;
mod tags;
mod website;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use lazuli_azure::account::Target;
use lazuli_azure::acl::StoredPolicy;
use lazuli_azure::auth::Accounts;
use lazuli_azure::auth::access::{Service, Signature};
use lazuli_azure::auth::bearer::Tokens;
use lazuli_azure::auth::service_sas::ServiceGrant;
use lazuli_azure::front::{Base, Storage, StorageService};
use lazuli_azure::service as azure_service;
use lazuli_http::uri::Query;
use lazuli_http::{Body, Handler, Request, Response, serve_api};
use lazuli_shapes::blob::{BlobAddress, Blobs, ContainerAddress, CustomerKey};

use address::Resource;
use error::Code;
use error::{Common, Fault, Result, refused};
pub use limits::Limits;
use request::{BlobOperation, BlobPath, ContainerOperation, Head, Operation, ServiceOperation};
use service::BlobProperties;

/// The handler of the Blob service.
pub fn handler(blobs: Blobs, accounts: Arc<Accounts>, tokens: Tokens, limits: Limits) -> Handler {
    let front =
        |blobs| Front { blobs, base: Base::new(accounts.clone(), tokens), limits: limits.clone() };
    serve_api(Storage::new(front(blobs.clone()), front(blobs.allowing_stale())))
}

struct Front {
    blobs: Blobs,
    base: Base<BlobProperties>,
    limits: Limits,
}

/// What operations need to know of the request beside their own arguments.
type Call = lazuli_azure::Call<ServiceGrant, Own>;

#[derive(Clone, Debug, Default)]
struct Own {
    /// The key that the client wants contents to be encrypted with.
    key: Option<CustomerKey>,
}

/// A call on one blob or container.
struct On<'a, Address> {
    front: &'a Front,
    call: &'a Call,
    address: Address,
}

type OnBlob<'a> = On<'a, BlobAddress>;
type OnContainer<'a> = On<'a, ContainerAddress>;

impl<'a> OnBlob<'a> {
    fn new(front: &'a Front, call: &'a Call, path: BlobPath) -> Self {
        let BlobPath { container, name } = path;
        Self {
            front,
            call,
            address: BlobAddress { account: call.account().into(), container, name },
        }
    }
}

impl<'a> OnContainer<'a> {
    fn new(front: &'a Front, call: &'a Call, container: String) -> Self {
        Self {
            front,
            call,
            address: ContainerAddress { account: call.account().into(), container },
        }
    }
}

impl StorageService for Front {
    const SERVICE: Service = Service::BLOB;
    const DISCARDS_BODY: bool = true;

    type Resource = Resource;
    type Operation = Operation;
    type Code = Code;
    type Grant = ServiceGrant;
    type Own = Own;
    type Properties = BlobProperties;

    fn staleness(&self) -> Duration {
        self.blobs.engine().staleness()
    }

    fn base(&self) -> &Base<BlobProperties> {
        &self.base
    }

    fn resource(&self, path: &str, request: &Request, query: &Query<'_>) -> Result<Resource> {
        Resource::parse(path, Head::of(request, query))
    }

    fn open_operation(
        &self,
        request: &Request,
        target: &Target,
        path: &str,
    ) -> Result<Option<Operation>> {
        if !website::is_meant(request, target) {
            return Ok(None);
        }
        website::check(&request.method)?;
        Ok(Some(Operation::Website(path.to_owned())))
    }

    async fn grant(&self, signature: &Signature<'_>, resource: &Resource) -> Result<ServiceGrant> {
        access::grant(self, signature, resource).await
    }

    async fn policies(&self, account: &str, container: &str) -> Result<Vec<StoredPolicy>> {
        let address = ContainerAddress { account: account.into(), container: container.into() };
        let record = self.blobs.container(&address, None).await.map_err(refused)?;
        access::policies(&record.policies)
    }

    fn operation(
        &self,
        request: &Request,
        resource: Resource,
        query: &Query<'_>,
    ) -> Result<Operation> {
        Operation::parse(Head::of(request, query), resource, &self.limits)
    }

    async fn check(&self, call: &Call, operation: &Operation) -> Result<()> {
        access::check(self, &call.access, operation, call.account(), &call.version).await
    }

    fn own(&self, operation: &Operation, request: &Request, query: &Query<'_>) -> Result<Own> {
        if operation.has_content() && request.body.length().is_none() {
            return Err(Fault::new(Common::MissingContentLengthHeader));
        }
        let key = match operation {
            Operation::Website(_) => None,
            _ => options::customer_key(Head::of(request, query), "x-ms-")?,
        };
        Ok(Own { key })
    }

    async fn dispatch(
        &self,
        call: &Call,
        operation: Operation,
        request: &mut Request,
    ) -> Result<Response> {
        match operation {
            Operation::Preflight => azure_service::preflight(self, call, &request.headers).await,
            Operation::Website(path) => website::get(self, call, &path, &request.headers).await,
            Operation::DataLake(container) => {
                Err(lake::refuse(self, call, container.as_deref()).await)
            }
            Operation::Service(operation) => {
                self.dispatch_service(call, operation, &mut request.body).await
            }
            Operation::Container(container, operation) => {
                self.dispatch_container(call, container, operation, &mut request.body).await
            }
            Operation::Blob(path, operation) => {
                self.dispatch_blob(call, path, *operation, &mut request.body).await
            }
        }
    }

    async fn stored(&self, name: String) -> Result<Option<Bytes>> {
        self.blobs.engine().service(&name).await.map_err(refused)
    }

    async fn store(&self, name: String, document: Bytes) -> Result<()> {
        self.blobs.engine().set_service(&name, document).await.map_err(refused)
    }
}

impl Front {
    async fn dispatch_service(
        &self,
        call: &Call,
        operation: ServiceOperation,
        body: &mut Body,
    ) -> Result<Response> {
        match operation {
            ServiceOperation::GetProperties => azure_service::get_properties(self, call).await,
            ServiceOperation::SetProperties => {
                let document = self.document(body).await?;
                azure_service::set_properties(self, call, &document).await
            }
            ServiceOperation::Stats => azure_service::stats(self, call),
            ServiceOperation::Account => Ok(service::account()),
            ServiceOperation::DelegationKey => {
                let document = self.document(body).await?;
                azure_service::user_delegation_key(self, call, &document)
            }
            ServiceOperation::ListContainers(list) => containers::list(self, call, list).await,
            ServiceOperation::Find(find) => list::find(self, call, None, find).await,
            ServiceOperation::Batch { boundary } => {
                Box::pin(batch::run(self, call, None, &boundary, body)).await
            }
        }
    }

    async fn dispatch_container(
        &self,
        call: &Call,
        container: String,
        operation: ContainerOperation,
        body: &mut Body,
    ) -> Result<Response> {
        let on = &OnContainer::new(self, call, container);
        match operation {
            ContainerOperation::Create(new) => containers::create(on, new).await,
            ContainerOperation::Properties { conditions } => {
                containers::properties(on, &conditions).await
            }
            ContainerOperation::Metadata { conditions } => {
                containers::metadata(on, &conditions).await
            }
            ContainerOperation::SetMetadata { metadata, conditions } => {
                containers::set_metadata(on, metadata, &conditions).await
            }
            ContainerOperation::Acl { conditions } => containers::acl(on, &conditions).await,
            ContainerOperation::SetAcl(set) => containers::set_acl(on, set, body).await,
            ContainerOperation::Delete { conditions } => containers::delete(on, &conditions).await,
            ContainerOperation::Restore { name, version } => {
                containers::restore(on, &name, version).await
            }
            ContainerOperation::Lease { action, conditions } => {
                leases::container(on, action, &conditions).await
            }
            ContainerOperation::List(list) => list::run(on, list).await,
            ContainerOperation::Find(find) => {
                list::find(self, call, Some(&on.address.container), find).await
            }
            ContainerOperation::Batch { boundary } => {
                Box::pin(batch::run(self, call, Some(&on.address.container), &boundary, body)).await
            }
            ContainerOperation::Account => Ok(service::account()),
        }
    }

    async fn dispatch_blob(
        &self,
        call: &Call,
        path: BlobPath,
        operation: BlobOperation,
        body: &mut Body,
    ) -> Result<Response> {
        let on = &OnBlob::new(self, call, path);
        use BlobOperation as Op;
        match operation {
            Op::Put(put) => put::put(on, put, body).await,
            Op::PutFromUrl(put) => Box::pin(put::put_from_url(on, put)).await,
            Op::Get(get) => read::get(on, get).await,
            Op::Properties { which, conditions } => read::properties(on, which, &conditions).await,
            Op::SetProperties(set) => properties::set(on, set).await,
            Op::Metadata { which, conditions } => read::metadata(on, which, &conditions).await,
            Op::SetMetadata { metadata, conditions } => {
                properties::set_metadata(on, metadata, &conditions).await
            }
            Op::Tags { which, conditions } => properties::tags(on, which, &conditions).await,
            Op::SetTags { which, checksums, conditions } => {
                properties::set_tags(on, which, checksums, &conditions, body).await
            }
            Op::Lease { action, conditions } => leases::blob(on, action, &conditions).await,
            Op::Delete(delete) => properties::delete(on, delete).await,
            Op::Undelete => properties::undelete(on).await,
            Op::SetTier(set) => properties::set_tier(on, set).await,
            Op::SetExpiry { expiry, conditions } => {
                properties::set_expiry(on, expiry, &conditions).await
            }
            Op::SetImmutability { which, policy, conditions } => {
                properties::set_immutability(on, which, policy, &conditions).await
            }
            Op::DeleteImmutability { which } => properties::delete_immutability(on, which).await,
            Op::SetLegalHold { which, hold } => properties::set_hold(on, which, hold).await,
            Op::Snapshot { metadata, conditions } => {
                properties::snapshot(on, metadata, &conditions).await
            }
            Op::PutBlock(put) => blocks::put(on, put, body).await,
            Op::PutBlockList(put) => blocks::commit(on, put, body).await,
            Op::BlockList { which, kind, conditions } => {
                blocks::list(on, which, kind, &conditions).await
            }
            Op::WritePages(write) => pages::write(on, write, body).await,
            Op::PageRanges(get) => pages::ranges(on, get).await,
            Op::Append(append) => put::append(on, append, body).await,
            Op::Seal { position, conditions } => put::seal(on, position, &conditions).await,
            Op::Account => Ok(service::account()),
            Op::Copy(copy) => Box::pin(copy::start(on, copy)).await,
            Op::AbortCopy { id, conditions } => copy::abort(on, &id, &conditions).await,
            Op::Query | Op::IncrementalCopy => Err(Fault::new(Common::NotImplemented)),
        }
    }
}
