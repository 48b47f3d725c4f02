//! What programs do with the Azure client of `object_store`: put, multipart, conditional put, ranges, lists, copies and
//! deletions, on the server whose Blob endpoint is the one argument. Every step says what it did; the first answer that
//! is not what the client promises ends the program.

mod container;

use std::error::Error;
use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _};
use object_store::azure::{MicrosoftAzure, MicrosoftAzureBuilder};
use object_store::path::Path;
use object_store::{
    Attribute, Attributes, GetOptions, GetRange, ObjectStore, ObjectStoreExt as _, PutMode,
    PutOptions, UpdateVersion, WriteMultipart,
};

type Result<T = ()> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const ACCOUNT: &str = "devstoreaccount1";
/// The published key of that account.
const KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
const CONTAINER: &str = "object-store";

/// Objects of the list: more than a page of deletions holds.
const LISTED: usize = 600;

#[tokio::main]
async fn main() -> Result {
    let url = std::env::args().nth(1).ok_or("the one argument is the URL of the Blob endpoint")?;
    // The client insists on one, although the endpoint is plain HTTP.
    let _ = rustls::crypto::ring::default_provider().install_default();
    container::create(&url, CONTAINER)?;
    let store = MicrosoftAzureBuilder::new()
        .with_account(ACCOUNT)
        .with_access_key(KEY)
        .with_container_name(CONTAINER)
        .with_endpoint(format!("{url}/{ACCOUNT}"))
        .with_allow_http(true)
        .build()?;
    let store = Arc::new(store);
    put_and_get(&store).await?;
    conditional_put(&store).await?;
    conditional_get(&store).await?;
    multipart(&store).await?;
    copies(&store).await?;
    lists_and_deletions(&store).await
}

fn sample(length: usize, seed: usize) -> Bytes {
    (0..length).map(|n| ((n * 31 + n / 257 + seed) % 251) as u8).collect()
}

fn said(what: &str) {
    println!("ok  {what}");
}

/// Fails with a sentence unless it is true.
fn must(is_so: bool, what: &str) -> Result {
    if is_so { Ok(()) } else { Err(format!("it must be that {what}").into()) }
}

async fn put_and_get(store: &MicrosoftAzure) -> Result {
    let path = Path::from("folder with space/täst+%25.bin");
    for length in [0, 1, 1000, 70_000, 3_000_000] {
        let bytes = sample(length, length);
        let put = store.put(&path, bytes.clone().into()).await?;
        must(put.e_tag.is_some(), "a put answers an ETag")?;
        let meta = store.head(&path).await?;
        must(meta.size == length as u64 && meta.location == path, "the head fits")?;
        must(meta.e_tag == put.e_tag, "the ETag is that of the put")?;
        must(store.get(&path).await?.bytes().await? == bytes, "the bytes come back")?;
    }
    let attributes = Attributes::from_iter([
        (Attribute::ContentType, "text/plain"),
        (Attribute::CacheControl, "max-age=60"),
        (Attribute::ContentLanguage, "en"),
        (Attribute::Metadata("colour".into()), "blue"),
    ]);
    let options = PutOptions { attributes: attributes.clone(), ..PutOptions::default() };
    store.put_opts(&path, Bytes::from_static(b"text").into(), options).await?;
    must(store.get(&path).await?.attributes == attributes, "the attributes come back")?;
    let missing = store.get(&Path::from("missing")).await;
    must(matches!(missing, Err(object_store::Error::NotFound { .. })), "a missing one is missing")?;
    said("put and get, with attributes");
    Ok(())
}

async fn conditional_put(store: &MicrosoftAzure) -> Result {
    let path = Path::from("conditional");
    let put = |mode: PutMode, text: &'static str| {
        store.put_opts(&path, Bytes::from_static(text.as_bytes()).into(), mode.into())
    };
    let first = put(PutMode::Create, "first").await?;
    let again = put(PutMode::Create, "again").await;
    must(matches!(again, Err(object_store::Error::AlreadyExists { .. })), "it is created once")?;
    let version = UpdateVersion { e_tag: first.e_tag, version: first.version };
    put(PutMode::Update(version.clone()), "second").await?;
    let late = put(PutMode::Update(version), "late").await;
    must(
        matches!(late, Err(object_store::Error::Precondition { .. })),
        "an old ETag updates nothing",
    )?;
    must(store.get(&path).await?.bytes().await? == "second", "the second put counts")?;
    said("conditional put: create once, update by ETag");
    Ok(())
}

async fn conditional_get(store: &MicrosoftAzure) -> Result {
    let path = Path::from("conditional-get");
    let etag = store.put(&path, Bytes::from_static(b"x").into()).await?.e_tag;
    let same = GetOptions { if_none_match: etag.clone(), ..GetOptions::default() };
    let same = store.get_opts(&path, same).await;
    must(matches!(same, Err(object_store::Error::NotModified { .. })), "it is not modified")?;
    let right = GetOptions { if_match: etag, ..GetOptions::default() };
    store.get_opts(&path, right).await?;
    let wrong = GetOptions { if_match: Some("\"0x8D0\"".to_owned()), ..GetOptions::default() };
    let wrong = store.get_opts(&path, wrong).await;
    must(matches!(wrong, Err(object_store::Error::Precondition { .. })), "it does not match")?;
    said("conditional get");
    Ok(())
}

