//! Shared access signatures for one resource.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lazuli_azure::fuzzing::service_access(data));
