//! The headers of a request that operations look at, read once.
//!
//! Headers that only tune the service's own machinery (preferred formats, client ids, capabilities, priorities) are not
//! here: the response is the same without them.

use lazuli_http::date::parse_rfc1123;
use lazuli_http::uri::percent_decode;
use lazuli_http::{HeaderMap, HeaderValue};
use lazuli_shapes::document::IndexDirective;
use lazuli_value::Value;

use crate::error::{Fault, Result};
use crate::limits::{HOLD_SECONDS, KEY_HEADER_BYTES_MAX, KEY_PATHS_MAX, TOKEN_SECONDS};

/// The partition key of a request: one value per path of the container's definition, fewer for a prefix. An empty object in
/// it is an undefined value. Without any value it is the key of items that have none.
pub(crate) type KeyValues = Vec<Value>;

#[derive(Debug, Default)]
pub(crate) struct Headers {
    pub(crate) partition_key: Option<KeyValues>,
    /// The number of the physical partition to ask.
    pub(crate) range: Option<String>,
    /// The part of it that is meant, as effective partition keys.
    pub(crate) slice: Option<Slice>,
    pub(crate) cross_partition: bool,
    /// None leaves it to the server.
    pub(crate) items_max: Option<usize>,
    pub(crate) continuation: Option<String>,
    pub(crate) is_plan: bool,
    pub(crate) is_batch: bool,
    pub(crate) is_query: bool,
    pub(crate) is_upsert: bool,
    pub(crate) batch: Batch,
    pub(crate) changes: Option<Changes>,
    pub(crate) if_match: Option<String>,
    pub(crate) if_none_match: Option<String>,
    /// In seconds since the Unix epoch.
    pub(crate) if_modified_since: Option<i64>,
    pub(crate) session: Option<String>,
    /// The resource id of the container that the client means.
    pub(crate) intended_container: Option<String>,
    pub(crate) throughput: Option<Throughput>,
    pub(crate) pre_triggers: Vec<String>,
    pub(crate) post_triggers: Vec<String>,
    pub(crate) indexing: IndexDirective,
    /// Leaves the item out of the response of a write.
    pub(crate) is_minimal: bool,
    pub(crate) wants_quota: bool,
    pub(crate) wants_statistics: bool,
    pub(crate) wants_metrics: bool,
    pub(crate) wants_index_metrics: bool,
    pub(crate) logs_scripts: bool,
    pub(crate) token_seconds: Option<u32>,
    /// Ours: say what a change of throughput would do to the ranges, and change nothing.
    pub(crate) is_preview: bool,
    /// Ours: what to do on the way from one container to another.
    pub(crate) switch: Option<Switch>,
    /// Ours: build the index of a container anew.
    pub(crate) rebuilds_index: bool,
    /// What the client can do with a query plan.
    pub(crate) query_features: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slice {
    pub(crate) start: String,
    pub(crate) end: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Batch {
    pub(crate) is_atomic: bool,
    pub(crate) continues: bool,
}

/// Which changes a reader of the change feed wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Changes {
    /// The newest version of every item.
    Latest,
    /// Every version, deletions too.
    All,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Throughput {
    Manual(u32),
    Autoscale(u32),
}

/// A step of putting one container in the place of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Switch {
    /// Refuse writes for so many seconds.
    Hold(u32),
    /// Take writes again.
    Open,
    /// Exchange names with the container of this name.
    Exchange(String),
}

impl Headers {
    pub(crate) fn parse(headers: &HeaderMap) -> Result<Self> {
        let from = Reader::new(headers);
        let content_type = from.text("content-type").unwrap_or_default();
        Ok(Self {
            partition_key: from.may("x-ms-documentdb-partitionkey", parse_key)?,
            range: from.owned("x-ms-documentdb-partitionkeyrangeid").map(last_of_range),
            slice: from.slice()?,
            cross_partition: from.is("x-ms-documentdb-query-enablecrosspartition")?,
            items_max: from.may("x-ms-max-item-count", items_max)?.flatten(),
            continuation: from.owned("x-ms-continuation"),
            is_plan: from.is("x-ms-cosmos-is-query-plan-request")?,
            is_batch: from.is("x-ms-cosmos-is-batch-request")?,
            is_query: from.is("x-ms-documentdb-isquery")?
                || content_type.starts_with("application/query+json"),
            is_upsert: from.is("x-ms-documentdb-is-upsert")?,
            batch: Batch {
                is_atomic: from.is("x-ms-cosmos-batch-atomic")?,
                continues: from.is("x-ms-cosmos-batch-continue-on-error")?,
            },
            changes: from.may("a-im", changes)?,
            if_match: from.owned("if-match"),
            if_none_match: from.owned("if-none-match"),
            if_modified_since: from.may("if-modified-since", parse_rfc1123)?,
            session: from.owned("x-ms-session-token"),
            intended_container: from.owned("x-ms-cosmos-intended-collection-rid"),
            throughput: from.throughput()?,
            pre_triggers: from.names("x-ms-documentdb-pre-trigger-include"),
            post_triggers: from.names("x-ms-documentdb-post-trigger-include"),
            indexing: from.may("x-ms-indexing-directive", indexing)?.unwrap_or_default(),
            is_minimal: from.text("prefer").is_some_and(|text| text.contains("return=minimal")),
            wants_quota: from.is("x-ms-documentdb-populatequotainfo")?,
            wants_statistics: from.is("x-ms-documentdb-populatepartitionstatistics")?,
            wants_metrics: from.is("x-ms-documentdb-populatequerymetrics")?,
            wants_index_metrics: from.is("x-ms-cosmos-populateindexmetrics")?
                || from.is("x-ms-cosmos-populateindexmetrics-v2")?,
            logs_scripts: from.is("x-ms-documentdb-script-enable-logging")?,
            token_seconds: from.may("x-ms-documentdb-expiry-seconds", token_seconds)?,
            is_preview: from.is("x-lazuli-preview")?,
            switch: from.may("x-lazuli-switch", switch)?,
            rebuilds_index: from
                .may("x-lazuli-index", |text| (text == "rebuild").then_some(()))?
                .is_some(),
            query_features: from.owned("x-ms-cosmos-supported-query-features").unwrap_or_default(),
        })
    }
}

/// `hold SECONDS`, `open`, or `exchange NAME` with the name escaped as in a path.
fn switch(text: &str) -> Option<Switch> {
    let (verb, rest) = text.split_once(' ').unwrap_or((text, ""));
    match (verb, rest) {
        ("open", "") => Some(Switch::Open),
        ("hold", seconds) => {
            let seconds = seconds.parse().ok()?;
            HOLD_SECONDS.contains(&seconds).then_some(Switch::Hold(seconds))
        }
        ("exchange", name) if !name.is_empty() => {
            Some(Switch::Exchange(percent_decode(name).ok()?.into_owned()))
        }
        _ => None,
    }
}

/// Reads single headers. A request has few of them and dozens are asked for, so a list is quicker than the map: that would
/// check and hash every name.
struct Reader<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Reader<'a> {
    /// An empty header is as good as none, and of several with one name the first counts.
    fn new(headers: &'a HeaderMap) -> Self {
        let text = |value: &'a HeaderValue| value.to_str().ok().map(str::trim);
        let given = headers.iter().filter_map(|(name, value)| Some((name.as_str(), text(value)?)));
        Self(given.collect())
    }

