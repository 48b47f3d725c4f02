//! The entities of a table, page by page.

use std::collections::BTreeMap;

use lazuli_http::uri::percent_encode;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::entity::{PARTITION_KEY, ROW_KEY, object, properties};
use crate::args::table::Export;
use crate::commands::remote::session::{Ask, Session};
use crate::commands::remote::transport::Answer;
use crate::failure::{Failure, Result};

/// Where the next page begins: as the service has said, and never looked into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Continuation {
    partition: String,
    row: Option<String>,
}

impl Continuation {
    fn of(answer: &Answer) -> Option<Self> {
        let header = |name: &str| answer.header(name).map(str::to_owned);
        let partition = header("x-ms-continuation-NextPartitionKey")?;
        Some(Self { partition, row: header("x-ms-continuation-NextRowKey") })
    }

    pub(super) fn to_json(&self) -> Value {
        json!({ "partition": self.partition, "row": self.row })
    }

    pub(super) fn from_json(value: &Value) -> Option<Self> {
        let partition = value["partition"].as_str()?.to_owned();
        Some(Self { partition, row: value["row"].as_str().map(str::to_owned) })
    }
}

/// What is asked for on every page.
pub(super) struct Query {
    path: String,
    text: String,
}

impl Query {
    pub(super) fn of(export: &Export) -> Self {
        let mut parts = Vec::new();
        if let Some(filter) = &export.filter {
            parts.push(format!("$filter={}", percent_encode(filter)));
        }
        if !export.select.is_empty() {
            // Without its keys an entity could never be written again.
            let mut names = vec![PARTITION_KEY, ROW_KEY];
            names.extend(export.select.iter().map(|name| name.trim()));
            names.dedup();
            parts.push(format!("$select={}", percent_encode(&names.join(","))));
        }
        Self { path: format!("/{}()", export.table), text: parts.join("&") }
    }

    /// The lines of one page, how many they are, and where the next page begins.
    pub(super) fn page(
        &self,
        session: &mut Session,
        from: Option<&Continuation>,
    ) -> Result<(Vec<u8>, u64, Option<Continuation>)> {
        let mut parts: Vec<String> = Vec::new();
        parts.extend((!self.text.is_empty()).then(|| self.text.clone()));
        if let Some(from) = from {
            parts.push(format!("NextPartitionKey={}", percent_encode(&from.partition)));
            let row = from.row.as_deref();
            parts.extend(row.map(|row| format!("NextRowKey={}", percent_encode(row))));
        }
        let answer =
            session.expect(Ask { query: &parts.join("&"), ..Ask::new("GET", &self.path) })?;
        let (lines, count) = lines(&answer.body)?;
        Ok((lines, count, Continuation::of(&answer)))
    }
}

fn lines(body: &[u8]) -> Result<(Vec<u8>, u64)> {
    let wrong = |what: String| Failure::failed(format!("the service answered with {what}"));
    let no_page = |error: serde_json::Error| wrong(format!("no page: {error}"));
    let members: BTreeMap<String, &RawValue> = serde_json::from_slice(body).map_err(no_page)?;
    let list = members.get("value").map_or("null", |list| list.get());
    let entities: Vec<&RawValue> = serde_json::from_str(list).map_err(no_page)?;
    let mut out = Vec::with_capacity(body.len());
    for entity in &entities {
        let properties = properties(entity.get().as_bytes())
            .map_err(|reason| wrong(format!("an entity that cannot be read: {reason}")))?;
        out.extend_from_slice(&object(&properties));
        out.push(b'\n');
    }
    Ok((out, entities.len() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_become_lines_that_keep_order_and_types() {
        let page = br#"{"odata.metadata":"x","value":[{"odata.etag":"e","PartitionKey":"p","RowKey":"\n",
            "Z":1.0,"A@odata.type":"Edm.Int64","A":"1","N":null},{"PartitionKey":"q","RowKey":""}]}"#;
        let (text, count) = lines(page).unwrap();
        let expected = "{\"PartitionKey\":\"p\",\"RowKey\":\"\\n\",\
                        \"Z@odata.type\":\"Edm.Double\",\"Z\":1.0,\
                        \"A@odata.type\":\"Edm.Int64\",\"A\":\"1\"}\n\
                        {\"PartitionKey\":\"q\",\"RowKey\":\"\"}\n";
        assert_eq!((String::from_utf8(text).unwrap().as_str(), count), (expected, 2));
        assert!(lines(b"<html>").is_err());
    }

    #[test]
    fn continuations_survive_the_progress_file() {
        for row in [None, Some("r".to_owned())] {
            let one = Continuation { partition: "1!a".to_owned(), row };
            assert_eq!(Continuation::from_json(&one.to_json()), Some(one));
        }
        assert_eq!(Continuation::from_json(&Value::Null), None);
    }
}
