//! Definitions of indexes as they are kept.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lazuli_search::fuzzing::search_index(data));
