//! COPY of a query to the client: its rows, in text form, as lines of text or csv.

use std::sync::Arc;

use bytes::{BufMut, BytesMut};
use lazuli_pg::client::{message, write_copy_data};
use lazuli_pg::server::{tag, write_command_complete};
use lazuli_sharded_sql::Snapshot;

use super::simple::no_parameters;
use super::{Session, Stop};
use crate::plan::{CopyFormat, CopyShape};
use crate::space::Planned;

impl Session {
    pub(super) async fn copy_query(
        &mut self,
        snapshot: &Arc<Snapshot>,
        planned: &Arc<Planned>,
        shape: &CopyShape,
    ) -> Result<(), Stop> {
        let Some(query) = planned.parts.first() else { return Err(Stop::Gone) };
        let description = self.describe(snapshot, query).await?;
        let rows = self.fetch(snapshot, query, &no_parameters(), &description).await?;
        let fields = description.fields.as_deref().unwrap_or_default();
        message(&mut self.client.out, tag::COPY_OUT, |out| {
            out.put_u8(0);
            out.put_u16(fields.len() as u16);
            fields.iter().for_each(|_| out.put_i16(0));
        });
        if shape.has_header {
            let names = fields.iter().map(|field| Some(field.name.as_bytes()));
            write_copy_data(&mut self.client.out, &line(names, shape));
        }
        let count = rows.len();
        for row in &rows {
            let values = row.iter().map(|value| value.as_deref());
            write_copy_data(&mut self.client.out, &line(values, shape));
            self.client.send_if_much().await?;
        }
        message(&mut self.client.out, tag::COPY_DONE, |_| {});
        write_command_complete(&mut self.client.out, &format!("COPY {count}"));
        Ok(())
    }
}

/// One row as COPY writes it.
fn line<'v>(
    values: impl ExactSizeIterator<Item = Option<&'v [u8]>>,
    shape: &CopyShape,
) -> BytesMut {
    let (mut line, is_single) = (BytesMut::new(), values.len() == 1);
    for (index, value) in values.enumerate() {
        if index > 0 {
            line.put_u8(shape.delimiter);
        }
        match (value, shape.format) {
            (None, _) => line.put_slice(shape.null.as_bytes()),
            (Some(value), CopyFormat::Text) => text(value, shape, &mut line),
            (Some(value), CopyFormat::Csv) => csv(value, is_single, shape, &mut line),
        }
    }
    line.put_u8(b'\n');
    line
}

fn text(value: &[u8], shape: &CopyShape, line: &mut BytesMut) {
    for byte in value {
        let letter = match byte {
            8 => b'b',
            9 => b't',
            10 => b'n',
            11 => b'v',
            12 => b'f',
            13 => b'r',
            b'\\' => b'\\',
            other if *other == shape.delimiter => *other,
            other => {
                line.put_u8(*other);
                continue;
            }
        };
        line.put_slice(&[b'\\', letter]);
    }
}

fn csv(value: &[u8], is_single: bool, shape: &CopyShape, line: &mut BytesMut) {
    let is_special = |byte: &u8| [shape.delimiter, shape.quote, b'\n', b'\r'].contains(byte);
    // A line with this alone would end the data.
    let is_end = is_single && value == b"\\.";
    if !is_end && value != shape.null.as_bytes() && !value.iter().any(is_special) {
        line.put_slice(value);
        return;
    }
    line.put_u8(shape.quote);
    for byte in value {
        if *byte == shape.quote || *byte == shape.escape {
            line.put_u8(shape.escape);
        }
        line.put_u8(*byte);
    }
    line.put_u8(shape.quote);
}
