//! Texts of statements.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lazuli_sql::fuzzing::statements(data));
