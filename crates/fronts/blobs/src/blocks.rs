//! Blocks of block blobs: put, listed, and named by the list that makes them a blob.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use lazuli_http::{Body, Response, StatusCode, xml};
use lazuli_shapes::blob::{BlockChoice, Conditions, Which};

use crate::error::{Code, Common, Fault, Result, refused};
use crate::limits::{BLOCK_ID_BYTES_MAX, Limits};
use crate::put::{check_block, content, guarded, new_blob, overwrite};
use crate::request::{BlockListKind, PutBlock, PutBlockList};
use crate::{OnBlob, response};

pub(crate) async fn put(on: &OnBlob<'_>, put: PutBlock, body: &mut Body) -> Result<Response> {
    let most = match &put.source {
        None => {
            check_block(body)?;
            on.front.limits.block_bytes_max
        }
        Some(_) => on.front.limits.from_url_bytes_max,
    };
    let source = put.source.as_ref();
    let (content, md5, crc64) = content(on, body, source, put.checksums, most).await?;
    let lease = put.conditions.lease_id.as_deref();
    let staged = on.front.blobs.put_block(&on.address, put.id.into(), content, lease).await;
    staged.map_err(refused)?;
    let answer = Response::new(StatusCode::CREATED).with("x-ms-request-server-encrypted", "true");
    let answer = match &on.call.own.key {
        Some(key) => answer.with("x-ms-encryption-key-sha256", STANDARD.encode(key.sha256)),
        None => answer,
    };
    Ok(response::checksums(answer, md5, crc64))
}

pub(crate) async fn commit(
    on: &OnBlob<'_>,
    put: PutBlockList,
    body: &mut Body,
) -> Result<Response> {
    let body = on.front.checked_document(body, put.checksums).await?;
    let list = read(&body, &on.front.limits)?;
    let protection = on.front.protection(&on.call.target.account).await?;
    let conditions = guarded(on.call, put.blob.conditions.clone());
    let mut new = new_blob(put.blob);
    new.key_sha256 = on.call.own.key.as_ref().map(|key| key.sha256);
    let committed =
        on.front.blobs.commit_block_list(&on.address, list, new, &conditions, protection).await;
    let record = committed.map_err(|error| overwrite(on.call, refused(error)))?;
    Ok(response::written(StatusCode::CREATED, &record))
}

pub(crate) async fn list(
    on: &OnBlob<'_>,
    which: Which,
    kind: BlockListKind,
    conditions: &Conditions,
) -> Result<Response> {
    let listed = on.front.blobs.block_list(&on.address, which, conditions).await;
    let listed = listed.map_err(refused)?;
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>");
    for (name, is_asked, blocks) in [
        ("CommittedBlocks", kind.committed, &listed.committed),
        ("UncommittedBlocks", kind.uncommitted, &listed.uncommitted),
    ] {
        if !is_asked {
            continue;
        }
        out.push_str(&format!("<{name}>"));
        for (id, size) in blocks {
            let id = STANDARD.encode(id);
            out.push_str(&format!("<Block><Name>{id}</Name><Size>{size}</Size></Block>"));
        }
        out.push_str(&format!("</{name}>"));
    }
    out.push_str("</BlockList>");
    let answer = response::xml(StatusCode::OK, out);
    Ok(match &listed.record {
        Some(record) => response::changed(answer, record.modified())
            .with("x-ms-blob-content-length", record.length().to_string()),
        None => answer.with("x-ms-blob-content-length", "0"),
    })
}

/// The bytes of a block id, which clients write in base64.
pub(crate) fn block_id(text: &str) -> Result<Vec<u8>> {
    let id = STANDARD.decode(text).ok();
    id.filter(|id| (1..=BLOCK_ID_BYTES_MAX).contains(&id.len()))
        .ok_or_else(|| Fault::new(Code::InvalidBlockId))
}

/// Reads a list, in its order.
pub(crate) fn read(body: &[u8], limits: &Limits) -> Result<Vec<(BlockChoice, Bytes)>> {
    // One element is the list itself.
    let root = xml::parse_up_to(body, limits.block_count_max + 2)?;
    if root.name != "BlockList" {
        return Err(Fault::new(Common::InvalidXmlDocument));
    }
    if root.children.len() > limits.block_count_max {
        return Err(Fault::new(Code::BlockListTooLong));
    }
    let block = |element: &xml::Element| {
        let choice = match element.name.as_str() {
            "Committed" => BlockChoice::Committed,
            "Uncommitted" => BlockChoice::Uncommitted,
            "Latest" => BlockChoice::Latest,
            _ => return Err(Fault::new(Common::InvalidXmlDocument)),
        };
        let id = block_id(&element.text).map_err(|_| Fault::new(Code::InvalidBlockList))?;
        Ok((choice, id.into()))
    };
    root.children.iter().map(block).collect()
}

#[cfg(test)]
mod block_list_tests {
    use lazuli_azure::storage_error::ErrorCode as _;

    use super::*;

    fn code(text: &str) -> &'static str {
        read(text.as_bytes(), &Limits::default()).unwrap_err().code.name()
    }

    #[test]
    fn the_order_is_kept() {
        let text = "<?xml version='1.0'?><BlockList><Latest>Yg==</Latest><Committed>YQ==</Committed>\
                    <Uncommitted>Yg==</Uncommitted></BlockList>";
        let list = read(text.as_bytes(), &Limits::default()).unwrap();
        let expected = [
            (BlockChoice::Latest, "b"),
            (BlockChoice::Committed, "a"),
            (BlockChoice::Uncommitted, "b"),
        ];
        assert_eq!(list, expected.map(|(place, id)| (place, Bytes::from(id))));
        assert_eq!(read(b"<BlockList/>", &Limits::default()), Ok(vec![]));
    }

    #[test]
    fn bad_lists_are_refused() {
        assert_eq!(code(""), "InvalidXmlDocument");
        assert_eq!(code("<Blocks/>"), "InvalidXmlDocument");
        assert_eq!(code("<BlockList><Other>YQ==</Other></BlockList>"), "InvalidXmlDocument");
        assert_eq!(code("<BlockList><Latest>a</Latest></BlockList>"), "InvalidBlockList");
        assert_eq!(code("<BlockList><Latest/></BlockList>"), "InvalidBlockList");
        let long = STANDARD.encode([0; 65]);
        assert_eq!(block_id(&long).unwrap_err().code.name(), "InvalidBlockId");
        let limits = Limits { block_count_max: 2, ..Limits::default() };
        let list = |count: usize| {
            let blocks = "<Latest>YQ==</Latest>".repeat(count);
            read(format!("<BlockList>{blocks}</BlockList>").as_bytes(), &limits)
        };
        assert_eq!(list(2).unwrap().len(), 2);
        assert_eq!(list(3).unwrap_err().code.name(), "BlockListTooLong");
        assert!(list(9).is_err());
    }
}
