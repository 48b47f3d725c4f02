//! What must hold of any bytes, for the fuzz targets and for the tests that run them on seeds.

use crate::rdb;

/// Restores a payload. Behind bytes that look like one stand a version and a checksum of zero, so that not all ends there. What
/// can be restored can be dumped, and is the same again.
pub fn payload(bytes: &[u8]) {
    let _ = rdb::restore(bytes);
    let unchecked = [bytes, &10_u16.to_le_bytes(), &[0; 8]].concat();
    let Ok(value) = rdb::restore(&unchecked) else { return };
    let dumped = rdb::dump(&value);
    let again = rdb::restore(&dumped).expect("what was dumped is a payload");
    assert_eq!(rdb::dump(&again), dumped, "a value is the same after a dump");
}

/// Reads a file, whole and in pieces: the records are the same, and values end where the reader of values ends.
pub fn file(bytes: &[u8]) {
    let (whole, in_pieces) = (records(bytes, bytes.len().max(1)), records(bytes, 61));
    assert_eq!(whole, in_pieces, "pieces make no difference");
}

/// What a file shows when this many bytes more are looked at whenever it asks for more.
fn records(bytes: &[u8], piece: usize) -> Vec<String> {
    let mut reader = rdb::file::Reader::default();
    let (mut start, mut end, mut found) = (0, 0, Vec::new());
    loop {
        match reader.next(&bytes[start..end]) {
            Ok(None) if end == bytes.len() => return found,
            Ok(None) => end = (end + piece).min(bytes.len()),
            Ok(Some((record, length))) => {
                assert!(length > 0, "every record takes something");
                if let rdb::file::Record::Key(key) = &record {
                    let restored = rdb::restore(&key.payload(rdb::VERSION_TIMES));
                    assert_eq!(restored.is_ok(), key.value().is_ok(), "a payload is its value");
                }
                found.push(format!("{record:?}"));
                if record == rdb::file::Record::End {
                    return found;
                }
                start += length;
            }
            Err(bad) => {
                found.push(format!("{bad:?}"));
                return found;
            }
        }
    }
}
