//! The JSON of entities.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lazuli_azure::fuzzing::entity(data));