    fn text(&self, name: &str) -> Option<&'a str> {
        let (_, text) = self.0.iter().find(|(given, _)| *given == name)?;
        (!text.is_empty()).then_some(*text)
    }

    fn owned(&self, name: &str) -> Option<String> {
        self.text(name).map(str::to_owned)
    }

    fn may<T>(&self, name: &str, parse: impl Fn(&str) -> Option<T>) -> Result<Option<T>> {
        let Some(text) = self.text(name) else { return Ok(None) };
        parse(text).map(Some).ok_or_else(|| Fault::bad_header(name))
    }

    /// A boolean in any case; absent means no.
    fn is(&self, name: &str) -> Result<bool> {
        Ok(self.may(name, boolean)?.unwrap_or(false))
    }

    fn names(&self, name: &str) -> Vec<String> {
        let names = self.text(name).unwrap_or_default().split(',').map(str::trim);
        names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
    }

    fn slice(&self) -> Result<Option<Slice>> {
        let (start, end) = (self.owned("x-ms-start-epk"), self.owned("x-ms-end-epk"));
        let hex = |text: &String| text.bytes().all(|byte| byte.is_ascii_hexdigit());
        match (start, end) {
            (None, None) => Ok(None),
            (start, Some(end)) if start.as_ref().is_none_or(hex) && hex(&end) => {
                let upper = |text: String| text.to_ascii_uppercase();
                Ok(Some(Slice { start: upper(start.unwrap_or_default()), end: upper(end) }))
            }
            _ => Err(Fault::bad_header("x-ms-start-epk")),
        }
    }

    fn throughput(&self) -> Result<Option<Throughput>> {
        let manual = self.may("x-ms-offer-throughput", |text| text.parse().ok())?;
        let auto = self.may("x-ms-cosmos-offer-autopilot-settings", autopilot)?;
        match (manual, auto) {
            (None, None) => Ok(None),
            (Some(units), None) => Ok(Some(Throughput::Manual(units))),
            (None, Some(units)) => Ok(Some(Throughput::Autoscale(units))),
            (Some(_), Some(_)) => Err(Fault::bad_input(
                "x-ms-offer-throughput and x-ms-cosmos-offer-autopilot-settings exclude each other",
            )),
        }
    }
}

fn boolean(text: &str) -> Option<bool> {
    match text {
        _ if text.eq_ignore_ascii_case("true") || text == "1" => Some(true),
        _ if text.eq_ignore_ascii_case("false") || text == "0" => Some(false),
        _ => None,
    }
}

/// Some clients write the resource id of the container and a comma before the number.
fn last_of_range(text: String) -> String {
    text.rsplit(',').next().unwrap_or_default().to_owned()
}

