//! Requests of the cache.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lazuli_resp::fuzzing::request(data));
