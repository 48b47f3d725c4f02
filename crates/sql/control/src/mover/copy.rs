//! The first copy: chunks in the order of the tables' keys, each with a snapshot of its own.
//!
//! A chunk may be older than the next one; what has changed in between is in the outboxes. The last key of a chunk is recorded on
//! the target with its rows.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::{SinkExt, StreamExt};
use lazuli_store::{Error, Result};
use tokio::time::{Instant, sleep};

use super::{MovedTable, Mover, beyond};
use crate::SqlReason;
use crate::job::Step;
use crate::link::{Link, failed, sqlstate};
use crate::shape::Shape;

/// Rows of the first chunk of a table. Later ones are as large as [`CHUNK_BYTES`] asks for.
const FIRST_CHUNK_ROWS: usize = 500;
const CHUNK_ROWS_MAX: usize = 20_000;
/// About as many bytes are read and written at once.
const CHUNK_BYTES: usize = 4 * 1024 * 1024;
/// How often a chunk is read again because of a unique value. Then another row of the target has it, and somebody must decide.
const CONFLICTS_MAX: usize = 5;
/// How much is sent in one message.
const PIECE_BYTES: usize = 64 * 1024;

impl Mover<'_> {
    /// Copies all tables, parents first.
    pub(super) async fn copy(&mut self) -> Result<()> {
        self.ensure_open().await?;
        let begun = Instant::now();
        let mut total = 0;
        for nth in 0..self.tables.len() {
            let (mut last, mut is_done) = self.progress(nth).await?;
            let (mut rows_wanted, mut conflicts) = (FIRST_CHUNK_ROWS, 0);
            while !is_done {
                let chunk = self.read_chunk(&self.tables[nth], last.as_ref(), rows_wanted).await?;
                is_done = chunk.rows.len() < rows_wanted;
                match self.write_chunk(nth, last.as_ref(), &chunk, is_done).await {
                    Ok(()) => conflicts = 0,
                    // A unique value has changed hands since an earlier chunk: its change is in an outbox.
                    Err(error) if error.is(SqlReason::Unique) && conflicts < CONFLICTS_MAX => {
                        conflicts += 1;
                        self.pass(false).await?;
                        is_done = false;
                        continue;
                    }
                    Err(error) => return Err(error),
                }
                self.control.reached(self.job, "chunk-copied").await;
                if chunk.last.is_some() {
                    last.clone_from(&chunk.last);
                }
                let rows = chunk.rows.len();
                total += rows as u64;
                self.work.rows_copied += rows as u64;
                rows_wanted = next_rows(rows, chunk.bytes);
                self.told_copied(total, begun);
                self.pace(total, begun).await;
            }
        }
        self.advance(Step::CatchUp, "copied").await
    }

    fn told_copied(&self, total: u64, begun: Instant) {
        let rate = total as f64 / begun.elapsed().as_secs_f64().max(0.001);
        let rows = self.work.rows_copied;
        self.control.tell(&self.name, self.job, |told| {
            told.rows = rows;
            told.rows_per_second = rate;
            told.trouble = None;
        });
    }

    /// Waits so that no more rows are copied in a second than asked for.
    async fn pace(&self, total: u64, begun: Instant) {
        let Some(most) = self.work.options.rows_per_second.filter(|it| *it > 0) else { return };
        let due = Duration::from_secs_f64(total as f64 / most as f64);
        sleep(due.saturating_sub(begun.elapsed())).await;
    }

    /// How far the copy of a table is: the last key, and whether it is complete.
    async fn progress(&mut self, nth: usize) -> Result<(Option<Vec<String>>, bool)> {
        let (job, table) = (self.job, self.tables[nth].form.id);
        let query = format!(
            "SELECT last, done, copied FROM lazuli.progress WHERE job = {job} AND tbl = {table}"
        );
        let rows = self.target.rows(&query).await?;
        let Some(row) = rows.first() else { return Ok((None, false)) };
        self.work.rows_copied += row.get::<_, i64>(2).cast_unsigned();
        Ok((row.get(0), row.get(1)))
    }

    async fn read_chunk(
        &self,
        table: &MovedTable,
        last: Option<&Vec<String>>,
        rows: usize,
    ) -> Result<Chunk> {
        let shape = &table.shape;
        let query = format!(
            "SELECT {} FROM {} t WHERE {}{} ORDER BY {} LIMIT {rows}",
            Shape::names(&shape.columns, "t"),
            shape.table(),
            self.within(table, "t"),
            beyond(&shape.key, last, "t", ">"),
            Shape::names(&shape.key, "t"),
        );
        let mut chunk = read(&self.source, &query).await?;
        chunk.last = chunk.rows.last().and_then(|row| key_of(shape, row));
        Ok(chunk)
    }

    /// Writes a chunk and how far the copy is, in one transaction.
    async fn write_chunk(
        &mut self,
        nth: usize,
        last: Option<&Vec<String>>,
        chunk: &Chunk,
        is_done: bool,
    ) -> Result<()> {
        let guard = self.guard();
        let (job, taken) = (self.job, self.taken());
        let table = &self.tables[nth];
        let shape = &table.shape;
        let until = beyond(&shape.key, chunk.last.as_ref(), "t", "<=");
        // What a pass has brought already is in this chunk too, and newer here.
        let clear = format!(
            "DELETE FROM {} t WHERE {}{}{until}",
            shape.table(),
            self.within(table, "t"),
            beyond(&shape.key, last, "t", ">"),
        );
        let place = chunk.last.as_ref().or(last);
        let copied = i64::try_from(chunk.rows.len()).unwrap_or(i64::MAX);
        let progress = format!(
            "INSERT INTO lazuli.progress (job, tbl, last, copied, done) VALUES ({job}, {}, $1, $2, $3) \
             ON CONFLICT (job, tbl) DO UPDATE SET last = excluded.last, done = excluded.done, \
             copied = progress.copied + excluded.copied",
            table.form.id
        );
        let (into, name) = (copy_into(shape), self.target.name.clone());
        let failed = |error: tokio_postgres::Error| match sqlstate(&error) {
            "23505" => Error::exists(SqlReason::Unique, failed(&name, &error).message()),
            _ => failed(&name, &error),
        };
        let transaction = self.target.client.transaction().await.map_err(failed)?;
        if transaction.query(&guard, &[]).await.map_err(failed)?.is_empty() {
            return Err(taken);
        }
        if !chunk.rows.is_empty() {
            transaction.batch_execute(&clear).await.map_err(failed)?;
            let sink = transaction.copy_in(&into).await.map_err(failed)?;
            send(sink, &chunk.rows).await.map_err(failed)?;
        }
        let place = place.cloned();
        let values: [&(dyn tokio_postgres::types::ToSql + Sync); 3] = [&place, &copied, &is_done];
        transaction.execute(&progress, &values).await.map_err(failed)?;
        transaction.commit().await.map_err(failed)
    }
}

