//! Where the bytes of a copy come from: a blob of this server, read directly, or another server on this machine or on a
//! host that the operator allows.

use bytes::Bytes;
use lazuli_azure::account::Target;
use lazuli_azure::auth::access::Access;
use lazuli_azure::auth::sas::without_signature;
use lazuli_azure::front::access as sender;
use lazuli_http::client::{self, ClientError};
use lazuli_http::uri::Query;
use lazuli_http::{
    Body, HeaderMap, HeaderName, HeaderValue, Method, Request, RequestId, StatusCode, Uri,
};
use lazuli_shapes::blob::{
    BlobAddress, BlobRead, BlobRecord, Conditions, Content, Headers, ReadRange, UploadOptions,
    Which,
};

use crate::address::Resource;
use crate::error::Code;
use crate::error::{Common, Fault, Result, refused};
use crate::options::{METADATA, Pairs, which};
use crate::request::{BlobOperation, BlobPath, Get, Head, Operation, Source, bad_header};
use crate::{Call, Front, OnBlob, access};

/// A source whose bytes can be read.
pub(crate) enum Opened {
    Here(Box<BlobRead>),
    There(Box<There>),
}

impl Opened {
    /// The type of a blob that another server has.
    pub(crate) fn kind(&self) -> Option<&str> {
        match self {
            Self::Here(_) => None,
            Self::There(there) => there.origin.kind.as_deref(),
        }
    }
}

/// What another server sends.
pub(crate) struct There {
    body: Body,
    length: u64,
    origin: Origin,
}

/// What a source says of itself.
#[derive(Debug)]
pub(crate) struct Origin {
    pub(crate) headers: Headers,
    pub(crate) metadata: Pairs,
    pub(crate) tags: Pairs,
    /// The type of a blob that another server has, as it calls it.
    pub(crate) kind: Option<String>,
}

impl Origin {
    fn of(record: &BlobRecord) -> Self {
        Self {
            headers: record.headers.clone(),
            metadata: record.metadata.clone(),
            tags: record.tags.clone(),
            kind: None,
        }
    }
}

/// A blob of this server that a request may read.
pub(crate) struct Local {
    pub(crate) address: BlobAddress,
    pub(crate) which: Which,
}

/// How much is taken of a source, and whether its MD5 is wanted.
#[derive(Clone, Copy)]
pub(crate) struct Wants {
    pub(crate) most: u64,
    pub(crate) md5: bool,
}

/// The blob of this server that an address names. None if it is on another one; a refusal if it may not be read.
pub(crate) async fn local(front: &Front, call: &Call, source: &Source) -> Result<Option<Local>> {
    let uri: Uri = source.url.parse().map_err(|_| bad_header("x-ms-copy-source"))?;
    let (Some(authority), Some(scheme)) = (uri.authority(), uri.scheme_str()) else {
        return Err(bad_header("x-ms-copy-source"));
    };
    let own = call.target.base.split_once("://").map(|(_, rest)| rest).unwrap_or_default();
    if own.split('/').next() != Some(authority.as_str()) {
        return Ok(None);
    }
    let mut headers = HeaderMap::new();
    let mut set = |name: &'static str, text: &str| {
        if let Ok(value) = HeaderValue::from_str(text) {
            headers.insert(HeaderName::from_static(name), value);
        }
    };
    set("host", authority.as_str());
    if let Some(authorization) = &source.authorization {
        set("authorization", authorization);
    }
    let request = Request {
        method: Method::GET,
        path: uri.path().to_owned(),
        query: uri.query().unwrap_or_default().to_owned(),
        headers,
        body: Body::empty(),
        peer: call.peer,
        secure: scheme == "https",
        received_ms: call.received_ms,
        id: RequestId(0),
    };
    let query = Query::parse(&request.query)?;
    let (target, path) =
        Target::of(&request, &front.base.accounts).ok_or_else(|| bad_header("x-ms-copy-source"))?;
    let head = Head::of(&request, &query);
    let Resource::Blob(container, name) = Resource::parse(path, head)? else {
        return Err(bad_header("x-ms-copy-source"));
    };
    let path = BlobPath { container: container.clone(), name: name.clone() };
    let which = which(&query)?;
    may_read(front, call, &request, &query, &target, &path, which).await?;
    let account = target.account.to_string();
    Ok(Some(Local { address: BlobAddress { account, container, name }, which }))
}

/// A sender with a key of the account may also read from it; others need a signature for the source.
async fn may_read(
    front: &Front,
    call: &Call,
    request: &Request,
    query: &Query<'_>,
    target: &Target,
    path: &BlobPath,
    which: Which,
) -> Result<()> {
    let is_owner = matches!(call.access, Access::Owner | Access::User(_));
    let is_signed = access::is_signed(request, query);
    if is_owner && !is_signed && target.account == call.target.account {
        return Ok(());
    }
    let resource = Resource::Blob(path.container.clone(), path.name.clone());
    let check = async {
        let access = sender(front, request, query, &target.account, &resource).await?;
        let conditions = Conditions::default();
        let get = Get { which, range: None, digest: None, conditions };
        let operation = Operation::Blob(path.clone(), Box::new(BlobOperation::Get(get)));
        access::check(front, &access, &operation, &target.account, &call.version).await
    };
    check.await.map_err(unverified)
}

/// The refusal of a source, with the status that its server gave.
fn unverified(fault: Fault) -> Fault {
    let status = fault.status();
    match fault.is_ours() {
        true => fault,
        false => Fault::new(Code::CannotVerifyCopySource).with_status(status),
    }
}

