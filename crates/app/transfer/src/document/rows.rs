//! Items as rows of CSV: a column for each property. A cell that is JSON other than an object key would be (a number, true,
//! false, null, an array, an object, a text in quotation marks) is that value; any other text is a text. An empty cell is no
//! property. So what is exported is imported as it was.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;

use lazuli_console::{Failure, Result};
use serde_json::Value;
use serde_json::value::RawValue;

use super::item::Item;
use crate::csv::{FIELDS_MAX, Field, write_field};
use crate::part::{cannot_write, each_line};

/// Makes rows of lines: reads them once for the columns and once for the values.
pub(super) fn write(lines: &File, out: &mut impl Write) -> Result<()> {
    let mut columns: Vec<String> = Vec::new();
    let mut known = BTreeSet::new();
    each_line(lines, |line| {
        for (name, _) in Item::parse(line).map_err(Failure::failed)?.0 {
            if known.insert(name.clone()) {
                columns.push(name);
            }
        }
        if columns.len() <= FIELDS_MAX {
            return Ok(());
        }
        let message = "the items have too many properties for the columns of one file";
        Err(Failure::failed(message).hint("export with --format jsonl"))
    })?;
    let mut row = Vec::new();
    for (nth, name) in columns.iter().enumerate() {
        if nth > 0 {
            row.push(b',');
        }
        write_field(&mut row, name);
    }
    row.push(b'\n');
    out.write_all(&row).map_err(|error| cannot_write(&error))?;
    each_line(lines, |line| {
        let item = Item::parse(line).map_err(Failure::failed)?;
        row.clear();
        for (nth, name) in columns.iter().enumerate() {
            if nth > 0 {
                row.push(b',');
            }
            if let Some(value) = item.get(name) {
                write_field(&mut row, &cell(value));
            }
        }
        row.push(b'\n');
        out.write_all(&row).map_err(|error| cannot_write(&error))
    })
}

/// A value as a cell.
pub(super) fn cell(value: &RawValue) -> String {
    match serde_json::from_str::<Value>(value.get()) {
        Ok(Value::String(text)) if !reads_as_json(&text) => text,
        _ => value.get().to_owned(),
    }
}

/// Whether a text would be read as something else than itself.
fn reads_as_json(text: &str) -> bool {
    text.is_empty() || text.trim() != text || serde_json::from_str::<&RawValue>(text).is_ok()
}

/// The names of a file's columns.
pub(super) fn header(fields: &[Field]) -> std::result::Result<Vec<String>, String> {
    let mut names = Vec::new();
    for field in fields {
        // Some programs begin a file with a mark of its encoding.
        let name = field.text.trim_start_matches('\u{feff}').to_owned();
        if name.is_empty() || names.contains(&name) {
            return Err(format!("column {name:?} has no name, or stands there twice"));
        }
        names.push(name);
    }
    Ok(names)
}

/// The item of a row.
pub(super) fn item(names: &[String], fields: &[Field]) -> std::result::Result<Item, String> {
    if fields.len() > names.len() {
        return Err(format!("the row has {} fields for {} columns", fields.len(), names.len()));
    }
    let mut properties = Vec::new();
    for (name, field) in names.iter().zip(fields) {
        if field.text.is_empty() && !field.quoted {
            continue;
        }
        let raw = match serde_json::from_str::<Box<RawValue>>(&field.text) {
            Ok(raw) => raw,
            Err(_) => RawValue::from_string(Value::String(field.text.clone()).to_string())
                .map_err(|error| error.to_string())?,
        };
        properties.push((name.clone(), raw));
    }
    // An id is a text, also where it looks like a number.
    for (name, raw) in &mut properties {
        if name == "id" && !raw.get().starts_with('"') {
            let text = Value::String(raw.get().to_owned()).to_string();
            *raw = RawValue::from_string(text).map_err(|error| error.to_string())?;
        }
    }
    Ok(Item(properties))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::csv::read_row;

    #[test]
    fn what_is_exported_is_imported_as_it_was() {
        let lines = [
            r#"{"id":"1","n":1.50,"t":"plain","o":{"a":[1,"x"]}}"#,
            r#"{"id":"2","t":"true","n":"1","e":"","z":null,"q":"say \"hi\", ok\n"}"#,
            r#"{"id":"x y","t":" spaces ","b":false}"#,
        ];
        let mut file = tempfile::tempfile().unwrap();
        for line in lines {
            writeln!(file, "{line}").unwrap();
        }
        let mut csv = Vec::new();
        write(&file, &mut csv).unwrap();
        let mut input = &csv[..];
        let names = header(&read_row(&mut input).unwrap().unwrap().fields.unwrap()).unwrap();
        assert_eq!(names, ["id", "n", "t", "o", "e", "z", "q", "b"]);
        for line in lines {
            let fields = read_row(&mut input).unwrap().unwrap().fields.unwrap();
            let read = item(&names, &fields).unwrap();
            assert!(read.is_same(&Item::parse(line.as_bytes()).unwrap()), "{line} {read:?}");
        }
    }

    #[test]
    fn files_of_others_are_read_too() {
        let field = |text: &str| Field { text: text.to_owned(), quoted: false };
        let names = ["id", "city", "count"].map(str::to_owned);
        let read = item(&names, &[field("7"), field("Oslo"), field("3")]).unwrap();
        assert_eq!(read.text(), br#"{"id":"7","city":"Oslo","count":3}"#);
        assert!(item(&names, &["a", "b", "c", "d"].map(field)).is_err());
        assert!(header(&["a", "a"].map(field)).is_err());
    }
}
