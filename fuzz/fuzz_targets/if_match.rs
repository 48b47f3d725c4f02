//! The `If-Match` header.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lazuli_tables::fuzzing::if_match(data));
