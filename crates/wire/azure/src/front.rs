//! The skeleton of every storage front, on top of [`lazuli_http::Api`]: one request from its head to its response.
//!
//! A front brings what differs ([`StorageService`]): its resources, its operations, one `match`, its error codes. Once and
//! for all are here: the version, the account, shared keys, shared access signatures and tokens, the read-only secondary
//! endpoint, CORS, the error document, and the headers of every response.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use lazuli_http::cors::Visitor;
use lazuli_http::uri::Query;
use lazuli_http::{Api, Method, Request, Response, StatusCode};

use crate::account::Target;
use crate::acl::StoredPolicy;
use crate::auth::access::{Access, Sender, Service, Signature};
use crate::auth::bearer::Tokens;
use crate::auth::{Accounts, Dialect, Refusal};
use crate::odata::ErrorFormat;
use crate::service::{self, PropertiesCache, ServiceProperties};
use crate::storage::{self, Echo, time_text};
use crate::storage_error::{CommonCode, ErrorCode, Fault};

/// What every storage front has: its accounts, whether it accepts bearer tokens, and the properties that were read last.
pub struct Base<P> {
    pub accounts: Arc<Accounts>,
    pub tokens: Tokens,
    pub(crate) properties: PropertiesCache<P>,
}

impl<P> Base<P> {
    pub fn new(accounts: Arc<Accounts>, tokens: Tokens) -> Self {
        Self { accounts, tokens, properties: PropertiesCache::default() }
    }
}

/// What operations need to know of the request beside their own arguments.
#[derive(Clone, Debug)]
pub struct Call<G, Own = ()> {
    pub target: Target,
    pub access: Access<G>,
    pub version: String,
    pub request_id: Arc<str>,
    pub received_ms: u64,
    pub secure: bool,
    pub peer: SocketAddr,
    /// What only this front's operations need.
    pub own: Own,
}

impl<G, Own> Call<G, Own> {
    pub fn account(&self) -> &str {
        &self.target.account
    }

    /// When the request came, as errors say it.
    pub fn time(&self) -> String {
        time_text(self.received_ms)
    }
}

pub type Result<T, C> = std::result::Result<T, Fault<C>>;

/// What the signature for one resource grants: `Access<Grants<Self>>`.
pub type Grants<S> = <S as StorageService>::Grant;

/// The call as a front's operations get it.
pub type CallOf<S> = Call<Grants<S>, <S as StorageService>::Own>;

/// What is said once of each operation: its row of `operations.toml`.
pub struct Row<Need> {
    /// As the metrics call it too.
    pub name: &'static str,
    /// Whether it changes something, which the secondary endpoint refuses.
    pub writes: bool,
    /// What a shared access signature must grant for it.
    pub need: Need,
}

impl<Need> Row<Need> {
    pub fn read(name: &'static str, need: Need) -> Self {
        Self { name, writes: false, need }
    }

    pub fn write(name: &'static str, need: Need) -> Self {
        Self { name, writes: true, need }
    }
}

/// A front's closed enum of operations.
pub trait Operation: Send + Sync {
    type Need;

    fn row(&self) -> Row<Self::Need>;
}

/// What a storage front brings.
pub trait StorageService: Send + Sync + Sized + 'static {
    const SERVICE: Service;
    /// Whether responses tell browsers not to guess the media type.
    const NO_SNIFF: bool = true;
    /// See [`Api::DISCARDS_BODY`].
    const DISCARDS_BODY: bool = false;

    /// What a path addresses.
    type Resource: Send + Sync;
    type Operation: Operation;
    type Code: ErrorCode;
    /// What a signature for one resource grants.
    type Grant: Send + Sync + 'static;
    /// What this front's operations need of the head beside their arguments.
    type Own: Default + Send + Sync;
    type Properties: ServiceProperties;

    fn base(&self) -> &Base<Self::Properties>;

    /// The resource of a path, which begins behind the account.
    fn resource(
        &self,
        path: &str,
        request: &Request,
        query: &Query<'_>,
    ) -> Result<Self::Resource, Self::Code>;

    /// The operation of a request that needs neither resource nor signature.
    fn open_operation(
        &self,
        _request: &Request,
        _target: &Target,
        _path: &str,
    ) -> Result<Option<Self::Operation>, Self::Code> {
        Ok(None)
    }

    /// Verifies a signature for one resource. The front finds the stored policy that it names, with [`policy_of`].
    fn grant(
        &self,
        signature: &Signature<'_>,
        resource: &Self::Resource,
    ) -> impl Future<Output = Result<Self::Grant, Self::Code>> + Send;

    /// The stored access policies of a table, queue or container.
    fn policies(
        &self,
        account: &str,
        holder: &str,
    ) -> impl Future<Output = Result<Vec<StoredPolicy>, Self::Code>> + Send;

    fn operation(
        &self,
        request: &Request,
        resource: Self::Resource,
        query: &Query<'_>,
    ) -> Result<Self::Operation, Self::Code>;

    /// Refuses an operation that is not granted. The call has nothing of [`Self::own`] yet.
    fn check(
        &self,
        call: &CallOf<Self>,
        operation: &Self::Operation,
    ) -> impl Future<Output = Result<(), Self::Code>> + Send;

    /// What this front needs of the head of a request that is granted.
    fn own(
        &self,
        _operation: &Self::Operation,
        _request: &Request,
        _query: &Query<'_>,
    ) -> Result<Self::Own, Self::Code> {
        Ok(Self::Own::default())
    }

    /// Runs an operation: the front's one `match`.
    fn dispatch(
        &self,
        call: &CallOf<Self>,
        operation: Self::Operation,
        request: &mut Request,
    ) -> impl Future<Output = Result<Response, Self::Code>> + Send;

    /// The format of a refusal of this request.
    fn error_format(_request: &Request) -> ErrorFormat {
        ErrorFormat::Storage
    }

    /// A response with an XML document.
    fn xml(status: StatusCode, document: String) -> Response {
        storage::xml(status, document)
    }

    /// How old the state may be that reads of this front show.
    fn staleness(&self) -> Duration;

    /// Reads a document that is stored for the whole service, such as its properties.
    fn stored(
        &self,
        name: String,
    ) -> impl Future<Output = Result<Option<Bytes>, Self::Code>> + Send;

    fn store(
        &self,
        name: String,
        document: Bytes,
    ) -> impl Future<Output = Result<(), Self::Code>> + Send;
}

