//! What must hold for any bytes; called by fuzz targets and by tests.

use bytes::Bytes;

use crate::batch::{self, HEAD_BYTES, Head};

/// A batch is refused, or its records are read or refused; what was read survives being written.
pub fn record_batch(bytes: &[u8]) {
    let bytes = Bytes::copy_from_slice(bytes);
    if let Ok(head) = Head::check(&bytes)
        && let Ok(records) = batch::records(&head, bytes.slice(HEAD_BYTES..))
    {
        let again = batch::build(0, &records);
        let head = Head::check(&again).expect("what was built is a batch");
        let read = batch::records(&head, again.slice(HEAD_BYTES..));
        assert_eq!(read.as_deref(), Ok(&records[..]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEEDS: [&[u8]; 2] = [
        include_bytes!("../../../../fuzz/seeds/kafka_batch/one_record"),
        include_bytes!("../../../../fuzz/seeds/kafka_batch/cut"),
    ];

    #[test]
    fn seeds_and_changes_of_them_are_read_or_refused() {
        assert!(Head::check(&Bytes::from_static(SEEDS[0])).is_ok());
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
