//! Addresses of object stores.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lazuli_store_objects::fuzzing::address(data));
