//! What commands print: aligned tables for people, JSON for programs.

use serde_json::Value;

/// Prints a line to standard output. A reader that went away early, such as `head`, is no error.
pub(crate) fn line(text: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// Prints JSON with line breaks.
pub(crate) fn json(value: &Value) {
    line(&format!("{value:#}"));
}

/// Prints rows under their heads, in columns as wide as their widest cell.
pub(crate) fn table(heads: &[&str], rows: &[Vec<String>]) {
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
