//! JSON texts of documents.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lazuli_value::fuzzing::json_text(data));
