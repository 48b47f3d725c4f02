//! The Azure Tables front: the service's protocol on the record shape.
//!
//! One request: `Resource::parse` and `Operation::parse` say what is addressed and what is asked for, the one `match` below
//! calls the operation, the operation makes one call of the shape, `response` or `error` writes the response. The steps
//! around these are those of every storage front (`lazuli_azure::front`). `operations.toml` lists every operation of the
//! service and whether it is done.

mod access;
mod address;
mod entities;
mod entity;
mod error;
mod etag;
mod filter;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod limits;
mod query;
mod request;
mod response;
mod tables;
mod token;
mod transaction;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use lazuli_azure::acl::StoredPolicy;
use lazuli_azure::auth::Accounts;
use lazuli_azure::auth::access::{Service, Signature};
use lazuli_azure::auth::bearer::Tokens;
use lazuli_azure::auth::table_sas::TableGrant;
use lazuli_azure::front::{self, Base, Storage, StorageService};
use lazuli_azure::odata::ErrorFormat;
use lazuli_azure::properties::Properties;
use lazuli_azure::service;
use lazuli_http::uri::Query;
use lazuli_http::{Handler, HeaderValue, Request, Response, serve_api};
use lazuli_shapes::record::Records;

use address::Resource;
use error::{Code, Result, Subject, from_core};
pub use limits::Limits;
pub use request::MAP_HEADER;
use request::{Head, Operation, Wishes};

/// The container that a table of this name is; none if no table can have the name.
pub fn container_of(account: &str, table: &str) -> Option<String> {
    address::check_table(table).is_ok().then(|| tables::container(account, table))
}

/// The handler of the Table service.
pub fn handler(
    records: Records,
    accounts: Arc<Accounts>,
    tokens: Tokens,
    limits: Limits,
) -> Handler {
    let front = |records| Front {
        records,
        base: Base::new(accounts.clone(), tokens),
        limits: limits.clone(),
    };
    serve_api(Storage::new(front(records.clone()), front(records.allowing_stale())))
}

struct Front {
    records: Records,
    base: Base<Properties>,
    limits: Limits,
}

/// What operations need to know of the request beside their own arguments.
type Call = lazuli_azure::Call<TableGrant, Own>;

#[derive(Clone, Debug, Default)]
struct Own {
    wishes: Wishes,
    /// The number of a request inside a batch; its response has the same.
    content_id: Option<HeaderValue>,
}

impl StorageService for Front {
    const SERVICE: Service = Service::TABLE;

    type Resource = Resource;
    type Operation = Operation;
    type Code = Code;
    type Grant = TableGrant;
    type Own = Own;
    type Properties = Properties;

    fn staleness(&self) -> Duration {
        self.records.staleness()
    }

    fn base(&self) -> &Base<Properties> {
        &self.base
    }

    fn resource(&self, path: &str, _: &Request, _: &Query<'_>) -> Result<Resource> {
        Resource::parse(path)
    }

    async fn grant(&self, signature: &Signature<'_>, _: &Resource) -> Result<TableGrant> {
        let table = signature.table().unwrap_or_default();
        let policy = front::policy_of(self, signature, table).await?;
        Ok(signature.check_table(policy.as_ref())?)
    }

    async fn policies(&self, account: &str, table: &str) -> Result<Vec<StoredPolicy>> {
        tables::policies(self, account, table).await
    }

    fn operation(
        &self,
        request: &Request,
        resource: Resource,
        query: &Query<'_>,
    ) -> Result<Operation> {
        Operation::parse(Head::of(request), resource, query, &self.limits)
    }

    async fn check(&self, call: &Call, operation: &Operation) -> Result<()> {
        access::check(&call.access, operation)
    }

    fn own(&self, operation: &Operation, request: &Request, query: &Query<'_>) -> Result<Own> {
        let wishes = match operation.is_json() {
            true => Wishes::of(Head::of(request), query)?,
            false => Wishes::default(),
        };
        Ok(Own { wishes, content_id: None })
    }

    async fn dispatch(
        &self,
        call: &Call,
        operation: Operation,
        request: &mut Request,
    ) -> Result<Response> {
        let bytes_max = match operation {
            Operation::EntityGroupTransaction { .. } => self.limits.transaction_bytes_max,
            _ => self.limits.body_bytes_max,
        };
        let body = request.take_body().collect(bytes_max).await?;
        match operation {
            Operation::QueryTables(query) => tables::query(self, call, query).await,
            Operation::CreateTable { kind } => tables::create(self, call, kind, &body).await,
            Operation::GetTable { table } => tables::get(self, call, &table).await,
            Operation::DeleteTable { table } => tables::delete(self, call, &table).await,
            Operation::GetEntity { key, select } => {
                entities::get(self, call, &key, select.as_deref()).await
            }
            Operation::QueryEntities { table, query } => {
                query::query(self, call, &table, query).await
            }
            Operation::WriteEntity(write) => entities::write(self, call, write, &body).await,
            Operation::EntityGroupTransaction { boundary } => {
                transaction::run(self, call, &boundary, &body).await
            }
            Operation::GetTableAcl { table } => tables::get_acl(self, call, &table).await,
            Operation::SetTableAcl { table } => tables::set_acl(self, call, &table, &body).await,
            Operation::GetServiceProperties => service::get_properties(self, call).await,
            Operation::SetServiceProperties => service::set_properties(self, call, &body).await,
            Operation::GetServiceStats => service::stats(self, call),
            Operation::Preflight => service::preflight(self, call, &request.headers).await,
        }
    }

    /// Operations on components answer in XML, so there it is what a client gets that asks for nothing.
    fn error_format(request: &Request) -> ErrorFormat {
        let query = Query::parse(&request.query).unwrap_or_default();
        let usual = match query.get("comp") {
            Some(_) => ErrorFormat::ODataXml,
            None => ErrorFormat::ODataJson,
        };
        let accept = Head::of(request).accept(&query);
        accept.and_then(ErrorFormat::parse_odata).unwrap_or(usual)
    }

    async fn stored(&self, name: String) -> Result<Option<Bytes>> {
        let stored = self.records.service(&name).await;
        stored.map_err(|error| from_core(&error, Subject::Table))
    }

    async fn store(&self, name: String, document: Bytes) -> Result<()> {
        let kept = self.records.set_service(&name, document).await;
        kept.map_err(|error| from_core(&error, Subject::Table))
    }
}
