//! Paths of search.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lazuli_search::fuzzing::search_address(data));
