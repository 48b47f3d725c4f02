//! Operations on a storage service itself, which all services have: properties, statistics, preflight, delegation keys.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use lazuli_http::cors::{self, CorsRule, PreflightRefusal};
use lazuli_http::date::format_rfc1123;
use lazuli_http::{HeaderMap, Response, StatusCode};

use crate::DocumentError;
use crate::auth::access::Access;
use crate::auth::delegation::{DelegatedKey, KeyWish};
use crate::front::{CallOf, Result, StorageService};
use crate::storage_error::{CommonCode, Fault};

/// The most accounts whose properties are kept after they were read.
const CACHED_MAX: usize = 1_000;

/// The properties of a service, and the document that they are stored as.
pub trait ServiceProperties: Default + Send + Sync + 'static {
    /// These properties, with the sections of the document in place of theirs.
    fn changed_by(&self, document: &[u8]) -> std::result::Result<Self, DocumentError>;

    fn write(&self) -> String;

    fn cors(&self) -> &[CorsRule];
}

/// Properties as they were read last, by account, with the document that they were read from.
pub(crate) struct PropertiesCache<P>(Mutex<BTreeMap<String, Cached<P>>>);

type Cached<P> = (Option<Bytes>, Arc<P>);

impl<P> Default for PropertiesCache<P> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<P> PropertiesCache<P> {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Cached<P>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The name of the document that the properties of an account are stored in.
fn document_name<S: StorageService>(account: &str) -> String {
    format!("{}s/{account}", S::SERVICE.name)
}

/// The properties of an account's service. The document is read each time, and parsed when it has changed.
pub async fn properties<S: StorageService>(
    front: &S,
    account: &str,
) -> Result<Arc<S::Properties>, S::Code> {
    let stored = front.stored(document_name::<S>(account)).await?;
    let cache = &front.base().properties;
    if let Some((document, properties)) = cache.lock().get(account)
        && *document == stored
    {
        return Ok(properties.clone());
    }
    let properties = match &stored {
        None => S::Properties::default(),
        Some(document) => S::Properties::default().changed_by(document).map_err(|_| {
            Fault::new(CommonCode::InternalError).because("the stored properties can't be read")
        })?,
    };
    let properties = Arc::new(properties);
    let mut cached = cache.lock();
    if cached.len() >= CACHED_MAX {
        cached.clear();
    }
    cached.insert(account.to_owned(), (stored, properties.clone()));
    Ok(properties)
}

pub async fn get_properties<S: StorageService>(
    front: &S,
    call: &CallOf<S>,
) -> Result<Response, S::Code> {
    Ok(S::xml(StatusCode::OK, properties(front, call.account()).await?.write()))
}

pub async fn set_properties<S: StorageService>(
    front: &S,
    call: &CallOf<S>,
    document: &[u8],
) -> Result<Response, S::Code> {
    let account = call.account();
    let changed = properties(front, account).await?.changed_by(document)?;
    front.store(document_name::<S>(account), changed.write().into()).await?;
    Ok(Response::new(StatusCode::ACCEPTED))
}

/// How far the secondary endpoint is behind. Everything that was answered before the time given here can be read there.
pub fn stats<S: StorageService>(front: &S, call: &CallOf<S>) -> Result<Response, S::Code> {
    if !call.target.secondary {
        return Err(Fault::new(CommonCode::InvalidQueryParameterValue)
            .say("Statistics are there at the secondary endpoint only."));
    }
    let behind_ms = u64::try_from(front.staleness().as_millis()).unwrap_or(u64::MAX);
    let synced_ms = call.received_ms.saturating_sub(behind_ms);
    let synced = format_rfc1123(i64::try_from(synced_ms / 1000).unwrap_or(0));
    let document = format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><StorageServiceStats><GeoReplication>\
         <Status>live</Status><LastSyncTime>{synced}</LastSyncTime></GeoReplication>\
         </StorageServiceStats>"
    );
    Ok(S::xml(StatusCode::OK, document))
}

/// Answers a CORS preflight request by the rules of the account.
pub async fn preflight<S: StorageService>(
    front: &S,
    call: &CallOf<S>,
    headers: &HeaderMap,
) -> Result<Response, S::Code> {
    let properties = properties(front, call.account()).await?;
    cors::preflight(headers, properties.cors()).map_err(|refusal| {
        Fault::new(match refusal {
            PreflightRefusal::NoQuestion => CommonCode::MissingRequiredHeader,
            PreflightRefusal::NoRule => CommonCode::CorsPreflightFailure,
        })
    })
}

/// A key with which the user of the request's token can sign for a while.
pub fn user_delegation_key<S: StorageService>(
    front: &S,
    call: &CallOf<S>,
    document: &[u8],
) -> Result<Response, S::Code> {
    let Access::User(identity) = &call.access else {
        return Err(Fault::new(CommonCode::AuthenticationFailed).detail(
            "AuthenticationErrorDetail",
            "Only authentication scheme Bearer is supported",
        ));
    };
    let wish = KeyWish::read(document, call.received_ms)?;
    let keys = front.base().accounts.get(call.account());
    let keys = keys.ok_or_else(|| Fault::new(CommonCode::AuthenticationFailed))?;
    let key = DelegatedKey {
        object_id: &identity.object_id,
        tenant_id: &identity.tenant_id,
        start: &wish.start,
        expiry: &wish.expiry,
        service: &S::SERVICE.letter.to_string(),
        version: &call.version,
        delegated_tenant: &wish.delegated_tenant,
    };
    Ok(S::xml(StatusCode::OK, key.write(&keys)))
}
