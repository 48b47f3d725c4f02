//! Standard output of commands: aligned tables for people, JSON for programs.

use serde_json::Value;

/// Prints a line to standard output. A reader that went away early, such as `head`, is no error.
pub fn line(text: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// Prints JSON with line breaks.
pub fn json(value: &Value) {
    line(&format!("{value:#}"));
}

/// Says what a command changed, or prints the server's answer as JSON.
pub fn changed(as_json: bool, answer: &Value, sentence: impl FnOnce() -> String) {
    if as_json {
        json(answer);
    } else {
        line(&sentence());
    }
}

/// The cells of a list of objects, one column per field.
pub fn rows(list: &Value, columns: &[&str]) -> Vec<Vec<String>> {
    let row = |object: &Value| columns.iter().map(|column| cell(&object[*column])).collect();
    list.as_array().into_iter().flatten().map(row).collect()
}

/// A value as people read it: nothing as a dash, lists with commas, objects as `name=value`.
pub fn cell(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(list) if list.is_empty() => "-".to_owned(),
        Value::Array(list) => list.iter().map(cell).collect::<Vec<_>>().join(","),
        Value::Object(object) if object.is_empty() => "-".to_owned(),
        Value::Object(object) => {
            let pairs = object.iter().map(|(name, value)| format!("{name}={}", cell(value)));
            pairs.collect::<Vec<_>>().join(",")
        }
        other => other.to_string(),
    }
}

/// A number of bytes with a unit that fits.
pub fn size(bytes: u64) -> String {
    let mut size = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if size < 1024.0 {
            let digits = usize::from(unit != "B");
            return format!("{size:.digits$} {unit}");
        }
        size /= 1024.0;
    }
    format!("{size:.1} TiB")
}

/// Prints rows under their heads, in columns as wide as their widest cell.
pub fn table(heads: &[&str], rows: &[Vec<String>]) {
    for text in aligned(heads, rows) {
        line(&text);
    }
}

fn aligned(heads: &[&str], rows: &[Vec<String>]) -> Vec<String> {
    let heads: Vec<String> = heads.iter().map(|head| head.to_uppercase()).collect();
    let all: Vec<&[String]> =
        std::iter::once(heads.as_slice()).chain(rows.iter().map(Vec::as_slice)).collect();
    let width = |column: usize| {
        let cells = all.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..heads.len()).map(width).collect();
    let text = |row: &&[String]| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    all.iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_read_as_people_write_them() {
        let value = serde_json::json!([{ "a": null, "b": ["x", "y"], "c": { "k": "v" }, "d": 7 }]);
        assert_eq!(rows(&value, &["a", "b", "c", "d"]), [["-", "x,y", "k=v", "7"]]);
        assert!(rows(&Value::Null, &["a"]).is_empty());
    }

    #[test]
    fn sizes_have_a_unit_that_fits() {
        assert_eq!([0, 999, 2048, 3 << 30].map(size), ["0 B", "999 B", "2.0 KiB", "3.0 GiB"]);
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["1", "shard-0001", ""], ["10", "é", "x"]];
        let rows: Vec<Vec<String>> =
            rows.iter().map(|row| row.iter().map(ToString::to_string).collect()).collect();
        assert_eq!(
            aligned(&["id", "name", "note"], &rows),
            ["ID  NAME        NOTE", "1   shard-0001", "10  é           x"]
        );
    }
}
