//! Stored entities, damaged or not.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lazuli_tables::fuzzing::stored(data));
