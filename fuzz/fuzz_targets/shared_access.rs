//! The parameters of shared access signatures.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lazuli_azure::fuzzing::shared_access(data));
