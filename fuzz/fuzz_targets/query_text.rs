//! Texts of queries, from parsing to rows.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lazuli_query::fuzzing::query_text(data));