async fn multipart(store: &MicrosoftAzure) -> Result {
    let path = Path::from("large/multipart");
    let bytes = sample(21 * 1024 * 1024 + 17, 5);
    let upload = store.put_multipart(&path).await?;
    let mut upload = WriteMultipart::new_with_chunk_size(upload, 5 * 1024 * 1024);
    for piece in bytes.chunks(700_001) {
        upload.wait_for_capacity(4).await?;
        upload.write(piece);
    }
    upload.finish().await?;
    let got = store.get(&path).await?;
    must(got.meta.size == bytes.len() as u64, "the length fits")?;
    must(got.bytes().await? == bytes, "all parts come back in order")?;
    let length = bytes.len();
    let ranges = [0..1, 5_242_879..5_242_881, 100..9_000_000, length - 5..length];
    for range in &ranges {
        let (start, end) = (range.start as u64, range.end as u64);
        let part = store.get_range(&path, start..end).await?;
        must(part == bytes[range.clone()], "a range comes back")?;
    }
    let wanted: Vec<_> = ranges.iter().map(|it| it.start as u64..it.end as u64).collect();
    let parts = store.get_ranges(&path, &wanted).await?;
    must(parts.iter().zip(&ranges).all(|(part, it)| *part == bytes[it.clone()]), "ranges too")?;
    let range = Some(GetRange::Offset(length as u64 - 1000));
    let rest = store.get_opts(&path, GetOptions { range, ..GetOptions::default() }).await?;
    must(rest.bytes().await? == bytes[length - 1000..], "the rest comes back")?;
    let mut aborted = store.put_multipart(&Path::from("large/aborted")).await?;
    aborted.put_part(sample(100_000, 1).into()).await?;
    aborted.abort().await?;
    must(store.head(&Path::from("large/aborted")).await.is_err(), "what is aborted is not there")?;
    said("multipart upload of 21 MiB, ranges of it, and one that was aborted");
    Ok(())
}

async fn copies(store: &MicrosoftAzure) -> Result {
    let (from, to) = (Path::from("large/multipart"), Path::from("copies/one"));
    store.copy(&from, &to).await?;
    let (one, other) = (store.get(&from).await?, store.get(&to).await?);
    must(one.bytes().await? == other.bytes().await?, "a copy has the same bytes")?;
    let again = store.copy_if_not_exists(&from, &to).await;
    must(
        matches!(again, Err(object_store::Error::AlreadyExists { .. })),
        "a copy does not replace what is there",
    )?;
    store.rename(&to, &Path::from("copies/renamed")).await?;
    must(store.head(&to).await.is_err(), "the old name is gone")?;
    store.delete(&Path::from("copies/renamed")).await?;
    said("copy, copy unless it exists, rename, delete");
    Ok(())
}

async fn lists_and_deletions(store: &Arc<MicrosoftAzure>) -> Result {
    let name = |n: usize| Path::from(format!("list/{}/{n:05}", n % 3));
    let puts = (0..LISTED).map(|n| {
        let (store, path) = (store.clone(), name(n));
        async move { store.put(&path, sample(n, n).into()).await }
    });
    futures::stream::iter(puts).buffer_unordered(16).try_collect::<Vec<_>>().await?;
    let prefix = Path::from("list");
    let mut expected: Vec<Path> = (0..LISTED).map(name).collect();
    expected.sort();
    let found: Vec<_> = store.list(Some(&prefix)).try_collect().await?;
    let names: Vec<_> = found.iter().map(|it| it.location.clone()).collect();
    must(names == expected, "the list has all names in order")?;
    let offset = &expected[LISTED / 2];
    let behind: Vec<_> = store.list_with_offset(Some(&prefix), offset).try_collect().await?;
    let names: Vec<_> = behind.iter().map(|it| it.location.clone()).collect();
    must(names == expected[LISTED / 2 + 1..], "a list goes on behind a name")?;
    let level = store.list_with_delimiter(Some(&prefix)).await?;
    must(
        level.objects.is_empty() && level.common_prefixes.len() == 3,
        "a level has three folders",
    )?;
    let paths = futures::stream::iter(expected.into_iter().map(Ok)).boxed();
    let deleted: Vec<_> = store.delete_stream(paths).try_collect().await?;
    must(deleted.len() == LISTED, "all are deleted")?;
    let left: Vec<_> = store.list(Some(&prefix)).try_collect().await?;
    must(left.is_empty(), "nothing is left")?;
    said("lists, and deletions in batches");
    Ok(())
}
