//! What must hold of any bytes, for the fuzz targets and for the tests that run them on seeds.

use crate::rdb;

/// Restores a payload. Behind bytes that look like one stand a version and a checksum of zero, so that not all ends there. What
/// can be restored can be dumped, and is the same again.
pub fn payload(bytes: &[u8]) {
    let _ = rdb::restore(bytes);
    let unchecked = [bytes, &10_u16.to_le_bytes(), &[0; 8]].concat();
    let Ok(value) = rdb::restore(&unchecked) else { return };
    let Some(dumped) = rdb::dump(&value) else { return };
    let again = rdb::restore(&dumped).expect("what was dumped is a payload");
    assert_eq!(rdb::dump(&again), Some(dumped), "a value is the same after a dump");
}
