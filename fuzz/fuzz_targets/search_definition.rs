//! The definition of a search index.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lazuli_search_engine::fuzzing::index_definition(data));
