//! The list of blocks that a blob is made of.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lazuli_blobs::fuzzing::block_list(data));
