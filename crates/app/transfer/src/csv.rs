//! Rows of comma-separated values as RFC 4180 has them: fields in quotation marks may hold commas, quotation marks
//! (doubled) and line ends. Whether a field was in quotation marks is kept, since an empty text is not the same as none.

use std::io::{self, BufRead};

/// The longest row. An entity of the service has 1 MiB.
const ROW_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// The most fields of a row: every property with its type, many times over.
pub(crate) const FIELDS_MAX: usize = 16 * 1024;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) text: String,
    pub(crate) quoted: bool,
}

/// One row, or what is wrong with it, and how much of the input it is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) fields: Result<Vec<Field>, String>,
    pub(crate) bytes: u64,
    pub(crate) lines: u64,
}

/// Where in a field the reader is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    Begin,
    Plain,
    Quoted,
    /// Behind a quotation mark in a field in quotation marks: its end, or the first of two.
    Mark,
}

/// The next row, whose fields have commas between them; none at the end. Only an input that cannot be read, or a row without
/// end, is an error.
pub(crate) fn read_row(input: &mut impl BufRead) -> io::Result<Option<Row>> {
    read_row_by(input, b',')
}

/// The same with another delimiter.
pub(crate) fn read_row_by(input: &mut impl BufRead, delimiter: u8) -> io::Result<Option<Row>> {
    let mut row = Reading::new(delimiter);
    loop {
        let buffer = input.fill_buf()?;
        if buffer.is_empty() {
            return Ok(row.end());
        }
        let mut used = 0;
        let mut ended = false;
        for byte in buffer {
            used += 1;
            if row.take(*byte) {
                ended = true;
                break;
            }
        }
        input.consume(used);
        if ended {
            return Ok(row.end());
        }
        if row.bytes > ROW_BYTES_MAX {
            let message = format!("a row of over {ROW_BYTES_MAX} bytes; is a quotation mark open?");
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
    }
}

/// A row that is being read.
struct Reading {
    delimiter: u8,
    at: At,
    text: Vec<u8>,
    quoted: bool,
    fields: Vec<Field>,
    fault: Option<&'static str>,
    bytes: u64,
    lines: u64,
}

impl Reading {
    fn new(delimiter: u8) -> Self {
        let (at, text, fields) = (At::Begin, Vec::new(), Vec::new());
        Self { delimiter, at, text, quoted: false, fields, fault: None, bytes: 0, lines: 0 }
    }

    /// Takes one byte and says whether it ended the row.
    fn take(&mut self, byte: u8) -> bool {
        self.bytes += 1;
        self.lines += u64::from(byte == b'\n');
        match (self.at, byte) {
            (At::Quoted, b'"') => self.at = At::Mark,
            (At::Quoted, _) => self.text.push(byte),
            (At::Mark, b'"') => {
                self.text.push(byte);
                self.at = At::Quoted;
            }
            (_, b'\n') => return true,
            (_, byte) if byte == self.delimiter => self.end_field(),
            (At::Begin, b'"') => {
                self.quoted = true;
                self.at = At::Quoted;
            }
            (At::Begin | At::Plain, _) => {
                self.text.push(byte);
                self.at = At::Plain;
            }
            // The carriage return of a line end is taken off with the field.
            (At::Mark, b'\r') => {}
            (At::Mark, _) => {
                self.fault = Some("there is text behind a closing quotation mark");
                self.at = At::Plain;
            }
        }
        false
    }

    fn end_field(&mut self) {
        let bytes = std::mem::take(&mut self.text);
        let text = String::from_utf8(bytes).unwrap_or_else(|_| {
            self.fault = Some("the text is not UTF-8");
            String::new()
        });
        if self.fields.len() < FIELDS_MAX {
            self.fields.push(Field { text, quoted: self.quoted });
        } else {
            self.fault = Some("there are too many fields");
        }
        self.quoted = false;
        self.at = At::Begin;
    }

    fn end(mut self) -> Option<Row> {
        if self.bytes == 0 {
            return None;
        }
        if self.at == At::Quoted {
            self.fault = Some("a quotation mark is not closed");
        }
        if !self.quoted && self.text.last() == Some(&b'\r') {
            self.text.pop();
        }
        self.end_field();
        let fields = match self.fault {
            Some(fault) => Err(fault.to_owned()),
            None => Ok(self.fields),
        };
        Some(Row { fields, bytes: self.bytes, lines: self.lines.max(1) })
    }
}

/// Writes a field that is there: an empty one in quotation marks, and any other where it needs them.
pub(crate) fn write_field(out: &mut Vec<u8>, text: &str) {
    let plain = !text.is_empty()
        && !text.contains([',', '"', '\r', '\n'])
        && text.trim() == text
        && !text.starts_with('\u{feff}');
    if plain {
        out.extend_from_slice(text.as_bytes());
        return;
    }
    out.push(b'"');
    out.extend_from_slice(text.replace('"', "\"\"").as_bytes());
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &[u8]) -> Vec<Row> {
        let mut input = text;
        std::iter::from_fn(|| read_row(&mut input).unwrap()).collect()
    }

    fn texts(row: &Row) -> Vec<&str> {
        row.fields.as_ref().unwrap().iter().map(|field| field.text.as_str()).collect()
    }

    #[test]
    fn rows_have_fields_with_and_without_quotation_marks() {
        let read = rows(b"a,\"b \"\"c\"\",\r\nd\",\r\n,\"\"\n\nlast");
        assert_eq!(texts(&read[0]), ["a", "b \"c\",\r\nd", ""]);
        assert_eq!((read[0].bytes, read[0].lines), (18, 2));
        assert_eq!(texts(&read[1]), ["", ""]);
        let quoted: Vec<_> =
            read[1].fields.as_ref().unwrap().iter().map(|field| field.quoted).collect();
        assert_eq!(quoted, [false, true]);
        assert_eq!(texts(&read[2]), [""]);
        assert_eq!(texts(&read[3]), ["last"]);
        assert_eq!(read.len(), 4);
    }

    #[test]
    fn any_byte_can_be_the_delimiter() {
        let row = read_row_by(&mut &b"a,b;\"c;d\";\n"[..], b';').unwrap().unwrap();
        assert_eq!(texts(&row), ["a,b", "c;d", ""]);
    }

    #[test]
    fn a_faulty_row_does_not_spoil_the_next() {
        let read = rows(b"\"a\"b,c\nd\n\xff\ne\n\"open\n");
        let faults: Vec<bool> = read.iter().map(|row| row.fields.is_err()).collect();
        assert_eq!(faults, [true, false, true, false, true]);
    }

    #[test]
    fn what_is_written_is_read_again() {
        let all =
            ["", " ", "a", "a,b", "\"", "\"\"", "\r", "\n", "ä😀", "x\r\ny", "\u{feff}z", "\0"];
        let mut out = Vec::new();
        for text in all {
            write_field(&mut out, text);
            out.push(b',');
        }
        out.pop();
        out.push(b'\n');
        let read = rows(&out);
        assert_eq!(read.len(), 1);
        assert_eq!(texts(&read[0]), all);
    }

    /// A bounded stand-in for a fuzzer: rows cover the input without gap, and nothing panics.
    #[test]
    fn random_bytes_never_panic_and_none_is_left_out() {
        let seed =
            b"PartitionKey,\"Row\"\"Key\",A,A@type\r\np,\"r\n,1\",\"\",Edm.String\n\"\xc3\xa4\",,x";
        lazuli_http::mutate::each(seed, 20_000, |text| {
            let bytes: u64 = rows(text).iter().map(|row| row.bytes).sum();
            assert_eq!(bytes, text.len() as u64);
        });
    }
}
