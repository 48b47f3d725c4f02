//! Dates of HTTP and OData.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lazuli_http::fuzzing::date(data));
