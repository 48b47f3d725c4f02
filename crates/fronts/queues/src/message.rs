//! What a message says, as the XML that clients send it in.

use bytes::Bytes;
use lazuli_http::storage_error::CommonCode;
use lazuli_http::xml;

use crate::error::{Fault, Result};
use crate::limits::Limits;

/// Reads a message. What it says is kept as it was sent, space and all.
pub(crate) fn read(body: &[u8], limits: &Limits) -> Result<Bytes> {
    let not_xml = || Fault::new(CommonCode::InvalidXmlDocument);
    let mut root = xml::parse(body).map_err(|_| not_xml())?;
    if root.name != "QueueMessage" {
        return Err(not_xml());
    }
    let text = root.children.iter_mut().find(|child| child.name == "MessageText");
    let text = text.ok_or_else(|| {
        Fault::new(CommonCode::MissingRequiredXmlNode).detail("XmlNodeName", "MessageText")
    })?;
    let text = std::mem::take(&mut text.text);
    if text.len() > limits.message_bytes_max {
        return Err(Fault::new(CommonCode::RequestBodyTooLarge)
            .detail("MaxLimit", limits.message_bytes_max.to_string()));
    }
    if !xml::can_carry(&text) {
        return Err(not_xml());
    }
    Ok(text.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Code;

    fn read_text(body: &str) -> std::result::Result<String, Code> {
        let limits = Limits { message_bytes_max: 8, ..Limits::default() };
        let read = read(body.as_bytes(), &limits).map_err(|fault| fault.code)?;
        Ok(String::from_utf8(read.to_vec()).unwrap())
    }

    #[test]
    fn what_a_message_says_is_kept_as_it_was_sent() {
        let text = |inner: &str| {
            read_text(&format!("<QueueMessage><MessageText>{inner}</MessageText></QueueMessage>"))
        };
        assert_eq!(text(" a&lt;b\n ").as_deref(), Ok(" a<b\n "));
        assert_eq!(text("").as_deref(), Ok(""));
        assert_eq!(text("12345678").as_deref(), Ok("12345678"));
        assert_eq!(text("123456789"), Err(Code::Common(CommonCode::RequestBodyTooLarge)));
        let declared =
            "\u{feff}<?xml version='1.0'?>\n<QueueMessage>\n <MessageText/>\n</QueueMessage>";
        assert_eq!(read_text(declared).as_deref(), Ok(""));
        assert_eq!(text("&#1;"), Err(Code::Common(CommonCode::InvalidXmlDocument)));
        assert_eq!(text("<b/>").as_deref(), Ok(""));
    }

    #[test]
    fn what_is_no_message_is_refused() {
        let invalid = Err(Code::Common(CommonCode::InvalidXmlDocument));
        assert_eq!(read_text(""), invalid);
        assert_eq!(read_text("hello"), invalid);
        assert_eq!(read_text("<Message><MessageText>a</MessageText></Message>"), invalid);
        let missing = Err(Code::Common(CommonCode::MissingRequiredXmlNode));
        assert_eq!(read_text("<QueueMessage/>"), missing);
    }
}