/// Rows in the text form of COPY, one each.
#[derive(Default)]
pub(crate) struct Chunk {
    pub(crate) rows: Vec<Bytes>,
    bytes: usize,
    last: Option<Vec<String>>,
}

/// How many rows the next chunk should have.
fn next_rows(rows: usize, bytes: usize) -> usize {
    let wanted = CHUNK_BYTES.saturating_mul(rows.max(1)) / bytes.max(1);
    wanted.clamp(1, CHUNK_ROWS_MAX)
}

/// Reads the rows of a query. PostgreSQL sends each row as a message of its own.
pub(crate) async fn read(link: &Link, query: &str) -> Result<Chunk> {
    let copy = format!("COPY ({query}) TO STDOUT");
    let stream = link.client.copy_out(&copy).await.map_err(|error| link.failed(&error))?;
    let mut stream = std::pin::pin!(stream);
    let mut chunk = Chunk::default();
    while let Some(row) = stream.next().await {
        let row = row.map_err(|error| link.failed(&error))?;
        chunk.bytes += row.len();
        chunk.rows.push(row);
    }
    Ok(chunk)
}

/// The statement that takes rows of a table.
pub(super) fn copy_into(shape: &Shape) -> String {
    format!("COPY {} ({}) FROM STDIN", shape.table(), Shape::names(&shape.columns, ""))
}

/// Sends rows, many in one message.
pub(crate) async fn send(
    sink: tokio_postgres::CopyInSink<Bytes>,
    rows: &[Bytes],
) -> std::result::Result<u64, tokio_postgres::Error> {
    let mut sink = std::pin::pin!(sink);
    let mut piece = BytesMut::with_capacity(PIECE_BYTES);
    for row in rows {
        piece.extend_from_slice(row);
        if piece.len() >= PIECE_BYTES {
            sink.send(piece.split().freeze()).await?;
        }
    }
    if !piece.is_empty() {
        sink.send(piece.freeze()).await?;
    }
    sink.finish().await
}

/// The key of a row in the text form of COPY, as texts.
fn key_of(shape: &Shape, row: &[u8]) -> Option<Vec<String>> {
    let text = std::str::from_utf8(row).ok()?;
    let fields: Vec<&str> = text.trim_end_matches('\n').split('\t').collect();
    let field = |name: &String| {
        let at = shape.columns.iter().position(|column| column.name == *name)?;
        unescape(fields.get(at)?)
    };
    shape.key.iter().map(|column| field(&column.name)).collect()
}

/// A field of COPY's text form: the escapes that PostgreSQL writes.
fn unescape(field: &str) -> Option<String> {
    let mut text = String::with_capacity(field.len());
    let mut chars = field.chars();
    while let Some(char) = chars.next() {
        match char {
            '\\' => text.push(match chars.next()? {
                'b' => '\x08',
                'f' => '\x0c',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'v' => '\x0b',
                '\\' => '\\',
                // `\N` is null, which no column of a key is.
                _ => return None,
            }),
            plain => text.push(plain),
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_of_copy_is_read_back_and_null_is_no_key() {
        assert_eq!(unescape("a\\tb\\\\c\\n").unwrap(), "a\tb\\c\n");
        assert_eq!(unescape("\\N"), None);
        assert_eq!(unescape("tail\\"), None);
    }

    #[test]
    fn chunks_grow_and_shrink_with_the_size_of_rows() {
        assert_eq!(next_rows(500, 500 * 100), CHUNK_ROWS_MAX);
        assert_eq!(next_rows(500, 500 * 8192), 512);
        assert_eq!(next_rows(1, 1 << 30), 1);
        assert_eq!(next_rows(0, 0), CHUNK_ROWS_MAX);
    }
}
