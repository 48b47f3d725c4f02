//! What must hold for any bytes; called by fuzz targets and by tests.

use bytes::Bytes;

use crate::batch::{self, Head};

/// The most that is read of a batch here.
const DECOMPRESSED_MAX: usize = 1024 * 1024;

/// A batch is refused, or its records are read or refused; what was read survives being written.
pub fn record_batch(bytes: &[u8]) {
    let bytes = Bytes::copy_from_slice(bytes);
    if let Ok(head) = Head::read(&bytes)
        && let Ok(records) = batch::read(&bytes, DECOMPRESSED_MAX)
    {
        let again = batch::build(0, head.span, &records);
        let read = batch::read(&again, usize::MAX);
        assert_eq!(read.as_deref(), Ok(&records[..]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::HEAD_BYTES;

    const SEEDS: [&[u8]; 6] = [
        include_bytes!("../../../../fuzz/seeds/kafka_batch/one_record"),
        include_bytes!("../../../../fuzz/seeds/kafka_batch/gzip"),
        include_bytes!("../../../../fuzz/seeds/kafka_batch/snappy"),
        include_bytes!("../../../../fuzz/seeds/kafka_batch/lz4"),
        include_bytes!("../../../../fuzz/seeds/kafka_batch/zstd"),
        include_bytes!("../../../../fuzz/seeds/kafka_batch/cut"),
    ];

    #[test]
    fn seeds_and_changes_of_them_are_read_or_refused() {
        let whole = |seed: &'static [u8]| batch::read(&Bytes::from_static(seed), 1_000);
        for seed in &SEEDS[..5] {
            assert_eq!(whole(seed), whole(SEEDS[0]));
        }
        assert!(whole(SEEDS[0]).is_ok());
        for seed in SEEDS {
            record_batch(seed);
            for at in 0..seed.len() {
                for change in [1, 0x80, 0xff] {
                    let mut bytes = seed.to_vec();
                    bytes[at] ^= change;
                    // With its checksum made right again, so that what lies behind the head is read.
                    if bytes.len() > HEAD_BYTES {
                        let checksum = crc32c::crc32c(&bytes[21..]);
                        bytes[17..21].copy_from_slice(&checksum.to_be_bytes());
                    }
                    record_batch(&bytes);
                }
            }
        }
    }
}
