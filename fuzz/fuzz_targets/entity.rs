//! Entities, from JSON to what is stored.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lazuli_tables::fuzzing::entity(data));
