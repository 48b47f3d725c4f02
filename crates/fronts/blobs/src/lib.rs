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
    serve_api(Storage(Front { blobs, base: Base::new(accounts, tokens), limits }))
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

fn container_of(call: &Call, container: &str) -> ContainerAddress {
    ContainerAddress { account: call.account().to_owned(), container: container.to_owned() }
}

fn blob_of(call: &Call, path: &BlobPath) -> BlobAddress {
    BlobAddress {
        account: call.account().to_owned(),
        container: path.container.clone(),
        name: path.name.clone(),
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
                self.dispatch_container(call, &container, operation, &mut request.body).await
            }
            Operation::Blob(path, operation) => {
                self.dispatch_blob(call, &path, *operation, &mut request.body).await
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
            ServiceOperation::Stats => azure_service::stats::<Self>(call),
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
        container: &str,
        operation: ContainerOperation,
        body: &mut Body,
    ) -> Result<Response> {
        match operation {
            ContainerOperation::Create(new) => containers::create(self, call, container, new).await,
            ContainerOperation::Properties { conditions } => {
                containers::properties(self, call, container, &conditions).await
            }
            ContainerOperation::Metadata { conditions } => {
                containers::metadata(self, call, container, &conditions).await
            }
            ContainerOperation::SetMetadata { metadata, conditions } => {
                containers::set_metadata(self, call, container, metadata, &conditions).await
            }
            ContainerOperation::Acl { conditions } => {
                containers::acl(self, call, container, &conditions).await
            }
            ContainerOperation::SetAcl(set) => {
                containers::set_acl(self, call, container, set, body).await
            }
            ContainerOperation::Delete { conditions } => {
                containers::delete(self, call, container, &conditions).await
            }
            ContainerOperation::Restore { name, version } => {
                containers::restore(self, call, container, &name, version).await
            }
            ContainerOperation::Lease { action, conditions } => {
                leases::container(self, call, container, action, &conditions).await
            }
            ContainerOperation::List(list) => list::run(self, call, container, list).await,
            ContainerOperation::Find(find) => list::find(self, call, Some(container), find).await,
            ContainerOperation::Batch { boundary } => {
                Box::pin(batch::run(self, call, Some(container), &boundary, body)).await
            }
            ContainerOperation::Account => Ok(service::account()),
        }
    }

    async fn dispatch_blob(
        &self,
        call: &Call,
        path: &BlobPath,
        operation: BlobOperation,
        body: &mut Body,
    ) -> Result<Response> {
        use BlobOperation as Op;
        match operation {
            Op::Put(put) => put::put(self, call, path, put, body).await,
            Op::PutFromUrl(put) => Box::pin(put::put_from_url(self, call, path, put)).await,
            Op::Get(get) => read::get(self, call, path, get).await,
            Op::Properties { which, conditions } => {
                read::properties(self, call, path, which, &conditions).await
            }
            Op::SetProperties(set) => properties::set(self, call, path, set).await,
            Op::Metadata { which, conditions } => {
                read::metadata(self, call, path, which, &conditions).await
            }
            Op::SetMetadata { metadata, conditions } => {
                properties::set_metadata(self, call, path, metadata, &conditions).await
            }
            Op::Tags { which, conditions } => {
                properties::tags(self, call, path, which, &conditions).await
            }
            Op::SetTags { which, checksums, conditions } => {
                properties::set_tags(self, call, path, which, checksums, &conditions, body).await
            }
            Op::Lease { action, conditions } => {
                leases::blob(self, call, path, action, &conditions).await
            }
            Op::Delete(delete) => properties::delete(self, call, path, delete).await,
            Op::Undelete => properties::undelete(self, call, path).await,
            Op::SetTier(set) => properties::set_tier(self, call, path, set).await,
            Op::SetExpiry { expiry, conditions } => {
                properties::set_expiry(self, call, path, expiry, &conditions).await
            }
            Op::SetImmutability { which, policy, conditions } => {
                properties::set_immutability(self, call, path, which, policy, &conditions).await
            }
            Op::DeleteImmutability { which } => {
                properties::delete_immutability(self, call, path, which).await
            }
            Op::SetLegalHold { which, hold } => {
                properties::set_hold(self, call, path, which, hold).await
            }
            Op::Snapshot { metadata, conditions } => {
                properties::snapshot(self, call, path, metadata, &conditions).await
            }
            Op::PutBlock(put) => blocks::put(self, call, path, put, body).await,
            Op::PutBlockList(put) => blocks::commit(self, call, path, put, body).await,
            Op::BlockList { which, kind, conditions } => {
                blocks::list(self, call, path, which, kind, &conditions).await
            }
            Op::WritePages(write) => pages::write(self, call, path, write, body).await,
            Op::PageRanges(get) => pages::ranges(self, call, path, get).await,
            Op::Append(append) => put::append(self, call, path, append, body).await,
            Op::Seal { position, conditions } => {
                put::seal(self, call, path, position, &conditions).await
            }
            Op::Account => Ok(service::account()),
            Op::Copy(copy) => Box::pin(copy::start(self, call, path, copy)).await,
            Op::AbortCopy { id, conditions } => {
                copy::abort(self, call, path, &id, &conditions).await
            }
            Op::Query | Op::IncrementalCopy => Err(Fault::new(Common::NotImplemented)),
        }
    }
}
