//! The header of shared keys.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lazuli_azure::fuzzing::authorization(data));
