//! The entities of a table as a file: JSON lines as they come, or gathered first for what needs to know them all.

use std::collections::BTreeSet;

use bytes::Bytes;
use lazuli_http::{Body, Method, Response, StatusCode};
use serde_json::Value;

use super::file;
use super::place::ItemPath;
use crate::layout::list;
use crate::page::{Fault, Outcome, Result, Visit};

/// The most entities of a file that is gathered first.
const GATHERED_MAX: usize = 10_000;
/// How many are asked for at a time.
const PAGE: &str = "1000";
/// The most bytes of them.
const GATHERED_BYTES_MAX: usize = 32 * 1024 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Lines,
    Json,
    Csv,
}

impl Format {
    pub(super) const ALL: [Self; 3] = [Self::Lines, Self::Json, Self::Csv];

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Lines => "jsonl",
            Self::Json => "json",
            Self::Csv => "csv",
        }
    }

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Lines => "JSON lines",
            Self::Json => "JSON",
            Self::Csv => "CSV",
        }
    }
}

pub(super) async fn export(visit: &Visit<'_>, path: &ItemPath) -> Result {
    let filter = visit.query.get("filter").unwrap_or_default();
    let asked = visit.query.get("format").unwrap_or_default();
    let format = Format::ALL.into_iter().find(|one| one.word() == asked).unwrap_or(Format::Lines);
    // Names of tables are letters and digits: the service takes no others.
    let name: String = path.name.chars().filter(char::is_ascii_alphanumeric).collect();
    let disposition = format!("attachment; filename=\"{name}.{}\"", format.word());
    let (kind, text) = match format {
        Format::Lines => {
            let (pieces, query) = (path.api(&["export"]), [("filter", filter)]);
            let answer = visit.api.ask(Method::GET, &pieces, &query, Body::empty()).await?;
            return Ok(Outcome::File(file(answer, Some(&disposition))));
        }
        Format::Json => {
            ("application/json", Value::Array(gather(visit, path, filter).await?).to_string())
        }
        Format::Csv => ("text/csv; charset=utf-8", csv(&gather(visit, path, filter).await?)),
    };
    let mut response = Response::new(StatusCode::OK)
        .with("content-type", kind)
        .with("content-disposition", disposition);
    response.body = Body::from(Bytes::from(text));
    Ok(Outcome::File(response))
}

async fn gather(visit: &Visit<'_>, path: &ItemPath, filter: &str) -> Result<Vec<Value>> {
    let (mut all, mut bytes, mut after) = (Vec::new(), 0, String::new());
    loop {
        let query = [("filter", filter), ("after", after.as_str()), ("limit", PAGE)];
        let found = visit.api.get_with(&path.api(&["entities"]), &query).await?;
        for entity in list(&found["entities"]) {
            bytes += entity.to_string().len();
            all.push(entity.clone());
        }
        if all.len() > GATHERED_MAX || bytes > GATHERED_BYTES_MAX {
            let message = format!("there are more than {GATHERED_MAX} entities, or they are long");
            let mut fault = Fault::new(StatusCode::PAYLOAD_TOO_LARGE, message);
            fault.hint = Some("take JSON lines, or lazuli table export".to_owned());
            return Err(fault);
        }
        match found["next"].as_str() {
            Some(next) => after = next.to_owned(),
            None => return Ok(all),
        }
    }
}

/// A line of names, then a line for each entity; the keys come first, and notes of types are left out.
fn csv(entities: &[Value]) -> String {
    const KEYS: [&str; 2] = ["PartitionKey", "RowKey"];
    let names = entities.iter().filter_map(Value::as_object).flatten().map(|(name, _)| name);
    let others: BTreeSet<&str> = names
        .map(String::as_str)
        .filter(|name| !name.contains("odata.") && !KEYS.contains(name))
        .collect();
    let columns: Vec<&str> = KEYS.into_iter().chain(others).collect();
    let mut out = line(columns.iter().map(|name| (*name).to_owned()));
    for entity in entities {
        let cell = |name: &&str| match &entity[*name] {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        out.push_str(&line(columns.iter().map(cell)));
    }
    out
}

fn line(cells: impl Iterator<Item = String>) -> String {
    let quoted = |cell: String| match cell.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell,
    };
    let cells: Vec<String> = cells.map(quoted).collect();
    format!("{}\r\n", cells.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_column_of_any_entity_is_in_the_file_and_signs_that_part_cells_are_quoted() {
        let entities = [
            json!({ "RowKey": "r", "PartitionKey": "p", "Text": "a,\"b\"\nc", "odata.etag": "x" }),
            json!({ "PartitionKey": "p", "RowKey": "s", "Size": 7, "Size@odata.type": "Edm.Int64" }),
        ];
        let expected = "PartitionKey,RowKey,Size,Text\r\np,r,,\"a,\"\"b\"\"\nc\"\r\np,s,7,\r\n";
        assert_eq!(csv(&entities), expected);
    }
}
