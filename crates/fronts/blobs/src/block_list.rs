//! Block lists: which blocks a blob is made of, as clients send it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use lazuli_http::xml;
use lazuli_shapes::blob::BlockChoice;

use crate::codes::Code;
use crate::error::{Common, Fault, Result};
use crate::limits::{BLOCK_ID_BYTES_MAX, Limits};

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
mod tests {
    use lazuli_http::storage_error::ErrorCode as _;

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
