//! Requests on one connection, one behind the other.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lazuli_http::fuzzing::framing(data));
