//! The items of a file, one after another, with the position of each, so that an import can name it and resume behind it.

use std::io::{self, BufRead, Read};
use std::sync::mpsc::{Receiver, sync_channel};

use lazuli_console::{Failure, Result};

use super::Format;
use super::item::Item;
use super::rows;
use crate::csv::read_row;
use crate::frontier::FilePosition;

/// The longest line of JSON. An item of the service has 2 MiB.
const LINE_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// Items that are read ahead.
const AHEAD: usize = 256;
/// The byte order mark, with which some programs begin a text.
const ENCODING_MARK: &[u8] = b"\xef\xbb\xbf";

/// An item of the file, or what is wrong with it.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) from: FilePosition,
    pub(super) to: FilePosition,
    pub(super) item: std::result::Result<Item, String>,
}

pub(super) struct Source {
    input: Box<dyn BufRead + Send>,
    /// The names of the columns, if the file is CSV.
    names: Option<Vec<String>>,
    at: FilePosition,
}

impl Source {
    /// Begins to read: the header first, if the format has one.
    pub(super) fn open(input: Box<dyn BufRead + Send>, format: Format) -> Result<Self> {
        let mut source = Self { input, names: None, at: FilePosition { offset: 0, line: 1 } };
        if format == Format::Csv {
            let row = read_row(&mut source.input).map_err(|error| source.broken(&error))?;
            let row = row.ok_or_else(|| Failure::failed("the file is empty: it has no header"))?;
            let wrong = |reason: String| Failure::failed(format!("line 1: {reason}"));
            let fields = row.fields.map_err(wrong)?;
            source.names = Some(rows::header(&fields).map_err(wrong)?);
            source.advance(row.bytes, row.lines);
        }
        Ok(source)
    }

    /// Continues at a position where this source was before.
    pub(super) fn skip_to(&mut self, position: FilePosition) -> Result<()> {
        if position.offset <= self.at.offset {
            return Ok(());
        }
        let rest = position.offset - self.at.offset;
        let mut skipped = self.input.by_ref().take(rest);
        let read = io::copy(&mut skipped, &mut io::sink());
        match read {
            Ok(read) if read == rest => {
                self.at = position;
                Ok(())
            }
            Ok(_) => {
                let message = "the file is not the one whose import was interrupted";
                Err(Failure::failed(message).hint("start again with --restart"))
            }
            Err(error) => Err(self.broken(&error)),
        }
    }

    fn next(&mut self) -> Result<Option<Record>> {
        loop {
            let from = self.at;
            let item = match &self.names {
                Some(names) => {
                    let row = read_row(&mut self.input);
                    let Some(row) = row.map_err(|error| self.broken(&error))? else {
                        return Ok(None);
                    };
                    let is_empty = row.fields.as_ref().is_ok_and(|fields| {
                        fields.len() == 1 && fields[0].text.is_empty() && !fields[0].quoted
                    });
                    let item = row.fields.and_then(|fields| rows::item(names, &fields));
                    self.advance(row.bytes, row.lines);
                    if is_empty {
                        continue;
                    }
                    item
                }
                None => {
                    let Some(line) = self.read_line()? else { return Ok(None) };
                    let text = line.strip_prefix(ENCODING_MARK).unwrap_or(&line).trim_ascii();
                    let item = (!text.is_empty()).then(|| Item::parse(text));
                    self.advance(line.len() as u64, 1);
                    match item {
                        Some(item) => item,
                        None => continue,
                    }
                }
            };
            return Ok(Some(Record { from, to: self.at, item }));
        }
    }

    /// Reads in a thread of its own, which ends with its receiver.
    pub(super) fn spawn(mut self) -> Receiver<Result<Record>> {
        let (records, receiver) = sync_channel(AHEAD);
        std::thread::spawn(move || {
            while let Some(next) = self.next().transpose() {
                let is_last = next.is_err();
                if records.send(next).is_err() || is_last {
                    break;
                }
            }
        });
        receiver
    }

    fn read_line(&mut self) -> Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        let mut bounded = self.input.by_ref().take(LINE_BYTES_MAX);
        let read = bounded.read_until(b'\n', &mut line);
        let read = read.map_err(|error| self.broken(&error))?;
        if read as u64 == LINE_BYTES_MAX {
            let line = self.at.line;
            return Err(Failure::failed(format!("line {line} has over {LINE_BYTES_MAX} bytes")));
        }
        Ok((read > 0).then_some(line))
    }

    fn advance(&mut self, bytes: u64, lines: u64) {
        self.at = FilePosition { offset: self.at.offset + bytes, line: self.at.line + lines };
    }

    fn broken(&self, error: &io::Error) -> Failure {
        Failure::failed(format!("line {}: cannot read: {error}", self.at.line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &'static str, format: Format) -> Source {
        Source::open(Box::new(text.as_bytes()), format).unwrap()
    }

    fn places(source: &mut Source) -> Vec<(u64, bool)> {
        let next = || source.next().unwrap().map(|it| (it.from.line, it.item.is_ok()));
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn a_source_goes_on_behind_any_of_its_items() {
        let lines = "\u{feff}{\"id\":\"1\"}\r\n\n  \nbad\n{\"id\":\"2\"}";
        let rows = "id,a\n1,\"x\n\"\n\n1,2,3\n2,3\n";
        for (text, format, expected) in [
            (lines, Format::Jsonl, [(1, true), (4, false), (5, true)]),
            (rows, Format::Csv, [(2, true), (5, false), (6, true)]),
        ] {
            assert_eq!(places(&mut source(text, format)), expected);
            let mut first = source(text, format);
            for at in 1..=expected.len() {
                let place = first.next().unwrap().unwrap().to;
                let mut again = source(text, format);
                again.skip_to(place).unwrap();
                assert_eq!(places(&mut again), expected[at..]);
            }
            assert!(source(text, format).skip_to(FilePosition { offset: 9_999, line: 1 }).is_err());
        }
    }
}
