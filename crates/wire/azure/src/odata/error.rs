//! The document of a refusal: OData JSON, OData XML, or the XML of the services that do not speak OData.

use lazuli_http::xml;

use super::write::{Metadata, write_string};

/// The document of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorFormat {
    /// The XML of the Blob and Queue services.
    Storage,
    ODataJson,
    ODataXml,
}

impl ErrorFormat {
    /// From an `Accept` header or a `$format` parameter: the OData format that is preferred, and JSON if both are. None if
    /// neither is asked for.
    pub fn parse_odata(accept: &str) -> Option<Self> {
        let (mut json, mut xml) = (0.0, 0.0);
        for range in accept.split(',') {
            let mut parts = range.split(';').map(|part| part.trim().to_ascii_lowercase());
            let media = parts.next().unwrap_or_default();
            let quality = parts.find_map(|part| part.strip_prefix("q=")?.parse::<f32>().ok());
            let quality = quality.unwrap_or(1.0);
            match media.as_str() {
                "application/json" | "json" => json = quality.max(json),
                "atom" => xml = quality.max(xml),
                _ if media.ends_with("xml") => xml = quality.max(xml),
                _ => {}
            }
        }
        match (json > 0.0, xml > 0.0) {
            (false, false) => None,
            _ if xml > json => Some(Self::ODataXml),
            _ => Some(Self::ODataJson),
        }
    }

    /// The media type and the text.
    pub(crate) fn document(
        self,
        code: &str,
        message: &str,
        details: &[(&'static str, String)],
    ) -> (&'static str, Vec<u8>) {
        match self {
            Self::Storage => ("application/xml", storage_xml(code, message, details).into()),
            Self::ODataJson => (Metadata::Minimal.content_type(), odata_json(code, message)),
            Self::ODataXml => ("application/xml", odata_xml(code, message).into()),
        }
    }
}

fn storage_xml(code: &str, message: &str, details: &[(&'static str, String)]) -> String {
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"utf-8\"?><Error>");
    xml::write(&mut out, "Code", code);
    xml::write(&mut out, "Message", message);
    for (element, text) in details {
        xml::write(&mut out, element, text);
    }
    out.push_str("</Error>");
    out
}

fn odata_json(code: &str, message: &str) -> Vec<u8> {
    let mut out = br#"{"odata.error":{"code":"#.to_vec();
    write_string(&mut out, code);
    out.extend_from_slice(br#","message":{"lang":"en-US","value":"#);
    write_string(&mut out, message);
    out.extend_from_slice(b"}}}");
    out
}

fn odata_xml(code: &str, message: &str) -> String {
    let message = message.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\" standalone=\"yes\"?>\
         <error xmlns=\"http://schemas.microsoft.com/ado/2007/08/dataservices/metadata\">\
         <code>{code}</code><message xml:lang=\"en-US\">{message}</message></error>"
    )
}
