//! The properties of the Blob service.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lazuli_blobs::fuzzing::properties(data));
