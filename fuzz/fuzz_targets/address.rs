//! Hosts and paths.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lazuli_tables::fuzzing::address(data));
