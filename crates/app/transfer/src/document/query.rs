//! `lazuli documents query`: rows on standard output, and what they cost on standard error.

use std::io::IsTerminal;
use std::sync::Arc;

use lazuli_console::{Failure, Result, output};
use lazuli_http::client::blocking::Answer;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::item::Item;
use super::rows::cell;
use super::service::{Asked, PAGE_ITEMS, Service};
use super::{Query, Shown};
use crate::account::Account;
use crate::csv::write_field;

/// The widest cell that is shown to people.
const CELL_CHARS_MAX: usize = 60;

/// Runs a query and prints its rows.
pub fn query(account: &Arc<Account>, query: &Query) -> Result<()> {
    let terminal = std::io::stdout().is_terminal();
    let shown = query.format.unwrap_or(if terminal { Shown::Table } else { Shown::Jsonl });
    let mut asked = Asked::all(&query.place, "");
    asked.body = json!({ "query": query.text, "parameters": parameters(query)? }).to_string();
    asked.key = query.key.as_deref().map(key).transpose()?;
    asked.page_items = query.most.clamp(1, PAGE_ITEMS);
    asked.wants_metrics = query.explain;
    let mut service = Service::new(account)?;
    let (mut count, mut units, mut from) = (0_u64, 0.0, None);
    let mut kept: Vec<Box<RawValue>> = Vec::new();
    let mut explained = Vec::new();
    loop {
        let page = service.page(&asked, from.as_deref())?;
        units += charge(&page.answer);
        explained.extend(query.explain.then(|| explain(&page.answer)).into_iter().flatten());
        for row in page.rows {
            if count == query.most {
                break;
            }
            count += 1;
            match shown {
                Shown::Jsonl => output::line(row.get()),
                // Their columns are known when all rows are.
                Shown::Table | Shown::Csv => kept.push(row),
            }
        }
        match page.next {
            Some(next) if count < query.most => from = Some(next),
            _ => break,
        }
    }
    match shown {
        Shown::Jsonl => {}
        Shown::Table => table(&kept),
        Shown::Csv => csv(&kept),
    }
    for line in explained {
        eprintln!("{line}");
    }
    eprintln!("{count} rows, {units:.2} request units");
    Ok(())
}

fn parameters(query: &Query) -> Result<Vec<Value>> {
    let one = |text: &String| {
        let wrong = || {
            Failure::usage(format!("`{text}` is no parameter such as least=10 or name='\"ann\"'"))
        };
        let (name, value) = text.split_once('=').ok_or_else(wrong)?;
        let value: Value = serde_json::from_str(value).map_err(|_| wrong())?;
        Ok(json!({ "name": format!("@{}", name.trim_start_matches('@')), "value": value }))
    };
    query.parameters.iter().map(one).collect()
}

/// One value, or a list of them, as the header of a request has it.
fn key(text: &str) -> Result<String> {
    let value: Value = serde_json::from_str(text)
        .map_err(|_| Failure::usage("--key takes JSON").hint("a text stands in '\"…\"'"))?;
    Ok(match value {
        Value::Array(_) => value.to_string(),
        one => json!([one]).to_string(),
    })
}

fn charge(answer: &Answer) -> f64 {
    answer.header("x-ms-request-charge").and_then(|text| text.parse().ok()).unwrap_or_default()
}

/// What the service says about how it answered.
fn explain(answer: &Answer) -> Vec<String> {
    let headers = ["x-ms-documentdb-query-metrics", "x-ms-cosmos-index-utilization"];
    let line = |name: &str| answer.header(name).map(|text| format!("{name}: {text}"));
    headers.into_iter().filter_map(line).collect()
}

/// The columns of rows: the names of their properties, or one without a name for rows that are no objects.
fn columns(rows: &[Box<RawValue>]) -> (Vec<String>, Vec<Vec<Option<String>>>) {
    let mut names: Vec<String> = Vec::new();
    let mut all = Vec::new();
    for row in rows {
        let properties = match Item::parse(row.get().as_bytes()) {
            Ok(item) => item.0.iter().map(|(name, value)| (name.clone(), cell(value))).collect(),
            Err(_) => vec![("value".to_owned(), cell(row))],
        };
        let mut cells: Vec<Option<String>> = vec![None; names.len()];
        for (name, cell) in properties {
            match names.iter().position(|known| *known == name) {
                Some(at) => cells[at] = Some(cell),
                None => {
                    names.push(name);
                    cells.push(Some(cell));
                }
            }
        }
        all.push(cells);
    }
    (names, all)
}

fn table(rows: &[Box<RawValue>]) {
    let (names, all) = columns(rows);
    let short = |cell: &Option<String>| match cell {
        None => "-".to_owned(),
        Some(text) if text.chars().count() > CELL_CHARS_MAX => {
            text.chars().take(CELL_CHARS_MAX - 1).chain(['…']).collect()
        }
        Some(text) => text.replace(['\n', '\r', '\t'], " "),
    };
    let fill = |cells: &Vec<Option<String>>| {
        (0..names.len()).map(|at| short(cells.get(at).unwrap_or(&None))).collect()
    };
    let heads: Vec<&str> = names.iter().map(String::as_str).collect();
    output::table(&heads, &all.iter().map(fill).collect::<Vec<_>>());
}

fn csv(rows: &[Box<RawValue>]) {
    let (names, all) = columns(rows);
    let heads = names.iter().cloned().map(Some).collect();
    for cells in std::iter::once(&heads).chain(&all) {
        let mut line = Vec::new();
        for at in 0..names.len() {
            if at > 0 {
                line.push(b',');
            }
            if let Some(Some(text)) = cells.get(at) {
                write_field(&mut line, text);
            }
        }
        output::line(&String::from_utf8_lossy(&line));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_any_kind_have_columns() {
        let rows = [r#"{"a":1,"b":"x"}"#, "7", r#"{"c":true,"a":null}"#];
        let rows: Vec<Box<RawValue>> =
            rows.iter().map(|row| serde_json::from_str(row).unwrap()).collect();
        let (names, all) = columns(&rows);
        assert_eq!(names, ["a", "b", "value", "c"]);
        assert_eq!(all[1], [None, None, Some("7".to_owned())]);
        assert_eq!(all[2][0].as_deref(), Some("null"));
    }

    #[test]
    fn a_key_is_one_value_or_a_list() {
        assert_eq!(key("\"a\"").unwrap(), "[\"a\"]");
        assert_eq!(key("[\"t\",7]").unwrap(), "[\"t\",7]");
        assert!(key("a").is_err());
    }
}
