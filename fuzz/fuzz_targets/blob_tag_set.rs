//! Tags, as a header and as a document.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lazuli_blobs::fuzzing::tag_set(data));
