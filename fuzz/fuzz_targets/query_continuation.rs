//! Continuations of queries.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lazuli_query::fuzzing::query_continuation(data));
