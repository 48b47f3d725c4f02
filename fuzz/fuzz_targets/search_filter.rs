//! The text of a filter, an order or a selection of a search.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lazuli_search_engine::fuzzing::filter(data));
