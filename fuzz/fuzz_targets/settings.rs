//! The XML of properties and policies.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lazuli_azure::fuzzing::settings(data));
