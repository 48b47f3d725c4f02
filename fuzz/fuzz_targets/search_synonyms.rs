//! The rules of a synonym map.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lazuli_search_engine::fuzzing::synonym_rules(data));
