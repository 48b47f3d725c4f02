//! Objects as the blocks use them: written in parts, read in ranges.

use std::ops::Range;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt, TryStreamExt};
use lazuli_env::BoxFuture;
use lazuli_store::objects::{OBJECT_READ_BYTES_MAX, ObjectWriter, Objects};
use lazuli_store::{Error, Result, StoreReason};
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::path::Path;
use object_store::{
    Error as ObjectError, MultipartUpload, ObjectStore, ObjectStoreExt, PutPayload, RetryConfig,
};
use tokio::task::JoinHandle;

use crate::connect::Connections;
use crate::limits::{PART_BYTES, PARTS_MAX, RETRIES_MAX, RETRY_TIME_MAX};
use crate::settings::{Service, Settings};

/// Objects in a bucket of a service.
#[derive(Clone)]
pub struct RemoteObjects {
    store: Arc<dyn ObjectStore>,
    folder: String,
    place: String,
}

fn away(error: &ObjectError) -> Error {
    Error::unavailable("objects-away", format!("the object store: {error}"))
}

impl RemoteObjects {
    /// Reads the key and prepares requests; none is sent yet.
    pub fn open(settings: &Settings) -> Result<Self> {
        let is_plain = settings.endpoint.as_ref().is_some_and(|it| it.starts_with("http://"));
        let connections = Connections::new(!is_plain, settings.ca_file.as_deref())?;
        let key = settings.key.read()?;
        let retry = RetryConfig {
            max_retries: RETRIES_MAX,
            retry_timeout: RETRY_TIME_MAX,
            ..RetryConfig::default()
        };
        let store: Arc<dyn ObjectStore> = match settings.service {
            Service::Azure => {
                let mut builder = MicrosoftAzureBuilder::new()
                    .with_account(&settings.account)
                    .with_access_key(key)
                    .with_container_name(&settings.bucket)
                    .with_allow_http(is_plain)
                    .with_retry(retry)
                    .with_http_connector(connections);
                if let Some(endpoint) = &settings.endpoint {
                    builder = builder.with_endpoint(endpoint.clone());
                }
                Arc::new(builder.build().map_err(|error| odd(&error))?)
            }
            Service::S3 => {
                let mut builder = AmazonS3Builder::new()
                    .with_access_key_id(&settings.account)
                    .with_secret_access_key(key)
                    .with_bucket_name(&settings.bucket)
                    .with_allow_http(is_plain)
                    .with_retry(retry)
                    .with_http_connector(connections);
                if let Some(region) = &settings.region {
                    builder = builder.with_region(region);
                }
                if let Some(endpoint) = &settings.endpoint {
                    builder = builder.with_endpoint(endpoint);
                }
                Arc::new(builder.build().map_err(|error| odd(&error))?)
            }
        };
        Ok(Self { store, folder: settings.folder.clone(), place: settings.place() })
    }

    fn path(&self, name: &str) -> Path {
        Path::from(format!("{}/{name}", self.folder))
    }

    /// The name of an object in the folder.
    fn name(&self, path: &Path) -> Option<String> {
        let text: &str = path.as_ref();
        let rest = text.strip_prefix(&*self.folder)?;
        Some(rest.trim_start_matches('/').to_owned())
    }
}

fn odd(error: &ObjectError) -> Error {
    Error::invalid("bad-object-address", format!("the object store cannot be used: {error}"))
}

impl Objects for RemoteObjects {
    fn place(&self) -> &str {
        &self.place
    }

    fn create<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Box<dyn ObjectWriter>>> {
        let (store, path) = (self.store.clone(), self.path(name));
        let writer = PartWriter {
            store,
            path,
            part: BytesMut::new(),
            upload: None,
            sending: None,
            parts: 0,
        };
        Box::pin(std::future::ready(Ok(Box::new(writer) as Box<dyn ObjectWriter>)))
    }

