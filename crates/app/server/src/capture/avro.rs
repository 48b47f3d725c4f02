//! Files of Avro with events in them, in the schema that the service's own capture has, without compression.

use std::collections::BTreeMap;

use bytes::Bytes;

/// What every file begins with.
const MAGIC: &[u8] = b"Obj\x01";
/// The events of one block at the most.
const BLOCK_EVENTS: usize = 1_000;

const SCHEMA: &str = r#"{"type":"record","name":"EventData","namespace":"Microsoft.ServiceBus.Messaging","fields":[{"name":"SequenceNumber","type":"long"},{"name":"Offset","type":"string"},{"name":"EnqueuedTimeUtc","type":"string"},{"name":"SystemProperties","type":{"type":"map","values":["long","double","string","bytes"]}},{"name":"Properties","type":{"type":"map","values":["long","double","string","bytes","null"]}},{"name":"Body","type":["null","bytes"]}]}"#;

/// The place of texts in the unions of values, and of bytes in that of bodies.
const TEXT: i64 = 2;
const BYTES: i64 = 1;

/// One event of a file.
pub(super) struct Captured {
    pub(super) offset: u64,
    /// As text, in UTC.
    pub(super) enqueued: String,
    pub(super) key: Option<String>,
    pub(super) properties: Vec<(String, String)>,
    pub(super) body: Bytes,
}

/// Whole numbers, small ones in few bytes: the sign in the lowest bit, then seven bits a byte.
fn long(out: &mut Vec<u8>, number: i64) {
    let mut rest = ((number << 1) ^ (number >> 63)).cast_unsigned();
    while rest >= 0x80 {
        out.push((rest as u8) | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

fn bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    long(out, bytes.len() as i64);
    out.extend_from_slice(bytes);
}

/// A map of texts, in one block.
fn map<'a>(out: &mut Vec<u8>, pairs: impl ExactSizeIterator<Item = (&'a str, &'a str)>) {
    if pairs.len() > 0 {
        long(out, pairs.len() as i64);
        for (name, value) in pairs {
            bytes(out, name.as_bytes());
            long(out, TEXT);
            bytes(out, value.as_bytes());
        }
    }
    long(out, 0);
}

fn event(out: &mut Vec<u8>, event: &Captured) {
    long(out, i64::try_from(event.offset).unwrap_or(i64::MAX));
    bytes(out, event.offset.to_string().as_bytes());
    bytes(out, event.enqueued.as_bytes());
    let key = event.key.as_deref().map(|key| ("x-opt-partition-key", key));
    map(out, key.into_iter().collect::<Vec<_>>().into_iter());
    // A map has each name once.
    let own: BTreeMap<&str, &str> =
        event.properties.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    map(out, own.into_iter());
    long(out, BYTES);
    bytes(out, &event.body);
}

/// A whole file. The marker is between its blocks, and has to be one that no file has by chance.
pub(super) fn file(events: &[Captured], marker: [u8; 16]) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    let head = [("avro.codec", "null"), ("avro.schema", SCHEMA)];
    long(&mut out, head.len() as i64);
    for (name, value) in head {
        bytes(&mut out, name.as_bytes());
        bytes(&mut out, value.as_bytes());
    }
    long(&mut out, 0);
    out.extend_from_slice(&marker);
    for block in events.chunks(BLOCK_EVENTS) {
        let mut inside = Vec::new();
        block.iter().for_each(|one| event(&mut inside, one));
        long(&mut out, block.len() as i64);
        bytes(&mut out, &inside);
        out.extend_from_slice(&marker);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_the_format_has_them() {
        let written = |number| {
            let mut out = Vec::new();
            long(&mut out, number);
            out
        };
        assert_eq!(written(0), [0]);
        assert_eq!(written(-1), [1]);
        assert_eq!(written(1), [2]);
        assert_eq!(written(64), [0x80, 1]);
        assert_eq!(written(i64::MIN).len(), 10);
    }

    #[test]
    fn a_file_has_its_schema_and_its_blocks_between_markers() {
        let one = |offset| Captured {
            offset,
            enqueued: "2026-01-01T00:00:00Z".into(),
            key: Some("k".into()),
            properties: vec![("a".into(), "b".into())],
            body: Bytes::from_static(b"body"),
        };
        let events: Vec<_> = (0..BLOCK_EVENTS as u64 + 1).map(one).collect();
        let file = file(&events, [7; 16]);
        assert!(file.starts_with(MAGIC));
        let markers = file.windows(16).filter(|window| *window == [7; 16]).count();
        assert_eq!(markers, 3, "one behind the head and one behind each block");
        let text = String::from_utf8_lossy(&file);
        assert!(text.contains("\"EventData\"") && text.contains("x-opt-partition-key"));
    }
}
