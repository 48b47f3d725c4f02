//! The head of a request: its method, its headers and its parameters, and how single values are read from them.

use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::GeneralPurpose;
use base64::engine::{DecodePaddingMode, GeneralPurposeConfig};
use lazuli_http::date::parse_rfc1123;
use lazuli_http::uri::Query;
use lazuli_http::{HeaderMap, Method, Request};

use crate::error::{Common, Fault, Result};

/// Method, headers and parameters, of a request or of one inside another.
#[derive(Clone, Copy)]
pub(crate) struct Head<'a> {
    pub(crate) method: &'a Method,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) query: &'a Query<'a>,
}

/// The refusal of a header, by its name.
pub(crate) fn bad_header(name: &str) -> Fault {
    Fault::new(Common::InvalidHeaderValue).detail("HeaderName", name)
}

fn missing_header(name: &str) -> Fault {
    Fault::new(Common::MissingRequiredHeader).detail("HeaderName", name)
}

/// The refusal of a parameter, by its name.
pub(crate) fn bad_parameter(name: &str, value: &str) -> Fault {
    Fault::new(Common::InvalidQueryParameterValue)
        .detail("QueryParameterName", name)
        .detail("QueryParameterValue", value)
}

impl<'a> Head<'a> {
    pub(crate) fn of(request: &'a Request, query: &'a Query<'a>) -> Self {
        Self { method: &request.method, headers: &request.headers, query }
    }

    /// A header that is there and not empty.
    pub(crate) fn text(self, name: &str) -> Option<&'a str> {
        let value = self.headers.get(name).and_then(|value| value.to_str().ok());
        value.filter(|text| !text.is_empty())
    }

    pub(crate) fn required(self, name: &str) -> Result<&'a str> {
        self.text(name).ok_or_else(|| missing_header(name))
    }

    /// A parameter that is there and not empty.
    pub(crate) fn parameter(self, name: &str) -> Option<&'a str> {
        self.query.get(name).filter(|text| !text.is_empty())
    }

    pub(crate) fn required_parameter(self, name: &str) -> Result<&'a str> {
        let missing =
            || Fault::new(Common::MissingRequiredQueryParameter).detail("QueryParameterName", name);
        self.parameter(name).ok_or_else(missing)
    }

    pub(crate) fn number<T: FromStr>(self, name: &str) -> Result<Option<T>> {
        self.text(name).map(|text| text.parse().map_err(|_| bad_header(name))).transpose()
    }

    pub(crate) fn flag(self, name: &str) -> Result<Option<bool>> {
        match self.text(name) {
            None => Ok(None),
            Some(text) if text.eq_ignore_ascii_case("true") => Ok(Some(true)),
            Some(text) if text.eq_ignore_ascii_case("false") => Ok(Some(false)),
            Some(_) => Err(bad_header(name)),
        }
    }

    /// A moment, in seconds since the Unix epoch.
    pub(crate) fn date(self, name: &str) -> Result<Option<u64>> {
        let parse = |text| {
            let seconds = parse_rfc1123(text).ok_or_else(|| bad_header(name))?;
            Ok(u64::try_from(seconds).unwrap_or(0))
        };
        self.text(name).map(parse).transpose()
    }

    /// Bytes of a fixed length, in base64. `bad` is the refusal of anything else.
    pub(crate) fn bytes<const N: usize>(
        self,
        name: &str,
        bad: impl FnOnce() -> Fault,
    ) -> Result<Option<[u8; N]>> {
        let Some(text) = self.text(name) else { return Ok(None) };
        match decode(text).and_then(|bytes| <[u8; N]>::try_from(bytes).ok()) {
            Some(bytes) => Ok(Some(bytes)),
            None => Err(bad()),
        }
    }

    /// A GUID, in the one form that all of them are kept in: hyphens and small letters.
    pub(crate) fn guid(self, name: &str) -> Result<Option<String>> {
        let parse = |text| guid(text).ok_or_else(|| bad_header(name));
        self.text(name).map(parse).transpose()
    }

    pub(crate) fn required_guid(self, name: &str) -> Result<String> {
        self.guid(name)?.ok_or_else(|| missing_header(name))
    }

    /// How many items a page may have, if the client says so.
    pub(crate) fn page_items(self, most: usize) -> Result<usize> {
        let Some(text) = self.parameter("maxresults") else { return Ok(most) };
        let asked: usize = text.parse().map_err(|_| bad_parameter("maxresults", text))?;
        match asked {
            0 => Err(Fault::new(Common::OutOfRangeQueryParameterValue)
                .detail("QueryParameterName", "maxresults")),
            asked => Ok(asked.min(most)),
        }
    }
}

/// Base64 whose padding may be left out, as some clients do.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    BASE64.decode(text).ok()
}

/// 32 hexadecimal digits, with hyphens at their places or without, in braces, parentheses or neither.
fn guid(text: &str) -> Option<String> {
    let inner = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
    let inner = inner.or_else(|| text.strip_prefix('(').and_then(|text| text.strip_suffix(')')));
    let inner = inner.unwrap_or(text);
    let parts: Vec<usize> = inner.split('-').map(str::len).collect();
    if parts != [8, 4, 4, 4, 12] && parts != [32] {
        return None;
    }
    let digits: String = inner.chars().filter(|c| *c != '-').collect();
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let digits = digits.to_ascii_lowercase();
    let part = |from: usize, to: usize| &digits[from..to];
    let groups = [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)];
    Some(groups.join("-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guids_have_one_form() {
        let one = "0f8fad5b-d9cb-469f-a165-70867728950e";
        for good in [
            one,
            "0F8FAD5B-D9CB-469F-A165-70867728950E",
            "0f8fad5bd9cb469fa16570867728950e",
            "{0f8fad5b-d9cb-469f-a165-70867728950e}",
            "(0f8fad5b-d9cb-469f-a165-70867728950e)",
        ] {
            assert_eq!(guid(good).as_deref(), Some(one), "{good}");
        }
        for bad in ["", "0f8fad5b", "0f8fad5b-d9cb-469f-a165-70867728950g", "{}", "-----"] {
            assert_eq!(guid(bad), None, "{bad}");
        }
    }
}
