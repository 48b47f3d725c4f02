//! Escapes and query parameters.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lazuli_http::fuzzing::uri(data));
