//! Rows of COPY data, cut out of a stream, and the key in each of them.
//!
//! Rows are passed on byte by byte as they came; only their ends and the fields of the key are looked for.

use bytes::{Buf, Bytes, BytesMut};

use crate::error::{SqlError, code};
use crate::limits::COPY_ROW_BYTES_MAX;
use crate::plan::{CopyFormat, CopyShape};

/// Cuts data into rows.
pub(crate) struct Rows {
    shape: CopyShape,
    buffer: BytesMut,
    /// How far the end of the first row was looked for, and whether that place is inside quotes.
    seen: usize,
    in_quotes: bool,
    is_over: bool,
}

impl Rows {
    pub(crate) fn new(shape: CopyShape) -> Self {
        Self { shape, buffer: BytesMut::new(), seen: 0, in_quotes: false, is_over: false }
    }

    pub(crate) fn add(&mut self, data: &[u8]) {
        if !self.is_over {
            self.buffer.extend_from_slice(data);
        }
    }

    /// The next row with its line end, if it has come in whole. `is_last`: nothing more will come.
    pub(crate) fn next(&mut self, is_last: bool) -> Result<Option<Bytes>, SqlError> {
        let end = match self.shape.format {
            CopyFormat::Text => self.text_end(),
            CopyFormat::Csv => self.csv_end(),
        };
        let end = match end {
            Some(end) => end,
            None if self.buffer.len() > COPY_ROW_BYTES_MAX => {
                return Err(SqlError::new(code::LIMIT, "a row of COPY data is too long"));
            }
            None if is_last && !self.buffer.is_empty() => self.buffer.len(),
            None => return Ok(None),
        };
        self.seen = 0;
        self.in_quotes = false;
        let row = self.buffer.split_to(end).freeze();
        // The end of data within the data; what follows it is not looked at.
        if without_end(&row) == b"\\." {
            self.is_over = true;
            let rest = self.buffer.len();
            self.buffer.advance(rest);
            return Ok(None);
        }
        Ok(Some(row))
    }

    /// A backslash before a newline makes it a part of the row.
    fn text_end(&mut self) -> Option<usize> {
        while self.seen < self.buffer.len() {
            match self.buffer[self.seen] {
                b'\\' if self.seen + 1 >= self.buffer.len() => return None,
                b'\\' => self.seen += 2,
                b'\n' => return Some(self.seen + 1),
                _ => self.seen += 1,
            }
        }
        None
    }

    /// A newline in quotes is a part of the row. A doubled quote leaves and enters them, which comes to the same.
    fn csv_end(&mut self) -> Option<usize> {
        let (quote, escape) = (self.shape.quote, self.shape.escape);
        while self.seen < self.buffer.len() {
            let byte = self.buffer[self.seen];
            if self.in_quotes && byte == escape && escape != quote {
                if self.seen + 1 >= self.buffer.len() {
                    return None;
                }
                self.seen += 2;
                continue;
            }
            if byte == quote {
                self.in_quotes = !self.in_quotes;
            } else if byte == b'\n' && !self.in_quotes {
                return Some(self.seen + 1);
            }
            self.seen += 1;
        }
        None
    }
}

fn without_end(row: &[u8]) -> &[u8] {
    let row = row.strip_suffix(b"\n").unwrap_or(row);
    row.strip_suffix(b"\r").unwrap_or(row)
}

/// The value of one field of a row; none if it is NULL.
pub(crate) fn field(
    row: &[u8],
    index: usize,
    shape: &CopyShape,
) -> Result<Option<String>, SqlError> {
    let row = without_end(row);
    let raw = match shape.format {
        CopyFormat::Text => text_field(row, index, shape.delimiter),
        CopyFormat::Csv => return csv_field(row, index, shape),
    };
    let raw = raw.ok_or_else(too_few)?;
    if raw == shape.null.as_bytes() {
        return Ok(None);
    }
    String::from_utf8(unescape(raw)?)
        .map(Some)
        .map_err(|_| SqlError::new("22021", "COPY data is not UTF-8"))
}

fn too_few() -> SqlError {
    SqlError::new(code::BAD_COPY, "a row of COPY data has no field for the sharding key")
}

fn text_field(row: &[u8], index: usize, delimiter: u8) -> Option<&[u8]> {
    let (mut begin, mut at, mut field) = (0, 0, 0);
    loop {
        let is_end = at >= row.len();
        if is_end || row[at] == delimiter {
            if field == index {
                return row.get(begin..at.min(row.len()));
            }
            if is_end {
                return None;
            }
            field += 1;
            begin = at + 1;
            at += 1;
        } else {
            at += if row[at] == b'\\' { 2 } else { 1 };
        }
    }
}

