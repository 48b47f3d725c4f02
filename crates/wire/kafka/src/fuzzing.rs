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
