//! The entities of a file, one after another, with the position of each, so that an import can name it and resume behind it.

use std::io::{self, BufRead, Read};
use std::sync::mpsc::{Receiver, sync_channel};

use lazuli_console::{Failure, Result};

use super::Format;
use super::columns::Header;
use super::entity::Entity;
use super::layout::Layout;
use crate::csv::read_row_by;
use crate::frontier::FilePosition;

/// The longest line of JSON. An entity of the service has 1 MiB.
const LINE_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// Entities that are read ahead.
const AHEAD: usize = 256;
/// The byte order mark, with which some programs begin a text.
const ENCODING_MARK: &[u8] = b"\xef\xbb\xbf";

/// An entity of the file, or what is wrong with it.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) from: FilePosition,
    pub(super) to: FilePosition,
    pub(super) entity: std::result::Result<Entity, String>,
}

pub(super) struct Source {
    input: Box<dyn BufRead + Send>,
    header: Option<Header>,
    delimiter: u8,
    at: FilePosition,
}

impl Source {
    /// Begins to read: the header first, if the format has one.
    pub(super) fn open(
        input: Box<dyn BufRead + Send>,
        format: Format,
        layout: &Layout,
    ) -> Result<Self> {
        let (delimiter, at) = (layout.delimiter, FilePosition { offset: 0, line: 1 });
        let mut source = Self { input, header: None, delimiter, at };
        if format == Format::Csv {
            let row = read_row_by(&mut source.input, delimiter);
            let row = row.map_err(|error| source.broken(&error))?;
            let row = row.ok_or_else(|| Failure::failed("the file is empty: it has no header"))?;
            let wrong = |reason: String| Failure::failed(format!("line 1: {reason}"));
            let fields = row.fields.map_err(wrong)?;
            source.header = Some(Header::read(&fields, layout).map_err(wrong)?);
            source.advance(row.bytes, row.lines);
        }
        Ok(source)
    }

    /// Continues at a position where this source was before.
    pub(super) fn skip_to(&mut self, position: FilePosition) -> Result<()> {
        let changed = || {
            Failure::failed("the file is not the one whose import was interrupted")
                .hint("start again with --restart")
        };
        if position.offset == 0 {
            // It was interrupted before its first entity was written: the header has just been read.
            return Ok(());
        }
        let Some(rest) = position.offset.checked_sub(self.at.offset) else { return Err(changed()) };
        if rest > 0 {
            let mut skipped = self.input.by_ref().take(rest - 1);
            io::copy(&mut skipped, &mut io::sink()).map_err(|error| self.broken(&error))?;
            let mut last = [0];
            let read = self.input.read(&mut last).map_err(|error| self.broken(&error))?;
            // A record ends with its line, unless it is the last one of the file.
            let mut is_end = || self.input.fill_buf().is_ok_and(<[u8]>::is_empty);
            if read == 0 || (last != *b"\n" && !is_end()) {
                return Err(changed());
            }
        }
        self.at = position;
        Ok(())
    }

    /// The next entity; none at the end.
    pub(super) fn next(&mut self) -> Result<Option<Record>> {
        loop {
            let from = self.at;
            let entity = match &self.header {
                Some(header) => {
                    let row = read_row_by(&mut self.input, self.delimiter);
                    let row = row.map_err(|error| self.broken(&error))?;
                    let Some(row) = row else { return Ok(None) };
                    let blank = row.fields.as_ref().is_ok_and(|fields| {
                        matches!(fields.as_slice(), [field] if field.text.trim().is_empty())
                    });
                    let read = row.fields.and_then(|fields| header.object(&fields));
                    self.advance(row.bytes, row.lines);
                    (!blank).then(|| read.and_then(|text| Entity::read(&text)))
                }
                None => {
                    let Some(line) = self.read_line()? else { return Ok(None) };
                    self.advance(line.len() as u64, 1);
                    let text = line.strip_prefix(ENCODING_MARK).unwrap_or(&line).trim_ascii();
                    (!text.is_empty()).then(|| Entity::read(text))
                }
            };
            if let Some(entity) = entity {
                return Ok(Some(Record { from, to: self.at, entity }));
            }
        }
    }

    /// Reads on a thread of its own, which ends with the input or with its receiver.
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
        Source::open(Box::new(text.as_bytes()), format, &Layout::default()).unwrap()
    }

    fn places(source: &mut Source) -> Vec<(u64, bool)> {
        let next = || source.next().unwrap().map(|it| (it.from.line, it.entity.is_ok()));
        std::iter::from_fn(next).collect()
    }

    const LINES: &str = "\u{feff}{\"PartitionKey\":\"p\",\"RowKey\":\"1\"}\r\n\n  \nbad\n\
                         {\"PartitionKey\":\"p\",\"RowKey\":\"2\"}";
    const ROWS: &str = "PartitionKey,RowKey\np,\"1\n\"\n\np,2,3\np,3\n";

    #[test]
    fn entities_come_with_their_lines() {
        let lines = places(&mut source(LINES, Format::Jsonl));
        assert_eq!(lines, [(1, true), (4, false), (5, true)]);
        let rows = places(&mut source(ROWS, Format::Csv));
        assert_eq!(rows, [(2, true), (5, false), (6, true)]);
    }

    #[test]
    fn a_source_goes_on_behind_any_of_its_entities() {
        for (text, format) in [(LINES, Format::Jsonl), (ROWS, Format::Csv)] {
            let all = places(&mut source(text, format));
            let mut first = source(text, format);
            for at in 1..=all.len() {
                let place = first.next().unwrap().unwrap().to;
                let mut again = source(text, format);
                again.skip_to(place).unwrap();
                assert_eq!(places(&mut again), all[at..]);
            }
        }
        for (text, format) in [(LINES, Format::Jsonl), (ROWS, Format::Csv)] {
            let mut again = source(text, format);
            again.skip_to(FilePosition { offset: 0, line: 1 }).unwrap();
            assert_eq!(places(&mut again), places(&mut source(text, format)));
        }
        for offset in [3, 1000] {
            let place = FilePosition { offset, line: 1 };
            assert!(source(LINES, Format::Jsonl).skip_to(place).is_err(), "{offset}");
        }
    }
}
