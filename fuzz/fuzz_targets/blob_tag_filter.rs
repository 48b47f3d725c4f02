//! A filter of tags.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lazuli_blobs::fuzzing::tag_filter(data));
