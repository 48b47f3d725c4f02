//! A search text in both syntaxes.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lazuli_search_engine::fuzzing::search_text(data));
