//! Reusable buffers for reading: the buffers of a download return to the pool when they are sent.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

/// Size of a read. Small enough to stay in a core's cache until it is sent.
pub(crate) const BUFFER_BYTES: usize = 128 * 1024;
/// Unused buffers that are kept.
const SPARE_BUFFERS_MAX: usize = 32;

#[derive(Clone, Default)]
pub(crate) struct Pool(Arc<Mutex<Vec<Vec<u8>>>>);

/// A buffer that goes back to its pool when dropped.
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    length: usize,
    pool: Pool,
}

impl Pool {
    /// A buffer of this length, at most [`BUFFER_BYTES`]. It contains old data.
    pub(crate) fn take(&self, length: usize) -> Buffer {
        debug_assert!(length <= BUFFER_BYTES);
        let spare = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let bytes = spare.unwrap_or_else(|| vec![0; BUFFER_BYTES]);
        Buffer { bytes, length, pool: self.clone() }
    }
}

impl Buffer {
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.length]
    }

    pub(crate) fn freeze(self) -> Bytes {
        Bytes::from_owner(self)
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let mut spare = self.pool.0.lock().unwrap_or_else(PoisonError::into_inner);
        if spare.len() < SPARE_BUFFERS_MAX {
            spare.push(std::mem::take(&mut self.bytes));
        }
    }
}
