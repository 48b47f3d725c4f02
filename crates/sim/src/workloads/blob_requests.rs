//! Requests of the clients of blobs, and contents that show whether they are complete.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use lazuli_shapes::blob::{
    AppendConditions, BlobAddress, BlobReason, Blobs, BlockChoice, Conditions, Content,
    CopyOptions, CopySource, DeleteOptions, NewBlob, Protection, Snapshots, UploadOptions, Which,
};
use lazuli_store::{Error, Kind, Result as StoreResult};

/// The append blob that all clients share.
pub(super) const LOG: &str = "log";

/// Words that hold their content's tag and their index; the first one holds their number.
pub(super) fn content(tag: u64, words: u64) -> Bytes {
    let head = tag << 16 | words;
    let mut bytes = BytesMut::new();
    for word in 0..words {
        bytes.put_u64(head.wrapping_add(word << 48));
    }
    bytes.freeze()
}

/// The tags of the contents in some bytes, one after another; an error if one is incomplete.
pub(super) fn tags_of(mut bytes: Bytes) -> Result<Vec<u64>, String> {
    let mut tags = Vec::new();
    while !bytes.is_empty() {
        let head = bytes.clone().try_get_u64().map_err(|_| "a content ends within a word")?;
        let (tag, words) = (head >> 16, head & 0xffff);
        let whole = content(tag, words);
        if words == 0 || bytes.len() < whole.len() || bytes.split_to(whole.len()) != whole {
            return Err(format!("content {tag} of {words} words is not whole"));
        }
        tags.push(tag);
    }
    Ok(tags)
}

pub(super) fn address(name: &str) -> BlobAddress {
    BlobAddress { account: "sim".into(), container: "c".into(), name: name.into() }
}

pub(super) async fn read(blobs: &Blobs, name: &str, which: Which) -> StoreResult<Bytes> {
    let mut read = blobs.read(&address(name), which, None, &Conditions::default(), None).await?;
    let mut bytes = BytesMut::new();
    while let Some(piece) = read.reader.next().await? {
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes.freeze())
}

async fn upload(blobs: &Blobs, name: &str, bytes: Bytes) -> StoreResult<Content> {
    let mut upload = blobs.upload(&address(name), &UploadOptions::default()).await?;
    upload.write(bytes).await?;
    upload.finish().await
}

pub(super) async fn put(blobs: &Blobs, name: &str, bytes: Bytes) -> StoreResult<()> {
    let content = upload(blobs, name, bytes).await?;
    let (new, any, none) = (NewBlob::default(), Conditions::default(), Protection::default());
    blobs.put_block_blob(&address(name), content, new, &any, none).await.map(|_| ())
}

/// Puts the bytes as two blocks, with unique ids, and commits them.
pub(super) async fn put_blocks(blobs: &Blobs, name: &str, bytes: Bytes) -> StoreResult<()> {
    let middle = bytes.len() / 2;
    let id = |last: u8| -> Bytes { [&bytes[..8], &[last]].concat().into() };
    for (id, part) in [(id(b'a'), bytes.slice(..middle)), (id(b'b'), bytes.slice(middle..))] {
        let content = upload(blobs, name, part).await?;
        blobs.put_block(&address(name), id, content, None).await?;
    }
    let list = [id(b'a'), id(b'b')].map(|id| (BlockChoice::Latest, id));
    let (new, any, none) = (NewBlob::default(), Conditions::default(), Protection::default());
    blobs.commit_block_list(&address(name), list.into(), new, &any, none).await.map(|_| ())
}

pub(super) async fn append(blobs: &Blobs, bytes: Bytes) -> StoreResult<()> {
    let (any, free) = (Conditions::default(), AppendConditions::default());
    let content = upload(blobs, LOG, bytes.clone()).await?;
    match blobs.append_block(&address(LOG), content, free, &any).await {
        Err(error) if error.is(BlobReason::BlobNotFound) => {}
        answer => return answer.map(|_| ()),
    }
    let (new, none) = (NewBlob::default(), Protection::default());
    blobs.put_append_blob(&address(LOG), new, &any, none).await?;
    let content = upload(blobs, LOG, bytes).await?;
    blobs.append_block(&address(LOG), content, free, &any).await.map(|_| ())
}

pub(super) async fn delete(blobs: &Blobs, name: &str) -> StoreResult<()> {
    let options = DeleteOptions { snapshots: Snapshots::Include, permanent: false };
    let (any, none) = (Conditions::default(), Protection::default());
    match blobs.delete(&address(name), Which::Current, options, &any, none).await {
        Err(error) if error.kind() == Kind::NotFound => Ok(()),
        answer => answer.map(|_| ()),
    }
}

pub(super) async fn copy(blobs: &Blobs, from: &str, to: &str) -> StoreResult<()> {
    let source = CopySource {
        address: address(from),
        which: Which::Current,
        conditions: Conditions::default(),
        key: None,
        url: from.into(),
    };
    let (any, none) = (Conditions::default(), Protection::default());
    blobs.copy(&source, &address(to), CopyOptions::default(), &any, none).await.map(|_| ())
}

/// A snapshot of a blob, which must stay readable and complete after the blob has changed.
pub(super) async fn snapshot(blobs: &Blobs, name: &str) -> StoreResult<()> {
    let any = Conditions::default();
    let (time, record) =
        blobs.snapshot(&address(name), None, &any, None, Protection::default()).await?;
    let bytes = read(blobs, name, Which::Snapshot(time)).await?;
    if bytes.len() as u64 != record.length() {
        return Err(Error::internal("changed-snapshot", "a snapshot has another length"));
    }
    tags_of(bytes).map(|_| ()).map_err(|wrong| Error::internal("torn-snapshot", wrong))
}
