//! The codec of keys.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lazuli_shardmap::key::fuzzing::key(data));