/// A storage front as an HTTP API.
pub struct Storage<S> {
    front: S,
    /// Answers what comes by the secondary endpoint. What it reads may be a little old.
    secondary: S,
}

impl<S: StorageService> Storage<S> {
    pub fn new(front: S, secondary: S) -> Self {
        Self { front, secondary }
    }
}

impl<S: StorageService> Api for Storage<S> {
    type Call = CallOf<S>;
    type Operation = S::Operation;
    type Fault = Fault<S::Code>;

    const DISCARDS_BODY: bool = S::DISCARDS_BODY;

    async fn admit(&self, request: &Request) -> Result<(CallOf<S>, S::Operation), S::Code> {
        let front = &self.front;
        let version = storage::version(&request.headers).map_err(|_| {
            Fault::new(CommonCode::InvalidHeaderValue).detail("HeaderName", "x-ms-version")
        })?;
        let query = Query::parse(&request.query)?;
        let (target, path) = Target::of(request, &front.base().accounts)
            .ok_or_else(|| Fault::new(CommonCode::InvalidUri))?;
        let mut call = Call {
            target,
            access: Access::Anonymous,
            version: version.to_owned(),
            request_id: request.id.to_string().into(),
            received_ms: request.received_ms,
            secure: request.secure,
            peer: request.peer,
            own: S::Own::default(),
        };
        let is_preflight = request.method == Method::OPTIONS;
        if !is_preflight
            && let Some(operation) = front.open_operation(request, &call.target, path)?
        {
            call.own = front.own(&operation, request, &query)?;
            return Ok((call, operation));
        }
        let resource = front.resource(path, request, &query)?;
        // CORS preflight requests carry no signature.
        call.access = match is_preflight {
            true => Access::Owner,
            false => access(front, request, &query, call.account(), &resource).await?,
        };
        let operation = front.operation(request, resource, &query)?;
        front.check(&call, &operation).await?;
        if call.target.secondary && operation.row().writes {
            return Err(Fault::new(CommonCode::InsufficientAccountPermissions));
        }
        call.own = front.own(&operation, request, &query)?;
        Ok((call, operation))
    }

    fn name(operation: &S::Operation) -> &'static str {
        operation.row().name
    }

    async fn run(
        &self,
        call: &CallOf<S>,
        operation: S::Operation,
        request: &mut Request,
    ) -> Result<Response, S::Code> {
        let front = if call.target.secondary { &self.secondary } else { &self.front };
        front.dispatch(call, operation, request).await
    }

    fn refuse(&self, request: &Request, fault: &Fault<S::Code>) -> Response {
        let (id, time) = (request.id.to_string(), time_text(request.received_ms));
        fault.response(S::error_format(request), &id, &time)
    }

    fn cause(fault: &Fault<S::Code>) -> Option<&str> {
        fault.cause()
    }

    /// If the rules can't be read, the page may not read the response.
    async fn greet(&self, call: &CallOf<S>, visitor: &Visitor, response: Response) -> Response {
        match service::properties(&self.front, call.account()).await {
            Ok(properties) => visitor.greet(properties.cors(), response),
            Err(_) => response,
        }
    }

    fn finish(&self, request: &Request, response: Response) -> Response {
        let response = Echo::of(request).apply(response).with("server", "Lazuli");
        match S::NO_SNIFF {
            true => response.with("x-content-type-options", "nosniff"),
            false => response,
        }
    }
}

/// Who sent a request, as far as its head says.
pub async fn access<S: StorageService>(
    front: &S,
    request: &Request,
    query: &Query<'_>,
    account: &str,
    resource: &S::Resource,
) -> Result<Access<S::Grant>, S::Code> {
    let base = front.base();
    let sender = Sender::of(request, query, account, &base.accounts, S::SERVICE, base.tokens);
    match sender.map_err(refused::<S>)? {
        Sender::Known(access) => Ok(access),
        Sender::Bearer(signature) => {
            Ok(Access::Resource(Arc::new(front.grant(&signature, resource).await?)))
        }
    }
}

fn refused<S: StorageService>(refusal: Refusal) -> Fault<S::Code> {
    match S::SERVICE.dialect {
        Dialect::Tables => Fault::of_table_refusal(refusal),
        Dialect::Storage => refusal.into(),
    }
}

/// The stored policy that a signature names. A table, queue or container that does not exist has no policies either: a
/// sender without access does not learn which of the two it is.
pub async fn policy_of<S: StorageService>(
    front: &S,
    signature: &Signature<'_>,
    holder: &str,
) -> Result<Option<StoredPolicy>, S::Code> {
    let Some(id) = signature.policy() else { return Ok(None) };
    match front.policies(signature.account(), holder).await {
        Ok(policies) => Ok(policies.into_iter().find(|policy| policy.id == id)),
        Err(fault) if !fault.is_ours() => Ok(None),
        Err(fault) => Err(fault),
    }
}