    fn read<'a>(
        &'a self,
        name: &'a str,
        range: Range<u64>,
    ) -> BoxFuture<'a, Result<Option<Bytes>>> {
        Box::pin(async move {
            let end = range.end.min(range.start + OBJECT_READ_BYTES_MAX);
            if range.start >= end {
                return Ok(Some(Bytes::new()));
            }
            match self.store.get_range(&self.path(name), range.start..end).await {
                Ok(bytes) if bytes.len() as u64 == end - range.start => Ok(Some(bytes)),
                Ok(_) | Err(ObjectError::NotFound { .. }) => Ok(None),
                Err(error) => Err(away(&error)),
            }
        })
    }

    fn remove<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            match self.store.delete(&self.path(name)).await {
                Ok(()) | Err(ObjectError::NotFound { .. }) => Ok(()),
                Err(error) => Err(away(&error)),
            }
        })
    }

    fn list<'a>(
        &'a self,
        folder: &'a str,
        after: Option<&'a str>,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<String>>> {
        Box::pin(async move {
            let folder = self.path(folder);
            let found = match after {
                Some(after) => self.store.list_with_offset(Some(&folder), &self.path(after)),
                None => self.store.list(Some(&folder)),
            };
            // Some services do not know where to begin, and begin at the start.
            let names = found.try_filter_map(|it| async move {
                let name = self.name(&it.location);
                Ok(name.filter(|name| after.is_none_or(|after| &**name > after)))
            });
            names.take(most).try_collect().await.map_err(|error| away(&error))
        })
    }
}

struct PartWriter {
    store: Arc<dyn ObjectStore>,
    path: Path,
    /// The part that is being filled.
    part: BytesMut,
    /// None while all fits one request.
    upload: Option<Box<dyn MultipartUpload>>,
    /// A part on its way. The next one is filled meanwhile.
    sending: Option<JoinHandle<object_store::Result<()>>>,
    parts: usize,
}

impl PartWriter {
    async fn add(&mut self, mut bytes: Bytes) -> Result<()> {
        while !bytes.is_empty() {
            if self.part.len() == PART_BYTES {
                self.send().await?;
            }
            let room = PART_BYTES - self.part.len();
            self.part.extend_from_slice(&bytes.split_to(room.min(bytes.len())));
        }
        Ok(())
    }

    async fn send(&mut self) -> Result<()> {
        self.wait().await?;
        if self.parts == PARTS_MAX {
            return Err(Error::too_large("object-too-large", "an object of too many parts"));
        }
        if self.upload.is_none() {
            let begun = self.store.put_multipart(&self.path).await;
            self.upload = Some(begun.map_err(|error| away(&error))?);
        }
        let Some(upload) = &mut self.upload else { return Ok(()) };
        let part = upload.put_part(PutPayload::from(self.part.split().freeze()));
        self.sending = Some(tokio::spawn(part));
        self.parts += 1;
        Ok(())
    }

    async fn wait(&mut self) -> Result<()> {
        let Some(sending) = &mut self.sending else { return Ok(()) };
        let sent = sending.await;
        self.sending = None;
        let sent = sent.map_err(|error| Error::internal(StoreReason::Panicked, error))?;
        sent.map_err(|error| away(&error))
    }

    async fn end(mut self) -> Result<()> {
        if self.upload.is_some() && !self.part.is_empty() {
            self.send().await?;
        }
        self.wait().await?;
        let written = match &mut self.upload {
            Some(upload) => upload.complete().await,
            None => {
                let whole = PutPayload::from(self.part.split().freeze());
                self.store.put(&self.path, whole).await
            }
        };
        written.map_err(|error| away(&error))?;
        self.upload = None;
        Ok(())
    }
}

impl Drop for PartWriter {
    /// Gives up what was sent of an object that is not finished. If that fails, the service forgets it in its own time.
    fn drop(&mut self) {
        let (Some(mut upload), sending) = (self.upload.take(), self.sending.take()) else { return };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if let Some(sending) = sending {
                    let _ = sending.await;
                }
                let _ = upload.abort().await;
            });
        }
    }
}

impl ObjectWriter for PartWriter {
    fn write(&mut self, bytes: Bytes) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.add(bytes))
    }

    fn finish(self: Box<Self>) -> BoxFuture<'static, Result<()>> {
        Box::pin((*self).end())
    }
}