/// Backslash sequences of the text form. Those of octal and hexadecimal digits are refused in a key.
fn unescape(raw: &[u8]) -> Result<Vec<u8>, SqlError> {
    let (mut out, mut bytes) = (Vec::with_capacity(raw.len()), raw.iter());
    while let Some(byte) = bytes.next() {
        if *byte != b'\\' {
            out.push(*byte);
            continue;
        }
        out.push(match bytes.next() {
            Some(b'b') => 8,
            Some(b'f') => 12,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'v') => 11,
            Some(b'0'..=b'7' | b'x') | None => {
                return Err(SqlError::new(
                    code::BAD_COPY,
                    "a sharding key is written with digits behind a backslash",
                ));
            }
            Some(other) => *other,
        });
    }
    Ok(out)
}

fn csv_field(row: &[u8], index: usize, shape: &CopyShape) -> Result<Option<String>, SqlError> {
    let (mut at, mut field) = (0, 0);
    loop {
        let (mut value, mut was_quoted, mut in_quotes) = (Vec::new(), false, false);
        while at < row.len() {
            let byte = row[at];
            if in_quotes {
                let next = row.get(at + 1).copied();
                if byte == shape.escape
                    && next.is_some_and(|next| next == shape.quote || next == shape.escape)
                {
                    value.extend(next);
                    at += 2;
                    continue;
                }
                if byte == shape.quote {
                    in_quotes = false;
                } else {
                    value.push(byte);
                }
            } else if byte == shape.quote {
                in_quotes = true;
                was_quoted = true;
            } else if byte == shape.delimiter {
                break;
            } else {
                value.push(byte);
            }
            at += 1;
        }
        if field == index {
            if !was_quoted && value == shape.null.as_bytes() {
                return Ok(None);
            }
            let bad = |_| SqlError::new("22021", "COPY data is not UTF-8");
            return String::from_utf8(value).map(Some).map_err(bad);
        }
        if at >= row.len() {
            return Err(too_few());
        }
        at += 1;
        field += 1;
    }
}

/// For the fuzz target: rows are whole, and together not more than the data.
#[cfg(any(test, fuzzing))]
pub(crate) fn try_copy_rows(shape: &CopyShape, data: &[u8]) {
    let mut rows = Rows::new(shape.clone());
    let (mut total, half) = (0, data.len() / 2);
    for (piece, is_last) in [(&data[..half], false), (&data[half..], true)] {
        rows.add(piece);
        while let Ok(Some(row)) = rows.next(is_last) {
            total += row.len();
            let _ = field(&row, 1, shape);
        }
    }
    assert!(total <= data.len(), "rows are longer than the data");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(format: CopyFormat) -> CopyShape {
        let is_csv = format == CopyFormat::Csv;
        CopyShape {
            format,
            delimiter: if is_csv { b',' } else { b'\t' },
            null: if is_csv { "" } else { "\\N" }.to_owned(),
            quote: b'"',
            escape: b'"',
            has_header: false,
        }
    }

    /// The rows of data that comes in pieces of every size.
    fn rows(format: CopyFormat, data: &[u8]) -> Vec<String> {
        let mut all = Vec::new();
        for size in 1..=data.len() {
            let (mut rows, mut found) = (Rows::new(shape(format)), Vec::new());
            for piece in data.chunks(size) {
                rows.add(piece);
                while let Some(row) = rows.next(false).unwrap() {
                    found.push(String::from_utf8(row.to_vec()).unwrap());
                }
            }
            while let Some(row) = rows.next(true).unwrap() {
                found.push(String::from_utf8(row.to_vec()).unwrap());
            }
            assert!(all.is_empty() || all == found, "{size}: {found:?}");
            all = found;
        }
        all
    }

    #[test]
    fn rows_are_cut_the_same_however_the_data_comes() {
        assert_eq!(rows(CopyFormat::Text, b"1\ta\\\nb\n2\tc"), ["1\ta\\\nb\n", "2\tc"]);
        assert_eq!(rows(CopyFormat::Text, b"1\ta\n\\.\nrest"), ["1\ta\n"]);
        assert_eq!(
            rows(CopyFormat::Csv, b"1,\"a\nb\"\n2,\"c\"\"\nd\"\n"),
            ["1,\"a\nb\"\n", "2,\"c\"\"\nd\"\n"]
        );
    }

    #[test]
    fn fields_are_read_as_postgresql_reads_them() {
        let text = |row: &[u8], index| field(row, index, &shape(CopyFormat::Text)).unwrap();
        assert_eq!(text(b"1\ta\\tb\t\\N\n", 1).as_deref(), Some("a\tb"));
        assert_eq!(text(b"1\ta\\tb\t\\N\n", 2), None);
        let csv = |row: &[u8], index| field(row, index, &shape(CopyFormat::Csv)).unwrap();
        assert_eq!(csv(b"1,\"a,\"\"b\"\"\",\"\"\n", 1).as_deref(), Some("a,\"b\""));
        assert_eq!(csv(b"1,,\"\"\n", 1), None);
        assert_eq!(csv(b"1,,\"\"\n", 2).as_deref(), Some(""));
        assert!(field(b"1\n", 3, &shape(CopyFormat::Csv)).is_err());
    }
}