/// What the refusals of a read are of a source.
pub(crate) fn source_refused(error: lazuli_engine::Error) -> Fault {
    let fault = refused(error);
    match fault.code {
        Code::Common(Common::ConditionNotMet) => Fault::new(Code::SourceConditionNotMet),
        Code::BlobNotFound | Code::ContainerNotFound => {
            Fault::new(Code::CannotVerifyCopySource).with_status(StatusCode::NOT_FOUND)
        }
        _ => fault,
    }
}

/// The address of a source as it is kept and shown.
pub(crate) fn shown(url: &str) -> String {
    without_signature(url).into_owned()
}

/// Opens a source for reading.
pub(crate) async fn open(front: &Front, call: &Call, source: &Source) -> Result<Opened> {
    let Some(local) = local(front, call, source).await? else {
        return open_there(front, source).await;
    };
    let range = source.range.map(|range| ReadRange { first: range.start, last: range.end });
    let key = source.key.as_ref();
    let read = front
        .blobs
        .read(&local.address, local.which, range, &source.conditions, key)
        .await
        .map_err(source_refused)?;
    Ok(Opened::Here(Box::new(read)))
}

async fn open_there(front: &Front, source: &Source) -> Result<Opened> {
    let mut headers = source.headers.clone();
    if let Some(range) = source.range {
        let end = range.end.map(|end| end.to_string()).unwrap_or_default();
        headers.push(("range", format!("bytes={}-{end}", range.start)));
    }
    if let Some(authorization) = &source.authorization {
        headers.push(("authorization", authorization.clone()));
    }
    let limits = &front.limits;
    let read = client::get(&source.url, &headers, &limits.sources, limits.source_timeout).await;
    let read = read.map_err(|error| match error {
        ClientError::BadAddress => bad_header("x-ms-copy-source"),
        ClientError::NotAllowed => Fault::new(Code::CannotVerifyCopySource)
            .with_status(StatusCode::FORBIDDEN)
            .say("The host of the copy source is not one that this server may ask."),
        ClientError::Failed => Fault::new(Code::CannotVerifyCopySource)
            .say("The server of the copy source could not be found, or did not answer in time."),
    })?;
    if matches!(read.status, StatusCode::PRECONDITION_FAILED | StatusCode::NOT_MODIFIED) {
        return Err(Fault::new(Code::SourceConditionNotMet));
    }
    if read.status.is_client_error() {
        return Err(Fault::new(Code::CannotVerifyCopySource).with_status(read.status));
    }
    let wanted = match source.range {
        Some(_) => StatusCode::PARTIAL_CONTENT,
        None => StatusCode::OK,
    };
    if read.status.is_server_error() {
        return Err(
            Fault::new(Code::CannotVerifyCopySource).with_status(StatusCode::SERVICE_UNAVAILABLE)
        );
    }
    // A server that answers a range with the whole, or redirects, has not sent what was asked for.
    if read.status != wanted {
        return Err(Fault::new(Code::CannotVerifyCopySource));
    }
    let length = read.body.length();
    let length = length.ok_or_else(|| Fault::new(Code::CannotVerifyCopySource))?;
    let text = |name: &str| {
        read.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
    };
    let headers = Headers {
        content_type: text("content-type"),
        content_encoding: text("content-encoding"),
        content_language: text("content-language"),
        content_disposition: text("content-disposition"),
        cache_control: text("cache-control"),
        content_md5: None,
    };
    let kind = text("x-ms-blob-type");
    let origin = Origin { headers, metadata: metadata(&read.headers), tags: Pairs::new(), kind };
    Ok(Opened::There(Box::new(There { body: read.body, length, origin })))
}

/// The metadata that an answer has in its headers.
fn metadata(headers: &HeaderMap) -> Pairs {
    let pair = |(name, value): (&HeaderName, &HeaderValue)| {
        let name = name.as_str().strip_prefix(METADATA)?;
        Some((name.to_owned(), value.to_str().ok()?.to_owned()))
    };
    headers.iter().filter_map(pair).collect()
}

/// Takes the bytes of a source in for a blob, and checks them against what the request says of them.
pub(crate) async fn receive(
    on: &OnBlob<'_>,
    opened: Opened,
    source: &Source,
    wants: Wants,
) -> Result<(Content, Origin)> {
    let length = match &opened {
        Opened::Here(read) => read.range.end - read.range.start,
        Opened::There(there) => there.length,
    };
    if length > wants.most {
        return Err(
            Fault::new(Common::RequestBodyTooLarge).detail("MaxLimit", wants.most.to_string())
        );
    }
    let md5 = wants.md5 || source.checksums.md5.is_some();
    let options = UploadOptions { md5, key: on.call.own.key.clone() };
    let mut upload = on.front.blobs.upload(&on.address, &options).await.map_err(refused)?;
    let origin = match opened {
        Opened::Here(mut read) => {
            while let Some(piece) = read.reader.next().await.map_err(refused)? {
                upload.write(piece).await.map_err(refused)?;
            }
            Origin::of(&read.record)
        }
        Opened::There(there) => {
            let There { mut body, origin, .. } = *there;
            let failed = |_| Fault::new(Code::CannotVerifyCopySource);
            while let Some(piece) = body.chunk().await.map_err(failed)? {
                let piece: Bytes = piece;
                upload.write(piece).await.map_err(refused)?;
            }
            origin
        }
    };
    let content = upload.finish().await.map_err(refused)?;
    source.checksums.check(content.md5, content.crc64)?;
    Ok((content, origin))
}