fn items_max(text: &str) -> Option<Option<usize>> {
    match text.parse::<i64>().ok()? {
        -1 => Some(None),
        number @ 1.. => Some(usize::try_from(number).ok()),
        _ => None,
    }
}

fn changes(text: &str) -> Option<Changes> {
    match text {
        _ if text.eq_ignore_ascii_case("Incremental Feed") => Some(Changes::Latest),
        _ if text.eq_ignore_ascii_case("Full-Fidelity Feed") => Some(Changes::All),
        _ => None,
    }
}

fn indexing(text: &str) -> Option<IndexDirective> {
    match text {
        _ if text.eq_ignore_ascii_case("Include") => Some(IndexDirective::Include),
        _ if text.eq_ignore_ascii_case("Default") => Some(IndexDirective::Policy),
        _ if text.eq_ignore_ascii_case("Exclude") => Some(IndexDirective::Exclude),
        _ => None,
    }
}

fn autopilot(text: &str) -> Option<u32> {
    let Value::Object(settings) = Value::from_json(text.as_bytes()).ok()? else { return None };
    match settings.get("maxThroughput")? {
        Value::Int64(units) => u32::try_from(*units).ok(),
        _ => None,
    }
}

fn token_seconds(text: &str) -> Option<u32> {
    text.parse().ok().filter(|seconds| TOKEN_SECONDS.contains(seconds))
}

/// Reads the JSON array of a partition key. `{}` in it is an undefined value.
pub(crate) fn parse_key(text: &str) -> Option<KeyValues> {
    if text.len() > KEY_HEADER_BYTES_MAX {
        return None;
    }
    let Value::Array(values) = Value::from_json(text.as_bytes()).ok()? else { return None };
    if values.len() > KEY_PATHS_MAX {
        return None;
    }
    values.iter().all(is_key_value).then_some(values)
}

fn is_key_value(value: &Value) -> bool {
    match value {
        Value::Object(object) => object.is_empty(),
        Value::Null | Value::Bool(_) | Value::Int64(_) | Value::Double(_) | Value::String(_) => {
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(lines: &[(&'static str, &str)]) -> Result<Headers> {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.insert(*name, value.parse().unwrap());
        }
        Headers::parse(&headers)
    }

    #[test]
    fn booleans_come_in_any_case() {
        for (text, expected) in [("true", true), ("True", true), ("FALSE", false), ("", false)] {
            let headers = parsed(&[("x-ms-documentdb-is-upsert", text)]).unwrap();
            assert_eq!(headers.is_upsert, expected, "{text}");
        }
        assert!(parsed(&[("x-ms-documentdb-is-upsert", "yes")]).is_err());
    }

    #[test]
    fn a_partition_key_is_an_array_of_plain_values() {
        assert_eq!(parse_key("[\"a\"]"), Some(vec!["a".into()]));
        assert_eq!(parse_key("[null]"), Some(vec![Value::Null]));
        assert_eq!(parse_key("[{}]"), Some(vec![Value::Object(Default::default())]));
        assert_eq!(parse_key("[]"), Some(vec![]));
        assert_eq!(parse_key("[\"\\u044f\", 5]"), Some(vec!["я".into(), Value::Int64(5)]));
        for bad in ["", "a", "\"a\"", "[[]]", "[{\"a\":1}]", "[1,2,3,4]", "[1", "{}"] {
            assert_eq!(parse_key(bad), None, "{bad}");
        }
        let long = format!("[\"{}\"]", "a".repeat(KEY_HEADER_BYTES_MAX));
        assert_eq!(parse_key(&long), None);
    }

    #[test]
    fn the_size_of_a_page_may_be_left_to_the_server() {
        let size = |text| parsed(&[("x-ms-max-item-count", text)]).map(|headers| headers.items_max);
        assert_eq!(size("-1"), Ok(None));
        assert_eq!(size("7"), Ok(Some(7)));
        assert!(size("0").is_err() && size("-2").is_err() && size("x").is_err());
    }

    #[test]
    fn throughput_is_manual_or_automatic() {
        let manual = ("x-ms-offer-throughput", "500");
        let auto = ("x-ms-cosmos-offer-autopilot-settings", "{\"maxThroughput\":4000}");
        let read = |lines: &[_]| parsed(lines).map(|headers| headers.throughput);
        assert_eq!(read(&[manual]), Ok(Some(Throughput::Manual(500))));
        assert_eq!(read(&[auto]), Ok(Some(Throughput::Autoscale(4000))));
        assert!(read(&[manual, auto]).is_err());
        assert!(read(&[("x-ms-cosmos-offer-autopilot-settings", "{}")]).is_err());
    }

    #[test]
    fn a_slice_of_a_range_is_hexadecimal() {
        let end = ("x-ms-end-epk", "3f");
        let slice = |lines: &[_]| parsed(lines).map(|headers| headers.slice);
        let expected = Slice { start: "0A".into(), end: "3F".into() };
        assert_eq!(slice(&[("x-ms-start-epk", "0a"), end]), Ok(Some(expected)));
        assert!(slice(&[("x-ms-start-epk", "0a")]).is_err());
        assert!(slice(&[("x-ms-start-epk", "x"), end]).is_err());
    }
}
